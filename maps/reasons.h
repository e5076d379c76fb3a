/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Why a packet got its verdict: one list. It makes the enum, the counter column, the JSON name and
 * the help text. A new reason goes at the end of its group and raises ES_SCHEMA_VERSION.
 */
#ifndef EDGESHED_MAPS_REASONS_H
#define EDGESHED_MAPS_REASONS_H

#include "maps/types.h"

#define ES_VERDICT_LIST(X) X(pass) X(mark) X(drop) X(reject)

enum es_verdict {
#define X(name) ES_VERDICT_##name,
  ES_VERDICT_LIST(X)
#undef X
      ES_VERDICTS,
};

/* What a reason means for a room's ledger. `open` is fail-open: passed for want of a decision. */
#define ES_OUTCOME_LIST(X) \
  X(admitted) X(marked) X(open) X(contract) X(governor) X(ladder) X(fair_share) X(admission)

enum es_outcome {
#define X(name) ES_OUTCOME_##name,
  ES_OUTCOME_LIST(X)
#undef X
      ES_OUTCOMES,
};

/* reason: name, verdict, outcome, text. `reject` is no column of its own: it is a drop that was
 * answered, counted beside it (es_endpoint_counters.rejected). */
#define ES_REASON_LIST(X)                                                                      \
  X(admitted, pass, admitted, "looked up and within every limit")                              \
  X(class_pass, pass, admitted, "the lane is in the endpoint's pass mask")                     \
  X(stranger, pass, admitted, "no connection of ours, within the endpoint's stranger rules")   \
  X(marked_ce, mark, marked, "passed with ECN congestion experienced")                         \
  X(marked_le, mark, marked, "passed with DSCP lower effort")                                  \
  X(not_ours, pass, open, "no registered endpoint")                                            \
  X(not_udp, pass, open, "not IPv4 or IPv6 with UDP")                                          \
  X(bypass, pass, open, "bypass is on")                                                        \
  X(shadow, pass, open, "shadow mode: would have been shed")                                   \
  X(no_plan, pass, open, "no plan has been published yet")                                     \
  X(torn_plan, pass, open, "two plans were seen, twice")                                       \
  X(dead_man, pass, open, "the plan has expired: tier shedding is opening")                    \
  X(no_record, pass, open, "a table entry or a row was missing")                               \
  X(malformed_link, pass, open, "the frame ends inside the Ethernet or VLAN header")           \
  X(malformed_ip, pass, open, "the IP header is cut short or contradicts itself")              \
  X(malformed_udp, pass, open, "the UDP header is cut short or contradicts itself")            \
  X(too_deep, pass, open, "more VLAN tags or extension headers than are walked")               \
  X(frag_unknown, pass, open, "a later fragment whose first was not seen")                     \
  X(contract, drop, contract, "beyond the connection's contract")                              \
  X(stream_rate, drop, governor, "the stream's samples per second")                            \
  X(stream_bytes, drop, governor, "the stream's bytes per second")                             \
  X(player_bytes, drop, governor, "the player's bytes per second over all streams")            \
  X(room_bytes, drop, governor, "the room's bytes per second over all players")                \
  X(stream_cap, drop, governor, "more distinct streams than a player may have")                \
  X(stream_closed, drop, governor, "the stream is closed until it is opened again")            \
  X(lane_paused, drop, ladder, "the lane is paused in every room of the endpoint")             \
  X(room_paused, drop, ladder, "the lane is paused in the room")                               \
  X(slot_priority, drop, ladder, "priority below the threshold of every room of the endpoint") \
  X(priority, drop, ladder, "priority below the room's threshold of the tier")                 \
  X(min_interval, drop, ladder, "sooner after the last one than the rung allows")              \
  X(thinned, drop, ladder, "thinned out, evenly spaced")                                       \
  X(backpressure_throttle, drop, ladder, "replication to a player who reads too slowly")       \
  X(fair_share, drop, fair_share, "beyond the fair share of its tier")                         \
  X(join_refused, drop, admission, "the shard refuses joins")                                  \
  X(handshake_cap, drop, admission, "more handshakes from strangers than the cap")

enum es_reason {
#define X(name, verdict, outcome, text) ES_REASON_##name,
  ES_REASON_LIST(X)
#undef X
      ES_REASONS,
};

/* Columns of a counter row; spare columns keep the row's size when a reason is added. */
#define ES_REASON_COLUMNS 40
ES_STATIC_ASSERT(ES_REASONS <= ES_REASON_COLUMNS, "widen ES_REASON_COLUMNS and the schema");

/* Verdict and outcome of a reason as bit planes over the list: a shift and a mask on the packet
 * path, where a switch would be a chain of branches. */
ES_STATIC_ASSERT(ES_REASONS <= 64, "a bit plane is one word");
ES_STATIC_ASSERT(ES_VERDICTS <= 4 && ES_OUTCOMES <= 8, "two and three bit planes");

/* NOLINTBEGIN(bugprone-macro-parentheses): the entries are joined by the trailing operator */
#define X(name, verdict, outcome, text) \
  ((__u64)((ES_VERDICT_##verdict >> ES_PLANE) & 1) << ES_REASON_##name) |
#define ES_PLANE 0
static const __u64 es_verdict_plane_0 = ES_REASON_LIST(X) 0;
#undef ES_PLANE
#define ES_PLANE 1
static const __u64 es_verdict_plane_1 = ES_REASON_LIST(X) 0;
#undef X
#define X(name, verdict, outcome, text) \
  ((__u64)((ES_OUTCOME_##outcome >> ES_PLANE) & 1) << ES_REASON_##name) |
#undef ES_PLANE
#define ES_PLANE 0
static const __u64 es_outcome_plane_0 = ES_REASON_LIST(X) 0;
#undef ES_PLANE
#define ES_PLANE 1
static const __u64 es_outcome_plane_1 = ES_REASON_LIST(X) 0;
#undef ES_PLANE
#define ES_PLANE 2
static const __u64 es_outcome_plane_2 = ES_REASON_LIST(X) 0;
#undef ES_PLANE
#undef X
/* NOLINTEND(bugprone-macro-parentheses) */

/** The verdict that a reason implies: enum es_verdict. reason 0 to 63. */
ES_SHARED_INLINE __u8 es_reason_verdict(__u32 reason) {
  return (__u8)(((es_verdict_plane_0 >> (reason & 63)) & 1) |
                ((es_verdict_plane_1 >> (reason & 63)) & 1) << 1);
}

/** The ledger column of a room that a reason counts in: enum es_outcome. reason 0 to 63. */
ES_SHARED_INLINE __u8 es_reason_outcome(__u32 reason) {
  return (__u8)(((es_outcome_plane_0 >> (reason & 63)) & 1) |
                ((es_outcome_plane_1 >> (reason & 63)) & 1) << 1 |
                ((es_outcome_plane_2 >> (reason & 63)) & 1) << 2);
}

#endif
