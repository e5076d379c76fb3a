// The law as a whole, at the edges between its parts: who decides when costs are not known, an
// operator forces a rung, a server is silent or a lane is paused; and that one tick does it all.
#include "userspace/core/shard_law.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/unit/law_loop.h"

namespace edgeshed::core {
namespace {

constexpr uint32_t kSnapshot = ES_LANE_snapshot - kFirstThinLane;
constexpr uint32_t kVoice = ES_LANE_voice - kFirstThinLane;

void expect_same(const LadderEffects& effects, const LadderEffects& expected) {
  for (uint32_t i = 0; i < kThinLanes; ++i) {
    for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
      // The ramp of a paused lane waits at 0.
      const double keep = expected.lane[i].paused ? 0 : expected.lane[i].keep[direction];
      EXPECT_EQ(effects.lane[i].keep[direction], keep) << i;
    }
    EXPECT_EQ(effects.lane[i].paused, expected.lane[i].paused) << i;
    EXPECT_EQ(effects.lane[i].min_interval_ms, expected.lane[i].min_interval_ms) << i;
  }
  EXPECT_EQ(effects.threshold, expected.threshold);
  EXPECT_EQ(effects.max_gap_ms, expected.max_gap_ms);
  EXPECT_EQ(effects.refuse_joins, expected.refuse_joins);
}

void expect_no_levels(const ShardMemory& memory) {
  for (const FairLevel& level : memory.level) EXPECT_EQ(level.per_s, 0);
}

bool sheds_nothing(const ShardMemory& memory) {
  for (const LaneEffect& lane : memory.effects.lane) {
    if (lane.paused || lane.keep[ES_IN] < 1 || lane.keep[ES_OUT] < 1) return false;
    if (lane.min_interval_ms > 0) return false;
  }
  return memory.level[0].per_s == 0 && memory.level[1].per_s == 0 &&
         memory.effects.threshold == std::array<double, kSheddableTiers>{};
}

class ShardLawTest : public testing::Test {
 protected:
  ShardLawTest() { add_plain_game(loop_); }

