// Every constant of the control law, each with its default and the reason for it.
// Data only: shard_controller.h acts on it, userspace/config reads it from [control].
#pragma once

#include <string>

namespace edgeshed::core {

struct ControlConfig {
  /// Continuous signals must be below this share of a rung's enter level before it is left. The
  /// gap of 15 % is wider than the tick-to-tick noise of a p99, so a level signal never flaps.
  double exit_ratio = 0.85;

  /// The exit condition must hold this long before the first rung is left: three times the longest
  /// tick that a rung 5 shard shows (2 x 150 ms).
  double hold_s = 1.0;

  /// While it goes on holding, each further rung is left after this long. What comes back is paced
  /// by the ramp, not by the rungs: with a whole hold per rung the demo needed 8.1 s from rung 5,
  /// over the target of 8 s; so it needs about 6.
  double next_hold_s = 0.25;

  /// What was shed is given back at once, without a hold, if the signal that asked for it is gone
  /// within this long: a burst that filled one sample, or one tick that the machine held up (67 ms,
  /// and one more to work off what came meanwhile).
  double confirm_s = 0.15;

  /// Climbing again this soon after a fall means that the fall was premature...
  double reentry_window_s = 10.0;

  /// ...so the hold doubles, up to this factor: retries that come back in step die out in 8 s.
  double hold_factor_max = 8.0;

  /// After a rung falls, the share kept of best-effort rises by this much per second: 4 s from
  /// nothing to all, slower than the 1 s over which the tick p99 is measured.
  double best_effort_ramp_per_s = 0.25;

  /// Standard comes back first, twice as fast.
  double standard_ramp_per_s = 0.50;

  /// A game server that reports each tick and is silent this long is stuck, gone or very late.
  double report_timeout_s = 1.0;

  /// Pressure (0 to 2, see pressure()) over which ECN marks go from none to all: senders that
  /// understand ECN slow down before anything is dropped.
  double ce_pressure_low = 0.7;
  double ce_pressure_high = 1.0;
};

/// Empty when sound; otherwise one line that names the field and the allowed range.
std::string check_control_config(const ControlConfig& config);

}  // namespace edgeshed::core
