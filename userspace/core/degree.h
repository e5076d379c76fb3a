// How much of standard and best-effort is kept: a target from what is offered, and the way there,
// down at once and up slowly. The rung says what may be shed, in which order; the degree says how
// much of it. Must not know how a keep is enforced, nor read a clock.
// Critical cannot be expressed here: a Degree has a keep for standard, one for best-effort, and no
// other.
#pragma once

#include <cstdint>

#include "userspace/core/control_config.h"
#include "userspace/core/demand.h"

namespace edgeshed::core {

struct DegreeConfig {
  /// What is filled of the tick budget. The rest takes the variation of a tick's own work.
  double budget_share = 0.90;

  /// A backlog of this many ms of work takes the whole budget away, so it drains within about that.
  double backlog_span_ms = 100;

  /// Taken from the budget per source of signals that is lost (ShardSignals::lost): less is known
  /// than was, so less is dared. What this host never had takes nothing.
  double missing_signal_share = 0.05;

  /// Standard kept falls by this much a second while costs are unknown and the loop is overrun:
  /// within a third of a second, and a tenth between two ticks of a server.
  double feedback_per_s = 3;

  /// A cut by more than this restarts the hold. Smaller ones are the noise of the rates.
  double large_cut = 0.08;

  bool operator==(const DegreeConfig&) const = default;
};

/// Shares kept, 0 to 1.
struct Degree {
  double keep_standard = 1;
  double keep_best_effort = 1;
};

struct DegreeInput {
  ShardDemand demand;
  double backlog_ms = 0;           ///< time in which what waits would be worked off
  double best_effort_reserve = 0;  ///< cost of best-effort's guaranteed gap, share of the budget
  uint32_t sources_lost = 0;       ///< sources_in(ShardSignals::lost)
};

/// budget_share - base - backlog - lost sources: what messages may cost; may be below 0.
double message_budget(const DegreeInput& input, const DegreeConfig& config);

/// Where the keeps have to be. With rem = budget - critical:
///   keep_standard    = clamp((rem - reserve) / standard)
///   keep_best_effort = clamp((rem - keep_standard standard) / best_effort)
/// All is kept while the demand is not known. What is not offered is kept unless rem is below 0.
Degree target_degree(const DegreeInput& input, const DegreeConfig& config);

/// What the loop itself says of an overload, and nothing else is known.
struct Feedback {
  double overrun_running = 0;      ///< as overrun() says, by the tick that is running
  bool late = false;               ///< a tick of the last second was over its budget
  bool best_effort_spent = false;  ///< the rung sheds all of it that it may
};

/// Where standard has to be while no cost is known: from `now` down by feedback_per_s for as long
/// as a tick overruns although best-effort is spent, as it is while ticks are late, else whole.
/// Late, and rough: it is for servers that report no more than their ticks.
double feedback_standard(double now, const Feedback& feedback, double elapsed_s,
                         const DegreeConfig& config);

/// All memory of one shard's degree, and what is in force. Value type, no pointers.
struct DegreeState {
  Degree now;
  double hold_factor = 1;

  // Private to step().
  uint64_t last_step_ns = 0;
  uint64_t last_cut_ns = 0;   ///< last large cut; 0: none
  uint64_t last_rise_ns = 0;  ///< 0: none
  Degree low;                 ///< the least that was kept since then; 1 before the first cut
  Degree peak;                ///< a cut is measured from here: sliding down is one cut
  /// What a cut that is refuted goes back to; begun_ns 0: nothing fell of late.
  struct {
    uint64_t begun_ns = 0;
    bool large = false;  ///< it became a cut that restarts the hold
    Degree keeps;
    Degree peak;
    uint64_t last_cut_ns = 0;
    double hold_factor = 1;
    Degree low;
  } before_cut;
  uint64_t standard_whole_since_ns = 0;  ///< 0: always, or it is not whole
};

/// One tick towards `target`; `now_ns` is not 0 and never decreases (a smaller value counts as no
/// time passed).
/// - Down: at once, by any amount. A cut over large_cut, at once or in steps without a rise between
///   them, restarts the hold; one whose cause is gone within confirm_s is undone.
/// - Up, hold_s x hold_factor after the last large cut: standard by standard_ramp_per_s; when it
/// has
///   been whole for another such hold, best-effort by best_effort_ramp_per_s. Never above `target`,
///   so what climbs again holds the ramp.
/// - A large cut within reentry_window_s of the last rise doubles hold_factor, up to
///   hold_factor_max, if more than large_cut had come back since the one before it: hovering at the
///   budget is no recovery. Any other sets it to 1.
void step(DegreeState& state, const Degree& target, const ControlConfig& control,
          const DegreeConfig& config, uint64_t now_ns);

}  // namespace edgeshed::core
