// Fair shares: a level's virtual clock, weights, and rates that change every tick.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/bpf/harness.h"

namespace edgeshed::test {
namespace {

constexpr std::uint16_t kRoom = 3;

class LevelTest : public testing::TestWithParam<unsigned> {
 protected:
  LevelTest() { w_.endpoint(); }

  void connect(unsigned count, const std::vector<std::uint16_t>& weight_inverse = {}) {
    for (unsigned i = 0; i < count; ++i) {
      const std::uint16_t inverse = i < weight_inverse.size() ? weight_inverse[i] : 256;
      w_.connect("10.0.0.2", static_cast<std::uint16_t>(4000 + i),
                 {.room = kRoom, .weight_inverse_q8 = inverse});
      frames_.push_back(
          lane_in(ES_LANE_voice, {.remote_port = static_cast<std::uint16_t>(4000 + i)}));
      passed_.push_back(0);
    }
  }
  /// Every connection sends `per_jiffy` packets in each jiffy until `jiffies` have passed.
  void send(std::uint64_t jiffies, unsigned per_jiffy, bool count) {
    for (std::uint64_t j = 0; j < jiffies; ++j) {
      w_.advance_jiffies(1);
      for (unsigned n = 0; n < per_jiffy; ++n) {
        for (std::size_t i = 0; i < frames_.size(); ++i)
          if (w_.passes(frames_[i]) && count) ++passed_[i];
      }
    }
  }

