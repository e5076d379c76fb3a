// How a degree meets the table of a rung.
#include "userspace/core/degree_effects.h"

#include <gtest/gtest.h>

#include "userspace/core/model.h"

namespace edgeshed::core {
namespace {

constexpr uint32_t kSnapshot = ES_LANE_snapshot - kFirstThinLane;
constexpr uint32_t kVoice = ES_LANE_voice - kFirstThinLane;

LaneCosts costs_of(double snapshot, double stream, double voice) {
  LaneCosts costs = {};
  costs[ES_LANE_snapshot] = snapshot;
  costs[ES_LANE_stream] = stream;
  costs[ES_LANE_voice] = voice;
  return costs;
}

LadderEffects applied(uint8_t rung, double keep, const LaneCosts& costs) {
  return with_degree(default_ladder_table()[rung], {1, keep}, 0, costs, default_lane_tiers());
}

TEST(DegreeEffects, AnOverrunLoopIsBelievedMoreThanItsCosts) {
  ShardSignals signals;
  signals.frame_budget_ms = 20;
  signals.tick_p99_ms = 20;
  EXPECT_EQ(overrun(signals), 0);
  signals.tick_p99_ms = 22.5;
  EXPECT_NEAR(overrun(signals), 0.5, 1e-9);
  signals.running_tick_age_ms = 40;
  EXPECT_EQ(overrun(signals), 1);
  signals.running_tick_age_ms = 0;
  signals.ring_occupancy = 1;
  EXPECT_EQ(overrun(signals), 1);

  const LadderTable table = default_ladder_table();
  const auto keep_at = [&](double part) {
    return with_degree(table[1], {1, 1}, part, costs_of(1, 0, 0), default_lane_tiers())
        .lane[kSnapshot]
        .keep[ES_IN];
  };
  EXPECT_EQ(keep_at(0), 1);
  EXPECT_EQ(keep_at(0.5), 0.875);
  EXPECT_EQ(keep_at(1), 0.75) << "half way to the table";
}

TEST(DegreeEffects, WhatFitsIsNotShedWhateverTheRung) {
  const LadderEffects effects = applied(2, 1, costs_of(0.2, 0.1, 0.1));
  for (const LaneEffect& lane : effects.lane) {
    EXPECT_EQ(lane.keep[ES_IN], 1);
    EXPECT_EQ(lane.keep[ES_OUT], 1);
    EXPECT_EQ(lane.min_interval_ms, 0);
  }
  EXPECT_GT(effects.ce_share, 0) << "marks are the rung's";
}

TEST(DegreeEffects, TheRungIsTheFloor) {
  // Rung 1 thins snapshots to a half, and nothing else, however little is to be kept.
  const LadderEffects effects = applied(1, 0, costs_of(0.2, 0.1, 0.1));
  EXPECT_EQ(effects.lane[kSnapshot].keep[ES_IN], 0.5);
  EXPECT_EQ(effects.lane[kVoice].keep[ES_IN], 1);
}

TEST(DegreeEffects, WhileStandardIsCutNoRungKeepsBestEffort) {
  const LaneCosts costs = costs_of(0.2, 0.1, 0.1);
  for (uint8_t rung = 1; rung <= 5; ++rung) {
    const LadderEffects effects =
        with_degree(default_ladder_table()[rung], {0.9, 0.1}, 0, costs, default_lane_tiers());
    double kept = 0;
    const uint32_t lanes[] = {ES_LANE_snapshot, ES_LANE_stream, ES_LANE_voice};
    for (const uint32_t lane : lanes) {
      const LaneEffect& effect = effects.lane[lane - kFirstThinLane];
      kept += costs[lane] * (effect.paused ? 0 : effect.keep[ES_IN]);
    }
    EXPECT_NEAR(kept, 0.1 * 0.4, 1e-9) << int{rung};
  }
}

TEST(DegreeEffects, LanesThatMayBeThinnedMakeUpForThoseThatMayNot) {
  // .8 of 1.0 is to be kept; .5 may not be touched, so of the other .5 only .3.
  const LadderEffects effects = applied(1, 0.8, costs_of(0.5, 0.25, 0.25));
  EXPECT_NEAR(effects.lane[kSnapshot].keep[ES_IN], 0.6, 1e-9);
}

TEST(DegreeEffects, WhatIsPausedLeavesRoomForTheRest) {
  // Voice is paused at rung 3: a half of the whole is all of the snapshots.
  const LadderEffects effects = applied(3, 0.5, costs_of(0.5, 0, 0.5));
  EXPECT_TRUE(effects.lane[kVoice].paused);
  EXPECT_EQ(effects.lane[kSnapshot].keep[ES_IN], 1);
}

TEST(DegreeEffects, AtRungFiveTheDegreeIsWhatPasses) {
  const LadderEffects effects = applied(5, 0.1, costs_of(1, 0, 0));
  EXPECT_NEAR(effects.lane[kSnapshot].keep[ES_IN], 0.1, 1e-9);
  EXPECT_EQ(effects.threshold[kTierStandard], 64);
  EXPECT_TRUE(effects.refuse_joins);
}

TEST(DegreeEffects, WhatIsKeptIsWeighedByWhatIsOffered) {
  RoomDemand rates;
  rates.lane[ES_LANE_snapshot].per_s = 300;
  rates.lane[ES_LANE_voice].per_s = 100;
  rates.lane[ES_LANE_command].per_s = 70;
  rates.lane[ES_LANE_event].per_s = 1000;
  LadderEffects effects;
  EXPECT_EQ(kept_best_effort(effects, {}, default_lane_tiers()), 1);
  EXPECT_EQ(kept_best_effort(effects, rates, default_lane_tiers()), 1);
  effects.lane[kSnapshot].keep[ES_IN] = 0.5;
  effects.lane[kVoice].paused = true;
  EXPECT_DOUBLE_EQ(kept_best_effort(effects, rates, default_lane_tiers()), 150.0 / 400);
  loosen(effects, 1.2);
  EXPECT_DOUBLE_EQ(effects.lane[kSnapshot].keep[ES_IN], 0.6);
  loosen(effects, 2);
  EXPECT_EQ(effects.lane[kSnapshot].keep[ES_IN], 1);
  EXPECT_EQ(tier_rate(rates, default_lane_tiers(), ES_TIER_standard), 70);
}

TEST(DegreeEffects, CostsAreUnknownUntilTheyAreKnown) {
  RoomDemand rates;
  rates.lane[ES_LANE_snapshot].per_s = 1000;
  CostState state;
  EXPECT_EQ(lane_costs(rates, state, {})[ES_LANE_snapshot], 0);
  state.known = true;
  state.unit_us = 200;
  EXPECT_DOUBLE_EQ(lane_costs(rates, state, {})[ES_LANE_snapshot], 0.2);
}

}  // namespace
}  // namespace edgeshed::core
