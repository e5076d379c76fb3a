// Detect and climb for one shard: `step(state, signals, now)`. Up at once, down one rung at a time
// after the exit condition has held, and what was shed comes back along a ramp. A climb whose cause
// is gone within confirm_s is undone. Time is an
// argument; must not read a clock, allocate in step(), or know the packet path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "userspace/core/control_config.h"
#include "userspace/core/ladder_effects.h"
#include "userspace/core/pressure.h"
#include "userspace/core/shard_ladder.h"
#include "userspace/core/signals.h"

namespace edgeshed::core {

/// A change of the rung, for the log, `status` and session events.
struct RungChange {
  uint8_t from = 0;
  uint8_t to = 0;
  Cause cause = Cause::none;
  uint64_t at_ns = 0;
  Release release;    ///< what lets the shard leave `to`, hysteresis included
  double hold_s = 0;  ///< and for how long it must hold
};

/// How often each cause changed a rung, by Cause.
using CauseCounts = std::array<uint32_t, static_cast<size_t>(Cause::count)>;

/// Whether the game server's own signals are used.
enum class ReportState : uint8_t {
  fresh,    ///< used
  holding,  ///< stale for less than the hold: the rung may rise by offered cost, and does not fall
  missing,  ///< not used; the rung follows offered cost alone
};

const char* report_state_name(ReportState state);

/// All memory of one shard's controller, and what it decided. Value type, no pointers.
struct ShardState {
  uint8_t rung = 0;           ///< what is told: includes the room count (rung 4)
  uint8_t load_rung = 0;      ///< what sheds packets: tick, offered cost and ring only
  Cause cause = Cause::none;  ///< what put it on `rung`
  Release release;            ///< what would release it, hysteresis included
  uint64_t since_ns = 0;      ///< on this rung since
  RungChange last_change;
  uint64_t changes = 0;               ///< rung changes so far
  CauseCounts changes_by_cause = {};  ///< the same, each by what caused it
  double pressure = 0;                ///< 0 to 2, see pressure.h
  PressureSignal pressed_by = PressureSignal::offered_cost;
  ReportState report = ReportState::missing;

  /// What is in force now, ramp included. Never sheds less than nothing, never more than the
  /// strictest of the rungs since the last full recovery.
  LadderEffects effects;

  /// Load took something from those who keep to their contract, on this climb: nobody gets more
  /// than a contract before they have theirs. Written by ShardLaw.
  std::array<bool, kSheddableTiers> scarce = {};

  bool overridden = false;
  uint8_t override_rung = 0;
  uint64_t override_until_ns = 0;  ///< 0: until cleared

  // Private to ShardController.
  uint64_t last_step_ns = 0;
  uint64_t below_since_ns = 0;  ///< exit condition of load_rung true since; 0: it is not
  uint64_t last_fall_ns = 0;    ///< 0: no fall since the last climb
  double hold_factor = 1;
  /// What a climb that is refuted goes back to; at_ns 0: none is young.
  struct {
    uint64_t at_ns = 0;
    uint8_t from = 0;
    uint64_t last_fall_ns = 0;
    double hold_factor = 1;
  } climb;
  bool rooms_full = false;            ///< latch of the room-count condition
  uint64_t rooms_below_since_ns = 0;  ///< 0: rooms are not below capacity

  bool refuse_joins() const { return effects.refuse_joins; }
  Code code() const { return rung_code(rung); }
};

class ShardController {
 public:
  /// Throws std::invalid_argument with the text of check_control_config / check_ladder_table.
  ShardController(const ControlConfig& config, const LadderTable& table);

  /// One tick. `now_ns` never decreases (a smaller value counts as no time passed) and is not 0.
  /// Returns the change of the rung, if there was one.
  std::optional<RungChange> step(ShardState& state, const ShardSignals& signals,
                                 uint64_t now_ns) const;

  /// From the next step on the rung is `rung` (0 to 5) whatever the signals say, until `until_ns`
  /// (0: until cleared). Up at once; what a lower rung gives back still comes along the ramp.
  static void force(ShardState& state, uint8_t rung, uint64_t until_ns);
  static void clear_override(ShardState& state);

  const ControlConfig& config() const { return config_; }
  const LadderTable& table() const { return table_; }

 private:
  ReportState judge_report(const ShardSignals& signals, uint64_t now_ns) const;
  bool undo_climb(ShardState& state, const ShardSignals& signals, uint64_t now_ns) const;
  void climb_load(ShardState& state, const ShardSignals& signals, uint64_t now_ns) const;
  void latch_rooms(ShardState& state, const ShardSignals& signals, uint64_t now_ns) const;
  void ramp(ShardState& state, double elapsed_s) const;
  Cause explain(const ShardState& state, const ShardSignals& signals, uint8_t rung_before) const;
  Release exit_of(const ShardState& state, const ShardSignals& signals) const;

  ControlConfig config_;
  LadderTable table_;
  /// Longest min_interval_ms of each lane in the table: what a full ramp gives back.
  std::array<double, kThinLanes> interval_span_ms_;
};

}  // namespace edgeshed::core
