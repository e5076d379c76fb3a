/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The plan: everything that one tick publishes. Two copies of every row; copy (generation & 1)
 * belongs to the generation that the control page names. The writer clears a row's generation,
 * writes the row, stores the new generation, and after the last row flips the control page: one
 * store. A reader copies what it needs and then compares the row's generation with the one it read
 * first; x86 keeps both orders. Rows of the spare copy are therefore never trusted by accident.
 *
 * Index of a row: copy * (rows per copy) + number.
 */
#ifndef EDGESHED_MAPS_PLAN_H
#define EDGESHED_MAPS_PLAN_H

#include "maps/lanes.h"
#include "maps/limits.h"
#include "maps/types.h"

#define ES_EP_SHADOW 0x01u      /* decide and count, shed nothing */
#define ES_EP_ANY_ADDRESS 0x02u /* matches every local address */
#define ES_EP_ENET_CRC 0x04u    /* ENet hosts of this endpoint use the CRC32 */
#define ES_EP_REFUSE_JOINS 0x08u
#define ES_EP_REJECTS 0x10u /* answer refused standard packets (protocol lane) */

/** A rule of protocol `match`: (4 bytes BE at offset & mask) == value -> lane. Unused: mask 0.
 * `offset` counts from the start of the UDP payload, 0 to 255. */
struct es_match_rule {
  __u16 offset;
  __u8 lane;
  __u8 reserved;
  __u32 mask;
  __u32 value;
};
ES_ASSERT_SIZE(struct es_match_rule, 12);

/** How an endpoint's protocol turns a packet into a lane. */
union es_classifier {
  __u8 enet_channel[ES_ENET_CHANNELS]; /* reliable lane << 4 | unreliable lane; last: the rest */
  __u8 dscp_lane[64];
  struct es_match_rule match[ES_MATCH_RULES];
  __u8 bytes[128];
};
ES_ASSERT_SIZE(union es_classifier, 128);

/** One endpoint. Masks have one bit per lane. Line one decides most packets. */
struct es_plan_endpoint {
  __u32 generation;    /* 0: no such endpoint */
  __u8 protocol;       /* enum es_protocol */
  __u8 flags;          /* ES_EP_* */
  __u8 next_same_port; /* endpoint number with the same port and another address; 0: none */
  __u8 default_lane;   /* opaque, and what no rule matched */
  __u64 local_addr_hi; /* network order; IPv4 is ::ffff:a.b.c.d */
  __u64 local_addr_lo;
  __u8 drop_mask[ES_DIRECTIONS]; /* lanes paused in every room */
  __u8 pass_mask[ES_DIRECTIONS]; /* lanes that no room, contract or quota limits */
  __u16 lane_tiers;              /* 2 bits per lane, lane 0 lowest: enum es_tier */
  __u16 stranger_room;           /* whose rules strangers follow */
  /* Priority quartiles (priority >> 6) below this are shed on the slot alone: 0 to 4, per
   * direction and tier (standard, best-effort). */
  __u8 slot_quartiles[ES_DIRECTIONS][2];
  __u8 stranger_tier_cap; /* enum es_tier: a stranger's claim above it is lowered to it */
  __u8 stranger_priority;
  __u16 retry_standard_10ms; /* told to whose standard message is refused, at least */
  __u32 handshakes_per_cpu;  /* handshakes of strangers a CPU passes under this generation */
  __u32 retry_join_ms;       /* told to whose handshake is refused, at least */
  /* What the masks say about a lane without a look at anything else: enum es_lane_action, 2 bits
   * per lane, lane 0 lowest. A summary for bpf/fast.h, written by the plan writer. */
  __u16 lane_actions[ES_DIRECTIONS];
  /* To each of the two a random part up to this is added, so that they do not return together. */
  __u16 retry_standard_spread_10ms;
  __u16 retry_join_spread_10ms;
  __u32 reserved_line[2];
  union es_classifier classifier;
  __u64 name_hash; /* whose number this is, across reloads and restarts: core/numbering.h */
  __u64 reserved_tail[7];
};
ES_ASSERT_SIZE(struct es_plan_endpoint, 256);

/** A contract limit as time: what a packet and a byte cost in 2^-16 jiffy, and how far ahead of the
 * clock a connection may run. cost 0: no limit.
 * packet_cost = 65536 * hz / packets_per_s; byte_cost_q12 = 4096 * 65536 * hz / bytes_per_s;
 * burst = 65536 * burst seconds * hz, at least 2 jiffies plus four packets, or one of 1500 B. */
struct es_limit {
  __u32 packet_cost;
  __u32 packet_burst;
  __u32 byte_cost_q12;
  __u32 byte_burst;
};
ES_ASSERT_SIZE(struct es_limit, 16);

