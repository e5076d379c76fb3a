/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * A connection's record, its state on the packet path, and its stream slots.
 * Records are written by the daemon only, states by the packet path only.
 */
#ifndef EDGESHED_MAPS_CONNECTION_H
#define EDGESHED_MAPS_CONNECTION_H

#include "maps/lanes.h"
#include "maps/limits.h"
#include "maps/types.h"

/** Identity of a connection: the remote end at an endpoint. IPv4 is ::ffff:a.b.c.d.
 * Compared field by field, never as 24 bytes: the tail is no part of the identity. */
struct es_key {
  __u64 addr_hi; /* network order, as in the packet */
  __u64 addr_lo;
  __u16 port; /* network order */
  __u8 endpoint;
  __u8 reserved;
  __u32 stream_block; /* of a record: number of its stream block, 0 none. Of other keys: 0 */
};
ES_ASSERT_SIZE(struct es_key, 24);

#define ES_CONN_EXEMPT 0x0001u /* `edgeshed allow`: never shed */
/* Who told the daemon of it; the packet path does not look. None of them: `edgeshed connect`. */
#define ES_CONN_OF_CONFIG 0x0002u
#define ES_CONN_OF_SESSION 0x0004u
#define ES_CONN_THROTTLED 0x0008u /* a slow consumer: best-effort to it is dropped */

/** Policy, changed by one store. weight_inverse_q8: 256 / weight, 1 to 65535. */
struct es_policy {
  __u16 room;
  __u8 contract_class;
  __u8 priority; /* 0 to 255, higher is kept longer */
  __u16 flags;   /* ES_CONN_* */
  __u16 weight_inverse_q8;
};
ES_ASSERT_SIZE(struct es_policy, 8);

/** What a thinned lane remembers: the error that diffuses, and when it last passed. */
struct es_thin {
  __u16 error_q16;
  __u16 passed_jiffies;
};
ES_ASSERT_SIZE(struct es_thin, 4);

/** State of one direction: one cache line.
 * contract[tier]: {packet debt, byte debt} as 32-bit times in 2^-16 jiffy, low and high half of one
 * word, so that one CAS charges both. level[standard, best-effort]: debt on the room's level clock.
 */
struct es_flow_state {
  __u64 contract[ES_TIERS];
  __u64 level[2];
  struct es_thin thin[4]; /* lane & 3 */
  __u32 seen_jiffies;     /* last packet that came to the contract, low 32 bits */
  /* Low 16 bits: after a rest of 2^16 jiffies one refusal may be kept from the sender or server. */
  __u16 reject_jiffies; /* last reject sent */
  __u16 told_jiffies;   /* last refusal that the server was told of */
};
ES_ASSERT_SIZE(struct es_flow_state, 64);

/** Record of a connection: what finds it and what it is allowed. Its states are in arrays of their
 * own (es_conns_in, es_conns_out, by the same number): a packet that the room refuses touches none,
 * any other one touches one of them, and two records to a line keep the searched array dense. */
struct es_connection {
  struct es_key key;
  struct es_policy policy;
};
ES_ASSERT_SIZE(struct es_connection, 32);

/** A state stream of a player. Windows are sliding seconds, see bpf/govern.h for the packing. */
struct es_stream_slot {
  __u32 stream_id;    /* stream number + 1; 0: free. Claimed by CAS */
  __u32 seen_jiffies; /* low 32 bits */
  __u64 samples_window;
  __u64 bytes_window;
};
ES_ASSERT_SIZE(struct es_stream_slot, 24);

struct es_stream_block {
  __u64 player_bytes_window;
  __u64 reserved[7];
  struct es_stream_slot slot[ES_STREAM_SLOTS];
};
ES_ASSERT_SIZE(struct es_stream_block, 256);

#endif
