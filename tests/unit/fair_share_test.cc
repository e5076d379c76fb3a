// The level of a tier against an exact water fill: from both sides, with whoever sends, and at
// every edge at which there is none.
#include "userspace/core/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace edgeshed::core {
namespace {

constexpr uint64_t kTickNs = 16'666'667;
constexpr FairShareConfig kConfig;

struct Sender {
  double demand_per_s = 0;
  double weight = 1;
};
using Senders = std::vector<Sender>;

double offered(const Senders& senders) {
  double sum = 0;
  for (const Sender& sender : senders) sum += sender.demand_per_s;
  return sum;
}

double weights(const Senders& senders) {
  double sum = 0;
  for (const Sender& sender : senders) sum += sender.weight;
  return sum;
}

double passing(const Senders& senders, double level) {
  double sum = 0;
  for (const Sender& sender : senders) {
    sum += std::min(sender.demand_per_s, level * sender.weight);
  }
  return sum;
}

/// The level at which `per_s` pass: whoever asks for least per weight is served first.
double water_level(Senders senders, double per_s) {
  std::sort(senders.begin(), senders.end(), [](const Sender& a, const Sender& b) {
    return a.demand_per_s * b.weight < b.demand_per_s * a.weight;
  });
  double rest = weights(senders);
  for (const Sender& sender : senders) {
    const double level = per_s / rest;
    if (sender.demand_per_s > level * sender.weight) return level;
    per_s -= sender.demand_per_s;
    rest -= sender.weight;
  }
  return HUGE_VAL;
}

/// A tier whose connections pass what the level lets them, in whole messages.
struct Tier {
  Senders senders;
  FairLevel level;
  double least_per_s = 0;
  double idle_weights = 0;  ///< of connections that send nothing
  double contract_per_s = 0;
  double passed = 0;
  uint64_t now_ns = 1'000'000'000;

  FairShareInput input(double keep) const {
    return {keep,
            offered(senders),
            static_cast<uint64_t>(passed),
            weights(senders) + idle_weights,
            least_per_s,
            contract_per_s};
  }
  void tick(double keep) {
    const double per_s = level.per_s > 0 ? passing(senders, level.per_s) : offered(senders);
    passed += per_s * kTickNs / 1e9;
    now_ns += kTickNs;
    step(level, input(keep), kConfig, now_ns);
  }
  /// Calls `look` with the level after each tick.
  template <typename Look>
  void run(double keep, double seconds, Look look) {
    const auto end_ns = now_ns + static_cast<uint64_t>(seconds * 1e9);
    while (now_ns < end_ns) {
      tick(keep);
      look(level.per_s);
    }
  }
  void run(double keep, double seconds) {
    run(keep, seconds, [](double) {});
  }
  double target(double keep) const { return water_level(senders, keep * offered(senders)); }
};

/// 20 to 200 connections that ask for 2 to 60 messages/s, with weights of 1/2 to 4.
Tier random_tier(std::mt19937& random) {
  std::uniform_real_distribution<double> share(0, 1);
  Tier tier;
  tier.senders.resize(20 + random() % 181);
  for (Sender& sender : tier.senders) {
    sender.demand_per_s = 2 * std::pow(30, share(random));
    sender.weight = std::exp2(static_cast<double>(random() % 4) - 1);
  }
  return tier;
}

constexpr uint32_t kSeeds = 40;

TEST(WaterLevel, IsExact) {
  const Senders senders = {{10, 1}, {20, 1}, {60, 2}};
  EXPECT_DOUBLE_EQ(water_level(senders, 20), 5);
  EXPECT_DOUBLE_EQ(water_level(senders, 70), 20);
  EXPECT_DOUBLE_EQ(water_level(senders, 80), 25);
  for (const double per_s : {1.0, 35.0, 50.0, 89.0}) {
    EXPECT_NEAR(passing(senders, water_level(senders, per_s)), per_s, 1e-9);
  }
}

// Rule: B5
TEST(FairShare, ComesToTheMaxMinLevelFromBelow) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937 random(seed);
    Tier tier = random_tier(random);
    const double keep = 0.1 + 0.7 * static_cast<double>(seed) / kSeeds;
    const double target = tier.target(keep);
    tier.tick(keep);
    EXPECT_LE(tier.level.per_s, target * 1.001) << "all weights at first: seed " << seed;
    // Messages are whole: what passes in follow_s is known to within one.
    const double near = 0.03 + 1 / (keep * offered(tier.senders) * kConfig.follow_s);
    tier.run(keep, 1, [&](double level) { EXPECT_LE(level, target * (1 + near)) << seed; });
    tier.run(keep, 2);
    EXPECT_NEAR(tier.level.per_s, target, target * near) << "seed " << seed;
    const double before = tier.passed;
    tier.run(keep, 20, [&](double level) { EXPECT_NEAR(level, target, target * near) << seed; });
    const double kept = 20 * keep * offered(tier.senders);
    EXPECT_NEAR(tier.passed - before, kept, 0.015 * kept) << "seed " << seed;
  }
}

