// Timelines of the controller: up at once, hysteresis and hold on the way down, the ramp, re-entry,
// override, stale reports, the room latch.
#include "userspace/core/shard_controller.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

namespace edgeshed::core {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kTickMs = 10;
constexpr double kBudgetMs = 20;
constexpr uint32_t kSnapshot = ES_LANE_snapshot - kFirstThinLane;
constexpr uint32_t kVoice = ES_LANE_voice - kFirstThinLane;

/// A shard that reports every 10 ms; ratio is tick p99 over the budget.
class ShardControllerTest : public testing::Test {
 protected:
  ShardControllerTest() {
    signals_.frame_budget_ms = kBudgetMs;
    signals_.room_capacity = 10;
  }

  std::optional<RungChange> tick(double ratio) {
    now_ms_ += kTickMs;
    signals_.tick_p99_ms = ratio * kBudgetMs;
    if (reporting_) signals_.reported_at_ns = now_ms_ * kMs;
    return controller_.step(state_, signals_, now_ms_ * kMs);
  }

  /// Ticks for a time; returns how many changes there were.
  int run(double ratio, uint64_t ms) {
    int changes = 0;
    for (uint64_t passed = 0; passed < ms; passed += kTickMs) changes += tick(ratio).has_value();
    return changes;
  }

  /// Milliseconds of this ratio until the rung is `rung`; 100 s at most.
  uint64_t until(uint8_t rung, double ratio) {
    const uint64_t begin = now_ms_;
    while (state_.rung != rung && now_ms_ < begin + 100000) tick(ratio);
    return now_ms_ - begin;
  }

  /// Every climb counts at once, so that one sample is enough for a test.
  static ControlConfig certain() {
    ControlConfig config;
    config.confirm_s = 0;
    return config;
  }

  ShardController controller_{certain(), default_ladder_table()};
  ShardState state_;
  ShardSignals signals_;
  uint64_t now_ms_ = 1000;
  bool reporting_ = true;
};

TEST_F(ShardControllerTest, ClimbsAtOnceAndRecordsWhy) {
  EXPECT_FALSE(tick(0.5).has_value());
  const auto change = tick(1.6);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->from, 0);
  EXPECT_EQ(change->to, 4);
  EXPECT_EQ(change->cause, Cause::tick_ratio);
  EXPECT_EQ(change->at_ns, now_ms_ * kMs);
  EXPECT_DOUBLE_EQ(change->release.tick_ratio_below, 1.5 * 0.85);
  EXPECT_DOUBLE_EQ(change->release.ring_occupancy_below, 0.95 * 0.85);
  EXPECT_EQ(change->hold_s, 1);
  EXPECT_TRUE(state_.refuse_joins());
  EXPECT_EQ(state_.effects.lane[kSnapshot].keep[ES_OUT], 0.25);
  EXPECT_TRUE(state_.effects.lane[kVoice].paused);
  EXPECT_EQ(state_.changes, 1u);
}

TEST_F(ShardControllerTest, AClimbWhoseCauseIsGoneAtOnceIsUndone) {
  controller_ = ShardController(ControlConfig{}, default_ladder_table());
  run(0.5, 1000);
  for (int i = 0; i < 5; ++i) {
    tick(1.3);
    tick(1.6);
    ASSERT_EQ(state_.rung, 4);
    const auto change = tick(0.5);
    ASSERT_TRUE(change.has_value());
    EXPECT_EQ(change->cause, Cause::released);
    EXPECT_EQ(state_.rung, 0);
    EXPECT_FALSE(state_.effects.lane[kVoice].paused);
    EXPECT_EQ(state_.hold_factor, 1) << "it was no fall";
    run(0.5, 2000);
  }
  run(1.6, 200);
  run(0.5, 500);
  EXPECT_EQ(state_.rung, 4) << "not later than confirm_s";
}

TEST_F(ShardControllerTest, AClimbIsUndoneOnlyBelowTheExitLevel) {
  controller_ = ShardController(ControlConfig{}, default_ladder_table());
  tick(0.9);
  run(0.9, 1000);
  tick(1.3);
  run(0.86, 100);
  EXPECT_EQ(state_.rung, 3) << "rung 2 would not be left at .86";
}