  LawLoop loop_{plain_game_config()};
  ShardMemory& memory_ = loop_.memory;
  ShardSample& sample_ = loop_.sample;
  const LadderTable table_ = default_ladder_table();
};

TEST(ShardLawConfig, SaysWhichConstantIsWrong) {
  const auto fault = [](auto change) -> std::string {
    LawConfig config;
    change(config);
    try {
      const ShardLaw law(config);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault([](LawConfig&) {}), "");
  EXPECT_THAT(fault([](LawConfig& it) { it.control.hold_s = 0; }), testing::HasSubstr("hold_s"));
  EXPECT_THAT(fault([](LawConfig& it) { it.cost.scale_max = 0; }), testing::HasSubstr("scale_max"));
  EXPECT_THAT(fault([](LawConfig& it) { it.fair_share.thinning_slack = 0.5; }),
              testing::HasSubstr("thinning_slack"));
  EXPECT_THAT(fault([](LawConfig& it) { it.ladder[2].ce_share = 2; }),
              testing::HasSubstr("rung 2"));
}

TEST_F(ShardLawTest, CalmShedsNothing) {
  loop_.run(5, [&] {
    EXPECT_TRUE(sheds_nothing(memory_));
    EXPECT_EQ(memory_.state.rung, 0);
  });
  EXPECT_NEAR(memory_.signals.offered_cost_ratio, 0.1 + 0.06 + 0.2 + 0.3, 0.02);
}

TEST_F(ShardLawTest, OneTickDoesItAll) {
  loop_.run(5);
  loop_.load = 6;
  loop_.tick();
  // Counted, weighed, climbed, cut, thinned and shared, before a tick of the server is late.
  EXPECT_LT(sample_.signals.tick_p99_ms, 33);
  EXPECT_NEAR(memory_.signals.offered_cost_ratio, 0.1 + 6 * 0.56, 0.1);
  ASSERT_TRUE(loop_.change.has_value());
  EXPECT_EQ(loop_.change->cause, Cause::offered_cost);
  EXPECT_EQ(memory_.state.rung, 5);
  EXPECT_TRUE(memory_.effects.refuse_joins);
  const double gap_reserve = 100 * 1000 / memory_.effects.max_gap_ms * 200e-6;
  const double keep = (0.9 - 0.1 - 0.36 - gap_reserve) / 1.2;
  EXPECT_NEAR(memory_.degree.now.keep_standard, keep, 0.02);
  EXPECT_NEAR(memory_.level[kTierStandard].per_s, keep * 60, 1.5);
  EXPECT_LT(memory_.effects.lane[kSnapshot].keep[ES_IN], 0.1);
  EXPECT_TRUE(memory_.effects.lane[kVoice].paused);
  // What the law decided is what passes in the next.
  loop_.tick();
  EXPECT_LT(loop_.all_spent(), 1);
}

/// A server that says how late it is, and never how long it worked.
struct LateOnly {
  LateOnly() {
    add_plain_game(loop);
    loop.reports = false;
  }
  void tick(double ratio) { tick(ratio, ratio > 1 ? ratio : 0); }
  void tick(double ratio, double running) {
    loop.sample.signals.tick_p99_ms = ratio * 33.3;
    loop.sample.signals.running_tick_age_ms = running * 33.3;
    loop.sample.signals.reported_at_ns = loop.now_ns();
    loop.tick();
  }
  LawLoop loop;
  const ShardMemory& memory = loop.memory;
};

TEST_F(ShardLawTest, CostsThatAreNotKnownLeaveItToTheTable) {
  LateOnly late;
  for (uint8_t rung = 0; rung < kRungs; ++rung) {
    const double ratio = rung == 0 ? 0.5 : kRungLevels[rung - 1].tick_ratio + 0.01;
    for (int i = 0; i < 30; ++i) {
      late.tick(ratio);
      EXPECT_EQ(late.memory.state.rung, rung);
      EXPECT_FALSE(late.memory.demand.known);
      EXPECT_EQ(late.memory.level[kTierBestEffort].per_s, 0);
      expect_same(late.memory.effects, table_[rung]);
      if (rung == kRungMax) continue;
      EXPECT_EQ(late.memory.level[kTierStandard].per_s, 0) << "while best-effort is left";
    }
  }
}

TEST_F(ShardLawTest, WithoutCostsStandardGivesOnTheLastRungForAsLongAsItIsOverrun) {
  LateOnly late;
  for (int i = 0; i < 120; ++i) late.tick(0.5);
  double before = 1;
  for (int i = 0; i < 12; ++i) {
    late.tick(2.1);
    EXPECT_LT(late.memory.degree.now.keep_standard, before);
    before = late.memory.degree.now.keep_standard;
    EXPECT_GT(late.memory.level[kTierStandard].per_s, 0);
  }
  EXPECT_NEAR(before, 1 - 3 * 0.2, 0.06);
  // A tick within its budget ends the cut, and it comes back like any other.
  for (int i = 0; i < 60; ++i) {
    late.tick(0.9);
    EXPECT_GE(late.memory.degree.now.keep_standard, before);
  }
  for (int i = 0; i < 300; ++i) late.tick(0.5);
  EXPECT_EQ(late.memory.degree.now.keep_standard, 1);
  EXPECT_EQ(late.memory.level[kTierStandard].per_s, 0);
}

TEST_F(ShardLawTest, AnOperatorsRungActsAsItsTableSays) {
  loop_.run(2);
  for (uint8_t rung = 1; rung < kRungs; ++rung) {
    ShardController::force(memory_.state, rung, 0);
    for (int i = 0; i < 30; ++i) {
      loop_.tick();
      EXPECT_EQ(memory_.state.rung, rung);
      expect_same(memory_.effects, table_[rung]);
      expect_no_levels(memory_);
    }
  }
}

TEST_F(ShardLawTest, AnOperatorsRungZeroShedsNothing) {
  loop_.run(2);
  ShardController::force(memory_.state, 0, 0);
  loop_.load = 5;
  loop_.run(2, [&] { EXPECT_TRUE(sheds_nothing(memory_)); });
  // The degree has been there all the time: it acts with the first tick after the override.
  ShardController::clear_override(memory_.state);
  loop_.tick();
  EXPECT_EQ(memory_.state.rung, 5);
  EXPECT_GT(memory_.level[kTierStandard].per_s, 0);
  EXPECT_LT(memory_.effects.lane[kSnapshot].keep[ES_IN], 0.3);
}

TEST_F(ShardLawTest, ASilentServerKeepsItsPlanAndALittleLess) {
  loop_.load = 2;
  loop_.run(10);
  ASSERT_EQ(memory_.state.report, ReportState::fresh);
  const uint8_t rung = memory_.state.rung;
  const double keep = memory_.degree.now.keep_best_effort;
  EXPECT_NEAR(keep, (0.9 - 0.1 - 0.12 - 0.4) / 0.6, 0.05);
  loop_.reports = false;
  // What it said last: nothing was late.
  sample_.signals.tick_p99_ms = sample_.signals.running_tick_age_ms = 0;
  loop_.run(1.5, [&] { EXPECT_EQ(memory_.state.rung, rung); });
  loop_.run(10);
  EXPECT_EQ(memory_.state.report, ReportState::missing);
  EXPECT_EQ(memory_.state.rung, rung) << "what is offered is still known";
  EXPECT_NEAR(memory_.degree.now.keep_best_effort, keep - 0.05 / 0.6, 0.03);
  // One that never had a session misses nothing.
  sample_.has_session = false;
  loop_.run(10);
  EXPECT_NEAR(memory_.degree.now.keep_best_effort, keep, 0.03);
}

TEST_F(ShardLawTest, ALostSourceTakesATwentiethAndOneThatNeverWasTakesNothing) {
  loop_.load = 2;
  loop_.run(10);
  const double keep = memory_.degree.now.keep_best_effort;
  const auto kept_with = [&](uint16_t missing, uint16_t lost) {
    sample_.signals.missing = missing;
    sample_.signals.lost = lost;
    loop_.run(10);
    return memory_.degree.now.keep_best_effort;
  };
  const uint16_t psi = source_bits(SignalSource::psi);
  const uint16_t softnet = source_bits(SignalSource::softnet_stat);
  EXPECT_NEAR(kept_with(psi, 0), keep, 0.03);
  EXPECT_EQ(memory_.signals.missing, psi);
  EXPECT_NEAR(kept_with(psi, psi), keep - 0.05 / 0.6, 0.03);
  EXPECT_NEAR(kept_with(psi | softnet, psi | softnet), keep - 0.10 / 0.6, 0.03);
  EXPECT_NEAR(kept_with(0, 0), keep, 0.03) << "and it comes back";
}

TEST_F(ShardLawTest, WhatASilentServerSaidIsLostAsOneSource) {
  loop_.run(2);
  EXPECT_EQ(memory_.signals.missing, 0);
  loop_.reports = false;
  loop_.run(1);
  EXPECT_EQ(memory_.signals.lost, source_bits(SignalSource::report));
  EXPECT_EQ(memory_.signals.missing, source_bits(SignalSource::report));
  sample_.has_session = false;
  loop_.run(1);
  EXPECT_EQ(memory_.signals.lost, 0);
  EXPECT_EQ(memory_.signals.missing, source_bits(SignalSource::report));
}

TEST_F(ShardLawTest, OfACalmReportAndAFullSocketTheWorseOneIsBelieved) {
  loop_.run(5);
  ASSERT_TRUE(sheds_nothing(memory_));
  // Three ticks' worth beyond one: the server reports, and reads nothing.
  sample_.signals.receive_queue_ms = 100;
  loop_.tick();
  EXPECT_LT(memory_.signals.tick_p99_ms, 33);
  EXPECT_EQ(memory_.state.rung, 5);
  EXPECT_EQ(memory_.state.cause, Cause::receive_queue);
  EXPECT_EQ(memory_.state.pressed_by, PressureSignal::receive_queue);
  EXPECT_EQ(memory_.degree.now.keep_standard, 0);
  // Worked off, it comes back like after any cut.
  loop_.run(1);
  sample_.signals.receive_queue_ms = 0;
  loop_.run(20);
  EXPECT_TRUE(sheds_nothing(memory_));
  EXPECT_EQ(memory_.state.rung, 0);
}

TEST_F(ShardLawTest, WithoutAnySignalThePlanIsTheDemands) {
  loop_.reports = false;
  sample_.has_session = false;
  loop_.load = 2;
  loop_.run(5);
  EXPECT_EQ(memory_.state.report, ReportState::missing);
  EXPECT_NEAR(memory_.signals.offered_cost_ratio, 1.22, 0.01);
  EXPECT_EQ(memory_.state.rung, 2);
  EXPECT_NEAR(memory_.degree.now.keep_best_effort, (0.9 - 0.1 - 0.12 - 0.4) / 0.6, 0.03);
}

TEST_F(ShardLawTest, APausedLanesRateDoesNotGrow) {
  loop_.load = 2.5;
  loop_.run(5);
  ASSERT_TRUE(memory_.effects.lane[kVoice].paused);
  const double before = memory_.rates.lane[ES_LANE_voice].per_s;
  const double demand = memory_.signals.offered_cost_ratio;
  EXPECT_NEAR(before, 1250, 60);
  loop_.groups[0].per_s[ES_LANE_voice] *= 100;
  loop_.run(5, [&] {
    EXPECT_LE(memory_.rates.lane[ES_LANE_voice].per_s, before * 1.05);
    EXPECT_LE(memory_.signals.offered_cost_ratio, demand * 1.05);
    EXPECT_TRUE(memory_.effects.lane[kVoice].paused);
  });
  // It falls as it should, and not paused it counts again.
  loop_.groups[0].per_s[ES_LANE_voice] = 1;
  loop_.run(6);
  EXPECT_LT(memory_.rates.lane[ES_LANE_voice].per_s, 300);
  loop_.load = 0.2;
  loop_.run(15);
  ASSERT_FALSE(memory_.effects.lane[kVoice].paused);
  loop_.groups[0].per_s[ES_LANE_voice] = 50;
  loop_.run(0.1);
  EXPECT_GT(memory_.rates.lane[ES_LANE_voice].per_s, 900);
}

// Not yet: the rate is held as its first tick of the new load had it, and a lane whose counts are
// too small to jump has then moved by a tenth: 244/s known of 600/s, rho 1.72 of 2.08.
TEST_F(ShardLawTest, DISABLED_ALaneThatIsPausedAtOnceIsKnownAsItWas) {
  LawConfig config = plain_game_config();
  config.cost.lane_us[ES_LANE_voice] = 1000;
  LawLoop loop(config);
  add_plain_game(loop);
  loop.groups[0].per_s[ES_LANE_voice] = 2;
  loop.cost_us[ES_LANE_voice] = 1000;
  loop.run(5);
  loop.load = 3;
  loop.run(2);
  ASSERT_TRUE(loop.memory.effects.lane[kVoice].paused);
  EXPECT_NEAR(loop.memory.rates.lane[ES_LANE_voice].per_s, 600, 60);
}

TEST_F(ShardLawTest, WithoutCostsOneLongTickDoesNotShedAllOfStandard) {
  LateOnly late;
  for (int i = 0; i < 300; ++i) late.tick(0.5);
  // The p99 remembers it for a second.
  for (int i = 0; i < 60; ++i) late.tick(2.02, i < 4 ? 2.02 : 0);
  EXPECT_GT(late.memory.degree.now.keep_standard, 0.5);
}

TEST_F(ShardLawTest, TheLevelOfBestEffortTakesWhatThinningLeaves) {
  const double slack = FairShareConfig{}.thinning_slack;
  int on = 0;
  for (const double load : {1.5, 1.8, 2.0, 2.2, 1.6, 1.0, 3.0, 8.0}) {
    loop_.load = load;
    loop_.run(2, [&] {
      const FairLevel& level = memory_.level[kTierBestEffort];
      const double kept = kept_best_effort(memory_.effects, memory_.rates, sample_.lane_tiers);
      for (const LaneEffect& lane : memory_.effects.lane) {
        EXPECT_LE(lane.keep[ES_IN], 1);
        EXPECT_LE(lane.keep[ES_IN], lane.keep[ES_OUT] * slack + 1e-9) << "only what comes in";
        EXPECT_GE(lane.keep[ES_IN], lane.keep[ES_OUT] - 1e-9);
      }
      if (level.per_s == 0) {
        EXPECT_GE(kept, 1 - 1e-9) << "thinned by itself";
        return;
      }
      ++on;
      const double offered = tier_rate(memory_.rates, sample_.lane_tiers, ES_TIER_best_effort);
      EXPECT_GE(level.per_s * sample_.weights, kept / slack * offered * (1 - 1e-9)) << load;
    });
  }
  EXPECT_GT(on, 500);
}

TEST_F(ShardLawTest, ContractsAreStrictFromTheFirstCutOnUntilTheRungIsLeft) {
  const auto scarce = [this](uint32_t tier) { return memory_.state.scarce[tier]; };
  loop_.run(3, [&] { EXPECT_FALSE(scarce(kTierBestEffort) || scarce(kTierStandard)); });
  loop_.load = 1.8;
  loop_.run(2, [&] {
    const double kept = kept_best_effort(memory_.effects, memory_.rates, sample_.lane_tiers);
    EXPECT_TRUE(kept >= 1 || scarce(kTierBestEffort));
    // While standard is shed it has a level, which shares it.
    EXPECT_EQ(scarce(kTierStandard),
              scarce(kTierBestEffort) && memory_.degree.now.keep_standard >= 1);
  });
  EXPECT_TRUE(scarce(kTierBestEffort));
  EXPECT_TRUE(scarce(kTierStandard)) << "best-effort alone is enough";
  loop_.load = 6;
  loop_.tick();
  EXPECT_FALSE(scarce(kTierStandard));
  loop_.run(1);
  loop_.load = 0.5;
  loop_.run(15, [&] { EXPECT_EQ(scarce(kTierBestEffort), memory_.state.load_rung > 0); });
  EXPECT_EQ(memory_.state.load_rung, 0);
}

TEST_F(ShardLawTest, AnOperatorsRungLeavesContractsAsTheyAre) {
  ShardController::force(memory_.state, 2, 0);
  loop_.run(1, [&] { EXPECT_FALSE(memory_.state.scarce[kTierBestEffort]); });
}

TEST_F(ShardLawTest, GapsAreSpreadFromACutOnForTheLengthOfOne) {
  loop_.run(5, [&] { EXPECT_EQ(memory_.effects.gap_spread, 0); });
  loop_.load = 6;
  loop_.tick();
  EXPECT_GT(memory_.effects.gap_spread, 0) << "in the tick of the cut, too";
  double before = 0;
  loop_.run(0.2, [&] {
    EXPECT_GT(memory_.effects.gap_spread, before);
    EXPECT_LE(memory_.effects.gap_spread, 1);
    before = memory_.effects.gap_spread;
  });
  loop_.run(memory_.effects.max_gap_ms / 1000);
  loop_.run(3, [&] { EXPECT_EQ(memory_.effects.gap_spread, 0) << "no cut any more"; });
}

TEST_F(ShardLawTest, TheGapIsStretchedOnlyWhereTheDegreeActs) {
  loop_.groups[0].players = 1000;
  loop_.run(3);
  // 1,000 at 4/s and 200 us are .8 of the loop; .2 is allowed.
  EXPECT_NEAR(memory_.effects.max_gap_ms, 1000, 50);
  ShardController::force(memory_.state, 3, 0);
  loop_.tick();
  EXPECT_EQ(memory_.effects.max_gap_ms, 250);
}

TEST_F(ShardLawTest, ATickThatWasToldLongAgoIsNoBacklog) {
  sample_.has_session = false;
  loop_.reports = false;
  loop_.run(2);
  sample_.signals.running_tick_age_ms = 150;
  sample_.signals.reported_at_ns = loop_.now_ns();
  loop_.run(20);
  ASSERT_EQ(memory_.state.report, ReportState::missing);
  EXPECT_EQ(memory_.state.rung, 0);
  EXPECT_EQ(memory_.degree.now.keep_standard, 1);
  EXPECT_EQ(memory_.level[kTierStandard].per_s, 0);
}

// Not yet: a factor goes away when a tick is seen that took no longer than it should, and none is
// seen any more once the server is gone.
TEST_F(ShardLawTest, DISABLED_AServerThatEndsInASlowTickLeavesNoFactor) {
  loop_.run(5);
  loop_.slowness = 6;
  while (memory_.tick_watch.factor < 2) loop_.tick();
  loop_.reports = false;
  sample_.has_session = false;
  sample_.signals.running_tick_age_ms = sample_.signals.tick_p99_ms = 0;
  sample_.signals.reported_at_ns = 0;
  loop_.run(30);
  EXPECT_EQ(memory_.tick_watch.factor, 1);
  EXPECT_TRUE(sheds_nothing(memory_));
}

// Not yet: a scale moves only while messages pass, and it is of the base too.
TEST_F(ShardLawTest, DISABLED_AShardThatEverybodyLeftIsReleased) {
  LawConfig config = plain_game_config();
  config.cost.base_share = 0.4;
  LawLoop loop(config);
  add_plain_game(loop);
  loop.base_share = 0.4;
  loop.load = 0.1;
  loop.run(5);
  loop.slowness = 2;
  loop.run(10);
  EXPECT_NEAR(loop.memory.cost.scale, 2, 0.3);
  loop.load = 0;
  loop.slowness = 1;
  loop.run(120);
  EXPECT_NEAR(loop.memory.signals.offered_cost_ratio, 0.4, 0.1);
  EXPECT_EQ(loop.memory.state.rung, 0);
}

TEST_F(ShardLawTest, AServerThatBecameThreeTimesSlowerIsBroughtBackIntoItsBudget) {
  LawConfig config = plain_game_config();
  config.cost.base_share = 0.2;
  LawLoop loop(config);
  add_plain_game(loop);
  loop.base_share = 0.2;
  loop.run(5);
  loop.slowness = 3;
  loop.run(20);
  EXPECT_NEAR(loop.memory.cost.scale, 3, 0.4);
  loop.run(10, [&] { EXPECT_LE(loop.sample.signals.tick_p99_ms, 33.3); });
}

TEST_F(ShardLawTest, AFullShardRefusesJoinsAndShedsNothing) {
  loop_.run(2);
  sample_.signals.room_count = sample_.signals.room_capacity;
  loop_.tick();
  EXPECT_EQ(memory_.state.rung, 4);
  EXPECT_TRUE(memory_.effects.refuse_joins);
  EXPECT_TRUE(sheds_nothing(memory_));
}

TEST_F(ShardLawTest, AClockThatGoesBackIsNoTime) {
  loop_.load = 2;
  loop_.run(5);
  const Degree degree = memory_.degree.now;
  loop_.law.step(memory_, sample_, 5);
  EXPECT_EQ(memory_.degree.now.keep_best_effort, degree.keep_best_effort);
  EXPECT_EQ(memory_.degree.now.keep_standard, degree.keep_standard);
  loop_.run(1, [&] { EXPECT_LT(loop_.all_spent(), 1); });
}

TEST_F(ShardLawTest, NothingOfOneShardIsInTheLaw) {
  // The same samples make the same decisions, whoever else was stepped between.
  LawLoop other{plain_game_config()};
  add_plain_game(other);
  ShardMemory again = loop_.law.begin();
  for (int i = 0; i < 300; ++i) {
    loop_.load = i < 100 ? 1 : 4;
    loop_.tick();
    other.tick();
    other.law.step(again, sample_, loop_.now_ns());
    EXPECT_EQ(again.degree.now.keep_best_effort, memory_.degree.now.keep_best_effort);
    EXPECT_EQ(again.level[0].per_s, memory_.level[0].per_s);
    EXPECT_EQ(again.state.rung, memory_.state.rung);
  }
}

}  // namespace
}  // namespace edgeshed::core
