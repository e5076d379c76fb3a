// Conformance of the shard ladder: every condition just below, at and just above its level.
#include "userspace/core/shard_ladder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace edgeshed::core {
namespace {

constexpr double kBudgetMs = 20;

ShardSignals calm() {
  ShardSignals signals;
  signals.frame_budget_ms = kBudgetMs;
  signals.room_count = 3;
  signals.room_capacity = 10;
  return signals;
}

/// The table as it is specified, written a second time, so that the code is not its own witness.
struct Row {
  uint8_t rung;
  double tick_ratio;
  double ring;
};
constexpr Row kTable[] = {
    {5, 2.0, 1.0}, {4, 1.5, 0.95}, {3, 1.25, 0.85}, {2, 1.0, 0.7}, {1, 0.8, 0.5}};

double just_below(double value) { return std::nextafter(value, 0.0); }
double just_above(double value) { return std::nextafter(value, 10.0); }

// Rule: A3
TEST(ShardLadder, TickRatioBoundaries) {
  for (const Row& row : kTable) {
    ShardSignals signals = calm();
    // A budget of 1 ms makes the ratio the tick itself: no rounding hides the boundary.
    signals.frame_budget_ms = 1;
    signals.tick_p99_ms = just_below(row.tick_ratio);
    EXPECT_EQ(evaluate_shard_degradation(signals).rung, row.rung - 1);
    for (const double at : {row.tick_ratio, just_above(row.tick_ratio)}) {
      signals.tick_p99_ms = at;
      const Degradation found = evaluate_shard_degradation(signals);
      EXPECT_EQ(found.rung, row.rung) << at;
      EXPECT_EQ(found.cause, Cause::tick_ratio);
    }
  }
}

TEST(ShardLadder, RingBoundaries) {
  for (const Row& row : kTable) {
    ShardSignals signals = calm();
    signals.ring_occupancy = just_below(row.ring);
    EXPECT_EQ(evaluate_shard_degradation(signals).rung, row.rung - 1);
    for (const double at : {row.ring, just_above(row.ring)}) {
      signals.ring_occupancy = at;
      const Degradation found = evaluate_shard_degradation(signals);
      EXPECT_EQ(found.rung, row.rung) << at;
      EXPECT_EQ(found.cause, Cause::ring_occupancy);
    }
  }
}

TEST(ShardLadder, RoomCountIsRungFour) {
  ShardSignals signals = calm();
  signals.room_count = 9;
  EXPECT_EQ(evaluate_shard_degradation(signals).rung, 0);
  for (const uint32_t count : {10u, 11u}) {
    signals.room_count = count;
    const Degradation found = evaluate_shard_degradation(signals);
    EXPECT_EQ(found.rung, 4);
    EXPECT_EQ(found.cause, Cause::room_capacity);
    EXPECT_EQ(found.release.room_count_below, 10u);
  }
  signals.room_capacity = 0;
  signals.room_count = 0;
  EXPECT_EQ(evaluate_shard_degradation(signals).rung, 4);
}

TEST(ShardLadder, HighestConditionWins) {
  ShardSignals signals = calm();
  signals.room_count = 10;
  signals.tick_p99_ms = 2 * kBudgetMs;
  EXPECT_EQ(evaluate_shard_degradation(signals).rung, 5);
  signals.tick_p99_ms = 0.9 * kBudgetMs;
  signals.ring_occupancy = 0.86;
  signals.room_count = 0;
  const Degradation found = evaluate_shard_degradation(signals);
  EXPECT_EQ(found.rung, 3);
  EXPECT_EQ(found.cause, Cause::ring_occupancy);
}

TEST(ShardLadder, BudgetBelowOneMillisecondCountsAsOne) {
  ShardSignals signals = calm();
  for (const double budget : {0.0, 0.5, 1.0}) {
    signals.frame_budget_ms = budget;
    signals.tick_p99_ms = 0.79;
    EXPECT_EQ(evaluate_shard_degradation(signals).rung, 0);
    signals.tick_p99_ms = 0.8;
    EXPECT_EQ(evaluate_shard_degradation(signals).rung, 1);
  }
  signals.frame_budget_ms = 2;
  EXPECT_EQ(evaluate_shard_degradation(signals).rung, 0);
}

TEST(ShardLadder, EveryRungHasItsCodeAndOnlyFourAndFiveRefuseJoins) {
  const Code kCodesInOrder[] = {
      Code::shard_normal,      Code::shard_thin_snapshots, Code::shard_reduce_snapshot_rate,
      Code::shard_pause_lanes, Code::shard_refuse_joins,   Code::shard_migrate_or_close};
  for (uint8_t rung = 0; rung < kRungs; ++rung) {
    Degradation found;
    found.rung = rung;
    EXPECT_EQ(found.code(), kCodesInOrder[rung]);
    EXPECT_EQ(found.refuse_joins(), rung == 4 || rung == 5);
    const CodeInfo& info = code_info(found.code());
    EXPECT_EQ(info.retry, rung >= 4);
    EXPECT_EQ(info.retry_after_ms != 0, info.retry);
    EXPECT_LE(info.retry_after_ms, 30000u);
  }
}

TEST(ShardLadder, ActuatingRungTakesTheLargestRatioAndNamesIt) {
  ShardSignals signals = calm();
  signals.tick_p99_ms = 0.5 * kBudgetMs;
  signals.running_tick_age_ms = 1.3 * kBudgetMs;
  EXPECT_EQ(evaluate_shard_degradation(signals).rung, 0);
  Degradation found = evaluate_actuating_degradation(signals);
  EXPECT_EQ(found.rung, 3);
  EXPECT_EQ(found.cause, Cause::running_tick);
  signals.offered_cost_ratio = 1.5;
  found = evaluate_actuating_degradation(signals);
  EXPECT_EQ(found.rung, 4);
  EXPECT_EQ(found.cause, Cause::offered_cost);
  signals.receive_queue_ms = 2 * kBudgetMs;
  found = evaluate_actuating_degradation(signals);
  EXPECT_EQ(found.rung, 5);
  EXPECT_EQ(found.cause, Cause::receive_queue);
}

TEST(ShardLadder, RoomCountDoesNotShed) {
  ShardSignals signals = calm();
  signals.room_count = signals.room_capacity;
  EXPECT_EQ(evaluate_actuating_degradation(signals).rung, 4);
  EXPECT_EQ(evaluate_load_degradation(signals).rung, 0);
}

TEST(ShardLadder, ReleaseIsExactlyWhatLeavesTheRung) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> ratio(0, 2.5);
  std::uniform_real_distribution<double> ring(0, 1.1);
  std::uniform_int_distribution<uint32_t> rooms(0, 12);
  for (int i = 0; i < 5000; ++i) {
    ShardSignals high = calm();
    high.tick_p99_ms = ratio(random) * kBudgetMs;
    high.ring_occupancy = ring(random);
    high.room_count = rooms(random);
    const Degradation found = evaluate_actuating_degradation(high);
    if (found.rung == 0) continue;
    EXPECT_FALSE(is_released(found.release, high));
    ShardSignals other = calm();
    other.tick_p99_ms = ratio(random) * kBudgetMs;
    other.ring_occupancy = ring(random);
    other.room_count = rooms(random);
    const bool full = other.room_count >= other.room_capacity;
    const uint8_t rung = evaluate_actuating_degradation(other).rung;
    // Above rung 4 a full shard cannot be below 4, yet it has left 5.
    if (found.rung == 4 || !full) {
      EXPECT_EQ(is_released(found.release, other), rung < found.rung);
    }
  }
}

TEST(ShardLadder, ReleaseText) {
  EXPECT_EQ(to_text({}), "nothing");
  EXPECT_EQ(to_text({0.8, 0.5, 0}), "tick_ratio below 0.80 and ring_occupancy below 0.50");
  EXPECT_EQ(to_text({0, 0, 64}), "room_count below 64");
  EXPECT_EQ(to_text(scaled({2, 1, 3}, 0.5)),
            "tick_ratio below 1.00 and ring_occupancy below 0.50 and room_count below 3");
}

}  // namespace
}  // namespace edgeshed::core
