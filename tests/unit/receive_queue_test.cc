// What waits in a socket: what a server leaves between two ticks is nothing, what stands is time.
#include "userspace/core/receive_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/law_loop.h"

namespace edgeshed::core {
namespace {

constexpr double kBudgetMs = 33.3;

TEST(ReceiveQueue, IsTheTimeBeyondATicksWorth) {
  const double message_us = 333;  // 100 messages a tick
  EXPECT_EQ(receive_queue_ms(0, message_us, kBudgetMs), 0);
  EXPECT_EQ(receive_queue_ms(100 * kBytesPerMessage, message_us, kBudgetMs), 0);
  EXPECT_NEAR(receive_queue_ms(250 * kBytesPerMessage, message_us, kBudgetMs), 1.5 * kBudgetMs,
              1e-9);
  EXPECT_EQ(receive_queue_ms(1e6, 0, kBudgetMs), 0);
}

TEST(ReceiveQueue, AMessageCostsTheMeanOfWhatArrives) {
  CostConfig config;
  config.lane_us[ES_LANE_command] = 300;
  config.lane_us[ES_LANE_snapshot] = 100;
  CostState state = initial_cost(config);
  state.scale = 2;
  RoomDemand rates;
  EXPECT_DOUBLE_EQ(mean_message_us(rates, state, config), 600);  // a command
  rates.lane[ES_LANE_command].per_s = 10;
  rates.lane[ES_LANE_snapshot].per_s = 30;
  EXPECT_DOUBLE_EQ(mean_message_us(rates, state, config), 2 * (10 * 300 + 30 * 100) / 40.0);
}

TEST(StandingQueue, IsTheSmallestOfTheLastSix) {
  StandingQueue queue;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(queue.step(9), 0);
  EXPECT_EQ(queue.step(7), 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(queue.step(10), 7);
  EXPECT_EQ(queue.step(11), 10);
  EXPECT_EQ(queue.step(0), 0);
}

/// The queue of a server that empties its socket at the begin of each tick, sampled as the daemon
/// does: each time some ms later than the time before, 50 to 65 ms apart.
struct SampledServer {
  double tick_ms = kBudgetMs;
  double bytes_per_ms = 0;
  StandingQueue standing;
  double now_ms = 0;
  int step = 0;

  double sample() {
    step = (step + 7) % 16;
    now_ms += 50 + step;
    return standing.step(std::fmod(now_ms, tick_ms) * bytes_per_ms);
  }
};

TEST(StandingQueue, ACalmServerShedsNothingThoughItsSocketIsNeverEmpty) {
  // At .66 of its budget, with packets that take five times the memory that they are taken to.
  for (const double truesize : {832.0, 4400.0}) {
    for (const double tick_ms : {kBudgetMs, kBudgetMs / 2}) {
      LawLoop loop(plain_game_config());
      add_plain_game(loop);
      SampledServer server;
      server.tick_ms = tick_ms;
      server.bytes_per_ms = 100 * 28 / 1000.0 * truesize;
      loop.run(20, [&] {
        const double bytes = server.sample();
        ShardSignals& signals = loop.sample.signals;
        signals.receive_queue_ms = receive_queue_ms(bytes, 200, signals.frame_budget_ms);
        ASSERT_EQ(loop.memory.state.rung, 0) << truesize;
        ASSERT_EQ(loop.memory.degree.now.keep_standard, 1) << truesize;
        ASSERT_EQ(loop.memory.degree.now.keep_best_effort, 1) << truesize;
      });
    }
  }
}

}  // namespace
}  // namespace edgeshed::core
