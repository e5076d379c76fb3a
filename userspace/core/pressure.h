// From signals to one pressure (control law B1): how hard a shard is pressed, as a degree and not
// as on or off, from whichever signal says most. It marks packets (ECN) and is shown; what is shed
// follows the rungs and the degree. Pure.
#pragma once

#include <cstdint>

#include "userspace/core/signals.h"

namespace edgeshed::core {

// source: name. One thing that is read; what it gives is there as a whole or not at all.
#define EDGESHED_SIGNAL_SOURCE_LIST(X)                                      \
  X(counters)     /* of the packet path, and what a message costs */        \
  X(sock_diag)    /* the kernel's list of sockets */                        \
  X(softnet_stat) /* /proc/net/softnet_stat */                              \
  X(report)       /* of the game server: its board, or `edgeshed report` */ \
  X(psi)          /* /proc/pressure/cpu, or the server's cgroup */

enum class SignalSource : uint8_t {
#define X(name) name,
  EDGESHED_SIGNAL_SOURCE_LIST(X)
#undef X
      count,
};

// signal: name, source, low, high, unit, text. Pressure begins over `low` and is 1 at `high`. A
// leading signal moves before players feel anything, a coincident one while they do, a lagging one
// after.
#define EDGESHED_PRESSURE_LIST(X)                                                          \
  X(offered_cost, counters, 0.85, 1.0, "budgets", "leading: cost of what arrives")         \
  X(receive_queue, sock_diag, 0.5, 2, "ticks",                                             \
    "leading: time to work off what waits in the socket beyond a tick's worth")            \
  X(ring, report, 0.25, 0.75, "share", "leading: fullest queue of the server")             \
  X(softnet_drops, softnet_stat, 0, 1, "packets a tick",                                   \
    "leading: dropped by the kernel before any socket")                                    \
  X(time_squeeze, softnet_stat, 1, 10, "times a tick",                                     \
    "leading: the kernel had more packets than time")                                      \
  X(tick, report, 0.75, 1, "budgets", "coincident: p99 of the tick over the last second")  \
  X(running_tick, report, 0.75, 1, "budgets", "coincident: age of the running tick")       \
  X(ack_lag, report, 2, 6, "ticks", "lagging: p95 of what players are behind")             \
  X(rejects, report, 0.01, 0.10, "share", "lagging: players whom the game itself rejects") \
  X(psi_cpu, psi, 0.10, 0.40, "share", "lagging: time in which some task waited for a CPU")

enum class PressureSignal : uint8_t {
#define X(name, source, low, high, unit, text) name,
  EDGESHED_PRESSURE_LIST(X)
#undef X
      count,
};
inline constexpr uint8_t kPressureSignals = static_cast<uint8_t>(PressureSignal::count);

const char* pressure_signal_name(PressureSignal signal);
const char* pressure_signal_unit(PressureSignal signal);
SignalSource source_of(PressureSignal signal);
const char* signal_source_name(SignalSource source);

/// Its bit in ShardSignals::missing and lost.
constexpr uint16_t signal_bit(PressureSignal signal) {
  return static_cast<uint16_t>(1u << static_cast<uint8_t>(signal));
}
/// Those of all that a source gives.
uint16_t source_bits(SignalSource source);
/// Sources of which some bit is set: a reader that fails takes all its signals with it, and is one
/// thing less that is known.
uint32_t sources_in(uint16_t signals);

/// The value of one signal, in its unit.
double value_of(PressureSignal signal, const ShardSignals& signals);

/// clamp((value - low) / (high - low), 0, 2) of one signal, `value` in its unit. Any softnet drop
/// at all is 1.
double pressure_of(PressureSignal signal, double value);

/// The largest, and which signal it is. 0 and offered_cost while nothing presses.
struct Pressure {
  double value = 0;
  PressureSignal signal = PressureSignal::offered_cost;
};

/// Of a shard. A signal that is not measured is 0, and leaves the maximum.
Pressure pressure(const ShardSignals& signals);

}  // namespace edgeshed::core
