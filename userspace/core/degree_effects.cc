// Degrees applied to lanes: see degree_effects.h.
#include "userspace/core/degree_effects.h"

#include <algorithm>

#include "maps/plan.h"
#include "userspace/core/shard_ladder.h"

namespace edgeshed::core {
namespace {

bool is_best_effort(uint16_t lane_tiers, uint32_t lane) {
  return es_lane_tier(lane_tiers, static_cast<uint8_t>(lane)) == ES_TIER_best_effort;
}

/// Nothing of a lane is shed by the floor.
bool untouched(const LaneEffect& lane) {
  return !lane.paused && lane.keep[ES_IN] >= 1 && lane.keep[ES_OUT] >= 1;
}

/// The share of the thinned lanes that brings best-effort as a whole to `keep`.
double share_of_thinned(const LadderEffects& floor, double keep, const LaneCosts& costs,
                        uint16_t lane_tiers) {
  double all = 0;
  double whole = 0;
  double thinned = 0;
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    if (!is_best_effort(lane_tiers, lane)) continue;
    all += costs[lane];
    if (lane < kFirstThinLane || untouched(floor.lane[lane - kFirstThinLane])) {
      whole += costs[lane];
    } else if (!floor.lane[lane - kFirstThinLane].paused) {
      thinned += costs[lane];
    }
  }
  if (thinned <= 0) return keep;
  return std::clamp((keep * all - whole) / thinned, 0.0, 1.0);
}

/// What the rung allows, but for a degree that cuts into standard: then best-effort is spent, and
/// no rung keeps more of it than the degree does.
LadderEffects bound_of(const LadderEffects& floor, const Degree& degree) {
  LadderEffects bound = floor;
  if (degree.keep_standard >= 1) return bound;
  for (LaneEffect& lane : bound.lane) {
    for (double& keep : lane.keep) keep = std::min(keep, degree.keep_best_effort);
  }
  return bound;
}

}  // namespace

LaneCosts lane_costs(const RoomDemand& rates, const CostState& state, const CostConfig& config) {
  LaneCosts costs = {};
  if (!state.known) return costs;
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    costs[lane] =
        rates.lane[lane].per_s * lane_cost_us(config, lane) * state.unit_us * state.scale / 1e6;
  }
  return costs;
}

double overrun(const ShardSignals& signals) {
  const double tick_ms = std::max(signals.tick_p99_ms, signals.running_tick_age_ms);
  const double by_tick = (tick_ratio(tick_ms, signals.frame_budget_ms) - 1) / 0.25;
  const double by_queue = (signals.ring_occupancy - 0.7) / 0.3;
  return std::clamp(std::max(by_tick, by_queue), 0.0, 1.0);
}

LadderEffects with_degree(const LadderEffects& floor, const Degree& degree, double overrun,
                          const LaneCosts& costs, uint16_t lane_tiers) {
  LadderEffects effects = bound_of(floor, degree);
  const double share = share_of_thinned(effects, degree.keep_best_effort, costs, lane_tiers);
  for (LaneEffect& lane : effects.lane) {
    if (lane.paused) continue;
    for (double& keep : lane.keep) keep += std::max(0.0, share - keep) * (1 - overrun / 2);
    if (overrun < 1) lane.min_interval_ms = 0;
  }
  return effects;
}

double kept_best_effort(const LadderEffects& effects, const RoomDemand& rates,
                        uint16_t lane_tiers) {
  double offered = 0;
  double kept = 0;
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    if (!is_best_effort(lane_tiers, lane)) continue;
    double keep = 1;
    if (lane >= kFirstThinLane) {
      const LaneEffect& effect = effects.lane[lane - kFirstThinLane];
      keep = effect.paused ? 0 : effect.keep[ES_IN];
    }
    offered += rates.lane[lane].per_s;
    kept += rates.lane[lane].per_s * keep;
  }
  return offered > 0 ? kept / offered : 1;
}

void loosen(LadderEffects& effects, double slack) {
  for (LaneEffect& lane : effects.lane) {
    lane.keep[ES_IN] = std::min(1.0, lane.keep[ES_IN] * slack);
  }
}

double tier_rate(const RoomDemand& rates, uint16_t lane_tiers, uint32_t tier) {
  double per_s = 0;
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    if (es_lane_tier(lane_tiers, static_cast<uint8_t>(lane)) == tier)
      per_s += rates.lane[lane].per_s;
  }
  return per_s;
}

double best_effort_message_share(const RoomDemand& rates, uint16_t lane_tiers,
                                 const ShardDemand& demand) {
  const double per_s = tier_rate(rates, lane_tiers, ES_TIER_best_effort);
  return per_s <= 0 ? 0 : demand.tier[ES_TIER_best_effort] / per_s;
}

double gap_reserve(const RoomDemand& rates, uint16_t lane_tiers, const ShardDemand& demand,
                   double connections, double max_gap_ms) {
  const double best_effort_per_s = tier_rate(rates, lane_tiers, ES_TIER_best_effort);
  if (max_gap_ms <= 0 || best_effort_per_s <= 0) return 0;
  const double guaranteed_per_s = connections * 1000 / max_gap_ms;
  return demand.tier[ES_TIER_best_effort] * std::min(1.0, guaranteed_per_s / best_effort_per_s);
}

}  // namespace edgeshed::core
