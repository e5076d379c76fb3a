// A table of ranges, and the maximum over it.
#include "userspace/core/pressure.h"

#include <algorithm>

#include "userspace/core/shard_ladder.h"

namespace edgeshed::core {
namespace {

struct Row {
  const char* name;
  SignalSource source;
  double low;
  double high;
  const char* unit;
};
constexpr Row kRows[] = {
#define X(name, source, low, high, unit, text) {#name, SignalSource::source, low, high, unit},
    EDGESHED_PRESSURE_LIST(X)
#undef X
};
constexpr const char* kSourceNames[] = {
#define X(name) #name,
    EDGESHED_SIGNAL_SOURCE_LIST(X)
#undef X
};
static_assert(kPressureSignals <= 16, "ShardSignals::missing has 16 bits");

const Row& row_of(PressureSignal signal) { return kRows[static_cast<uint8_t>(signal)]; }

}  // namespace

const char* pressure_signal_name(PressureSignal signal) { return row_of(signal).name; }
const char* pressure_signal_unit(PressureSignal signal) { return row_of(signal).unit; }
SignalSource source_of(PressureSignal signal) { return row_of(signal).source; }
const char* signal_source_name(SignalSource source) {
  return kSourceNames[static_cast<uint8_t>(source)];
}

uint16_t source_bits(SignalSource source) {
  uint16_t bits = 0;
  for (uint8_t i = 0; i < kPressureSignals; ++i) {
    if (kRows[i].source == source) bits |= signal_bit(static_cast<PressureSignal>(i));
  }
  return bits;
}

uint32_t sources_in(uint16_t signals) {
  uint32_t sources = 0;
  if (signals == 0) return sources;  // every tick of every shard
  for (uint8_t i = 0; i < static_cast<uint8_t>(SignalSource::count); ++i) {
    sources += (signals & source_bits(static_cast<SignalSource>(i))) != 0 ? 1 : 0;
  }
  return sources;
}

double value_of(PressureSignal signal, const ShardSignals& signals) {
  const double budget_ms = signals.frame_budget_ms;
  switch (signal) {
    case PressureSignal::offered_cost:
      return signals.offered_cost_ratio;
    case PressureSignal::receive_queue:
      return tick_ratio(signals.receive_queue_ms, budget_ms);
    case PressureSignal::ring:
      return signals.ring_occupancy;
    case PressureSignal::softnet_drops:
      return signals.softnet_drops;
    case PressureSignal::time_squeeze:
      return signals.time_squeezes;
    case PressureSignal::tick:
      return tick_ratio(signals.tick_p99_ms, budget_ms);
    case PressureSignal::running_tick:
      return tick_ratio(signals.running_tick_age_ms, budget_ms);
    case PressureSignal::ack_lag:
      return signals.ack_lag_p95;
    case PressureSignal::rejects:
      return signals.rejected_share;
    case PressureSignal::psi_cpu:
      return signals.psi_cpu_some;
    case PressureSignal::count:
      break;
  }
  return 0;
}

double pressure_of(PressureSignal signal, double value) {
  const Row& row = row_of(signal);
  // Packets that the kernel drops are never few: one in five ticks is pressure, too.
  if (signal == PressureSignal::softnet_drops && value > 0) value = std::max(1.0, value);
  return std::clamp((value - row.low) / (row.high - row.low), 0.0, 2.0);
}

Pressure pressure(const ShardSignals& signals) {
  Pressure highest;
  for (uint8_t i = 0; i < kPressureSignals; ++i) {
    const auto signal = static_cast<PressureSignal>(i);
    const double value = pressure_of(signal, value_of(signal, signals));
    if (value > highest.value) highest = {value, signal};
  }
  return highest;
}

}  // namespace edgeshed::core
