// Target and ramp of the degree. Only arithmetic on its arguments.
#include "userspace/core/degree.h"

#include <algorithm>

#include "userspace/core/time_units.h"

namespace edgeshed::core {
namespace {

/// Time that a ramp goes on for in one step. After a pause of the daemon, or of the host, what was
/// shed comes back from where it was.
double ramp_seconds(uint64_t last_ns, uint64_t now_ns) {
  constexpr double kStepMaxS = 0.25;
  return last_ns == 0 ? 0 : std::min(kStepMaxS, seconds_between(last_ns, now_ns));
}

/// The share of `wanted` that fits into `rest`; `idle` when nothing is wanted.
double fitting(double rest, double wanted, double idle) {
  return wanted > 0 ? std::clamp(rest / wanted, 0.0, 1.0) : idle;
}

/// Remembers what a fall that begins now, or began a moment ago, started from.
void note_fall(DegreeState& state, const ControlConfig& control, uint64_t now_ns) {
  auto& before = state.before_cut;
  if (before.begun_ns != 0 && seconds_between(before.begun_ns, now_ns) <= control.confirm_s) return;
  before = {now_ns, false, state.now, state.peak, state.last_cut_ns, state.hold_factor, state.low};
}

/// True, and all as before, if the signal that cut is gone within confirm_s.
bool undo_cut(DegreeState& state, const Degree& target, const ControlConfig& control,
              const DegreeConfig& config, uint64_t now_ns) {
  const auto& before = state.before_cut;
  if (before.begun_ns == 0) return false;
  if (seconds_between(before.begun_ns, now_ns) > control.confirm_s) {
    state.before_cut.begun_ns = 0;
    return false;
  }
  if (!before.large || target.keep_standard < before.keeps.keep_standard - config.large_cut ||
      target.keep_best_effort < before.keeps.keep_best_effort - config.large_cut) {
    return false;
  }
  state.now = before.keeps;
  state.peak = before.peak;
  state.last_cut_ns = before.last_cut_ns;
  state.hold_factor = before.hold_factor;
  state.low = before.low;
  state.before_cut.begun_ns = 0;
  return true;
}

/// Takes a large cut down: the hold begins again, longer if it was too short the last time.
void note_cut(DegreeState& state, const ControlConfig& control, const DegreeConfig& config,
              uint64_t now_ns) {
  const double back = std::max(state.peak.keep_standard - state.low.keep_standard,
                               state.peak.keep_best_effort - state.low.keep_best_effort);
  // Falling further is the same cut.
  if (state.last_rise_ns > state.last_cut_ns || state.last_cut_ns == 0) {
    const bool again = back > config.large_cut &&
                       seconds_between(state.last_rise_ns, now_ns) <= control.reentry_window_s;
    state.hold_factor = again ? std::min(state.hold_factor * 2, control.hold_factor_max) : 1;
  }
  state.low = state.now;
  state.last_cut_ns = now_ns;
  state.peak = state.now;
  state.before_cut.large = true;
}

void fall(DegreeState& state, const Degree& target, const ControlConfig& control,
          const DegreeConfig& config, uint64_t now_ns) {
  Degree& now = state.now;
  if (target.keep_standard < now.keep_standard || target.keep_best_effort < now.keep_best_effort) {
    note_fall(state, control, now_ns);
  }
  now.keep_standard = std::min(now.keep_standard, target.keep_standard);
  now.keep_best_effort = std::min(now.keep_best_effort, target.keep_best_effort);
  const double cut = std::max(state.peak.keep_standard - now.keep_standard,
                              state.peak.keep_best_effort - now.keep_best_effort);
  if (cut > config.large_cut) note_cut(state, control, config, now_ns);
}

/// Moves `keep` up to `target` by at most `most`; true if it moved. `peak` goes with it.
bool rise(double& keep, double& peak, double target, double most) {
  if (target <= keep || most <= 0) return false;
  keep = std::min(target, keep + most);
  peak = keep;
  return true;
}

}  // namespace

double message_budget(const DegreeInput& input, const DegreeConfig& config) {
  return config.budget_share - input.demand.base - input.backlog_ms / config.backlog_span_ms -
         config.missing_signal_share * input.sources_lost;
}

Degree target_degree(const DegreeInput& input, const DegreeConfig& config) {
  if (!input.demand.known) return {};
  const double standard = input.demand.tier[ES_TIER_standard];
  const double best_effort = input.demand.tier[ES_TIER_best_effort];
  const double rest = message_budget(input, config) - input.demand.tier[ES_TIER_critical];
  const double reserve = std::clamp(input.best_effort_reserve, 0.0, best_effort);
  const double idle = rest >= 0 ? 1 : 0;
  Degree target;
  target.keep_standard = fitting(rest - reserve, standard, idle);
  target.keep_best_effort = fitting(rest - target.keep_standard * standard, best_effort, idle);
  return target;
}

double feedback_standard(double now, const Feedback& feedback, double elapsed_s,
                         const DegreeConfig& config) {
  if (feedback.overrun_running <= 0) return feedback.late ? now : 1;
  if (!feedback.best_effort_spent) return now;
  return std::max(0.0, now - config.feedback_per_s * feedback.overrun_running * elapsed_s);
}

void step(DegreeState& state, const Degree& target, const ControlConfig& control,
          const DegreeConfig& config, uint64_t now_ns) {
  const double elapsed_s = ramp_seconds(state.last_step_ns, now_ns);
  state.last_step_ns = std::max(state.last_step_ns, now_ns);
  undo_cut(state, target, control, config, state.last_step_ns);
  fall(state, target, control, config, state.last_step_ns);

  const double hold_s = control.hold_s * state.hold_factor;
  const auto held = [&](uint64_t since_ns) {
    return since_ns == 0 || seconds_between(since_ns, state.last_step_ns) >= hold_s;
  };
  if (!held(state.last_cut_ns)) return;
  Degree& now = state.now;
  bool rose = false;
  if (now.keep_standard < 1) {
    rose = rise(now.keep_standard, state.peak.keep_standard, target.keep_standard,
                control.standard_ramp_per_s * elapsed_s);
    state.standard_whole_since_ns = now.keep_standard >= 1 ? state.last_step_ns : 0;
  } else if (held(state.standard_whole_since_ns)) {
    rose = rise(now.keep_best_effort, state.peak.keep_best_effort, target.keep_best_effort,
                control.best_effort_ramp_per_s * elapsed_s);
  }
  if (!rose) return;
  state.last_rise_ns = state.last_step_ns;
}

}  // namespace edgeshed::core
