// The formulas behind the rows: times, contract limits, level clocks and allowances.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "userspace/core/plan_rows.h"

namespace edgeshed::core {
namespace {

TEST(PlanFormulas, JiffiesRoundUpAndAreNeverZeroForATime) {
  EXPECT_EQ(jiffies_from_ms(0, 250), 0);
  EXPECT_EQ(jiffies_from_ms(0.001, 100), 1);
  EXPECT_EQ(jiffies_from_ms(4, 250), 1);
  EXPECT_EQ(jiffies_from_ms(4.1, 250), 2);
  EXPECT_EQ(jiffies_from_ms(100, 250), 25);
  EXPECT_EQ(jiffies_from_ms(100, 1000), 100);
  EXPECT_EQ(jiffies_from_ms(250, 100), 25);
  EXPECT_EQ(jiffies_from_ms(1e9, 1000), 65535);
  for (const uint32_t hz : {100u, 250u, 300u, 1000u}) {
    for (uint32_t jiffies = 1; jiffies < 3000; ++jiffies) {
      EXPECT_EQ(jiffies_from_ms(1000.0 * jiffies / hz, hz), jiffies) << "no jiffy by rounding";
    }
  }
}

TEST(PlanFormulas, ContractLimitFollowsItsFormula) {
  const ContractRate rate = {200, 200000, 0.25};
  const es_limit limit = contract_limit(rate, 1, 250);
  EXPECT_EQ(limit.packet_cost, 65536u * 250 / 200);
  EXPECT_EQ(limit.byte_cost_q12, std::lround(4096.0 * 65536 * 250 / 200000));
  EXPECT_EQ(limit.packet_burst, std::ceil(65536 * 0.25 * 250));
  EXPECT_EQ(limit.byte_burst, limit.packet_burst);
  const es_limit fourfold = contract_limit(rate, 4, 250);
  EXPECT_EQ(fourfold.packet_cost, limit.packet_cost / 4);
  EXPECT_EQ(fourfold.packet_burst, limit.packet_burst);
}

TEST(PlanFormulas, BurstHoldsTwoJiffiesAndFourPackets) {
  const es_limit limit = contract_limit({10, 2000, 0}, 1, 100);
  EXPECT_EQ(limit.packet_burst, 2u * 65536 + kBurstPackets * limit.packet_cost);
  const uint64_t packet = (uint64_t{1500} * limit.byte_cost_q12 + 4095) / 4096;
  EXPECT_EQ(limit.byte_burst, 2 * 65536 + packet);
}

TEST(PlanFormulas, NoRateIsNoLimit) {
  const es_limit limit = contract_limit({0, 0, 0.25}, 1, 250);
  EXPECT_EQ(limit.packet_cost, 0u);
  EXPECT_EQ(limit.packet_burst, 0u);
  EXPECT_EQ(limit.byte_cost_q12, 0u);
  EXPECT_EQ(limit.byte_burst, 0u);
}

TEST(PlanFormulas, LimitsStayInsideTheirRangeAtTheEdgesOfTheConfiguration) {
  for (const uint32_t hz : {100u, 250u, 300u, 1000u}) {
    for (const double factor : {1.0, 2.0, 4.0}) {
      for (const double packets : {1.0, 1e6}) {
        for (const double bytes : {1000.0, 1e9}) {
          const double longest_s = static_cast<double>(ES_BURST_JIFFIES_MAX) / hz;
          for (const double burst_s : {0.0, longest_s}) {
            const es_limit limit = contract_limit({packets, bytes, burst_s}, factor, hz);
            EXPECT_GE(limit.packet_cost, 1u);
            EXPECT_GE(limit.byte_cost_q12, 1u);
            EXPECT_LE(limit.packet_burst, ES_BURST_JIFFIES_MAX << ES_DEBT_TICK_BITS);
            EXPECT_LE(limit.byte_burst, ES_BURST_JIFFIES_MAX << ES_DEBT_TICK_BITS);
            EXPECT_GE(limit.packet_burst, limit.packet_cost);
            EXPECT_GE(limit.byte_burst, uint64_t{1500} * limit.byte_cost_q12 / 4096);
          }
        }
      }
    }
  }
}

TEST(PlanFormulas, LevelRateAndBurst) {
  const es_level level = level_of({60, 0.5}, 250);
  EXPECT_EQ(level.rate_q16, std::llround(60.0 * 256 * 65536 / 250));
  EXPECT_EQ(level.burst, 60u * 256 / 2);
  const es_level least = level_of({10, 0}, 100);
  EXPECT_EQ(least.burst, std::ceil(2 * 256 * 10.0 / 100 + 256));
  EXPECT_EQ(level_of({0, 0.5}, 250).burst, 0u);
}

TEST(PlanFormulas, ClockIsContinuousWhenTheRateChanges) {
  es_level level = {1000, 500, 0, 0, 0};
  uint64_t now = 500;
  std::mt19937 random(11);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t rate = random() % 2 == 0 ? level.rate_q16 : random();
    const uint64_t before = level_now(level, now);
    level = carry_level(level, rate, 7, now);
    EXPECT_EQ(level_now(level, now), before);
    EXPECT_EQ(level.rate_q16, rate);
    now += random() % 10;
  }
}

TEST(PlanFormulas, ClockDoesNotLoseFractionsWhenNothingChanges) {
  // A third of a token x 256 per jiffy: carried every jiffy it would never advance.
  es_level level = {0, 100, 65536 / 3, 300, 0};
  for (uint64_t now = 100; now <= 3100; ++now) level = carry_level(level, 65536 / 3, 300, now);
  EXPECT_EQ(level_now(level, 3100), uint64_t{3000} * (65536 / 3) / 65536);
}

TEST(PlanFormulas, ClockErrorStaysSmallWhenTheRateFlipsEveryTick) {
  // Two rates at 60 Hz on HZ 250: four or five jiffies per plan, for ten minutes.
  const uint64_t rates[] = {level_of({30, 0.25}, 250).rate_q16, level_of({90, 0.25}, 250).rate_q16};
  es_level level = {0, 0, rates[0], 1, 0};
  uint64_t now = 0;
  double exact = 0;
  for (int tick = 0; tick < 36000; ++tick) {
    const uint64_t next = (tick + 1) * 250 / 60;
    exact += static_cast<double>((next - now) * level.rate_q16) / 65536;
    now = next;
    level = carry_level(level, rates[tick % 2], 1, now);
  }
  EXPECT_NEAR(static_cast<double>(level_now(level, now)) / exact, 1, 0.01);
}

TEST(PlanFormulas, ClockSurvivesALongRunAndAClockThatWentBack) {
  const uint64_t rate = level_of({1e5, 0.25}, 100).rate_q16;
  es_level level = {0, 0, rate, 1, 0};
  // Half a year at HZ 100, published once an hour.
  const uint64_t hour = 3600 * 100;
  for (uint64_t i = 1; i <= 24 * 180; ++i) level = carry_level(level, rate, 1, i * hour);
  const double exact = 24.0 * 180 * static_cast<double>(hour) * static_cast<double>(rate) / 65536;
  EXPECT_NEAR(static_cast<double>(level_now(level, 24 * 180 * hour)) / exact, 1, 1e-6);

  const es_level back = carry_level({500, 1000, 65536, 1, 0}, 65536, 1, 900);
  EXPECT_EQ(back.v0, 500u);
  EXPECT_EQ(back.t0_jiffies, 900u);
  const es_level saturated = {5, 0, ~0ull, 1, 0};
  EXPECT_EQ(level_now(saturated, 100), (~0ull >> 16) + 5);
}

TEST(PlanFormulas, AllowanceSumsToTheCapOverASecondOfAllCpus) {
  for (const uint64_t per_s : {0ull, 1ull, 100ull, 999ull, 100000000000ull}) {
    for (const uint32_t cpus : {1u, 2u, 7u, 64u}) {
      PlanTiming timing;
      timing.cpus = cpus;
      timing.tick_hz = 60;
      uint64_t sum = 0;
      // One CPU over `cpus` seconds sees what all CPUs see in one.
      for (uint64_t tick = 0; tick < uint64_t{60} * cpus; ++tick) {
        timing.tick = 123456789 + tick;
        sum += allowance(per_s, timing);
      }
      EXPECT_EQ(sum, per_s) << cpus;
    }
  }
}

}  // namespace
}  // namespace edgeshed::core