  World w_{{.hz = GetParam()}};
  std::vector<Bytes> frames_;
  std::vector<std::uint64_t> passed_;
};

// Rule: B5
TEST_P(LevelTest, EveryConnectionGetsTheLevelTimesItsWeight) {
  connect(4, {256, 128, 85, 512});  // weights 1, 2, 3, 1/2
  w_.rules(kRoom, ES_IN).level[1] = level_of(30, 3, w_.now(), w_.hz());
  w_.publish();
  const unsigned seconds = 20, per_jiffy = w_.hz() >= 1000 ? 1 : 2;
  send(w_.hz(), per_jiffy, false);
  send(std::uint64_t{seconds} * w_.hz(), per_jiffy, true);
  const double expected[] = {30, 60, 30 * 256.0 / 85, 15};
  for (unsigned i = 0; i < 4; ++i) {
    const double rate = static_cast<double>(passed_[i]) / seconds;
    EXPECT_NEAR(rate, expected[i], expected[i] * 0.01) << "connection " << i;
  }
}

// Rule: B7
TEST_P(LevelTest, RateThatFlipsSixtyTimesASecondIsExact) {
  connect(1);
  const double rates[] = {20, 140};
  es_level& level = w_.rules(kRoom, ES_IN).level[1];
  level = level_of(rates[0], 4, w_.now(), w_.hz());
  w_.publish();
  const std::uint64_t start = w_.now();
  const unsigned seconds = 20;
  double owed = 0;
  for (unsigned tick = 1; tick <= seconds * 60; ++tick) {
    const std::uint64_t until = start + std::uint64_t{tick} * w_.hz() / 60;
    const std::uint64_t jiffies = until - w_.now();
    owed += rates[(tick + 1) & 1] * static_cast<double>(jiffies) / w_.hz();
    send(jiffies, w_.hz() >= 1000 ? 1 : 4, true);
    // Goes on from where the clock stands: no packet is lent nor lost at a flip.
    const std::uint64_t v0 = level.v0 + (((until - level.t0_jiffies) * level.rate_q16) >> 16);
    level = level_of(rates[tick & 1], 4, until, w_.hz());
    level.v0 = v0;
    w_.publish();
  }
  EXPECT_NEAR(static_cast<double>(passed_[0]), owed, owed * 0.01 + 4);
}

/// Sends a frame from one CPU, over and over, until `stop`.
void send_from(World& world, const Bytes& frame, unsigned cpu, const std::atomic<bool>& stop) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
  while (!stop) world.action(Program::kXdp, frame);
}

// Rule: B7
TEST(LevelRaceTest, TwoCpusOnOneConnectionGetItsRateWhileItFlipsSixtyTimesASecond) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "one CPU: nothing races";
  World world{{.hz = 1000}};
  world.endpoint().connect("10.0.0.2", 4000, {.room = kRoom});
  const double rates[] = {2'000, 14'000};  // far below what two CPUs send
  es_level& level = world.rules(kRoom, ES_IN).level[1];
  level = level_of(rates[0], 30, world.now(), world.hz());
  world.publish();
  const Bytes frame = lane_in(ES_LANE_voice);
  const auto passed = [&] { return world.cell(ES_IN, ES_LANE_voice, ES_REASON_admitted); };
  std::atomic<bool> stop = false;
  std::vector<std::thread> senders;
  for (const unsigned cpu : {0u, 1u}) {
    senders.emplace_back(send_from, std::ref(world), std::cref(frame), cpu, std::cref(stop));
  }
  double owed = 0;
  for (unsigned tick = 1; tick <= 3 * 60; ++tick) {
    for (unsigned jiffy = 0; jiffy < 16; ++jiffy) {
      world.advance_jiffies(1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    owed += rates[(tick + 1) & 1] * 0.016;
    const std::uint64_t until = world.now();
    const std::uint64_t v0 = level.v0 + (((until - level.t0_jiffies) * level.rate_q16) >> 16);
    level = level_of(rates[tick & 1], 30, until, world.hz());
    level.v0 = v0;
    world.publish();
  }
  stop = true;
  for (std::thread& sender : senders) sender.join();
  const std::uint64_t dropped = world.cell(ES_IN, ES_LANE_voice, ES_REASON_fair_share);
  EXPECT_GT(dropped, 10'000u) << "not enough was sent";
  EXPECT_NEAR(static_cast<double>(passed()), owed, owed * 0.01 + 30) << "and the burst";
}

// Rule: B7
TEST_P(LevelTest, ARateNearZeroForFiveSecondsLocksNobodyOutAfterwards) {
  connect(1);
  es_level& level = w_.rules(kRoom, ES_IN).level[1];
  level = level_of(100, 4, w_.now(), w_.hz());
  const auto change = [&](double per_s) {
    const std::uint64_t now = w_.now();
    const std::uint64_t v0 = level.v0 + (((now - level.t0_jiffies) * level.rate_q16) >> 16);
    level = level_of(per_s, 4, now, w_.hz());
    level.v0 = v0;
    w_.publish();
  };
  w_.publish();
  send(w_.hz(), 1, false);
  change(0.01);
  send(5ull * w_.hz(), 1, true);
  EXPECT_LE(passed_[0], 4u);
  change(100);
  passed_[0] = 0;
  send(w_.hz(), 1, true);
  EXPECT_NEAR(static_cast<double>(passed_[0]), 100, 4);
}

TEST_P(LevelTest, BytesAreChargedByTheirCost) {
  connect(1);
  frames_[0] = from_remote({}, lane_payload({.lane = ES_LANE_voice}, 960));  // 1000 B of IP
  w_.room(kRoom).packet_cost[ES_LANE_voice] = 0;
  w_.room(kRoom).byte_cost_q8[ES_LANE_voice] = 256;  // a token is 256 B
  w_.rules(kRoom, ES_IN).level[1] = level_of(100, 8, w_.now(), w_.hz());
  w_.publish();
  send(w_.hz(), 1, false);
  send(20ull * w_.hz(), 1, true);
  EXPECT_NEAR(static_cast<double>(passed_[0]) / 20, 25.6, 0.26);
}

/// A level that begins while all send: as the plan makes one that the degree asks for.
class YoungLevelTest : public LevelTest {
 protected:
  /// Connections that send `per_s` each, at phases that have nothing to do with each other.
  void load(unsigned count, double per_s) {
    const std::size_t first = frames_.size();
    for (unsigned i = 0; i < count; ++i) {
      const auto port = static_cast<std::uint16_t>(4000 + first + i);
      w_.connect("10.0.0.2", port, {.room = kRoom});
      frames_.push_back(lane_in(ES_LANE_voice, {.remote_port = port}));
      passed_.push_back(0);
      shed_.push_back(0);
      per_s_.push_back(per_s);
      due_.push_back(std::fmod(0.618 * static_cast<double>(first + i), 1));
    }
  }
  void begin(double per_s) {
    es_level& level = w_.rules(kRoom, ES_IN).level[1];
    level = level_of(per_s, 2 * (2 * per_s / w_.hz() + 1), w_.now(), w_.hz());
    level.begun = static_cast<__u32>(level.v0);
    w_.publish();
  }
  /// Returns how many passed; counts passed_ and shed_ anew.
  std::uint64_t send_ms(unsigned ms) {
    std::fill(passed_.begin(), passed_.end(), 0);
    std::fill(shed_.begin(), shed_.end(), 0);
    for (std::uint64_t jiffy = 0; jiffy < std::uint64_t{ms} * w_.hz() / 1000; ++jiffy) {
      w_.advance_jiffies(1);
      for (std::size_t i = 0; i < frames_.size(); ++i) {
        for (due_[i] += per_s_[i] / w_.hz(); due_[i] >= 1; due_[i] -= 1) {
          ++(w_.passes(frames_[i]) ? passed_ : shed_)[i];
        }
      }
    }
    return std::accumulate(passed_.begin(), passed_.end(), std::uint64_t{0});
  }

  std::vector<std::uint64_t> shed_;
  std::vector<double> per_s_;
  std::vector<double> due_;
};

TEST_P(YoungLevelTest, BeginsWithoutABurstAndWithoutWaves) {
  constexpr double kPerS = 10;
  load(200, 10 * kPerS);
  send_ms(300);
  begin(kPerS);
  constexpr double kShare = 200 * kPerS / 10;
  for (int part = 0; part < 20; ++part) {
    const auto passed = static_cast<double>(send_ms(100));
    EXPECT_LE(passed, kShare * 1.25) << "part " << part;
    if (part < 2) continue;
    EXPECT_GE(passed, kShare * 0.75) << "part " << part;
  }
}

TEST_P(YoungLevelTest, WhoSendsHalfAsMuchLosesNothingOnceItIsAPacketOld) {
  constexpr double kPerS = 10;
  constexpr std::size_t kModest = 40;
  load(kModest, kPerS / 2);
  load(160, 10 * kPerS);
  send_ms(300);
  begin(kPerS);
  send_ms(1000 / 10);
  for (int part = 0; part < 30; ++part) {
    send_ms(100);
    for (std::size_t i = 0; i < kModest; ++i) EXPECT_EQ(shed_[i], 0u) << i << " in part " << part;
  }
}

INSTANTIATE_TEST_SUITE_P(Hz, YoungLevelTest, testing::Values(100u, 250u, 1000u));

INSTANTIATE_TEST_SUITE_P(Hz, LevelTest, testing::Values(100u, 250u, 1000u));

TEST(LevelStateTest, RestEarnsNoMoreThanTheBurst) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000, {.room = kRoom});
  w.rules(kRoom, ES_IN).level[1] = level_of(10, 5, w.now(), w.hz());
  w.publish();
  for (const unsigned seconds : {0u, 100u, 1'000'000u}) {
    w.advance_seconds(seconds);
    unsigned passed = 0;
    for (int i = 0; i < 50; ++i) passed += w.passes(lane_in(ES_LANE_voice));
    EXPECT_EQ(passed, 5u) << seconds;
  }
}

TEST(LevelStateTest, LevelThatFallsBackLetsGoOfOldDebts) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000, {.room = kRoom});
  w.rules(kRoom, ES_IN).level[1] = level_of(10, 5, w.now(), w.hz());
  w.rules(kRoom, ES_IN).level[1].v0 = 1'000'000'000;
  w.publish();
  EXPECT_TRUE(w.passes(lane_in(ES_LANE_voice)));
  w.rules(kRoom, ES_IN).level[1].v0 = 0;  // a new daemon starts its clock anew
  w.publish();
  unsigned passed = 0;
  for (std::uint32_t jiffy = 0; jiffy < 2 * w.hz(); ++jiffy) {
    w.advance_jiffies(1);
    passed += w.passes(lane_in(ES_LANE_voice));
  }
  EXPECT_GE(passed, 14u);  // 10 a second, less what a burst of 5 may still owe
}

TEST(LevelStateTest, StandardAndBestEffortHaveLevelsOfTheirOwn) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000, {.room = kRoom});
  w.rules(kRoom, ES_IN).level[1] = level_of(10, 2, w.now(), w.hz());
  w.publish();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason,
              i < 2 ? ES_REASON_admitted : ES_REASON_fair_share);
    EXPECT_EQ(w.xdp(lane_in(ES_LANE_command)).reason, ES_REASON_admitted);
    EXPECT_EQ(w.tc(lane_out(ES_LANE_voice)).reason, ES_REASON_admitted);
  }
}

}  // namespace
}  // namespace edgeshed::test