TEST_F(ShardControllerTest, StaysBetweenExitAndEnterLevel) {
  tick(1.0);
  EXPECT_EQ(run(0.86, 20000), 0);
  EXPECT_EQ(state_.rung, 2);
  EXPECT_EQ(run(0.85 * 1.0, 5000), 0) << "at the exit level is not below it";
  EXPECT_EQ(until(1, 0.8499), 1000u + kTickMs);
  EXPECT_EQ(state_.cause, Cause::released);
}

TEST_F(ShardControllerTest, ExitConditionMustHoldWithoutABreak) {
  tick(1.0);
  run(0.5, 900);
  tick(0.9);
  EXPECT_EQ(run(0.5, 1000), 0);
  EXPECT_EQ(run(0.5, 10), 1);
  EXPECT_EQ(state_.rung, 1);
}

TEST_F(ShardControllerTest, FallsOneRungAtATimeTheFirstAfterAWholeHold) {
  tick(3);
  ASSERT_EQ(state_.rung, 5);
  uint64_t last_ms = now_ms_ + kTickMs;  // the exit condition holds from the next tick on
  for (uint8_t rung = 4;; --rung) {
    until(rung, 0);
    EXPECT_EQ(now_ms_ - last_ms, rung == 4 ? 1000u : 250u) << int{rung};
    EXPECT_EQ(state_.last_change.from, rung + 1);
    EXPECT_EQ(state_.last_change.cause, Cause::released);
    last_ms = now_ms_;
    if (rung == 0) break;
  }
  tick(0);
  EXPECT_EQ(state_.cause, Cause::none);
}

TEST_F(ShardControllerTest, RampIsLinearAndNeverACliff) {
  run(3, 100);
  const LadderTable& table = controller_.table();
  double keep = state_.effects.lane[kSnapshot].keep[ES_OUT];
  double threshold = state_.effects.threshold[kTierStandard];
  double interval_ms = state_.effects.lane[kSnapshot].min_interval_ms;
  EXPECT_EQ(keep, 0);
  EXPECT_EQ(threshold, 64);
  uint64_t standard_back_ms = 0;
  const uint64_t begin_ms = now_ms_;
  for (int i = 0; i < 1000; ++i) {
    tick(0);
    const LaneEffect& lane = state_.effects.lane[kSnapshot];
    EXPECT_GE(lane.keep[ES_OUT], keep);
    EXPECT_LE(lane.keep[ES_OUT] - keep, 0.25 * 0.010 + 1e-9);
    EXPECT_LE(lane.keep[ES_OUT], table[state_.load_rung].lane[kSnapshot].keep[ES_OUT]);
    EXPECT_LE(threshold - state_.effects.threshold[kTierStandard], 256 * 0.5 * 0.010 + 1e-9);
    EXPECT_LE(interval_ms - lane.min_interval_ms, 100 * 0.25 * 0.010 + 1e-9);
    keep = lane.keep[ES_OUT];
    threshold = state_.effects.threshold[kTierStandard];
    interval_ms = lane.min_interval_ms;
    if (threshold == 0 && standard_back_ms == 0) standard_back_ms = now_ms_ - begin_ms;
  }
  EXPECT_EQ(keep, 1);
  EXPECT_EQ(interval_ms, 0);
  // 64 of 256 priorities at 50 %/s are half a second, after the hold.
  EXPECT_NEAR(static_cast<double>(standard_back_ms), 1500, 20);
}

TEST_F(ShardControllerTest, FullRecoveryFromTheTopTakesEightSecondsAtMost) {
  run(3, 100);
  const uint64_t begin_ms = now_ms_;
  const auto all_back = [this] {
    for (const LaneEffect& lane : state_.effects.lane) {
      if (lane.keep[ES_OUT] < 1 || lane.min_interval_ms > 0) return false;
    }
    return true;
  };
  while (!all_back() && now_ms_ < begin_ms + 20000) tick(0);
  EXPECT_LE(now_ms_ - begin_ms, 8000u);
  EXPECT_GE(now_ms_ - begin_ms, 5000u);
}

