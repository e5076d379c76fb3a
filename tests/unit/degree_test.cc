// The degree: what fits, at every edge; and the way there, down at once and up along the ramp.
#include "userspace/core/degree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "userspace/core/model.h"

namespace edgeshed::core {
namespace {

constexpr uint64_t kTickNs = 16'666'667;
constexpr DegreeConfig kConfig;
constexpr ControlConfig kControl;

DegreeInput offered(double critical, double standard, double best_effort) {
  DegreeInput input;
  input.demand.known = true;
  input.demand.tier = {critical, standard, best_effort};
  return input;
}

void expect_target(const DegreeInput& input, double keep_standard, double keep_best_effort) {
  const Degree target = target_degree(input, kConfig);
  EXPECT_NEAR(target.keep_standard, keep_standard, 1e-9);
  EXPECT_NEAR(target.keep_best_effort, keep_best_effort, 1e-9);
}

// Rule: B2
TEST(DegreeTarget, BestEffortGivesFirstThenStandard) {
  expect_target(offered(0.3, 0.3, 0.3), 1, 1);
  expect_target(offered(0.3, 0.3, 0.6), 1, 0.5);
  expect_target(offered(0.3, 0.6, 0.6), 1, 0);
  expect_target(offered(0.3, 1.2, 0.6), 0.5, 0);
  expect_target(offered(0.9, 1.2, 0.6), 0, 0);
  expect_target(offered(5, 1, 1), 0, 0);
}

TEST(DegreeTarget, AllIsKeptWhileDemandIsNotKnown) {
  DegreeInput input = offered(5, 5, 5);
  input.demand.known = false;
  expect_target(input, 1, 1);
}

TEST(DegreeTarget, WhatIsNotOfferedIsKept) {
  expect_target(offered(0, 0, 0), 1, 1);
  expect_target(offered(0.5, 0, 0.8), 1, 0.5);
  expect_target(offered(0.5, 0.8, 0), 0.5, 1);
  expect_target(offered(0.91, 0, 0), 0, 0);
}

// Rule: B2, B10
TEST(DegreeTarget, BaseBacklogAndMissingSignalsTakeFromTheBudget) {
  DegreeInput input = offered(0, 0, 1);
  EXPECT_DOUBLE_EQ(message_budget(input, kConfig), 0.9);
  input.demand.base = 0.2;
  EXPECT_DOUBLE_EQ(message_budget(input, kConfig), 0.7);
  input.backlog_ms = 30;
  EXPECT_DOUBLE_EQ(message_budget(input, kConfig), 0.4);
  input.sources_lost = 2;
  EXPECT_DOUBLE_EQ(message_budget(input, kConfig), 0.3);
  expect_target(input, 1, 0.3);
  input.backlog_ms = 1000;
  EXPECT_LT(message_budget(input, kConfig), 0);
  expect_target(input, 0, 0);
}

TEST(DegreeTarget, TheReserveStaysForBestEffort) {
  DegreeInput input = offered(0.3, 1.0, 0.5);
  input.best_effort_reserve = 0.1;
  expect_target(input, 0.5, 0.2);
  input.best_effort_reserve = 2;  // never more than is offered
  expect_target(input, 0.1, 1);
  input.best_effort_reserve = -1;
  expect_target(input, 0.6, 0);
}

TEST(DegreeTarget, WhatIsKeptAlwaysFits) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> share(0, 3);
  for (int i = 0; i < 10'000; ++i) {
    DegreeInput input = offered(share(random) / 3, share(random), share(random));
    input.demand.base = share(random) / 10;
    const Degree target = target_degree(input, kConfig);
    const auto& tier = input.demand.tier;
    const double spent = tier[ES_TIER_critical] + target.keep_standard * tier[ES_TIER_standard] +
                         target.keep_best_effort * tier[ES_TIER_best_effort];
    const double budget = message_budget(input, kConfig);
    EXPECT_LE(spent, std::max(budget, tier[ES_TIER_critical]) + 1e-9);
    // Nothing is left unused, and the order never inverts.
    if (target.keep_best_effort < 1 && budget > tier[ES_TIER_critical]) {
      EXPECT_NEAR(spent, budget, 1e-9);
    }
    if (target.keep_standard < 1) {
      EXPECT_NEAR(target.keep_best_effort, 0, 1e-9);
    }
  }
}

/// A shard's degree under a clock of ticks.
struct Ramp {
  DegreeState state;
  uint64_t now_ns = 1'000'000'000;

