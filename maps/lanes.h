/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The lists of tiers, lanes and endpoint protocols. Each exists once; an entry makes the enum, the
 * name in JSON and TOML, and the help text.
 */
#ifndef EDGESHED_MAPS_LANES_H
#define EDGESHED_MAPS_LANES_H

#include "maps/types.h"

/* tier: name, text. The order is the order of value: a lower number is kept longer. */
#define ES_TIER_LIST(X)                                                            \
  X(critical, "never shed by load; beyond its contract demoted to standard")       \
  X(standard, "refused with a reason and a retry-after once best-effort is spent") \
  X(best_effort, "thinned first, evenly spaced")

enum es_tier {
#define X(name, text) ES_TIER_##name,
  ES_TIER_LIST(X)
#undef X
      ES_TIERS,
};

/* lane: name, default tier, text. Lanes 4 to 7 have a thinning state of their own; a lane below 4
 * that is configured best-effort shares the state of lane + 4. */
#define ES_LANE_LIST(X)                                                       \
  X(control, critical, "acknowledgements, keep-alives, disconnects")          \
  X(join, critical, "handshakes; capped, and refused to strangers by rung 4") \
  X(command, standard, "client commands and input, mixed datagrams")          \
  X(event, critical, "reliable game events")                                  \
  X(snapshot, best_effort, "world state that the next one replaces")          \
  X(stream, best_effort, "numbered state streams")                            \
  X(voice, best_effort, "voice")                                              \
  X(cosmetic, best_effort, "effects, queries: nice to have")

enum es_lane {
#define X(name, tier, text) ES_LANE_##name,
  ES_LANE_LIST(X)
#undef X
      ES_LANES,
};
ES_STATIC_ASSERT(ES_LANES == 8, "lane masks are one byte");

/* Rows of the counters: the lanes, and two kinds of packets that have no lane of their own. */
enum es_row {
  ES_ROW_DEMOTED = ES_LANES, /* critical beyond its contract, treated as standard */
  ES_ROW_UNCLASSIFIED,       /* decided before a lane was known */
  ES_ROWS,
};

/* protocol: name, text. Chosen per endpoint by the configuration, never guessed. */
#define ES_PROTOCOL_LIST(X)                                  \
  X(opaque, "one lane for everything")                       \
  X(enet, "ENet 1.3: plain, CRC32 or compressed")            \
  X(lane, "the EdgeShed lane header")                        \
  X(dscp, "the lane is looked up by the DSCP of the packet") \
  X(match, "up to 8 rules of offset, mask and value")

enum es_protocol {
#define X(name, text) ES_PROTOCOL_##name,
  ES_PROTOCOL_LIST(X)
#undef X
      ES_PROTOCOLS,
};

#endif