TEST_F(ShardControllerTest, CutsAreNotRamped) {
  run(3, 100);
  run(0, 4000);
  EXPECT_GT(state_.effects.lane[kSnapshot].keep[ES_IN], 0.25);
  tick(1.3);
  EXPECT_EQ(state_.effects.lane[kSnapshot].keep[ES_IN], 0.25);
}

TEST_F(ShardControllerTest, ReentryDoublesTheHoldUpToEightfold) {
  tick(0.9);
  uint64_t expected_ms = 1000;
  for (const uint64_t factor : {1, 2, 4, 8, 8, 8}) {
    EXPECT_EQ(until(0, 0), expected_ms * factor + kTickMs);
    run(0, 500);
    tick(0.9);  // within 10 s of the fall
    ASSERT_EQ(state_.rung, 1);
  }
  // A fall that lasts resets it.
  until(0, 0);
  run(0, 10010);
  tick(0.9);
  EXPECT_EQ(until(0, 0), 1000u + kTickMs);
}

TEST_F(ShardControllerTest, ClimbingFurtherIsNoReentry) {
  tick(0.9);
  tick(1.1);
  tick(1.3);
  EXPECT_EQ(state_.hold_factor, 1);
}

TEST_F(ShardControllerTest, OverrideWinsBothWaysAndExpires) {
  tick(0);
  ShardController::force(state_, 3, (now_ms_ + 1000) * kMs);
  auto change = tick(0);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->to, 3);
  EXPECT_EQ(change->cause, Cause::manual);
  EXPECT_EQ(run(2.5, 500), 0) << "load does not move a forced rung";
  EXPECT_EQ(run(0, 460), 0);
  tick(0);
  ASSERT_EQ(now_ms_ % 10, 0u);
  run(0, 100);
  EXPECT_FALSE(state_.overridden);
  EXPECT_EQ(state_.rung, 3);
  EXPECT_EQ(state_.cause, Cause::manual_ended);
  EXPECT_GT(until(2, 0), 0u);
  ShardController::force(state_, 0, 0);
  change = tick(2.5);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->to, 0);
  EXPECT_EQ(run(2.5, 100000), 0) << "no expiry: until cleared";
  ShardController::clear_override(state_);
  change = tick(2.5);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->to, 5);
  EXPECT_EQ(change->cause, Cause::tick_ratio);
}

TEST_F(ShardControllerTest, EveryChangeIsCountedByItsCause) {
  tick(1.3);
  until(0, 0);
  ShardController::force(state_, 2, (now_ms_ + 100) * kMs);
  run(0, 20'000);
  EXPECT_EQ(state_.rung, 0);
  const auto count = [&](Cause cause) {
    return state_.changes_by_cause[static_cast<size_t>(cause)];
  };
  EXPECT_EQ(count(Cause::tick_ratio), 1u);
  EXPECT_EQ(count(Cause::manual), 1u);
  EXPECT_EQ(count(Cause::released), 5u) << "3 rungs, then 2";
  uint64_t sum = 0;
  for (const uint32_t one : state_.changes_by_cause) sum += one;
  EXPECT_EQ(sum, state_.changes);
}

TEST_F(ShardControllerTest, StaleReportHoldsThenLetsGoAlongTheRamp) {
  tick(1.3);
  ASSERT_EQ(state_.rung, 3);
  reporting_ = false;
  EXPECT_EQ(run(0, 1000), 0) << "the last report is not older than the timeout";
  EXPECT_EQ(state_.report, ReportState::fresh);
  // The signals have been low for almost a hold by now: it must not run on in silence.
  EXPECT_EQ(run(0, 1000), 0);
  EXPECT_EQ(state_.report, ReportState::holding);
  EXPECT_EQ(state_.rung, 3);
  EXPECT_EQ(until(2, 1.3), 1000u + kTickMs) << "what the dead report says is not used";
  EXPECT_EQ(state_.report, ReportState::missing);
  EXPECT_LE(state_.effects.lane[kSnapshot].keep[ES_OUT], 0.26);
}

TEST_F(ShardControllerTest, OfferedCostStillClimbsWithoutAReport) {
  reporting_ = false;
  signals_.offered_cost_ratio = 1.3;
  const auto change = tick(0);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->to, 3);
  EXPECT_EQ(change->cause, Cause::offered_cost);
  EXPECT_EQ(state_.report, ReportState::missing);
}

