// One tick of one shard: demand, rung, degree, effects, levels.
#include "userspace/core/shard_law.h"

#include <algorithm>
#include <stdexcept>

#include "maps/plan.h"

namespace edgeshed::core {
namespace {

/// A server that should report and does not has lost what it would say. Whatever is missing
/// already because nobody ever measured it stays that.
void flag_missing(ShardMemory& memory, bool has_session) {
  ShardSignals& signals = memory.signals;
  if (!memory.demand.known) signals.missing |= signal_bit(PressureSignal::offered_cost);
  if (memory.state.report == ReportState::fresh) return;
  signals.missing |= source_bits(SignalSource::report);
  if (has_session) signals.lost |= source_bits(SignalSource::report);
}

/// What a server's tick runs over its budget, or waits in its socket, is worked off first.
/// An age that nobody vouches for any more is none.
double backlog_ms(const ShardMemory& memory) {
  const ShardSignals& signals = memory.signals;
  const bool fresh = memory.state.report == ReportState::fresh;
  const double age_ms = fresh ? signals.running_tick_age_ms : 0;
  return std::max({0.0, age_ms - signals.frame_budget_ms, signals.receive_queue_ms});
}

uint64_t sum_of_tier(const LaneCounts& counts, uint16_t lane_tiers, uint32_t tier) {
  uint64_t sum = 0;
  for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
    if (es_lane_tier(lane_tiers, lane) == tier) sum += counts[lane];
  }
  return sum;
}

/// A paused lane is dropped before any contract is asked, so that a flood on it would count as
/// demand: its rate does not grow while it is paused.
void bound_paused(ShardMemory& memory) {
  for (uint32_t i = 0; i < kThinLanes; ++i) {
    ArrivalRate& rate = memory.rates.lane[kFirstThinLane + i];
    double& at_most = memory.paused_at[i];
    if (!memory.effects.lane[i].paused) at_most = rate.per_s;
    rate.per_s = std::min(rate.per_s, at_most);
  }
}

/// The same, by the tick that is running alone: a p99 remembers one long tick for a second.
double overrun_running(const ShardMemory& memory) {
  ShardSignals signals = memory.signals;
  signals.tick_p99_ms = 0;
  return memory.state.report == ReportState::fresh ? overrun(signals) : 0;
}

/// How far the loop itself, not what is known of costs, says that it is overrun.
double overrun_now(const ShardMemory& memory) {
  return memory.state.report == ReportState::fresh ? overrun(memory.signals) : 0;
}

/// An operator's rung acts as its table says, and best-effort does while costs are not known.
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
  flag_missing(memory, sample.has_session);

  // How much of it, and on which lanes.
  const double max_gap_ms =
      affordable_gap_ms(memory.state.effects.max_gap_ms, sample.weights,
                        best_effort_message_share(memory.rates, sample.lane_tiers, memory.demand),
                        config_.fair_share);
  keep_degree(memory, sample, max_gap_ms, now_ns);
  apply_degree(memory, sample, max_gap_ms);

  // And by whom.
  const double kept = kept_best_effort(memory.effects, memory.rates, sample.lane_tiers);
  judge_scarcity(memory, kept);
  share(memory, sample, kept, now_ns);
  spread_gaps(memory, sample, now_ns);
  return change;
}

void ShardLaw::judge_demand(ShardMemory& memory, const ShardSample& sample, uint64_t now_ns) const {
  memory.passed.note(std::max(now_ns, uint64_t{1}), sample.passed);
  if (sample.done.reported_ns != 0) {
    ShardWork done = sample.done;
    done.passed = memory.passed.at(done.reported_ns);
    observe_cost(memory.cost, done, config_.cost);
  }
  core::step(memory.rates, sample.arrived, now_ns, config_.cost);
  bound_paused(memory);
  watch_tick(memory, sample, now_ns);
  memory.demand = begin_demand(memory.cost);
  add_room(memory.demand, memory.rates, sample.lane_tiers, memory.cost, config_.cost);
  for (double& share : memory.demand.tier) share *= memory.tick_watch.factor;
  memory.signals.offered_cost_ratio = memory.demand.offered_cost_ratio();
}

void ShardLaw::watch_tick(ShardMemory& memory, const ShardSample& sample, uint64_t now_ns) const {
  // Silent since the last step: nobody says how long its tick has been running.
  if (!memory.cost.known || memory.state.report != ReportState::fresh) {
    memory.tick_watch = {};
    return;
  }
  double passed_us = 0;
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    passed_us += static_cast<double>(sample.passed[lane]) * lane_cost_us(config_.cost, lane);
  }
  // Added up, and not all at the scale of now: or what was learned meanwhile would count as work.
  const double more_us = passed_us - memory.passed_us;
  memory.passed_us = passed_us;
  if (more_us < 0) memory.tick_watch = {};
  memory.passed_work_ms += std::max(0.0, more_us) * memory.cost.unit_us * memory.cost.scale / 1000;
  const double budget_ms = memory.signals.frame_budget_ms;
  const double base_ms = memory.cost.base_share * memory.cost.scale * budget_ms;
  core::step(memory.tick_watch, memory.passed_work_ms, memory.signals.running_tick_age_ms, base_ms,
             budget_ms, config_.tick_watch, now_ns);
}

