// Degrees applied to lanes: see degree_effects.h.
#include "userspace/core/degree_effects.h"

#include <algorithm>

#include "maps/plan.h"
#include "userspace/core/shard_ladder.h"

namespace edgeshed::core {
namespace {

/// Share of the loop that guaranteed gaps may take, and the longest that a gap becomes for it.
constexpr double kGapShareMax = 0.2;
constexpr double kGapMsMax = 2000;
/// Smoothing of what passes, per tick; the most that a level is corrected by.
constexpr double kLevelGain = 0.15;
constexpr double kLevelFactorMax = 64;
/// As the configuration's own levels: beyond it a level's clock would overflow within months.
constexpr double kTokensPerSMax = 1e5;

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

double tier_rate(const RoomDemand& rates, uint16_t lane_tiers, uint8_t tier) {
  double per_s = 0;
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    if (es_lane_tier(lane_tiers, static_cast<uint8_t>(lane)) == tier)
      per_s += rates.lane[lane].per_s;
  }
  return per_s;
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
  LadderEffects effects = floor;
  const double share = share_of_thinned(floor, degree.keep_best_effort, costs, lane_tiers);
  for (LaneEffect& lane : effects.lane) {
    if (lane.paused) continue;
    for (double& keep : lane.keep) keep += std::max(0.0, share - keep) * (1 - overrun / 2);
    if (overrun < 1) lane.min_interval_ms = 0;
  }
  return effects;
}

double standard_level(double keep, double standard_per_s, double weights) {
  if (keep >= 1 || weights <= 0 || standard_per_s <= 0) return 0;
  return std::clamp(keep * standard_per_s / weights, 0.1, kTokensPerSMax);
}

double best_effort_message_share(const RoomDemand& rates, uint16_t lane_tiers,
                                 const ShardDemand& demand) {
  const double per_s = tier_rate(rates, lane_tiers, ES_TIER_best_effort);
  return per_s <= 0 ? 0 : demand.tier[ES_TIER_best_effort] / per_s;
}

double affordable_gap_ms(double max_gap_ms, double connections, double message_share) {
  if (max_gap_ms <= 0) return max_gap_ms;
  const double affordable_ms = 1000 * connections * message_share / kGapShareMax;
  return std::clamp(affordable_ms, max_gap_ms, std::max(max_gap_ms, kGapMsMax));
}

void step(LevelScale& scale, double keep, uint64_t arrived_ever, uint64_t passed_ever) {
  const auto arrived = static_cast<double>(arrived_ever - scale.arrived_ever);
  const auto passed = static_cast<double>(passed_ever - scale.passed_ever);
  const bool begun = scale.arrived_ever != 0;
  scale.arrived_ever = arrived_ever;
  scale.passed_ever = passed_ever;
  if (!begun || arrived < 0 || passed < 0) return;
  scale.arrived_per_step += kLevelGain * (arrived - scale.arrived_per_step);
  scale.passed_per_step += kLevelGain * (passed - scale.passed_per_step);
  if (keep >= 1 || scale.arrived_per_step <= 0) return;
  const double wanted = keep * scale.arrived_per_step;
  const double wrong = wanted / std::max(scale.passed_per_step, wanted / 2);
  scale.factor = std::clamp(scale.factor * std::clamp(wrong, 0.93, 1.08), 1.0, kLevelFactorMax);
}

double gap_reserve(const RoomDemand& rates, uint16_t lane_tiers, const ShardDemand& demand,
                   double connections, double max_gap_ms) {
  const double best_effort_per_s = tier_rate(rates, lane_tiers, ES_TIER_best_effort);
  if (max_gap_ms <= 0 || best_effort_per_s <= 0) return 0;
  const double guaranteed_per_s = connections * 1000 / max_gap_ms;
  return demand.tier[ES_TIER_best_effort] * std::min(1.0, guaranteed_per_s / best_effort_per_s);
}

double standard_rate(const RoomDemand& rates, uint16_t lane_tiers) {
  return tier_rate(rates, lane_tiers, ES_TIER_standard);
}

}  // namespace edgeshed::core
