// From a degree to lanes: how much of what a rung may shed is shed. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "maps/lanes.h"
#include "userspace/core/degree.h"
#include "userspace/core/demand.h"
#include "userspace/core/ladder_effects.h"
#include "userspace/core/signals.h"

namespace edgeshed::core {

/// What arrives at a shard per lane, as shares of the time that its loop has.
using LaneCosts = std::array<double, ES_LANES>;

/// Costs of a shard's lanes from its rates. All 0 while costs are not known.
LaneCosts lane_costs(const RoomDemand& rates, const CostState& state, const CostConfig& config);

/// How far the degree is not to be believed, 0 to 1: the loop itself, or its queue, says that it is
/// overrun although what is offered should fit. 0 up to a tick as long as its budget (queue .7), 1
/// from 1.25 times on (queue full): one rung of the ladder wide. The p99 is over a second, so after
/// a step this holds the rung's table for as long.
double overrun(const ShardSignals& signals);

/// `floor`, the table's effects as they are ramped, with best-effort kept as far as the degree
/// allows: the rung bounds what may be shed, the degree says how much of it.
/// - A lane's keep is the larger of its floor and the share that makes best-effort as a whole come
///   to degree.keep_best_effort, given what is paused and what the rung does not touch.
/// - By `overrun`, 0 to 1, it moves half the way from there to its floor: the p99 remembers one
/// long
///   tick for a second, and a table that goes down to nothing makes the next ones uneven.
/// - Minimum intervals act at an `overrun` of 1 only: beside a keep they would shed a second time.
/// - While standard is cut best-effort is spent: then the table bounds nothing of it.
/// - Pauses, thresholds, marks and joins are the rung's alone.
LadderEffects with_degree(const LadderEffects& floor, const Degree& degree, double overrun,
                          const LaneCosts& costs, uint16_t lane_tiers);

/// Share of best-effort's messages that `effects` lets in, 0 to 1; 1 while none are offered.
double kept_best_effort(const LadderEffects& effects, const RoomDemand& rates, uint16_t lane_tiers);

/// Multiplies the keeps of what comes in by `slack`, up to 1. What is paused stays paused.
void loosen(LadderEffects& effects, double slack);

/// Cost of best-effort's guaranteed gap, as a share of the loop: one message per max_gap_ms of each
/// of `connections`. 0 without a guarantee, or while nothing arrives.
double gap_reserve(const RoomDemand& rates, uint16_t lane_tiers, const ShardDemand& demand,
                   double connections, double max_gap_ms);

/// Share of the loop that one best-effort message per second takes; 0 while none arrive.
double best_effort_message_share(const RoomDemand& rates, uint16_t lane_tiers,
                                 const ShardDemand& demand);

/// Messages per second of all lanes of a tier.
double tier_rate(const RoomDemand& rates, uint16_t lane_tiers, uint32_t tier);

}  // namespace edgeshed::core
