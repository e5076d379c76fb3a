// The effects of the rungs: the default numbers, and the rules that any table must keep.
#include "userspace/core/ladder_effects.h"

#include <gtest/gtest.h>

namespace edgeshed::core {
namespace {

constexpr uint32_t kSnapshot = ES_LANE_snapshot - kFirstThinLane;
constexpr uint32_t kStream = ES_LANE_stream - kFirstThinLane;
constexpr uint32_t kVoice = ES_LANE_voice - kFirstThinLane;
constexpr uint32_t kCosmetic = ES_LANE_cosmetic - kFirstThinLane;

TEST(LadderEffects, DefaultTableIsSoundAndMonotone) {
  const LadderTable table = default_ladder_table();
  EXPECT_EQ(check_ladder_table(table), "");
  for (uint8_t low = 0; low < kRungs; ++low) {
    for (uint8_t high = low; high < kRungs; ++high) {
      EXPECT_TRUE(keeps_no_more(table[high], table[low])) << int{high} << " over " << int{low};
      if (high > low) {
        EXPECT_FALSE(keeps_no_more(table[low], table[high])) << int{low} << " is " << int{high};
      }
    }
  }
}

TEST(LadderEffects, DefaultNumbers) {
  const LadderTable table = default_ladder_table();
  for (uint8_t rung = 0; rung < kRungs; ++rung) {
    const LadderEffects& effects = table[rung];
    const double snapshot[] = {1, 0.5, 0.5, 0.25, 0.25, 0};
    const double stream[] = {1, 1, 0.5, 0.5, 0.5, 0.5};
    for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
      EXPECT_EQ(effects.lane[kSnapshot].keep[direction], snapshot[rung]);
      EXPECT_EQ(effects.lane[kStream].keep[direction], stream[rung]);
    }
    EXPECT_EQ(effects.lane[kSnapshot].min_interval_ms, rung >= 2 ? 100 : 0);
    EXPECT_EQ(effects.lane[kVoice].paused, rung >= 3);
    EXPECT_EQ(effects.lane[kCosmetic].paused, rung >= 3);
    EXPECT_EQ(effects.lane[kStream].paused, rung == 5);
    EXPECT_FALSE(effects.lane[kSnapshot].paused);
    EXPECT_EQ(effects.threshold[kTierStandard], rung == 5 ? 64 : 0);
    EXPECT_EQ(effects.max_gap_ms, 250);
    EXPECT_EQ(effects.refuse_joins, rung >= 4);
    for (const LaneEffect& lane : effects.lane) EXPECT_EQ(lane.lower_effort, rung >= 1);
  }
}

TEST(LadderEffects, NoPlaceForCriticalLanes) {
  // Every lane that is critical by default lies below the first lane that has a place.
#define X(name, tier, text) \
  EXPECT_TRUE(ES_TIER_##tier != ES_TIER_critical || ES_LANE_##name < kFirstThinLane) << #name;
  ES_LANE_LIST(X)
#undef X
  EXPECT_EQ(LadderEffects{}.lane.size(), ES_LANES - kFirstThinLane);
  EXPECT_EQ(LadderEffects{}.threshold.size(), size_t{ES_TIERS - 1});
}

TEST(LadderEffects, FaultsAreNamed) {
  const LadderTable sound = default_ladder_table();
  const auto fault = [&](auto change) {
    LadderTable table = sound;
    change(table);
    return check_ladder_table(table);
  };
  EXPECT_EQ(fault([](auto& t) { t[2].lane[kVoice].keep[ES_OUT] = 1.5; }),
            "rung 2: voice: keep must be 0 to 1");
  EXPECT_EQ(fault([](auto& t) { t[1].lane[kStream].min_interval_ms = 300; }),
            "rung 1: stream: min_interval_ms must not exceed max_gap_ms");
  EXPECT_EQ(fault([](auto& t) { t[3].refuse_joins = true; }),
            "rung 3: refuse_joins must be true on rungs 4 and 5 and false below");
  EXPECT_EQ(fault([](auto& t) { t[0].lane[kSnapshot].keep[ES_IN] = 0.9; }),
            "rung 0: must shed and mark nothing");
  EXPECT_EQ(fault([](auto& t) { t[3].lane[kSnapshot].keep[ES_IN] = 0.6; }),
            "rung 3: must not keep more of anything than rung 2");
  EXPECT_EQ(fault([](auto& t) { t[4].threshold[kTierStandard] = 65; }),
            "rung 5: must not keep more of anything than rung 4");
  EXPECT_EQ(fault([](auto& t) { t[2].max_gap_ms = 200; }),
            "rung 2: must not keep more of anything than rung 1");
  EXPECT_EQ(fault([](auto& t) { t[5].threshold[kTierStandard] = 256; }),
            "rung 5: threshold must be 0 to 255");
}

}  // namespace
}  // namespace edgeshed::core
