// Random models, ladders and rungs with fixed seeds: what must hold for every plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "userspace/core/plan_rows.h"

namespace edgeshed::core {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t below(uint32_t limit) { return engine_() % limit; }
  bool one_in(uint32_t n) { return below(n) == 0; }
  double share() { return std::uniform_real_distribution<double>(0, 1)(engine_); }

 private:
  std::mt19937 engine_;
};

/// A random ladder that passes check_ladder_table: each rung is the last one, worsened.
LadderTable random_ladder(Random& random) {
  LadderTable table;
  for (uint8_t rung = 1; rung < kRungs; ++rung) {
    LadderEffects& effects = table[rung];
    effects = table[rung - 1];
    for (LaneEffect& lane : effects.lane) {
      for (double& keep : lane.keep) keep *= random.one_in(3) ? random.share() : 1;
      if (random.one_in(4)) lane.paused = true;
      if (random.one_in(3)) lane.lower_effort = true;
      if (random.one_in(4))
        lane.min_interval_ms = std::max(lane.min_interval_ms, 200 * random.share());
    }
    for (double& threshold : effects.threshold) {
      if (random.one_in(3)) threshold = std::max(threshold, 255 * random.share());
    }
    if (random.one_in(3)) effects.ce_share = std::max(effects.ce_share, random.share());
    effects.refuse_joins = rung >= kRungRefuseJoins;
  }
  return table;
}

ContractClass random_class(Random& random) {
  ContractClass contract;
  contract.name = "contract";
  contract.tier_cap = static_cast<uint8_t>(random.below(ES_TIERS));
  for (auto& direction : contract.rate) {
    for (ContractRate& rate : direction) {
      if (random.one_in(4)) rate.packets_per_s = 1 + random.below(1000);
      if (random.one_in(4)) rate.bytes_per_s = 1000 + random.below(1000000);
    }
  }
  return contract;
}

Model random_model(Random& random) {
  Model model;
  model.law.ladder = random_ladder(random);
  model.shards.resize(1 + random.below(3));
  model.rooms.resize(1 + random.below(6));
  for (Room& room : model.rooms) {
    room.name = "room";
    room.shard = random.below(static_cast<uint32_t>(model.shards.size()));
    if (random.one_in(5)) room.stream_cap = 3;
    if (random.one_in(5)) room.level[random.below(2)][random.below(2)].tokens_per_s = 50;
  }
  for (uint32_t i = random.below(3); i > 0; --i) model.classes.push_back(random_class(random));
  for (uint32_t i = 0; i < 1 + random.below(4); ++i) {
    Endpoint endpoint;
    endpoint.name = "endpoint";
    endpoint.number = static_cast<uint8_t>(model.endpoints.size() + 1);
    endpoint.port = static_cast<uint16_t>(1000 + i);
    for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
      endpoint.lane_tiers =
          with_lane_tier(endpoint.lane_tiers, lane, static_cast<uint8_t>(random.below(ES_TIERS)));
    }
    for (uint32_t room = 0; room < model.rooms.size(); ++room) {
      if (random.one_in(2)) endpoint.rooms.push_back(static_cast<uint16_t>(room));
    }
    if (endpoint.rooms.empty()) endpoint.rooms.push_back(0);
    endpoint.stranger_room = endpoint.rooms.front();
    endpoint.stranger_tier_cap = static_cast<uint8_t>(random.below(ES_TIERS));
    endpoint.exempt_connections = random.one_in(5);
    model.endpoints.push_back(endpoint);
  }
  return model;
}

/// What the packet path may do to a lane that becomes `tier` in a room, said once more, plainly.
bool room_may_act(const es_plan_room& room, uint32_t direction, uint8_t lane, uint8_t tier,
                  bool lowered) {
  if (lane == ES_LANE_stream && direction == ES_IN && room.stream_cap != 0) return true;
  if (tier == ES_TIER_critical) return false;
  const es_room_rules& rules = room.rules[direction];
  const bool thinned = rules.keep_q16[lane] != ES_KEEP_ALL ||
                       (lane >= 4 && rules.min_interval_jiffies[lane - 4] != 0);
  return ((rules.drop_mask | rules.le_mask) >> lane & 1) != 0 || thinned ||
         (rules.ce_q8 != 0 && !lowered) || rules.threshold[tier - 1] != 0 ||
         rules.level[tier - 1].burst != 0;
}

/// One random model, its shards somewhere on their ladders, and the plan of that.
struct Case {
  explicit Case(uint32_t seed) : random(seed), model(random_model(random)) {
    const ShardController controller(model.law.control, model.law.ladder);
    states.resize(model.shards.size());
    ShardSignals signals;
    signals.room_capacity = 10;
    for (ShardState& state : states) {
      // A climb, then a partial fall, so that ramps are on their way in some of the plans.
      for (const uint64_t now_ns : {1'000'000'000, 2'000'000'000}) {
        ShardController::force(state, static_cast<uint8_t>(random.below(kRungs)), 0);
        controller.step(state, signals, now_ns);
      }
    }
    // Some rooms are held at a rung by hand.
    overrides.resize(model.rooms.size());
    for (RoomOverride& override : overrides) {
      if (random.one_in(4)) override = {static_cast<uint8_t>(random.below(kRungs)), 1};
    }
    PlanExtras extras;
    extras.overrides = overrides;
    fill_plan_rows(model, states, PlanTiming{}, {}, rows, extras);
  }

