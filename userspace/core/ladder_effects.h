// What each rung sheds: a table from rung to lanes, thresholds and marks. Data and its checks only;
// when a rung applies is decided in shard_controller.h, how it is published in plan_rows.h.
// Critical cannot be expressed here: there is a place for the four thinnable lanes and for the
// tiers standard and best-effort, and no other.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "maps/lanes.h"
#include "maps/types.h"
#include "userspace/core/shard_ladder.h"

namespace edgeshed::core {

/// Lanes that have thinning state on the packet path: snapshot, stream, voice, cosmetic.
inline constexpr uint32_t kFirstThinLane = ES_LANE_snapshot;
inline constexpr uint32_t kThinLanes = ES_LANES - kFirstThinLane;
/// Tiers that the ladder may touch; index tier - 1.
inline constexpr uint32_t kSheddableTiers = 2;
inline constexpr uint32_t kTierStandard = 0;
inline constexpr uint32_t kTierBestEffort = 1;

/// What a rung does to one lane.
struct LaneEffect {
  std::array<double, ES_DIRECTIONS> keep = {1.0, 1.0};  ///< share kept, 0 to 1
  double min_interval_ms = 0;                           ///< 0: none
  bool paused = false;                                  ///< nothing passes, max_gap_ms included
  bool lower_effort = false;                            ///< what passes is marked DSCP LE
};

/// What a rung does. A keep of 0 that is not paused still passes one packet per max_gap_ms.
struct LadderEffects {
  std::array<LaneEffect, kThinLanes> lane;                 ///< index lane - kFirstThinLane
  std::array<double, kSheddableTiers> threshold = {0, 0};  ///< priorities below are shed, 0 to 255
  double max_gap_ms = 250;  ///< longest silence on a thinned lane; 0: no guarantee
  double gap_spread = 0;    ///< share of it since a cut, 0 to 1; 0: longer ago (es_room_rules)
  double ce_share = 0;      ///< share of ECT packets marked CE, 0 to 1
  bool refuse_joins = false;
};

using LadderTable = std::array<LadderEffects, kRungs>;

/// The default table; each number has its reason in ladder_effects.cc.
LadderTable default_ladder_table();

/// Empty when the table is sound; otherwise one line that names rung, lane and rule. The rules:
/// every number in range, rung 0 sheds nothing, rungs 4 and 5 and no others refuse joins, and no
/// rung keeps more of anything than the rung below it.
std::string check_ladder_table(const LadderTable& table);

/// The least share that is kept of the best-effort lanes, pauses included.
double least_keep(const LadderEffects& effects);

/// True when `higher` keeps no more of anything than `lower`.
bool keeps_no_more(const LadderEffects& higher, const LadderEffects& lower);

}  // namespace edgeshed::core
