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

/* Unit of es_ack_watch.lag for ENet, whose acknowledgements tell times: about a game's tick. */
#define ES_ACK_LAG_UNIT_MS 16u
/* Farther behind nobody plays on: 8 s, or as many updates. */
#define ES_ACK_LAG_MAX 8191u
/* es_ack_watch.acked_at counts jiffies >> this: 1 s at 250 Hz, a quarter at 1000. */
#define ES_ACK_AT_SHIFT 8

/** How far a player's acknowledgements are behind what it was sent, as the packet path sees it go
 * by: protocols enet and lane, of packets that are looked up. Two CPUs write: each word by itself.
 */
struct es_ack_watch {
  __u16 sent; /* newest number sent: ENet's sent time in ms, or a lane header's; 0: none */
  __u8 lag;   /* sent - acknowledged at the last acknowledgement, in 16 ms or updates; 255: more */
  __u8 acked_at; /* when that was; 0: never */
};
ES_ASSERT_SIZE(struct es_ack_watch, 4);

/** Refusals that were answered or told. Low 16 bits of jiffies: after a rest of 2^16 one more may
 * be kept from the sender or server. */
struct es_refusal_notes {
  __u16 reject_jiffies; /* last reject sent */
  __u16 told_jiffies;   /* last refusal that the server was told of */
};
ES_ASSERT_SIZE(struct es_refusal_notes, 4);

/** State of one direction: one cache line.
 * contract[tier]: {packet debt, byte debt} as 32-bit times in 2^-16 jiffy, low and high half of one
 * word, so that one CAS charges both. level[standard, best-effort]: debt on the room's level clock.
 */
struct es_flow_state {
  __u64 contract[ES_TIERS];
  __u64 level[2];
  struct es_thin thin[4]; /* lane & 3 */
  __u32 seen_jiffies;     /* last packet that came to the contract, low 32 bits */
  union {
    struct es_refusal_notes refusals; /* of the way in */
    struct es_ack_watch acks;         /* of the way out */
  };
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

/* Bit of es_stream_slot.stream_id: what comes of the stream is dropped until it is opened again. */
#define ES_STREAM_CLOSED 0x80000000u

/** A state stream of a player. Windows are sliding seconds, see bpf/govern.h for the packing. */
struct es_stream_slot {
  __u32 stream_id;    /* stream number + 1, and ES_STREAM_CLOSED; 0: free. Claimed by CAS */
  __u32 seen_jiffies; /* low 32 bits; last sample, refused ones only where streams are closed */
  __u64 samples_window;
  __u64 bytes_window;
};
ES_ASSERT_SIZE(struct es_stream_slot, 24);

/** Has nobody sent on a stream for as long as it is remembered, so that its slot is free? `holder`
 * and `seen_jiffies`: of the slot; `jiffies`: now, low 32 bits. */
ES_SHARED_INLINE int es_stream_forgotten(__u32 holder, __u32 seen_jiffies, __u32 jiffies,
                                         __u32 hz) {
  __u32 seconds = holder & ES_STREAM_CLOSED ? ES_STREAM_REOPEN_SECONDS : ES_STREAM_IDLE_SECONDS;
  return !holder || jiffies - seen_jiffies > seconds * hz;
}

/** What is remembered of a stream beside its windows: low 16 bits of jiffies. After a rest of 2^16
 * jiffies one hint may be kept back. */
struct es_stream_note {
  __u16 hinted_jiffies;        /* last hint that was told */
  __u16 refused_jiffies;       /* last refusal */
  __u16 refused_since_jiffies; /* first one of a row without a second's pause */
};
ES_ASSERT_SIZE(struct es_stream_note, 6);

struct es_stream_block {
  __u64 player_bytes_window;
  struct es_stream_note note[ES_STREAM_SLOTS]; /* of the slot with the same index */
  __u64 reserved;
  struct es_stream_slot slot[ES_STREAM_SLOTS];
};
ES_ASSERT_SIZE(struct es_stream_block, 256);

#endif