  Random random;
  Model model;
  std::vector<ShardState> states;
  std::vector<RoomOverride> overrides;
  PlanRows rows{8, 8, 8};
};

constexpr uint32_t kSeeds = 1000;

template <typename Check>
void for_each_case(Check check) {
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    check(Case(seed));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PlanProperty, LadderIsSound) {
  for_each_case([](const Case& it) { EXPECT_EQ(check_ladder_table(it.model.law.ladder), ""); });
}

TEST(PlanProperty, CriticalIsNeverDroppedByClass) {
  for_each_case([](const Case& it) {
    for (const Endpoint& endpoint : it.model.endpoints) {
      const es_plan_endpoint& row = it.rows.endpoints[endpoint.number];
      for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
        if (es_lane_tier(endpoint.lane_tiers, lane) != ES_TIER_critical) continue;
        EXPECT_EQ((row.drop_mask[ES_IN] | row.drop_mask[ES_OUT]) >> lane & 1, 0);
      }
    }
  });
}

TEST(PlanProperty, DropMaskIsWhatEveryRoomPauses) {
  for_each_case([](const Case& it) {
    for (const Endpoint& endpoint : it.model.endpoints) {
      const es_plan_endpoint& row = it.rows.endpoints[endpoint.number];
      for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
        for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
          const bool paused =
              std::all_of(endpoint.rooms.begin(), endpoint.rooms.end(), [&](uint16_t room) {
                return (it.rows.rooms[room].rules[direction].drop_mask >> lane & 1) != 0;
              });
          const uint8_t tier = es_lane_tier(endpoint.lane_tiers, lane);
          const bool expected =
              paused && tier == ES_TIER_best_effort && endpoint.exempt_connections == 0;
          EXPECT_EQ(row.drop_mask[direction] >> lane & 1, expected);
          EXPECT_EQ(row.drop_mask[direction] & row.pass_mask[direction], 0);
        }
      }
    }
  });
}

TEST(PlanProperty, PassMaskHoldsNothingThatALookUpWouldLimit) {
  for_each_case([](const Case& it) {
    for (const Endpoint& endpoint : it.model.endpoints) {
      const es_plan_endpoint& row = it.rows.endpoints[endpoint.number];
      EXPECT_EQ(row.pass_mask[ES_IN] >> ES_LANE_join & 1, 0);
      for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
        for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
          if ((row.pass_mask[direction] >> lane & 1) == 0) continue;
          const uint8_t tier = es_lane_tier(endpoint.lane_tiers, lane);
          // Caps lower what a remote claims, and nothing that the server sends.
          const auto capped = [&](uint8_t cap) {
            return direction == ES_IN ? std::max(tier, cap) : tier;
          };
          std::vector<uint8_t> tiers = {capped(endpoint.stranger_tier_cap)};
          for (size_t i = 0; i < it.model.classes.size(); ++i) {
            tiers.push_back(capped(it.model.classes[i].tier_cap));
            const es_limit& limit = it.rows.classes[i].limit[direction][tiers.back()];
            EXPECT_EQ(limit.packet_cost, 0u);
            EXPECT_EQ(limit.byte_cost_q12, 0u);
          }
          for (const uint16_t room : endpoint.rooms) {
            for (const uint8_t reached : tiers) {
              EXPECT_FALSE(
                  room_may_act(it.rows.rooms[room], direction, lane, reached, reached != tier));
            }
          }
        }
      }
    }
  });
}

TEST(PlanProperty, SlotNeverShedsWhatEveryRoomWouldKeep) {
  for_each_case([](const Case& it) {
    for (const Endpoint& endpoint : it.model.endpoints) {
      const es_plan_endpoint& row = it.rows.endpoints[endpoint.number];
      for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
        for (uint32_t tier = 0; tier < kSheddableTiers; ++tier) {
          const uint32_t highest_shed = row.slot_quartiles[direction][tier] * 64u;
          for (const uint16_t room : endpoint.rooms) {
            EXPECT_LE(highest_shed, it.rows.rooms[room].rules[direction].threshold[tier]);
          }
          if (endpoint.exempt_connections != 0) {
            EXPECT_EQ(highest_shed, 0u);
          }
        }
      }
    }
  });
}

TEST(PlanProperty, PausedIsTheOnlyZero) {
  for_each_case([](const Case& it) {
    for (size_t i = 0; i < it.model.rooms.size(); ++i) {
      for (const es_room_rules& rules : it.rows.rooms[i].rules) {
        for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
          EXPECT_EQ(rules.keep_q16[lane] == 0, (rules.drop_mask >> lane & 1) != 0);
        }
        EXPECT_EQ(rules.drop_mask & 0x0f, 0) << "only thinnable lanes can be paused";
      }
    }
  });
}

}  // namespace
}  // namespace edgeshed::core
