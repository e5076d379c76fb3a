// Detect, climb and ramp of one shard. Only arithmetic on its arguments.
#include "userspace/core/shard_controller.h"

#include <algorithm>
#include <stdexcept>

#include "userspace/core/time_units.h"

namespace edgeshed::core {
namespace {

/// Priorities of a tier: what a ramp of "share per second" is a share of, for thresholds.
constexpr double kPriorities = 256;

/// `current` moved up to `target` by at most `step`; downwards at once.
double rise(double current, double target, double step) { return std::min(target, current + step); }

/// `current` moved down to `target` by at most `step`; upwards at once.
double fall(double current, double target, double step) { return std::max(target, current - step); }

/// What a stale report leaves: the signals that the daemon knows by itself.
ShardSignals without_report(ShardSignals signals) {
  signals.tick_p99_ms = 0;
  signals.running_tick_age_ms = 0;
  signals.ring_occupancy = 0;
  signals.ack_lag_p95 = 0;
  signals.rejected_share = 0;
  return signals;
}

Release release_of(uint8_t rung, double exit_ratio) {
  if (rung == 0) return {};
  const RungLevel& level = kRungLevels[rung - 1];
  return scaled({level.tick_ratio, level.ring_occupancy, 0}, exit_ratio);
}

}  // namespace

const char* report_state_name(ReportState state) {
  switch (state) {
    case ReportState::fresh:
      return "fresh";
    case ReportState::holding:
      return "holding";
    case ReportState::missing:
      return "missing";
  }
  return "?";
}

ShardController::ShardController(const ControlConfig& config, const LadderTable& table)
    : config_(config), table_(table), interval_span_ms_{} {
  std::string fault = check_control_config(config);
  if (fault.empty()) fault = check_ladder_table(table);
  if (!fault.empty()) throw std::invalid_argument(fault);
  for (const LadderEffects& effects : table) {
    for (uint32_t lane = 0; lane < kThinLanes; ++lane) {
      interval_span_ms_[lane] =
          std::max(interval_span_ms_[lane], effects.lane[lane].min_interval_ms);
    }
  }
}

ReportState ShardController::judge_report(const ShardSignals& signals, uint64_t now_ns) const {
  if (signals.reported_at_ns == 0) return ReportState::missing;
  const double age_s = seconds_between(signals.reported_at_ns, now_ns);
  if (age_s <= config_.report_timeout_s) return ReportState::fresh;
  return age_s <= config_.report_timeout_s + config_.hold_s ? ReportState::holding
                                                            : ReportState::missing;
}

/// True, and back on the rung that the climb began from, if what asked for it is gone already.
bool ShardController::undo_climb(ShardState& state, const ShardSignals& signals,
                                 uint64_t now_ns) const {
  const auto& climb = state.climb;
  if (climb.at_ns == 0) return false;
  if (seconds_between(climb.at_ns, now_ns) > config_.confirm_s) {
    state.climb.at_ns = 0;
    return false;
  }
  const Release exit = release_of(climb.from + 1, config_.exit_ratio);
  if (state.report == ReportState::holding || !is_released(exit, signals)) return false;
  state.load_rung = climb.from;
  state.last_fall_ns = climb.last_fall_ns;
  state.hold_factor = climb.hold_factor;
  state.below_since_ns = 0;
  state.climb.at_ns = 0;
  return true;
}

void ShardController::climb_load(ShardState& state, const ShardSignals& signals,
                                 uint64_t now_ns) const {
  const Degradation found = evaluate_load_degradation(signals);
  if (undo_climb(state, signals, now_ns)) return;
  if (found.rung > state.load_rung) {
    if (state.climb.at_ns == 0) {
      state.climb = {now_ns, state.load_rung, state.last_fall_ns, state.hold_factor};
    }
    if (state.last_fall_ns != 0) {
      const bool again = seconds_between(state.last_fall_ns, now_ns) <= config_.reentry_window_s;
      state.hold_factor = again ? std::min(state.hold_factor * 2, config_.hold_factor_max) : 1;
    }
    state.last_fall_ns = 0;
    state.load_rung = found.rung;
    state.below_since_ns = 0;
    return;
  }
  const Release exit = release_of(state.load_rung, config_.exit_ratio);
  if (state.load_rung == 0 || state.report == ReportState::holding || !is_released(exit, signals)) {
    state.below_since_ns = 0;
    return;
  }
  if (state.below_since_ns == 0) state.below_since_ns = now_ns;
  // Below since the last fall: the calm that allowed that one goes on.
  const bool goes_on = state.below_since_ns == state.last_fall_ns;
  const double hold_s = (goes_on ? config_.next_hold_s : config_.hold_s) * state.hold_factor;
  if (seconds_between(state.below_since_ns, now_ns) < hold_s) return;
  --state.load_rung;
  state.last_fall_ns = now_ns;
  state.below_since_ns = now_ns;
}

void ShardController::latch_rooms(ShardState& state, const ShardSignals& signals,
                                  uint64_t now_ns) const {
  if (signals.room_count >= signals.room_capacity) {
    state.rooms_full = true;
    state.rooms_below_since_ns = 0;
    return;
  }
  if (!state.rooms_full) return;
  if (state.rooms_below_since_ns == 0) state.rooms_below_since_ns = now_ns;
  if (seconds_between(state.rooms_below_since_ns, now_ns) >= config_.hold_s) {
    state.rooms_full = false;
  }
}

void ShardController::ramp(ShardState& state, double elapsed_s) const {
  const LadderEffects& target = table_[state.load_rung];
  LadderEffects& now = state.effects;
  const double best_effort_step = config_.best_effort_ramp_per_s * elapsed_s;
  for (uint32_t i = 0; i < kThinLanes; ++i) {
    const LaneEffect& to = target.lane[i];
    LaneEffect& lane = now.lane[i];
    for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
      const double share = to.paused ? 0 : to.keep[direction];
      lane.keep[direction] = rise(lane.keep[direction], share, best_effort_step);
    }
    lane.min_interval_ms =
        fall(lane.min_interval_ms, to.min_interval_ms, interval_span_ms_[i] * best_effort_step);
    lane.paused = to.paused;
    lane.lower_effort = to.lower_effort;
  }
  const double ramps[kSheddableTiers] = {config_.standard_ramp_per_s,
                                         config_.best_effort_ramp_per_s};
  for (uint32_t tier = 0; tier < kSheddableTiers; ++tier) {
    now.threshold[tier] =
        fall(now.threshold[tier], target.threshold[tier], kPriorities * ramps[tier] * elapsed_s);
  }
  now.max_gap_ms = target.max_gap_ms;
  const double marked = (state.pressure - config_.ce_pressure_low) /
                        (config_.ce_pressure_high - config_.ce_pressure_low);
  now.ce_share = std::clamp(marked, 0.0, target.ce_share);
  now.refuse_joins = table_[state.rung].refuse_joins;
}

