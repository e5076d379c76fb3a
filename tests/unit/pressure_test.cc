// The ranges of control law B1, each at its edges, and the maximum over them.
#include "userspace/core/pressure.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace edgeshed::core {
namespace {

struct Edge {
  PressureSignal signal;
  double low;
  double high;
  std::function<void(ShardSignals&, double)> set;
};

constexpr double kBudgetMs = 20;

std::vector<Edge> edges() {
  const auto in_budgets = [](double ShardSignals::* field) {
    return [field](ShardSignals& signals, double value) { signals.*field = value * kBudgetMs; };
  };
  const auto plain = [](double ShardSignals::* field) {
    return [field](ShardSignals& signals, double value) { signals.*field = value; };
  };
  using enum PressureSignal;
  return {{offered_cost, 0.85, 1.0, plain(&ShardSignals::offered_cost_ratio)},
          {receive_queue, 0.5, 2, in_budgets(&ShardSignals::receive_queue_ms)},
          {ring, 0.25, 0.75, plain(&ShardSignals::ring_occupancy)},
          {time_squeeze, 1, 10, plain(&ShardSignals::time_squeezes)},
          {tick, 0.75, 1, in_budgets(&ShardSignals::tick_p99_ms)},
          {running_tick, 0.75, 1, in_budgets(&ShardSignals::running_tick_age_ms)},
          {ack_lag, 2, 6, plain(&ShardSignals::ack_lag_p95)},
          {rejects, 0.01, 0.10, plain(&ShardSignals::rejected_share)},
          {psi_cpu, 0.10, 0.40, plain(&ShardSignals::psi_cpu_some)}};
}

Pressure pressure_at(const Edge& edge, double value) {
  ShardSignals signals;
  signals.frame_budget_ms = kBudgetMs;
  edge.set(signals, value);
  return pressure(signals);
}

TEST(Pressure, NothingMeasuredIsNoPressure) { EXPECT_EQ(pressure({}).value, 0); }

// Rule: B1
TEST(Pressure, EverySignalAtItsEdges) {
  for (const Edge& edge : edges()) {
    const char* name = pressure_signal_name(edge.signal);
    EXPECT_EQ(pressure_at(edge, edge.low).value, 0) << name;
    const Pressure half = pressure_at(edge, (edge.low + edge.high) / 2);
    EXPECT_NEAR(half.value, 0.5, 1e-9) << name;
    EXPECT_EQ(half.signal, edge.signal) << name;
    EXPECT_NEAR(pressure_at(edge, edge.high).value, 1, 1e-9) << name;
    EXPECT_EQ(pressure_at(edge, 1000).value, 2) << name;
  }
}

TEST(Pressure, AnyPacketThatTheKernelDroppedIsPressure) {
  ShardSignals signals;
  signals.softnet_drops = 0.2;  // one in five control ticks
  EXPECT_EQ(pressure(signals).value, 1);
  EXPECT_EQ(pressure(signals).signal, PressureSignal::softnet_drops);
}

TEST(Pressure, TheWorstSignalWins) {
  ShardSignals signals;
  signals.frame_budget_ms = kBudgetMs;
  signals.offered_cost_ratio = 0.9;
  signals.tick_p99_ms = 0.95 * kBudgetMs;
  EXPECT_NEAR(pressure(signals).value, 0.8, 1e-9);
  EXPECT_EQ(pressure(signals).signal, PressureSignal::tick);
}

TEST(Pressure, EverySignalHasOneSourceAndOneBit) {
  uint16_t all = 0;
  for (uint8_t i = 0; i < static_cast<uint8_t>(SignalSource::count); ++i) {
    const uint16_t bits = source_bits(static_cast<SignalSource>(i));
    EXPECT_NE(bits, 0);
    EXPECT_EQ(all & bits, 0);
    all |= bits;
    EXPECT_EQ(sources_in(bits), 1u);
  }
  EXPECT_EQ(all, (1u << kPressureSignals) - 1);
  EXPECT_EQ(sources_in(0), 0u);
  EXPECT_EQ(sources_in(all), static_cast<uint32_t>(SignalSource::count));
  // One file gives two: it is lost once.
  EXPECT_EQ(sources_in(signal_bit(PressureSignal::softnet_drops) |
                       signal_bit(PressureSignal::time_squeeze)),
            1u);
}

}  // namespace
}  // namespace edgeshed::core
