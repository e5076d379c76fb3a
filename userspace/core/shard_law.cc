// One tick of one shard: demand, rung, degree, effects, levels.
#include "userspace/core/shard_law.h"

#include <algorithm>
#include <stdexcept>

#include "maps/plan.h"

namespace edgeshed::core {
namespace {

/// What a server's tick runs over its budget has to be worked off first.
double backlog_ms(const ShardSignals& signals) {
  return std::max(0.0, signals.running_tick_age_ms - signals.frame_budget_ms);
}

uint64_t sum_of_tier(const LaneCounts& counts, uint16_t lane_tiers, uint32_t tier) {
  uint64_t sum = 0;
  for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
    if (es_lane_tier(lane_tiers, lane) == tier) sum += counts[lane];
  }
  return sum;
}

/// An operator's rung acts as its table says, and so does any rung while costs are not known.
bool by_table(const ShardMemory& memory) { return !memory.demand.known || memory.state.overridden; }

}  // namespace

ShardLaw::ShardLaw(const LawConfig& config)
    : config_(config), controller_(config.control, config.ladder) {
  std::string fault = check_cost_config(config.cost);
  if (fault.empty()) fault = check_fair_share_config(config.fair_share);
  if (!fault.empty()) throw std::invalid_argument(fault);
}

ShardMemory ShardLaw::begin() const {
  ShardMemory memory;
  memory.cost = initial_cost(config_.cost);
  return memory;
}

std::optional<RungChange> ShardLaw::step(ShardMemory& memory, const ShardSample& sample,
                                         uint64_t now_ns) const {
  memory.signals = sample.signals;

  // What is offered, from arrivals and what messages cost.
  judge_demand(memory, sample, now_ns);

  // What may be shed, in a fixed order.
  const auto change = controller_.step(memory.state, memory.signals, now_ns);

  // How much of it, and on which lanes.
  const double max_gap_ms =
      affordable_gap_ms(memory.state.effects.max_gap_ms, sample.weights,
                        best_effort_message_share(memory.rates, sample.lane_tiers, memory.demand),
                        config_.fair_share);
  keep_degree(memory, sample, max_gap_ms, now_ns);
  apply_degree(memory, sample, max_gap_ms);

  // And by whom.
  share(memory, sample, now_ns);
  return change;
}

void ShardLaw::judge_demand(ShardMemory& memory, const ShardSample& sample, uint64_t now_ns) const {
  if (sample.done != nullptr) observe_cost(memory.cost, *sample.done, config_.cost);
  core::step(memory.rates, sample.arrived, now_ns, config_.cost);
  memory.demand = begin_demand(memory.cost);
  add_room(memory.demand, memory.rates, sample.lane_tiers, memory.cost, config_.cost);
  memory.signals.offered_cost_ratio = memory.demand.offered_cost_ratio();
}

void ShardLaw::keep_degree(ShardMemory& memory, const ShardSample& sample, double max_gap_ms,
                           uint64_t now_ns) const {
  DegreeInput input;
  input.demand = memory.demand;
  input.backlog_ms = backlog_ms(memory.signals);
  const bool silent = memory.state.report != ReportState::fresh;
  input.signals_missing = sample.has_session && silent ? 1 : 0;
  input.best_effort_reserve =
      gap_reserve(memory.rates, sample.lane_tiers, memory.demand, sample.weights, max_gap_ms);
  const Degree target = target_degree(input, config_.degree);
  core::step(memory.degree, target, config_.control, config_.degree, now_ns);
}

void ShardLaw::apply_degree(ShardMemory& memory, const ShardSample& sample,
                            double max_gap_ms) const {
  memory.effects = memory.state.effects;
  if (by_table(memory)) return;
  const bool fresh = memory.state.report == ReportState::fresh;
  const double part = fresh ? overrun(memory.signals) : 0;
  const LaneCosts costs = lane_costs(memory.rates, memory.cost, config_.cost);
  memory.effects =
      with_degree(memory.state.effects, memory.degree.now, part, costs, sample.lane_tiers);
  memory.effects.max_gap_ms = max_gap_ms;
}

void ShardLaw::share(ShardMemory& memory, const ShardSample& sample, uint64_t now_ns) const {
  const FairShareConfig& config = config_.fair_share;
  for (uint32_t i = 0; i < kSheddableTiers; ++i) {
    const uint32_t tier = i + ES_TIER_standard;
    FairShareInput input;
    input.offered_per_s = tier_rate(memory.rates, sample.lane_tiers, tier);
    input.passed_ever = sum_of_tier(sample.passed, sample.lane_tiers, tier);
    input.weights = sample.weights;
    if (by_table(memory)) {
      input.keep = 1;
    } else if (i == kTierStandard) {
      input.keep = memory.degree.now.keep_standard;
    } else {
      input.keep = kept_best_effort(memory.effects, memory.rates, sample.lane_tiers);
      if (memory.effects.max_gap_ms > 0) input.least_per_s = 1000 / memory.effects.max_gap_ms;
    }
    core::step(memory.level[i], input, config, now_ns);
  }
  // Thinning stops short of what is kept, so that the level has something to take.
  if (memory.level[kTierBestEffort].per_s > 0) loosen(memory.effects, config.thinning_slack);
}

}  // namespace edgeshed::core