TEST_F(ShardControllerTest, FullOfRoomsRefusesJoinsAndShedsNothing) {
  signals_.room_count = 10;
  auto change = tick(0);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->to, 4);
  EXPECT_EQ(change->cause, Cause::room_capacity);
  EXPECT_EQ(change->release.room_count_below, 10u);
  EXPECT_TRUE(state_.refuse_joins());
  EXPECT_EQ(state_.load_rung, 0);
  EXPECT_EQ(state_.effects.lane[kSnapshot].keep[ES_OUT], 1);
  EXPECT_FALSE(state_.effects.lane[kVoice].paused);
  signals_.room_count = 9;
  EXPECT_EQ(until(0, 0), 1000u + kTickMs);
  EXPECT_FALSE(state_.refuse_joins());
}

TEST_F(ShardControllerTest, PressureAndMarks) {
  ShardSignals signals;
  signals.frame_budget_ms = kBudgetMs;
  EXPECT_EQ(pressure(signals).value, 0);
  signals.running_tick_age_ms = kBudgetMs;
  EXPECT_DOUBLE_EQ(pressure(signals).value, 1);
  signals.ring_occupancy = 0.75;
  EXPECT_DOUBLE_EQ(pressure(signals).value, 1);
  signals.offered_cost_ratio = 5;
  EXPECT_DOUBLE_EQ(pressure(signals).value, 2);
  // Rung 2 admits all marks; pressure .85 is half way from .7 to 1.
  tick(1.0);
  EXPECT_DOUBLE_EQ(state_.effects.ce_share, 1);
  tick(0.75 + 0.85 * 0.25);
  EXPECT_NEAR(state_.effects.ce_share, 0.5, 1e-9);
  tick(0.9);
  EXPECT_EQ(state_.effects.ce_share, 0);
}

TEST_F(ShardControllerTest, RefusesAnUnsoundTableOrConfig) {
  ControlConfig config;
  config.exit_ratio = 2;
  EXPECT_THROW(ShardController(config, default_ladder_table()), std::invalid_argument);
  LadderTable table = default_ladder_table();
  table[5].refuse_joins = false;
  EXPECT_THROW(ShardController(ControlConfig{}, table), std::invalid_argument);
}

TEST_F(ShardControllerTest, RandomSignalsNeverBreakTheRules) {
  std::mt19937 random(20240229);
  std::uniform_real_distribution<double> ratio(0, 2.2);
  double level = 0;
  for (int i = 0; i < 200000; ++i) {
    if (random() % 300 == 0) level = ratio(random);
    signals_.ring_occupancy = random() % 3000 == 0 ? 1.0 : 0.0;
    reporting_ = random() % 1000 > 3 ? reporting_ : !reporting_;
    const uint8_t before = state_.load_rung;
    const LadderEffects effects_before = state_.effects;
    tick(level);
    EXPECT_GE(state_.load_rung + 1, before) << "one rung at a time";
    EXPECT_TRUE(keeps_no_more(state_.effects, [&] {
      // Never above the table of its rung; marks follow the pressure instead.
      LadderEffects bound = controller_.table()[state_.load_rung];
      bound.ce_share = 0;
      return bound;
    }()));
    for (uint32_t lane = 0; lane < kThinLanes; ++lane) {
      EXPECT_LE(state_.effects.lane[lane].keep[ES_OUT] - effects_before.lane[lane].keep[ES_OUT],
                0.25 * 0.010 + 1e-9);
    }
    if (state_.report == ReportState::fresh) {
      EXPECT_GE(state_.rung, evaluate_load_degradation(signals_).rung);
    }
  }
  EXPECT_GT(state_.changes, 100u);
}

}  // namespace
}  // namespace edgeshed::core
