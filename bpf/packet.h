/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What the six steps know about one packet. Each group is written by the step that it is named
 * after and only read by later ones. Small on purpose: it lives on a 512-byte stack.
 */
#ifndef EDGESHED_BPF_PACKET_H
#define EDGESHED_BPF_PACKET_H

#include "maps/connection.h"
#include "maps/types.h"

#define ES_UNDECIDED 0xffu
#define ES_NO_ROOM 0xffffu

enum es_fragment_kind { ES_FRAG_NONE, ES_FRAG_FIRST, ES_FRAG_LATER };

/** Both ends as they stand on the wire; parse and flow only, so that it leaves the stack early. */
struct es_wire {
  __u64 src_hi, src_lo, dst_hi, dst_lo; /* network order; IPv4 is ::ffff:a.b.c.d */
  __u32 fragment_id;
  __u16 src_port, dst_port; /* network order */
};

struct es_packet {
  /* flow */
  struct es_key remote;

  /* parse */
  __u64 fragment_hash; /* of (src, dst, id) when `fragment` is set */
  __u32 ip_bytes;  /* charged: IP length; of a first fragment the whole datagram's; all segments */
  __u16 segments;  /* packets charged */
  __u16 l3_offset; /* bytes from the start of the frame */
  __u16 l4_offset;
  __u16 payload_len;  /* UDP payload that the UDP header promises */
  __u8 family;        /* 4 or 6 */
  __u8 traffic_class; /* DSCP << 2 | ECN */
  __u8 fragment;      /* enum es_fragment_kind */

  /* flow */
  __u8 direction;
  __u8 endpoint; /* 0: the host */

  /* classify */
  __u8 lane;
  __u8 walk_error; /* the payload broke its protocol */
  __u8 has_stream;
  __u16 stream;
  __u16 sequence; /* protocol lane: of this packet, network order */
  __u8 numbered;  /* `number` is what the player was sent, or on the way in what it acknowledged */
  __u8 is_time;   /* `number` is a time in ms */
  __u16 number;   /* see es_ack_watch */

  /* decide */
  __u32 record; /* the connection's, counted from 1; 0: none was looked up */
  __u16 room;   /* ES_NO_ROOM: not looked up */
  __u8 tier;    /* enum es_tier, effective: after caps and demotion */
  __u8 row;     /* counter row */
  __u8 reason;  /* enum es_reason, or ES_UNDECIDED */
  __u8 verdict;
  __u8 priority;
  __u8 arrived;  /* past its contract: counts as demand of the room */
  __u8 hinted;   /* an accepted sample of a stream that comes near its limit */
  __u8 shadowed; /* what shadow mode would have done: a reason, or ES_UNDECIDED */
};

#endif
