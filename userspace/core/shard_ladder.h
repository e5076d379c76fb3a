// The shard ladder: signals in, rung out. A pure function of its arguments, without memory:
// hysteresis, dwell and ramp are in shard_controller.h, what a rung sheds is in ladder_effects.h.
#pragma once

#include <cstdint>
#include <string>

#include "userspace/core/codes.h"
#include "userspace/core/signals.h"

namespace edgeshed::core {

inline constexpr uint8_t kRungMax = 5;
inline constexpr uint8_t kRungs = kRungMax + 1;
/// From this rung on joins are refused.
inline constexpr uint8_t kRungRefuseJoins = 4;

// cause: name, text. What put a shard on its rung.
#define EDGESHED_CAUSE_LIST(X)                                                \
  X(none, "no condition holds")                                               \
  X(tick_ratio, "p99 of the tick time against the frame budget")              \
  X(running_tick, "age of the tick that is running against the frame budget") \
  X(offered_cost, "cost of what arrives against the budget")                  \
  X(receive_queue, "time to work off what waits in the socket")               \
  X(ring_occupancy, "occupancy of the server's queue")                        \
  X(room_capacity, "the shard holds as many rooms as it may")                 \
  X(released, "the exit condition of the rung above has held")                \
  X(manual, "forced by an operator")                                          \
  X(manual_ended, "the operator's override ended")

enum class Cause : uint8_t {
#define X(name, text) name,
  EDGESHED_CAUSE_LIST(X)
#undef X
      count,
};

const char* cause_name(Cause cause);  ///< as in JSON: "tick_ratio"
const char* cause_text(Cause cause);  ///< one line for people

/// Enter levels of the rungs, inclusive (>=). Index 0 is rung 1.
struct RungLevel {
  double tick_ratio;
  double ring_occupancy;
};
inline constexpr RungLevel kRungLevels[kRungMax] = {
    {0.80, 0.50}, {1.00, 0.70}, {1.25, 0.85}, {1.50, 0.95}, {2.00, 1.00}};

/// What must hold, all of it, for a shard to go below its rung. 0 in a level: not needed.
struct Release {
  double tick_ratio_below = 0;
  double ring_occupancy_below = 0;
  uint32_t room_count_below = 0;
};

/// "tick_ratio below 0.80 and ring_occupancy below 0.50"; "nothing" for rung 0.
std::string to_text(const Release& release);

/// The highest active rung and the first condition, in the order tick, ring, rooms, that holds it.
struct Degradation {
  uint8_t rung = 0;
  Cause cause = Cause::none;
  Release release;

  bool refuse_joins() const { return rung >= kRungRefuseJoins; }
  Code code() const { return rung_code(rung); }
};

/// tick time / max(1, frame_budget_ms).
double tick_ratio(double tick_ms, double frame_budget_ms);

/// The ladder on the measured tick: tick_ratio is tick_p99_ms / max(1, frame_budget_ms).
Degradation evaluate_shard_degradation(const ShardSignals& signals);

/// The ladder that acts, on actuating_ratio().
Degradation evaluate_actuating_degradation(const ShardSignals& signals);

/// A tick_ratio and which signal it came from.
struct ActuatingRatio {
  double value = 0;
  Cause cause = Cause::none;
};

/// The largest of the measured p99, the age of the running tick, the offered cost ratio, and the
/// time that what waits in the socket beyond a tick's worth would take, in budgets. The measured
/// tick alone falls as soon as shedding works, and would forbid the shedding that holds it; and a
/// server that reads no more may report a calm tick.
ActuatingRatio actuating_ratio(const ShardSignals& signals);

/// As evaluate_actuating_degradation, without the room count: the rung that sheds packets. A shard
/// that is full of rooms refuses joins; that is no reason to thin what its players see.
Degradation evaluate_load_degradation(const ShardSignals& signals);

/// The same release with the continuous levels scaled by `factor` (hysteresis); room counts are
/// exact and stay.
Release scaled(const Release& release, double factor);

/// True when the signals satisfy all of `release`, on the actuating tick_ratio.
bool is_released(const Release& release, const ShardSignals& signals);

}  // namespace edgeshed::core
