// From signals to one pressure (control law B1): how hard a shard is pressed, as a degree and not
// as on or off, from whichever signal says most. It marks packets (ECN) and is shown; what is shed
// follows the rungs and the degree. Pure.
#pragma once

#include <cstdint>

#include "userspace/core/signals.h"

namespace edgeshed::core {

// signal: name, low, high, unit, text. Pressure begins over `low` and is 1 at `high`. A leading
// signal moves before players feel anything, a coincident one while they do, a lagging one after.
#define EDGESHED_PRESSURE_LIST(X)                                                              \
  X(offered_cost, 0.85, 1.0, "budgets", "leading: cost of what arrives")                       \
  X(receive_queue, 0.5, 2, "ticks", "leading: time to work off what waits in the socket")      \
  X(ring, 0.25, 0.75, "share", "leading: fullest queue of the server")                         \
  X(softnet_drops, 0, 1, "packets a tick", "leading: dropped by the kernel before any socket") \
  X(time_squeeze, 1, 10, "times a tick", "leading: the kernel had more packets than time")     \
  X(tick, 0.75, 1, "budgets", "coincident: p99 of the tick over the last second")              \
  X(running_tick, 0.75, 1, "budgets", "coincident: age of the tick that is running")           \
  X(ack_lag, 2, 6, "ticks", "lagging: p95 of what players have not acknowledged")              \
  X(rejects, 0.01, 0.10, "share", "lagging: commands that the game itself rejects")            \
  X(psi_cpu, 0.10, 0.40, "share", "lagging: time in which some task waited for a CPU")

enum class PressureSignal : uint8_t {
#define X(name, low, high, unit, text) name,
  EDGESHED_PRESSURE_LIST(X)
#undef X
      count,
};

const char* pressure_signal_name(PressureSignal signal);

/// clamp((value - low) / (high - low), 0, 2) of one signal, `value` in its unit.
double pressure_of(PressureSignal signal, double value);

/// The largest, and which signal it is. 0 and offered_cost while nothing presses.
struct Pressure {
  double value = 0;
  PressureSignal signal = PressureSignal::offered_cost;
};

/// Of a shard. A signal that was never measured is 0, and leaves the maximum.
Pressure pressure(const ShardSignals& signals);

}  // namespace edgeshed::core