TEST(FairShare, ComesToTheMaxMinLevelFromAbove) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937 random(seed);
    Tier tier = random_tier(random);
    tier.run(0.9, 10);
    const double keep = 0.1 + 0.5 * static_cast<double>(seed) / kSeeds;
    const double target = tier.target(keep);
    ASSERT_GT(tier.level.per_s, target) << "seed " << seed;
    const double near = 0.03 + 1 / (keep * offered(tier.senders) * kConfig.follow_s);
    tier.run(keep, 1, [&](double level) { EXPECT_GE(level, target * (1 - near)) << seed; });
    tier.run(keep, 2);
    EXPECT_NEAR(tier.level.per_s, target, target * near) << "seed " << seed;
  }
}

TEST(FairShare, FollowsWhoSends) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937 random(seed);
    Tier tier = random_tier(random);
    tier.run(0.4, 10);
    // Half of them fall silent, and the others send up to three times as much.
    tier.senders.resize(tier.senders.size() / 2);
    tier.idle_weights = weights(tier.senders);
    for (Sender& sender : tier.senders) sender.demand_per_s *= 1 + random() % 3;
    const double target = tier.target(0.4);
    tier.run(0.4, 1);
    tier.run(0.4, 5, [&](double level) {
      EXPECT_LE(level, target * 1.03) << "seed " << seed;
      EXPECT_GE(level, target * 0.9) << "seed " << seed;
    });
    EXPECT_NEAR(tier.level.per_s, target, target * 0.03) << "seed " << seed;
  }
}

// Rule: B5
TEST(FairShare, AFlooderTakesFromItselfOnly) {
  Tier tier;
  tier.senders.assign(100, Sender{10, 1});
  tier.senders.push_back({1000, 1});
  // As much as the others ask for, and 50/s more.
  const double keep = 1050.0 / 2000;
  tier.run(keep, 0.2);
  tier.run(keep, 1, [](double level) { EXPECT_GE(level, 10) << "the others lose nothing"; });
  tier.run(keep, 20, [](double level) { EXPECT_LE(level, 51.5); });
  // It is one of a hundred, so the level comes near slowly. What passes does at once.
  EXPECT_GT(passing(tier.senders, tier.level.per_s), 1050 * 0.99);
  tier.run(keep, 20);
  EXPECT_NEAR(tier.level.per_s, 50, 1.5);
}

TEST(FairShare, WeightsThatDoNotSendLeaveTheirShare) {
  Tier tier;
  tier.senders.assign(50, Sender{40, 1});
  tier.idle_weights = 450;
  tier.tick(0.5);
  EXPECT_NEAR(tier.level.per_s, 0.5 * 2000 / 500, 1e-9) << "all weights at first";
  tier.run(0.5, 3);
  EXPECT_NEAR(tier.level.per_s, 20, 0.6);
  tier.run(0.5, 10, [](double level) { EXPECT_NEAR(level, 20, 0.6) << "holds"; });
}

TEST(FairShare, BeginsWithWhoeverTheContractsMakeOfTheOffer) {
  Tier tier;
  tier.senders.assign(50, Sender{40, 1});
  tier.idle_weights = 450;
  tier.contract_per_s = 45;
  tier.tick(0.95);
  EXPECT_NEAR(tier.level.per_s, 0.95 * 45 / kConfig.thinning_slack, 1e-9)
      << "2000/s are 51 of them";
  tier.run(0.95, 5, [](double level) { EXPECT_GE(level, 36) << "nobody falls to a tenth"; });
  // Never more than there are.
  Tier all;
  all.senders.assign(50, Sender{40, 1});
  all.contract_per_s = 10;
  all.tick(0.5);
  EXPECT_NEAR(all.level.per_s, 0.5 * 2000 / 50, 1e-9);
}

