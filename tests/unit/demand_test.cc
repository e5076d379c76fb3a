// Arrival rates, costs and their scale, and the offered cost ratio with its split.
#include "userspace/core/demand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "userspace/core/model.h"

namespace edgeshed::core {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr CostConfig kNoCosts;

CostConfig with_commands(double cost_us) {
  CostConfig config;
  config.lane_us[ES_LANE_command] = cost_us;
  config.base_share = 1e-9;  // given, so that nothing of it is learned
  return config;
}

/// A game server of one lane: a base, a cost per message, and a loop that cannot be busier than 1.
struct Server {
  double base = 0;
  double message_us = 50;
  ShardWork work = {.reported_ns = 1'000'000'000};

  void run(CostState& state, const CostConfig& config, double messages_per_s, double seconds) {
    constexpr double kReportS = 0.05;
    for (double t = 0; t < seconds - 1e-9; t += kReportS) {
      const auto messages = static_cast<uint64_t>(std::lround(messages_per_s * kReportS));
      const double busy =
          std::min(1.0, base + static_cast<double>(messages) / kReportS * message_us * 1e-6);
      work.reported_ns += static_cast<uint64_t>(kReportS * 1e9);
      work.busy_ns += static_cast<uint64_t>(busy * kReportS * 1e9);
      work.passed[ES_LANE_command] += messages;
      observe_cost(state, work, config);
    }
  }
};

/// Share of the loop that so many messages are taken to need, base included.
double offered(const CostState& state, double messages_per_s) {
  return state.scale * (state.base_share + messages_per_s * state.unit_us * 1e-6);
}

double cost_us(const CostState& state) { return state.scale * state.unit_us; }

TEST(ArrivalRate, TheFirstSampleOnlyBegins) {
  ArrivalRate rate;
  step(rate, 1'000'000, 50 * kMs, kNoCosts);
  EXPECT_EQ(rate.per_s, 0);
  step(rate, 1'000'000, 50 * kMs, kNoCosts);
  EXPECT_EQ(rate.per_s, 0);
  step(rate, 1'000'100, 60 * kMs, kNoCosts);
  EXPECT_EQ(rate.per_s, 10'000) << "a jump";
}

TEST(ArrivalRate, FourSigmaIsTheEdgeOfAJump) {
  ArrivalRate begin = {10'000, 0, 1000 * kMs};  // 100 in 10 ms, sigma 10
  const double followed = 1 - std::exp(-0.01 / 0.15);
  for (const int away : {-40, -1, 0, 1, 40}) {
    ArrivalRate rate = begin;
    step(rate, 100 + away, 1010 * kMs, kNoCosts);
    EXPECT_NEAR(rate.per_s, 10'000 + followed * away * 100, 1e-6) << away;
  }
  for (const int away : {-41, 41}) {
    ArrivalRate rate = begin;
    step(rate, 100 + away, 1010 * kMs, kNoCosts);
    EXPECT_DOUBLE_EQ(rate.per_s, 10'000 + away * 100) << away;
  }
}

TEST(ArrivalRate, WhatComesInStepIsNoJumpTheSecondTime) {
  // 100 in a step, and every half second 1000 more: clients that were told to come back together.
  ArrivalRate rate;
  uint64_t ever = 0;
  double highest = 0;
  for (uint64_t tick = 1; tick < 600; ++tick) {
    ever += 100 + (tick % 30 == 0 ? 1000 : 0);
    step(rate, ever, tick * 1'000'000'000 / 60, kNoCosts);
    if (tick > 180) highest = std::max(highest, rate.per_s);
  }
  EXPECT_LT(highest, 2 * 133 * 60) << "133 a step on average, 1100 at a burst";
  ever += 2000;
  step(rate, ever, 601ull * 1'000'000'000 / 60, kNoCosts);
  EXPECT_GT(rate.per_s, 1900 * 60 / 2) << "what is more than that still is";
}

TEST(ArrivalRate, AfterAPauseACountSaysNothing) {
  ArrivalRate rate = {500, 1000, 1000 * kMs};
  step(rate, 1001, 3500 * kMs, kNoCosts);
  EXPECT_EQ(rate.per_s, 500);
  step(rate, 1006, 3510 * kMs, kNoCosts);
  EXPECT_NEAR(rate.per_s, 500, 1e-9);
}

TEST(ArrivalRate, AFewPacketsAreNoJump) {
  ArrivalRate rate = {0, 0, 1000 * kMs};
  step(rate, 4, 1010 * kMs, kNoCosts);
  EXPECT_LT(rate.per_s, 30);
  rate = {0, 0, 1000 * kMs};
  step(rate, 5, 1010 * kMs, kNoCosts);
  EXPECT_DOUBLE_EQ(rate.per_s, 500);
}

TEST(ArrivalRate, ACounterThatGoesBackKeepsTheRate) {
  ArrivalRate rate = {500, 1000, 1000 * kMs};
  step(rate, 10, 1010 * kMs, kNoCosts);
  EXPECT_EQ(rate.per_s, 500);
  step(rate, 15, 1020 * kMs, kNoCosts);
  EXPECT_NEAR(rate.per_s, 500, 1e-9);
  step(rate, 20, 1015 * kMs, kNoCosts);
  EXPECT_NEAR(rate.per_s, 500, 1e-9) << "a clock that goes back is no time";
}

TEST(ArrivalRate, StaysOnAPoissonStream) {
  std::mt19937 random(3);
  std::poisson_distribution<uint64_t> arrivals(50);  // 3000/s at 60 Hz
  ArrivalRate rate;
  uint64_t ever = 0;
  for (uint64_t tick = 1; tick < 6000; ++tick) {
    step(rate, ever += arrivals(random), tick * 1'000'000'000 / 60, kNoCosts);
    if (tick > 60) {
      EXPECT_NEAR(rate.per_s, 3000, 500 + 4 * 60 * std::sqrt(50.0)) << tick;
    }
  }
}

TEST(Demand, CostsOfLanes) {
  EXPECT_EQ(lane_cost_us(kNoCosts, ES_LANE_voice), 1);
  CostConfig config;
  config.lane_us[ES_LANE_command] = 30;
  config.lane_us[ES_LANE_event] = 10;
  EXPECT_EQ(lane_cost_us(config, ES_LANE_command), 30);
  EXPECT_EQ(lane_cost_us(config, ES_LANE_event), 10);
  EXPECT_EQ(lane_cost_us(config, ES_LANE_voice), 20) << "the mean of what is given";
}

TEST(Demand, OfferedCostIsSplitByTier) {
  CostConfig config;
  config.lane_us.fill(100);
  CostState state = initial_cost(config);
  state.scale = 2;
  state.base_share = 0.05;  // a loop that is twice as slow is so without messages, too
  RoomDemand room;
  room.lane[ES_LANE_event].per_s = 500;      // critical: .1
  room.lane[ES_LANE_command].per_s = 1000;   // standard: .2
  room.lane[ES_LANE_snapshot].per_s = 1500;  // best effort: .3
  room.lane[ES_LANE_voice].per_s = 500;      // best effort: .1
  ShardDemand demand = begin_demand(state);
  EXPECT_DOUBLE_EQ(demand.offered_cost_ratio(), 0.1);
  add_room(demand, room, default_lane_tiers(), state, config);
  EXPECT_DOUBLE_EQ(demand.tier[ES_TIER_critical], 0.1);
  EXPECT_DOUBLE_EQ(demand.tier[ES_TIER_standard], 0.2);
  EXPECT_DOUBLE_EQ(demand.tier[ES_TIER_best_effort], 0.4);
  EXPECT_DOUBLE_EQ(demand.offered_cost_ratio(), 0.8);
  add_room(demand, room, default_lane_tiers(), state, config);
  EXPECT_DOUBLE_EQ(demand.offered_cost_ratio(), 1.5);
  demand.known = false;
  EXPECT_EQ(demand.offered_cost_ratio(), 0) << "the signal is missing";
}

TEST(Demand, RoomStepsEveryLane) {
  RoomDemand room;
  std::array<uint64_t, ES_LANES> ever = {};
  step(room, ever, 1000 * kMs, kNoCosts);
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) ever[lane] = 100 * (lane + 1);
  step(room, ever, 1010 * kMs, kNoCosts);
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    EXPECT_DOUBLE_EQ(room.lane[lane].per_s, 10'000 * (lane + 1));
  }
}

TEST(CostScale, GivenCostsAreKnownAtOnceAndFollowWithTheirGains) {
  const CostConfig config = with_commands(50);
  CostState state = initial_cost(config);
  EXPECT_TRUE(state.known);
  Server server = {.message_us = 100};  // twice what was said
  server.run(state, config, 4000, 0.3);
  EXPECT_NEAR(state.scale, 1 + 0.6 * (2 - 1), 1e-4) << "one window, upwards";
  server.run(state, config, 4000, 5);
  EXPECT_NEAR(state.scale, 2, 0.03) << "slowly, once it is within a window's noise";
  const double before = state.scale;
  server.message_us = 25;
  server.run(state, config, 4000, 0.25);
  EXPECT_NEAR(state.scale, before + 0.4 * (0.5 - before), 1e-3) << "one window, downwards";
}

TEST(CostScale, GivenCostsStayInTheirBounds) {
  const CostConfig config = with_commands(50);
  CostState state = initial_cost(config);
  Server server = {.message_us = 5000};
  server.run(state, config, 160, 10);
  EXPECT_EQ(state.scale, 10);
  server.message_us = 0;
  server.run(state, config, 160, 20);
  EXPECT_EQ(state.scale, 0.1);
}

TEST(CostScale, TheGivenBaseIsNoCostOfMessages) {
  CostConfig config = with_commands(50);
  config.base_share = 0.3;
  CostState state = initial_cost(config);
  Server server = {.base = 0.3, .message_us = 50};
  server.run(state, config, 2000, 5);
  EXPECT_NEAR(state.scale, 1, 1e-6);
  EXPECT_EQ(state.base_share, 0.3);
}

TEST(CostScale, TheUnitIsLearnedFromTheFirstSecondOfReports) {
  CostState state = initial_cost(kNoCosts);
  EXPECT_FALSE(state.known);
  Server server;
  server.run(state, kNoCosts, 0, 3);
  EXPECT_FALSE(state.known) << "no messages, no cost";
  server.run(state, kNoCosts, 4000, 0.7);
  EXPECT_FALSE(state.known);
  server.run(state, kNoCosts, 4000, 0.5);
  EXPECT_TRUE(state.known);
  server.run(state, kNoCosts, 4000, 5);
  EXPECT_NEAR(cost_us(state), 50, 1);
}

TEST(CostScale, ALearnedUnitHasNoBounds) {
  CostConfig config;
  config.base_share = 0.01;
  CostState state = initial_cost(config);
  Server server = {.base = 0.01, .message_us = 1};
  server.run(state, config, 4000, 2);
  EXPECT_NEAR(cost_us(state), 1, 0.1);
  server.message_us = 100;
  server.run(state, config, 4000, 20);
  EXPECT_NEAR(offered(state, 4000), 0.41, 0.01);
  EXPECT_LE(state.scale, config.scale_max);
}

TEST(CostScale, WorkForFewPlayersIsNotTakenForCostOfMessages) {
  CostState state = initial_cost(kNoCosts);
  Server server = {.base = 0.3, .message_us = 50};
  server.run(state, kNoCosts, 60, 5);
  EXPECT_TRUE(state.known);
  EXPECT_GT(cost_us(state), 4000) << "until the cost varies there is nothing else to blame";
  // A hundred times as many come; even if most are shed at first, what passes tells the truth.
  server.run(state, kNoCosts, 600, 2);
  EXPECT_NEAR(state.base_share, 0.3, 0.02);
  EXPECT_NEAR(cost_us(state), 50, 25);
  server.run(state, kNoCosts, 6000, 2);
  EXPECT_NEAR(state.base_share + 6000 * cost_us(state) * 1e-6, 0.6, 0.02);
}

TEST(CostScale, ABaseThatIsSaidWrongIsScaledWithTheRest) {
  CostConfig config;
  config.base_share = 0.5;
  CostState state = initial_cost(config);
  Server server = {.base = 0.5, .message_us = 50};
  server.run(state, config, 4000, 2);
  server.base = 0;  // less than was said
  server.run(state, config, 4000, 300);
  EXPECT_NEAR(offered(state, 4000), 0.2, 0.01);
  server.base = 0.5;
  server.run(state, config, 4000, 20);
  EXPECT_NEAR(offered(state, 4000), 0.7, 0.02);
}

TEST(CostScale, ASaturatedLoopDoesNotLowerCosts) {
  const CostConfig config = with_commands(50);
  CostState state = initial_cost(config);
  Server server = {.message_us = 50};
  server.run(state, config, 4000, 1);
  EXPECT_NEAR(state.scale, 1, 1e-6);
  server.run(state, config, 100'000, 5);  // 5 s of work a second: busy says 1
  EXPECT_NEAR(state.scale, 1, 1e-6);

  CostState learned = initial_cost(kNoCosts);
  Server other = {.base = 0.1, .message_us = 50};
  other.run(learned, kNoCosts, 4000, 3);
  other.run(learned, kNoCosts, 8000, 3);
  other.run(learned, kNoCosts, 100'000, 5);
  EXPECT_NEAR(offered(learned, 8000), 0.5, 0.05);
}

TEST(CostScale, FewMessagesSayNothing) {
  const CostConfig config = with_commands(50);
  CostState state = initial_cost(config);
  Server server = {.base = 0.5, .message_us = 50};
  server.run(state, config, 20, 5);
  EXPECT_EQ(state.scale, 1);
}

TEST(CostScale, ANewServerBeginsANewWindow) {
  const CostConfig config = with_commands(50);
  CostState state = initial_cost(config);
  Server server;
  server.run(state, config, 4000, 2);
  const double scale = state.scale;
  Server again;
  again.work.reported_ns = server.work.reported_ns + kMs;
  observe_cost(state, again.work, config);
  EXPECT_EQ(state.scale, scale);
  again.run(state, config, 4000, 2);
  EXPECT_NEAR(state.scale, 1, 1e-6);
}

/// What a daemon does with a cost, in small: the share that it lets pass.
double share_for(const CostState& state, double offered_per_s) {
  if (!state.known) return 1;
  const double rho = offered_per_s * state.unit_us * state.scale / 1e6 + state.base_share;
  return rho <= 0.9 ? 1 : 0.9 / rho;
}

TEST(Demand, ACostThatIsFarTooHighIsCorrectedAlthoughHardlyAnythingPasses) {
  const CostConfig config;
  CostState state;
  state.known = true;
  state.unit_us = 50'000;  // 500 times the truth
  ShardWork work;
  work.reported_ns = 1;
  double passed = 0;
  double busy_ns = 0;
  constexpr double kOfferedPerS = 1200;
  constexpr double kTrueCostNs = 100'000;
  for (int tick = 0; tick < 30 * 120; ++tick) {
    const double now = kOfferedPerS / 30 * share_for(state, kOfferedPerS);
    passed += now;
    busy_ns += now * kTrueCostNs;
    work.reported_ns += 33'333'333;
    work.busy_ns = static_cast<uint64_t>(busy_ns);
    work.passed[ES_LANE_command] = static_cast<uint64_t>(passed);
    observe_cost(state, work, config);
  }
  EXPECT_EQ(share_for(state, kOfferedPerS), 1);
}

TEST(Demand, NothingIsLearnedFromALoopThatOnlyLoadsItsLevel) {
  const CostConfig config;
  CostState state;
  ShardWork work;
  work.reported_ns = 1;
  observe_cost(state, work, config);
  work.reported_ns += 2'000'000'000;  // one tick of two seconds, and 40 messages beside it
  work.busy_ns += 2'000'000'000;
  work.passed[ES_LANE_command] += 40;
  observe_cost(state, work, config);
  EXPECT_FALSE(state.known);
}

}  // namespace
}  // namespace edgeshed::core