void ShardLaw::keep_degree(ShardMemory& memory, const ShardSample& sample, double max_gap_ms,
                           uint64_t now_ns) const {
  DegreeInput input;
  input.demand = memory.demand;
  input.backlog_ms = backlog_ms(memory);
  input.sources_lost = sources_in(memory.signals.lost);
  input.best_effort_reserve =
      gap_reserve(memory.rates, sample.lane_tiers, memory.demand, sample.weights, max_gap_ms);
  Degree target = target_degree(input, config_.degree);
  if (!memory.demand.known) {
    const uint64_t last_ns = memory.degree.last_step_ns;
    const uint64_t elapsed_ns = last_ns == 0 || now_ns < last_ns ? 0 : now_ns - last_ns;
    const Feedback feedback = {overrun_running(memory), overrun_now(memory) > 0,
                               memory.state.load_rung == kRungMax};
    target.keep_standard = feedback_standard(memory.degree.now.keep_standard, feedback,
                                             static_cast<double>(elapsed_ns) / 1e9, config_.degree);
  }
  core::step(memory.degree, target, config_.control, config_.degree, now_ns);
}

void ShardLaw::apply_degree(ShardMemory& memory, const ShardSample& sample,
                            double max_gap_ms) const {
  memory.effects = memory.state.effects;
  if (by_table(memory)) return;
  const LaneCosts costs = lane_costs(memory.rates, memory.cost, config_.cost);
  memory.effects = with_degree(memory.state.effects, memory.degree.now, overrun_now(memory), costs,
                               sample.lane_tiers);
  memory.effects.max_gap_ms = max_gap_ms;
}

void ShardLaw::judge_scarcity(ShardMemory& memory, double kept) const {
  ShardState& state = memory.state;
  // Until the rung is left, and not until all is kept: what the contract takes away from a flooder
  // would be given back to it at once, and taken again. Where standard has a level, that shares it.
  const bool sheds = state.load_rung > 0 && !state.overridden;
  state.scarce[kTierBestEffort] = sheds && (state.scarce[kTierBestEffort] || kept < 1);
  state.scarce[kTierStandard] =
      state.scarce[kTierBestEffort] && memory.degree.now.keep_standard >= 1;
}

void ShardLaw::share(ShardMemory& memory, const ShardSample& sample, double kept,
                     uint64_t now_ns) const {
  const FairShareConfig& config = config_.fair_share;
  for (uint32_t i = 0; i < kSheddableTiers; ++i) {
    const uint32_t tier = i + ES_TIER_standard;
    FairShareInput input;
    input.offered_per_s = tier_rate(memory.rates, sample.lane_tiers, tier);
    input.passed_ever = sum_of_tier(sample.passed, sample.lane_tiers, tier);
    input.weights = sample.weights;
    if (i == kTierStandard) {
      input.keep = memory.state.overridden ? 1 : memory.degree.now.keep_standard;
    } else if (!by_table(memory)) {
      input.keep = kept;
      if (memory.effects.max_gap_ms > 0) input.least_per_s = 1000 / memory.effects.max_gap_ms;
      // Only here: what a first level lets pass too much (contracts may be far above what is sent),
      // thinning bounds to thinning_slack, while the level comes down by what is kept each
      // follow_s.
      input.contract_per_s = sample.best_effort_contract_per_s;
    }
    core::step(memory.level[i], input, config, now_ns);
  }
  const ControlConfig& control = config_.control;
  const double standard_per_s = tier_rate(memory.rates, sample.lane_tiers, ES_TIER_standard);
  const double hold_s = control.hold_s;
  const double refused = (1 - memory.degree.now.keep_standard) * standard_per_s * hold_s;
  memory.retry = retry_after(hold_s, refused, control.standard_ramp_per_s * standard_per_s);
  // Thinning stops short of what is kept, so that the level has something to take.
  if (memory.level[kTierBestEffort].per_s > 0) loosen(memory.effects, config.thinning_slack);
}

void ShardLaw::spread_gaps(ShardMemory& memory, const ShardSample& sample, uint64_t now_ns) const {
  const double kept = kept_best_effort(memory.effects, memory.rates, sample.lane_tiers);
  if (memory.kept_best_effort - kept > config_.degree.large_cut) memory.cut_ns = now_ns;
  memory.kept_best_effort = kept;
  const double gap_ms = memory.effects.max_gap_ms;
  memory.effects.gap_spread = 0;
  if (memory.cut_ns == 0 || gap_ms <= 0 || now_ns < memory.cut_ns) return;
  const double since_ms = static_cast<double>(now_ns - memory.cut_ns) / 1e6;
  // Not 0 in the tick of the cut itself: that would mean long ago.
  if (since_ms < gap_ms) memory.effects.gap_spread = std::max(since_ms / gap_ms, 1.0 / 255);
}

}  // namespace edgeshed::core
