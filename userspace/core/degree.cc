// Target and ramp of the degree. Only arithmetic on its arguments.
#include "userspace/core/degree.h"

#include <algorithm>

namespace edgeshed::core {
namespace {

constexpr double kNsPerS = 1e9;

double seconds_between(uint64_t earlier_ns, uint64_t later_ns) {
  return later_ns > earlier_ns ? static_cast<double>(later_ns - earlier_ns) / kNsPerS : 0;
}

/// The share of `wanted` that fits into `rest`; `idle` when nothing is wanted.
double fitting(double rest, double wanted, double idle) {
  return wanted > 0 ? std::clamp(rest / wanted, 0.0, 1.0) : idle;
}

/// Takes a large cut down: the hold begins again, longer if it was too short the last time.
void note_cut(DegreeState& state, const ControlConfig& control, uint64_t now_ns) {
  if (state.rose_since_cut) {
    const bool again = seconds_between(state.last_rise_ns, now_ns) <= control.reentry_window_s;
    state.hold_factor = again ? std::min(state.hold_factor * 2, control.hold_factor_max) : 1;
  }
  state.rose_since_cut = false;
  state.last_cut_ns = now_ns;
  state.peak = state.now;
}

void fall(DegreeState& state, const Degree& target, const ControlConfig& control,
          const DegreeConfig& config, uint64_t now_ns) {
  Degree& now = state.now;
  now.keep_standard = std::min(now.keep_standard, target.keep_standard);
  now.keep_best_effort = std::min(now.keep_best_effort, target.keep_best_effort);
  const double cut = std::max(state.peak.keep_standard - now.keep_standard,
                              state.peak.keep_best_effort - now.keep_best_effort);
  if (cut > config.large_cut) note_cut(state, control, now_ns);
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
         config.missing_signal_share * input.signals_missing;
}

Degree target_degree(const DegreeInput& input, const DegreeConfig& config) {
  if (!input.demand.known) return {};
  const double standard = input.demand.tier[ES_TIER_standard];
  const double best_effort = input.demand.tier[ES_TIER_best_effort];
  const double rest = message_budget(input, config) - input.demand.tier[ES_TIER_critical];
  const double reserve = std::clamp(input.best_effort_reserve, 0.0, best_effort);
  const double idle = rest >= 0 ? 1 : 0;
  Degree target;
  // A backlog is worked off at the expense of best-effort alone: one long tick must not cut
  // standard, which takes seconds to come back.
  const double backlog = input.backlog_ms / config.backlog_span_ms;
  target.keep_standard = fitting(rest + backlog - reserve, standard, idle);
  target.keep_best_effort = fitting(rest - target.keep_standard * standard, best_effort, idle);
  return target;
}

void step(DegreeState& state, const Degree& target, const ControlConfig& control,
          const DegreeConfig& config, uint64_t now_ns) {
  const double elapsed_s =
      state.last_step_ns == 0 ? 0 : seconds_between(state.last_step_ns, now_ns);
  state.last_step_ns = std::max(state.last_step_ns, now_ns);
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
  state.rose_since_cut = true;
}

}  // namespace edgeshed::core