  void run(const Degree& target, double seconds) {
    const auto end_ns = now_ns + static_cast<uint64_t>(seconds * 1e9);
    while (now_ns + kTickNs <= end_ns) {
      now_ns += kTickNs;
      step(state, target, kControl, kConfig, now_ns);
    }
  }
  void tick(const Degree& target) {
    now_ns += kTickNs;
    step(state, target, kControl, kConfig, now_ns);
  }
  /// A cut that lasts until it can no longer be undone. The hold runs on from its last tick.
  void cut(const Degree& target) { run(target, kControl.confirm_s + 0.05); }
  double since_cut_s() const { return static_cast<double>(now_ns - state.last_cut_ns) / 1e9; }
  /// Seconds until `keep` is whole again.
  double until_whole(double Degree::* keep) {
    const uint64_t begin_ns = now_ns;
    while (state.now.*keep < 1 && now_ns - begin_ns < 100'000'000'000) tick({});
    return static_cast<double>(now_ns - begin_ns) / 1e9;
  }
};

// Rule: B3
TEST(DegreeRamp, DownAtOnce) {
  Ramp ramp;
  ramp.tick({});
  ramp.tick({0.5, 0});
  EXPECT_EQ(ramp.state.now.keep_standard, 0.5);
  EXPECT_EQ(ramp.state.now.keep_best_effort, 0);
  ramp.tick({0.45, 0});
  EXPECT_EQ(ramp.state.now.keep_standard, 0.45) << "small cuts too";
}

// Rule: B3
TEST(DegreeRamp, StandardFirstThenBestEffort) {
  Ramp ramp;
  ramp.tick({});
  ramp.cut({0, 0});
  ramp.run({}, 0.98 - ramp.since_cut_s());
  EXPECT_EQ(ramp.state.now.keep_standard, 0) << "held";
  EXPECT_NEAR(ramp.since_cut_s() + ramp.until_whole(&Degree::keep_standard), 1 + 2, 0.06);
  EXPECT_EQ(ramp.state.now.keep_best_effort, 0);
  EXPECT_NEAR(ramp.until_whole(&Degree::keep_best_effort), 1 + 4, 0.06);
}

TEST(DegreeRamp, BestEffortAloneWaitsOneHold) {
  Ramp ramp;
  ramp.tick({});
  ramp.cut({1, 0.5});
  const double begin_s = ramp.since_cut_s();
  EXPECT_NEAR(begin_s + ramp.until_whole(&Degree::keep_best_effort), 1 + 2, 0.06);
}

TEST(DegreeRamp, ACutWhoseCauseIsGoneAtOnceIsUndone) {
  Ramp ramp;
  ramp.tick({});
  for (int i = 0; i < 5; ++i) {
    ramp.tick({0.3, 0});
    EXPECT_EQ(ramp.state.now.keep_standard, 0.3);
    ramp.tick({0.2, 0});
    ramp.tick({1, 0.95});
    EXPECT_EQ(ramp.state.now.keep_standard, 1);
    EXPECT_EQ(ramp.state.now.keep_best_effort, 0.95) << "as far as is allowed now";
    EXPECT_EQ(ramp.state.hold_factor, 1);
    ramp.run({}, 3);
  }
  ramp.run({0.3, 0}, kControl.confirm_s + 0.02);
  ramp.tick({});
  EXPECT_EQ(ramp.state.now.keep_standard, 0.3) << "not later than confirm_s";
}

TEST(DegreeRamp, AHalfOfACutThatIsGoneIsNotUndone) {
  Ramp ramp;
  ramp.tick({});
  ramp.tick({0.3, 0});
  ramp.tick({0.7, 0});
  EXPECT_EQ(ramp.state.now.keep_standard, 0.3);
}

TEST(DegreeRamp, APauseOfTheHostIsNoRamp) {
  Ramp ramp;
  ramp.tick({});
  ramp.cut({0, 0});
  ramp.now_ns += 60'000'000'000;
  ramp.tick({});
  EXPECT_LE(ramp.state.now.keep_standard, 0.125 + 1e-9);
}

TEST(DegreeRamp, NeverAboveTheTarget) {
  Ramp ramp;
  ramp.tick({});
  ramp.tick({0, 0});
  ramp.run({0.7, 0}, 20);
  EXPECT_EQ(ramp.state.now.keep_standard, 0.7);
  EXPECT_EQ(ramp.state.now.keep_best_effort, 0);
}

TEST(DegreeRamp, OnlyLargeCutsRestartTheHold) {
  Ramp ramp;
  ramp.tick({});
  ramp.tick({1, 0.92 + 1e-9});
  EXPECT_EQ(ramp.state.last_cut_ns, 0u);
  ramp.tick({});
  EXPECT_GT(ramp.state.now.keep_best_effort, 0.92 + 1e-3) << "no hold after a small cut";

  Ramp large;
  large.tick({});
  large.cut({1, 0.92 - 1e-9});
  EXPECT_NE(large.state.last_cut_ns, 0u);
  large.tick({});
  EXPECT_EQ(large.state.now.keep_best_effort, 0.92 - 1e-9);
}

TEST(DegreeRamp, SlidingDownIsOneCut) {
  Ramp ramp;
  ramp.tick({});
  for (const double keep : {0.95, 0.93, 0.91}) ramp.tick({1, keep});
  EXPECT_EQ(ramp.state.last_cut_ns, ramp.now_ns);
}

TEST(DegreeRamp, CuttingAgainSoonDoublesTheHold) {
  Ramp ramp;
  ramp.tick({});
  double expected = 1;
  for (int i = 0; i < 6; ++i) {
    ramp.cut({1, 0.5});
    EXPECT_EQ(ramp.state.hold_factor, expected) << i;
    const double begin_s = ramp.since_cut_s();
    EXPECT_NEAR(begin_s + ramp.until_whole(&Degree::keep_best_effort), expected + 2, 0.06);
    expected = std::min(8.0, expected * 2);
  }
  ramp.run({}, 10.1);
  ramp.tick({1, 0.5});
  EXPECT_EQ(ramp.state.hold_factor, 1) << "forgotten after the window";
}

TEST(DegreeRamp, FallingFurtherIsNoReentry) {
  Ramp ramp;
  ramp.tick({});
  for (const double keep : {0.8, 0.6, 0.4, 0.2}) ramp.tick({1, keep});
  EXPECT_EQ(ramp.state.hold_factor, 1);
}

TEST(DegreeRamp, AClockThatGoesBackIsNoTime) {
  Ramp ramp;
  ramp.tick({});
  ramp.cut({1, 0.5});
  ramp.run({}, 1.5);
  const double keep = ramp.state.now.keep_best_effort;
  step(ramp.state, {}, kControl, kConfig, 5);
  EXPECT_EQ(ramp.state.now.keep_best_effort, keep);
  step(ramp.state, {0, 0}, kControl, kConfig, 5);
  EXPECT_EQ(ramp.state.now.keep_best_effort, 0) << "a cut needs no time";
}

// The loop closed over a game server of which nothing is known: a cost that was learned too high
// must not be held by what is shed because of it.
TEST(DegreeLoop, AWrongUnitIsNotHeldByWhatItSheds) {
  constexpr double kBase = 0.3;
  constexpr double kMessageUs = 50;
  constexpr uint32_t kLanes[ES_TIERS] = {ES_LANE_event, ES_LANE_command, ES_LANE_snapshot};
  constexpr double kShares[ES_TIERS] = {0.1, 0.3, 0.6};
  const CostConfig costs;
  CostState cost = initial_cost(costs);
  RoomDemand room;
  ShardWork work;
  std::array<double, ES_LANES> arrived = {};
  std::array<double, ES_LANES> passed = {};
  Ramp ramp;
  double least = 1;
  double last_whole_s = 0;
  for (int tick = 0; tick < 60 * 30; ++tick) {
    // 100 times as many after 5 s, in the middle of a window of the costs.
    const double messages = (tick < 308 ? 60 : 6000) / 60.0;
    const double keeps[ES_TIERS] = {1, ramp.state.now.keep_standard,
                                    ramp.state.now.keep_best_effort};
    double busy_s = kBase / 60;
    std::array<uint64_t, ES_LANES> ever = {};
    for (uint32_t tier = 0; tier < ES_TIERS; ++tier) {
      const uint32_t lane = kLanes[tier];
      arrived[lane] += messages * kShares[tier];
      passed[lane] += messages * kShares[tier] * keeps[tier];
      busy_s += messages * kShares[tier] * keeps[tier] * kMessageUs * 1e-6;
      ever[lane] = static_cast<uint64_t>(arrived[lane]);
      work.passed[lane] = static_cast<uint64_t>(passed[lane]);
    }
    work.reported_ns = ramp.now_ns + kTickNs;
    work.busy_ns += static_cast<uint64_t>(busy_s * 1e9);
    observe_cost(cost, work, costs);
    step(room, ever, ramp.now_ns + kTickNs, costs);
    DegreeInput input;
    input.demand = begin_demand(cost);
    add_room(input.demand, room, default_lane_tiers(), cost, costs);
    ramp.tick(target_degree(input, kConfig));
    least = std::min(least, ramp.state.now.keep_best_effort);
    if (ramp.state.now.keep_best_effort < 1) last_whole_s = tick / 60.0 - 5;
  }
  EXPECT_LT(least, 0.5) << "the unit was wrong, or this tests nothing";
  EXPECT_LT(last_whole_s, 12);
  EXPECT_NEAR(cost.base_share, kBase, 0.05);
}

TEST(DegreeRamp, KeepsFitFromTheFirstTickOfAStep) {
  for (const double load : {0.5, 1.0, 2.0, 5.0, 10.0}) {
    Ramp ramp;
    ramp.run(target_degree(offered(0.1, 0.2, 0.2), kConfig), 1);
    const DegreeInput input = offered(0.3, 0.3 * load, 0.4 * load);
    for (int i = 0; i < 600; ++i) {
      ramp.tick(target_degree(input, kConfig));
      const double spent = 0.3 + ramp.state.now.keep_standard * 0.3 * load +
                           ramp.state.now.keep_best_effort * 0.4 * load;
      EXPECT_LE(spent, 0.9 + 1e-9) << load;
    }
  }
}

}  // namespace
}  // namespace edgeshed::core
