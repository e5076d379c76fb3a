// A table of ranges, and the maximum over it.
#include "userspace/core/pressure.h"

#include <algorithm>
#include <iterator>

#include "userspace/core/shard_ladder.h"

namespace edgeshed::core {
namespace {

struct Range {
  const char* name;
  double low;
  double high;
};
constexpr Range kRanges[] = {
#define X(name, low, high, unit, text) {#name, low, high},
    EDGESHED_PRESSURE_LIST(X)
#undef X
};

}  // namespace

const char* pressure_signal_name(PressureSignal signal) {
  return kRanges[static_cast<uint8_t>(signal)].name;
}

double pressure_of(PressureSignal signal, double value) {
  const Range& range = kRanges[static_cast<uint8_t>(signal)];
  return std::clamp((value - range.low) / (range.high - range.low), 0.0, 2.0);
}

Pressure pressure(const ShardSignals& signals) {
  const double budget_ms = signals.frame_budget_ms;
  // In the order of the list.
  const double values[] = {signals.offered_cost_ratio,
                           tick_ratio(signals.receive_queue_ms, budget_ms),
                           signals.ring_occupancy,
                           signals.softnet_drops > 0 ? std::max(1.0, signals.softnet_drops) : 0,
                           signals.time_squeezes,
                           tick_ratio(signals.tick_p99_ms, budget_ms),
                           tick_ratio(signals.running_tick_age_ms, budget_ms),
                           signals.ack_lag_p95,
                           signals.rejected_share,
                           signals.psi_cpu_some};
  static_assert(std::size(values) == static_cast<size_t>(PressureSignal::count));
  Pressure highest;
  for (uint8_t i = 0; i < static_cast<uint8_t>(PressureSignal::count); ++i) {
    const auto signal = static_cast<PressureSignal>(i);
    const double value = pressure_of(signal, values[i]);
    if (value > highest.value) highest = {value, signal};
  }
  return highest;
}

}  // namespace edgeshed::core
