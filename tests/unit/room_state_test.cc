// Conformance of a room's pressure state: lags that wrap, nearest rank, and every threshold's
// edges.
#include "userspace/core/room_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace edgeshed::core {
namespace {

constexpr RoomStateConfig kConfig;
constexpr uint64_t kMs = 1'000'000;

RoomObservation observed(const std::vector<RoomConnection>& connections) {
  RoomObservation observation;
  for (const RoomConnection& connection : connections) observation.add(connection, kConfig);
  return observation;
}

RoomState state_of(const std::vector<RoomConnection>& connections) {
  return evaluate_room_state(observed(connections), kConfig);
}

/// `number` connections of which the last `odd_number` are `odd`.
std::vector<RoomConnection> mixed(size_t number, size_t odd_number, const RoomConnection& odd) {
  std::vector<RoomConnection> connections(number);
  std::fill(connections.end() - static_cast<std::ptrdiff_t>(odd_number), connections.end(), odd);
  return connections;
}

RoomConnection lagging(uint32_t lag) { return {.ack_lag = lag}; }

TEST(RoomState, AckLagWrapsAndIsNeverNegative) {
  EXPECT_EQ(ack_lag(10, 10), 0u);
  EXPECT_EQ(ack_lag(10, 4), 6u);
  EXPECT_EQ(ack_lag(4, 10), 0u);
  EXPECT_EQ(ack_lag(2, 0xfffffffe), 4u);
  EXPECT_EQ(ack_lag(0xfffffffe, 2), 0u);
  EXPECT_EQ(ack_lag(0x7fffffff, 0), 0x7fffffffu);
  EXPECT_EQ(ack_lag(0x80000000, 0), 0u);
}

TEST(RoomState, P95IsNearestRankOnAnyRoom) {
  std::mt19937 random(7);
  for (uint32_t number = 1; number <= 130; ++number) {
    std::vector<uint32_t> lags;
    RoomObservation observation;
    for (uint32_t i = 0; i < number; ++i) {
      lags.push_back(random() % (number % 2 == 0 ? 40 : 3000));
      observation.add(lagging(lags.back()), kConfig);
    }
    std::sort(lags.begin(), lags.end());
    const uint32_t rank = (95 * number + 99) / 100;
    const uint32_t exact = lags[rank - 1];
    EXPECT_EQ(observation.ack_lag_max(), lags.back());
    EXPECT_LE(observation.ack_lag_p95(), exact);
    EXPECT_GE(observation.ack_lag_p95() + exact / 8, exact);
    if (exact < 16 || rank == number) {
      EXPECT_EQ(observation.ack_lag_p95(), exact) << number;
    }
    for (uint32_t i = 0; i < kRoomThresholds; ++i) {
      EXPECT_EQ(observation.p95_reaches(i), exact >= kConfig.ack_lag[i]) << number;
    }
  }
}

TEST(RoomState, TheTailOfTheHistogramIsToldAsItsBegin) {
  std::vector<RoomConnection> connections(20, lagging(0x7fffffff));
  const RoomState state = state_of(connections);
  EXPECT_EQ(state.ack_lag_max, 0x7fffffffu);
  EXPECT_EQ(state.ack_lag_p95, 4096u);
  EXPECT_EQ(state.pressure, RoomPressure::shedding);
}

TEST(RoomState, AnEmptyRoomHasNone) {
  const RoomState state = state_of({});
  EXPECT_EQ(state.pressure, RoomPressure::none);
  EXPECT_EQ(state.ack_lag_p95, 0u);
  EXPECT_FALSE(RoomObservation().p95_reaches(0));
}

TEST(RoomState, P95TripsAllThreeThresholds) {
  struct Row {
    uint32_t lag;
    RoomPressure pressure;
  };
  constexpr Row kRows[] = {{0, RoomPressure::none},        {7, RoomPressure::none},
                           {8, RoomPressure::watch},       {15, RoomPressure::watch},
                           {16, RoomPressure::throttling}, {31, RoomPressure::throttling},
                           {32, RoomPressure::shedding},   {33, RoomPressure::shedding}};
  for (const Row& row : kRows) {
    EXPECT_EQ(state_of(mixed(100, 6, lagging(row.lag))).by_ack_lag, row.pressure) << row.lag;
  }
}

TEST(RoomState, MaximumTripsWatchOnly) {
  EXPECT_EQ(state_of(mixed(100, 5, lagging(7))).by_ack_lag, RoomPressure::none);
  EXPECT_EQ(state_of(mixed(100, 5, lagging(8))).by_ack_lag, RoomPressure::watch);
  EXPECT_EQ(state_of(mixed(100, 5, lagging(100000))).by_ack_lag, RoomPressure::watch);
}

TEST(RoomState, DegradedByItsLagOrItsStage) {
  EXPECT_FALSE(is_degraded(lagging(15), kConfig));
  EXPECT_TRUE(is_degraded(lagging(16), kConfig));
  EXPECT_FALSE(is_degraded({.consumer = SlowConsumer::watch}, kConfig));
  EXPECT_TRUE(is_degraded({.consumer = SlowConsumer::throttle}, kConfig));
  EXPECT_TRUE(is_degraded({.consumer = SlowConsumer::evict}, kConfig));
}

TEST(RoomState, ShareOfDegradedConnectionsEscalates) {
  struct Row {
    size_t degraded;
    RoomPressure pressure;
  };
  constexpr Row kRows[] = {{0, RoomPressure::none},        {1, RoomPressure::watch},
                           {9, RoomPressure::watch},       {10, RoomPressure::throttling},
                           {32, RoomPressure::throttling}, {33, RoomPressure::shedding},
                           {100, RoomPressure::shedding}};
  const RoomConnection slow = {.consumer = SlowConsumer::throttle};
  for (const Row& row : kRows) {
    const RoomState state = state_of(mixed(100, row.degraded, slow));
    EXPECT_EQ(state.by_degraded, row.pressure) << row.degraded;
    EXPECT_EQ(state.pressure, row.pressure) << "nothing else speaks";
    EXPECT_EQ(state.degraded, row.degraded);
  }
}

TEST(RoomState, ShareOfRejectedConnectionsIsTheGatewayPressure) {
  struct Row {
    size_t rejected;
    RoomPressure pressure;
  };
  constexpr Row kRows[] = {{0, RoomPressure::none},        {4, RoomPressure::none},
                           {5, RoomPressure::watch},       {24, RoomPressure::watch},
                           {25, RoomPressure::throttling}, {49, RoomPressure::throttling},
                           {50, RoomPressure::shedding}};
  for (const Row& row : kRows) {
    const RoomState state = state_of(mixed(100, row.rejected, {.rejects_per_s = 3}));
    EXPECT_EQ(state.by_gateway, row.pressure) << row.rejected;
    EXPECT_EQ(state.pressure, row.pressure);
  }
  EXPECT_EQ(state_of(mixed(100, 100, {.rejects_per_s = 2.99})).pressure, RoomPressure::none);
  EXPECT_EQ(state_of(mixed(100, 1, {.rejects_per_s = 1e6})).pressure, RoomPressure::none)
      << "one flooder does not speak for the room";
}

// Rule: A1
TEST(RoomState, TheWorstWins) {
  std::vector<RoomConnection> connections = mixed(100, 50, {.rejects_per_s = 3});
  connections[0].ack_lag = 8;
  const RoomState state = state_of(connections);
  EXPECT_EQ(state.by_ack_lag, RoomPressure::watch);
  EXPECT_EQ(state.by_degraded, RoomPressure::none);
  EXPECT_EQ(state.by_gateway, RoomPressure::shedding);
  EXPECT_EQ(state.pressure, RoomPressure::shedding);
}

TEST(RoomState, TheToldP95DoesNotContradictTheDecision) {
  RoomStateConfig config;
  config.ack_lag = {8, 16, 35};  // 35 lies inside of a bucket that begins at 32
  for (const uint32_t lag : {34u, 35u}) {
    RoomObservation observation;
    for (uint32_t i = 0; i < 100; ++i) observation.add(lagging(i == 0 ? 40 : lag), config);
    const RoomState state = evaluate_room_state(observation, config);
    EXPECT_EQ(state.by_ack_lag, lag == 35 ? RoomPressure::shedding : RoomPressure::throttling);
    EXPECT_EQ(state.ack_lag_p95 >= 35, lag == 35);
  }
}

TEST(RoomState, RejectionsOfTheLastSecond) {
  RejectWindow window;
  uint64_t now = 5000 * kMs;
  EXPECT_EQ(step(window, 100, now), 0) << "what was before is not known";
  EXPECT_EQ(step(window, 104, now + 500 * kMs), 4);
  EXPECT_EQ(step(window, 110, now + 1000 * kMs), 10);
  EXPECT_EQ(step(window, 110, now + 1500 * kMs), 5);
  EXPECT_EQ(step(window, 112, now + 1500 * kMs), 7);
  EXPECT_EQ(step(window, 112, now + 2000 * kMs), 2);
  EXPECT_EQ(step(window, 112, now + 3000 * kMs), 0);
  EXPECT_EQ(step(window, 152, now + 13000 * kMs), 4) << "40 in 10 s";
}

TEST(RoomState, ARejectCounterMayWrapOrBeginAgain) {
  RejectWindow window;
  step(window, 0xfffffffe, kMs);
  EXPECT_EQ(step(window, 3, 2 * kMs), 5);
  EXPECT_EQ(step(window, 0xfffffff0, 3 * kMs), 0) << "a new server";
  EXPECT_EQ(step(window, 0xfffffff1, 4 * kMs), 1);
  EXPECT_EQ(step(window, 0xfffffff2, 1 * kMs), 0) << "a clock that went back";
}

TEST(RoomState, NamesAndCodes) {
  const char* const kNames[] = {"none", "watch", "throttling", "shedding"};
  for (uint8_t i = 0; i < 4; ++i) {
    const auto pressure = static_cast<RoomPressure>(i);
    EXPECT_STREQ(room_pressure_name(pressure), kNames[i]);
    EXPECT_STRNE(room_pressure_text(pressure), "");
    EXPECT_EQ(code_info(room_pressure_code(pressure)).name,
              std::string("room_pressure_") + kNames[i]);
  }
}

TEST(RoomState, OnlyLagBeyondARoundTripPressesAndNoneThatWasThinned) {
  const RoomStateConfig config;  // watch is at 8
  EXPECT_EQ(pressing_ack_lag(0, 1, config), 0);
  EXPECT_EQ(pressing_ack_lag(8, 1, config), 0);  // .13 s at 60 updates/s
  EXPECT_EQ(pressing_ack_lag(14, 1, config), 6);
  // Of ten updates one was sent: one that is not acknowledged yet leaves a lag of ten.
  EXPECT_EQ(pressing_ack_lag(30, 0.1, config), 0);
  EXPECT_EQ(pressing_ack_lag(4096, 0, config), 0);
}

TEST(RoomState, ConfigurationMustRise) {
  EXPECT_EQ(check_room_state_config({}), "");
  RoomStateConfig config;
  config.ack_lag = {0, 1, 2};
  EXPECT_EQ(check_room_state_config(config), "ack_lag_watch must be above 0");
  config.ack_lag = {1, 2, 2};
  EXPECT_EQ(check_room_state_config(config), "ack_lag_shedding must be above ack_lag_throttling");
  config = {};
  config.degraded_share = {.2, .1, .3};
  EXPECT_EQ(check_room_state_config(config),
            "degraded_share_throttling must be above degraded_share_watch");
  config = {};
  config.rejected_share = {.1, .5, .5};
  EXPECT_EQ(check_room_state_config(config),
            "rejected_share_shedding must be above rejected_share_throttling");
}

}  // namespace
}  // namespace edgeshed::core