Cause ShardController::explain(const ShardState& state, const ShardSignals& signals,
                               uint8_t rung_before) const {
  if (state.overridden) return Cause::manual;
  if (state.rung < rung_before) return Cause::released;
  const Degradation load = evaluate_load_degradation(signals);
  if (state.rung > 0 && load.rung == state.rung) return load.cause;
  if (state.rooms_full && state.rung == kRungRefuseJoins) return Cause::room_capacity;
  if (state.rung == 0) return Cause::none;
  return state.cause == Cause::manual ? Cause::manual_ended : state.cause;
}

Release ShardController::exit_of(const ShardState& state, const ShardSignals& signals) const {
  if (state.overridden) return {};
  Release release;
  if (state.load_rung == state.rung) release = release_of(state.load_rung, config_.exit_ratio);
  if (state.rooms_full && state.rung == kRungRefuseJoins) {
    release.room_count_below = signals.room_capacity;
  }
  return release;
}

std::optional<RungChange> ShardController::step(ShardState& state, const ShardSignals& signals,
                                                uint64_t now_ns) const {
  const uint8_t before = state.rung;
  // As in degree.cc: after a pause ramps go on from where they were.
  const double elapsed_s =
      state.last_step_ns == 0 ? 0 : std::min(0.25, seconds_between(state.last_step_ns, now_ns));
  state.last_step_ns = std::max(state.last_step_ns, now_ns);

  // Detect: which signals count, and how hard they press.
  state.report = judge_report(signals, now_ns);
  const ShardSignals used = state.report == ReportState::fresh ? signals : without_report(signals);
  const Pressure pressed = pressure(used);
  state.pressure = pressed.value;
  state.pressed_by = pressed.signal;

  // Climb: an operator first, then load and room count.
  if (state.overridden && state.override_until_ns != 0 && now_ns >= state.override_until_ns) {
    clear_override(state);
  }
  latch_rooms(state, used, now_ns);
  if (state.overridden) {
    state.load_rung = state.override_rung;
    state.below_since_ns = 0;
    state.rung = state.load_rung;
  } else {
    climb_load(state, used, now_ns);
    state.rung = state.rooms_full ? std::max(state.load_rung, kRungRefuseJoins) : state.load_rung;
  }

  // What is in force, and why.
  ramp(state, elapsed_s);
  state.cause = explain(state, used, before);
  state.release = exit_of(state, used);
  if (state.rung == before) return std::nullopt;
  state.since_ns = now_ns;
  ++state.changes;
  ++state.changes_by_cause[static_cast<size_t>(state.cause)];
  state.last_change = {before, state.rung,    state.cause,
                       now_ns, state.release, config_.hold_s * state.hold_factor};
  return state.last_change;
}

void ShardController::force(ShardState& state, uint8_t rung, uint64_t until_ns) {
  state.overridden = true;
  state.override_rung = std::min(rung, kRungMax);
  state.override_until_ns = until_ns;
}

void ShardController::clear_override(ShardState& state) {
  state.overridden = false;
  state.override_until_ns = 0;
}

}  // namespace edgeshed::core