/** A contract class: what a connection may send and be sent at any time. */
struct es_plan_class {
  __u32 generation;
  __u8 tier_cap; /* enum es_tier: a claim above it is lowered to it */
  __u8 reserved[3];
  __u64 name_hash; /* as in es_plan_endpoint */
  struct es_limit limit[ES_DIRECTIONS][ES_TIERS];
  __u32 reserved_tail[4];
};
ES_ASSERT_SIZE(struct es_plan_class, 128);

/** The level of a tier: a virtual clock in tokens x 256 (control law B7).
 * V(now) = v0 + (now - t0_jiffies) * rate_q16 >> 16. rate_q16 counts tokens x 256 per jiffy, Q16.
 * burst 0: no level.
 * begun, if not 0: a level that began under load, when V had these low 32 bits, and is young. Who
 * has not been charged since then begins without a burst, at a phase of its own within one packet:
 * else all connections would spend their bursts at once, and go on in step. */
struct es_level {
  __u64 v0;
  __u64 t0_jiffies;
  __u64 rate_q16;
  __u32 burst;
  __u32 begun;
};
ES_ASSERT_SIZE(struct es_level, 32);

#define ES_KEEP_ALL 65535u

/** What a room sheds in one direction. */
struct es_room_rules {
  __u8 drop_mask; /* lanes paused in this room */
  __u8 le_mask;   /* lanes marked DSCP lower effort */
  __u8 ce_q8;     /* share of ECT packets marked CE: 0 none to 255 all */
  /* Share of max_gap_jiffies that has passed since a cut: until then connections that the cut found
   * alike pass one by one, at phases of their own. 0: the cut was longer ago. */
  __u8 gap_spread_q8;
  __u8 threshold[2];             /* priorities below are shed: standard, best-effort */
  __u16 max_gap_jiffies;         /* a thinned lane passes one after this long; 0: no guarantee */
  __u16 keep_q16[ES_LANES];      /* share kept: ES_KEEP_ALL keeps everything, 0 pauses */
  __u16 min_interval_jiffies[4]; /* lanes 4 to 7 */
  struct es_level level[2];      /* standard, best-effort */
};
ES_ASSERT_SIZE(struct es_room_rules, 96);

/* Bit of es_plan_room.stream_cap: streams that are refused for long are closed. */
#define ES_ROOM_CLOSES 0x80u

/** One room. Costs are tokens x 256: cost = packets * packet_cost + bytes * byte_cost_q8 >> 8. */
struct es_plan_room {
  __u32 generation;
  __u8 stream_cap; /* distinct streams per player, 0: no cap; above 8 acts as 8. ES_ROOM_CLOSES */
  __u8 name_hash_high[3];   /* 56 bits of a name, as in es_plan_endpoint, where there was room */
  __u64 room_bytes_per_cpu; /* stream bytes a CPU may accept under this generation; ~0: no limit */
  __u32 stream_samples_per_s; /* windows of the governor; 0: no limit */
  __u32 stream_bytes_per_s;
  __u32 player_bytes_per_s;
  __u32 name_hash_low;
  __u16 packet_cost[ES_LANES];
  __u16 byte_cost_q8[ES_LANES];
  struct es_room_rules rules[ES_DIRECTIONS];
};
ES_ASSERT_SIZE(struct es_plan_room, 256);

/** Lane -> tier of an endpoint. */
ES_SHARED_INLINE __u8 es_lane_tier(__u16 lane_tiers, __u8 lane) {
  return (lane_tiers >> (2 * lane)) & 3;
}

/* es_plan_endpoint.lane_actions */
enum es_lane_action { ES_LANE_ASKS, ES_LANE_PASSES, ES_LANE_DROPS };

/** The lane actions of a row. Asks also where a drop has more to it than the drop: shadow mode, and
 * a join that is answered. */
ES_SHARED_INLINE __u16 es_lane_actions_of(const struct es_plan_endpoint* row, __u32 direction) {
  __u32 actions = 0;
  for (__u32 lane = 0; lane < ES_LANES; lane++) {
    int drops = ((row->drop_mask[direction] >> lane) & 1) &&
                es_lane_tier(row->lane_tiers, (__u8)lane) == ES_TIER_best_effort;
    int asks =
        (row->flags & ES_EP_SHADOW) || ((row->flags & ES_EP_REJECTS) && lane == ES_LANE_join);
    __u32 action = ES_LANE_ASKS;
    if (!drops)
      action = (row->pass_mask[direction] >> lane) & 1 ? ES_LANE_PASSES : ES_LANE_ASKS;
    else if (!asks)
      action = ES_LANE_DROPS;
    actions |= action << (2 * lane);
  }
  return (__u16)actions;
}

#endif