TEST(FairShare, BeginsWithAllWeights) {
  Tier tier;
  tier.senders = {{100, 1}, {5, 3}, {0, 4}};
  tier.tick(0.4);
  EXPECT_NEAR(tier.level.per_s, 0.4 * 105 / 8, 1e-9);
  // So again, if it was never on for long.
  tier.run(0.4, 0.1);
  tier.run(1, 2);
  tier.tick(0.4);
  EXPECT_NEAR(tier.level.per_s, 0.4 * 105 / 8, 1e-9);
}

TEST(FairShare, OffWhenThereIsNothingToShare) {
  const auto level_with = [](double keep, double offered_per_s, double all_weights) {
    FairLevel level;
    step(level, {keep, offered_per_s, 0, all_weights, 4}, kConfig, 1'000'000'000);
    return level.per_s;
  };
  EXPECT_GT(level_with(0.5, 100, 10), 0);
  EXPECT_EQ(level_with(1, 100, 10), 0);
  EXPECT_EQ(level_with(1.5, 100, 10), 0);
  EXPECT_EQ(level_with(0.5, 0, 10), 0);
  EXPECT_EQ(level_with(0.5, 100, 0), 0);
  Tier tier;
  tier.senders.assign(10, Sender{10, 1});
  tier.run(0.5, 1);
  EXPECT_GT(tier.level.per_s, 0);
  tier.tick(1);
  EXPECT_EQ(tier.level.per_s, 0) << "at once";
}

TEST(FairShare, IsNeverBelowAGuaranteedGap) {
  Tier tier;
  tier.senders.assign(100, Sender{20, 1});
  tier.least_per_s = 4;
  tier.run(0.05, 5, [](double level) { EXPECT_GE(level, 4); });
  EXPECT_DOUBLE_EQ(tier.level.per_s, 4) << "1 would have been the share";
  tier.run(0.5, 5);
  EXPECT_NEAR(tier.level.per_s, 10, 0.3) << "and a larger share stands";
}

TEST(FairShare, ACounterThatGoesBackIsNoTraffic) {
  Tier tier;
  tier.senders.assign(100, Sender{20, 1});
  tier.run(0.5, 5);
  const double before = tier.level.per_s;
  tier.passed = 0;
  tier.tick(0.5);
  EXPECT_GE(tier.level.per_s, before * 0.95);
  EXPECT_LE(tier.level.per_s, before * 1.15) << "a tick without any message, at most";
  tier.run(0.5, 2);
  EXPECT_NEAR(tier.level.per_s, before, before * 0.03);
}

TEST(FairShare, OfAPauseNothingIsKnown) {
  Tier tier;
  tier.senders.assign(100, Sender{20, 1});
  tier.run(0.5, 5);
  // What passed meanwhile says nothing, be it none or very much.
  for (const double passed : {0.0, 1e6}) {
    const double before = tier.level.per_s;
    tier.passed += passed;
    tier.now_ns += 1'000'000'000;
    tier.tick(0.5);
    EXPECT_DOUBLE_EQ(tier.level.per_s, before);
    tier.tick(0.5);
    EXPECT_NEAR(tier.level.per_s, before, before * 0.03) << "and is not looked at later";
  }
}

TEST(FairShare, AClockThatGoesBackIsNoTime) {
  Tier tier;
  tier.senders.assign(100, Sender{20, 1});
  tier.run(0.5, 5);
  const double before = tier.level.per_s;
  step(tier.level, tier.input(0.5), kConfig, 5);
  EXPECT_DOUBLE_EQ(tier.level.per_s, before);
  step(tier.level, tier.input(0.25), kConfig, 5);
  EXPECT_DOUBLE_EQ(tier.level.per_s, before / 2) << "what is kept needs no time";
}

TEST(FairShare, StaysWithinItsLimits) {
  FairLevel level;
  step(level, {0.5, 1e12, 0, 1, 0}, kConfig, 1'000'000'000);
  EXPECT_EQ(level.per_s, kLevelPerSMax);
  level = {};
  step(level, {0, 100, 0, 10, 0}, kConfig, 1'000'000'000);
  EXPECT_EQ(level.per_s, kLevelPerSMin) << "a keep of 0 is a level, not none";
  level = {};
  step(level, {0.5, 100, 0, 10, 1e9}, kConfig, 1'000'000'000);
  EXPECT_EQ(level.per_s, kLevelPerSMax) << "a gap's too";
  // At least one connection takes part, if only with what it weighs.
  level = {};
  for (int tick = 1; tick < 600; ++tick) {
    step(level, {0.5, 100, 0, 10, 0}, kConfig, static_cast<uint64_t>(tick) * kTickNs);
    EXPECT_LE(level.per_s, 50);
  }
  EXPECT_DOUBLE_EQ(level.per_s, 50);
  level = {};
  step(level, {0.5, 100, 0, 1.0 / 16, 0}, kConfig, 1'000'000'000);
  EXPECT_DOUBLE_EQ(level.per_s, 800);
}

TEST(AffordableGap, IsTheOneThatIsGivenWhileItFits) {
  // 100 connections at 4/s of .0001 of the loop each: .04, and .2 may be taken.
  EXPECT_DOUBLE_EQ(affordable_gap_ms(250, 100, 0.0001, kConfig), 250);
  EXPECT_DOUBLE_EQ(affordable_gap_ms(250, 500, 0.0001, kConfig), 250) << "just";
  EXPECT_DOUBLE_EQ(affordable_gap_ms(250, 1000, 0.0001, kConfig), 500);
  EXPECT_DOUBLE_EQ(affordable_gap_ms(250, 1e6, 0.0001, kConfig), kConfig.gap_ms_max);
}

TEST(AffordableGap, NoGuaranteeStaysNone) {
  EXPECT_EQ(affordable_gap_ms(0, 1e6, 0.0001, kConfig), 0);
}

TEST(AffordableGap, NobodyOrNothingCostsNothing) {
  EXPECT_EQ(affordable_gap_ms(250, 0, 0.0001, kConfig), 250);
  EXPECT_EQ(affordable_gap_ms(250, 100, 0, kConfig), 250);
}

TEST(AffordableGap, OneThatIsLongAlreadyIsNotShortened) {
  EXPECT_EQ(affordable_gap_ms(5000, 1e6, 0.0001, kConfig), 5000);
  EXPECT_EQ(affordable_gap_ms(5000, 1, 0.0001, kConfig), 5000);
}

TEST(FairShareConfig, SaysWhatIsWrong) {
  FairShareConfig config;
  EXPECT_EQ(check_fair_share_config(config), "");
  config.thinning_slack = 0.99;
  EXPECT_EQ(check_fair_share_config(config), "thinning_slack must be 1 or more");
}

TEST(FairShare, BeginsAsItWasTheLastTime) {
  // Of 100 connections 10 play.
  FairLevel level;
  FairShareInput input = {
      .keep = 0.5, .offered_per_s = 1000, .passed_ever = 1, .weights = 100, .least_per_s = 0};
  uint64_t now_ns = 1'000'000'000;
  const auto run = [&](double seconds) {
    for (double t = 0; t < seconds; t += 0.01) {
      now_ns += 10'000'000;
      const double passed = level.per_s > 0 ? std::min(10 * level.per_s, 1000.0) : 1000;
      input.passed_ever += static_cast<uint64_t>(passed * 0.01 + 0.5);
      step(level, input, {}, now_ns);
    }
  };
  run(0.01);
  EXPECT_NEAR(level.per_s, 5, 0.1) << "all are taken to play";
  run(3);
  EXPECT_NEAR(level.per_s, 50, 5);
  input.keep = 1;
  run(1);
  EXPECT_EQ(level.per_s, 0);
  input.keep = 0.9;
  run(0.01);
  EXPECT_NEAR(level.per_s, 90, 9);
  input.keep = 1;
  run(1);
  input.keep = 0.5;
  input.offered_per_s = 10'000;  // the others play, too
  run(0.01);
  EXPECT_NEAR(level.per_s, 50, 5);
}

}  // namespace
}  // namespace edgeshed::core
