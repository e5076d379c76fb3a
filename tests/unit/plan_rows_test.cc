// Rows from states: masks, room rules, contract factors, flags, strangers, ports.
#include "userspace/core/plan_rows.h"

#include <gtest/gtest.h>

#include <memory>

#include "userspace/config/config.h"

namespace edgeshed::core {
namespace {

constexpr uint8_t bit(uint32_t lane) { return static_cast<uint8_t>(1u << lane); }
constexpr uint8_t kAll = 0xff;

constexpr const char* kTwoRooms = R"(
[host]
endpoints_max = 4
rooms_max = 4
classes_max = 4
[[shard]]
name = "a"
[[shard]]
name = "b"
[[room]]
name = "one"
shard = "a"
[[room]]
name = "two"
shard = "b"
[[endpoint]]
name = "game"
address = "10.0.0.1"
port = 7777
protocol = "enet"
mode = "enforce"
rooms = ["one", "two"]
[[endpoint]]
name = "any"
address = "any"
port = 7777
protocol = "opaque"
rooms = ["two"]
rejects = true
stranger = { handshakes_per_s = 240, priority = 3, tier_cap = "best_effort" }
)";

class PlanRowsTest : public testing::Test {
 protected:
  void load(const std::string& text) {
    model_ = config::parse(text, "test.toml");
    states_.assign(model_.shards.size(), ShardState{});
  }

  /// A shard on a rung for long enough that there is no ramp left.
  void set_rung(size_t shard, uint8_t rung) {
    states_[shard].rung = states_[shard].load_rung = rung;
    states_[shard].effects = model_.law.ladder[rung];
  }

  void fill() { fill_plan_rows(model_, states_, timing_, rows_.rooms, rows_); }

  const es_plan_endpoint& endpoint(uint8_t number) { return rows_.endpoints[number]; }

  Model model_;
  std::vector<ShardState> states_;
  PlanTiming timing_;
  PlanRows rows_{5, 4, 5};
};

TEST_F(PlanRowsTest, CalmPlanPassesEverythingButJoinsIn) {
  load(kTwoRooms);
  fill();
  for (const uint8_t number : {1, 2}) {
    EXPECT_EQ(endpoint(number).generation, 1u);
    EXPECT_EQ(endpoint(number).pass_mask[ES_IN], kAll & ~bit(ES_LANE_join));
    EXPECT_EQ(endpoint(number).pass_mask[ES_OUT], kAll);
    EXPECT_EQ(endpoint(number).drop_mask[ES_IN], 0);
    EXPECT_EQ(endpoint(number).drop_mask[ES_OUT], 0);
  }
  EXPECT_EQ(endpoint(0).generation, 0u);
  EXPECT_EQ(endpoint(3).generation, 0u);
  EXPECT_EQ(rows_.rooms[1].generation, 1u);
  EXPECT_EQ(rows_.rooms[2].generation, 0u);
  EXPECT_EQ(rows_.classes[0].generation, 1u);
  EXPECT_EQ(rows_.classes[1].generation, 0u);
}

TEST_F(PlanRowsTest, EndpointFieldsAndFlags) {
  load(kTwoRooms);
  timing_.cpus = 1;
  fill();
  EXPECT_EQ(endpoint(1).flags, 0);
  EXPECT_EQ(endpoint(2).flags, ES_EP_SHADOW | ES_EP_ANY_ADDRESS | ES_EP_REJECTS);
  EXPECT_EQ(endpoint(1).next_same_port, 2);
  EXPECT_EQ(endpoint(2).next_same_port, 0);
  EXPECT_EQ(endpoint(1).protocol, ES_PROTOCOL_enet);
  EXPECT_EQ(endpoint(1).local_addr_lo, model_.endpoints[0].address.lo);
  EXPECT_EQ(endpoint(2).stranger_room, 1);
  EXPECT_EQ(endpoint(2).stranger_priority, 3);
  EXPECT_EQ(endpoint(2).stranger_tier_cap, ES_TIER_best_effort);
  EXPECT_EQ(endpoint(2).handshakes_per_cpu, 4u);
  EXPECT_EQ(endpoint(1).lane_tiers, default_lane_tiers());
  auto ports = std::make_unique<es_ports_page>();
  fill_ports_page(model_, *ports);
  EXPECT_EQ(ports->endpoint[7777], 1);
  EXPECT_EQ(ports->endpoint[7778], 0);
}

TEST_F(PlanRowsTest, RoomRulesOfARung) {
  load(kTwoRooms);
  set_rung(0, 3);
  fill();
  for (const es_room_rules& rules : rows_.rooms[0].rules) {
    EXPECT_EQ(rules.drop_mask, bit(ES_LANE_voice) | bit(ES_LANE_cosmetic));
    EXPECT_EQ(rules.le_mask, 0xf0);
    EXPECT_EQ(rules.ce_q8, 255);
    EXPECT_EQ(rules.keep_q16[ES_LANE_snapshot], 65535 / 4);
    EXPECT_EQ(rules.keep_q16[ES_LANE_voice], 0);
    EXPECT_EQ(rules.keep_q16[ES_LANE_command], ES_KEEP_ALL);
    EXPECT_EQ(rules.min_interval_jiffies[0], 25);
    EXPECT_EQ(rules.max_gap_jiffies, 63);
    EXPECT_EQ(rules.level[0].burst, 0u);
  }
  EXPECT_EQ(rows_.rooms[0].packet_cost[3], 256);
  EXPECT_EQ(rows_.rooms[0].byte_cost_q8[3], 0);
  EXPECT_EQ(rows_.rooms[0].room_bytes_per_cpu, ~0ull);
  EXPECT_EQ(rows_.rooms[1].rules[ES_OUT].drop_mask, 0);
  set_rung(0, 5);
  fill();
  EXPECT_EQ(rows_.rooms[0].rules[ES_OUT].keep_q16[ES_LANE_snapshot], 1) << "0 would pause it";
  EXPECT_EQ(rows_.rooms[0].rules[ES_OUT].threshold[0], 64);
  EXPECT_EQ(rows_.rooms[0].rules[ES_OUT].threshold[1], 0);
}

TEST_F(PlanRowsTest, MasksAreTheIntersectionOverRooms) {
  load(kTwoRooms);
  set_rung(0, 3);
  fill();
  const uint8_t best_effort = 0xf0;
  EXPECT_EQ(endpoint(1).drop_mask[ES_OUT], 0) << "room two still wants them";
  EXPECT_EQ(endpoint(1).pass_mask[ES_OUT] & best_effort, 0);
  EXPECT_EQ(endpoint(1).pass_mask[ES_OUT] & bit(ES_LANE_command), 0) << "marked CE";
  EXPECT_NE(endpoint(1).pass_mask[ES_OUT] & bit(ES_LANE_event), 0);
  EXPECT_NE(endpoint(1).pass_mask[ES_IN] & bit(ES_LANE_event), 0) << "no threshold on standard";
  EXPECT_EQ(endpoint(2).pass_mask[ES_OUT], kAll) << "not its shard";
  set_rung(1, 3);
  fill();
  EXPECT_EQ(endpoint(1).drop_mask[ES_IN], bit(ES_LANE_voice) | bit(ES_LANE_cosmetic));
  EXPECT_EQ(endpoint(2).drop_mask[ES_OUT], bit(ES_LANE_voice) | bit(ES_LANE_cosmetic));
}

TEST_F(PlanRowsTest, CriticalStaysInThePassMaskWhenNothingCanLowerIt) {
  load(std::string(kTwoRooms) + R"(
[[endpoint]]
name = "trusting"
address = "any"
port = 1
protocol = "opaque"
rooms = ["one"]
stranger = { tier_cap = "critical" }
)");
  set_rung(0, 5);
  fill();
  EXPECT_EQ(endpoint(1).pass_mask[ES_IN] & bit(ES_LANE_event), 0)
      << "a stranger's event is standard, of which low priorities are shed";
  EXPECT_NE(endpoint(1).pass_mask[ES_OUT] & bit(ES_LANE_event), 0) << "caps do not bind the server";
  const uint8_t critical = bit(ES_LANE_control) | bit(ES_LANE_event) | bit(ES_LANE_join);
  EXPECT_EQ(endpoint(3).pass_mask[ES_OUT], critical);
  EXPECT_EQ(endpoint(3).pass_mask[ES_IN], critical & ~bit(ES_LANE_join));
}

TEST_F(PlanRowsTest, CriticalLaneIsNeverInADropMask) {
  load(std::string(kTwoRooms) + R"(
[[endpoint]]
name = "voice"
address = "any"
port = 1
protocol = "opaque"
rooms = ["one"]
lanes = { voice = "critical" }
)");
  set_rung(0, 5);
  fill();
  EXPECT_EQ(endpoint(3).drop_mask[ES_IN], bit(ES_LANE_stream) | bit(ES_LANE_cosmetic));
}

TEST_F(PlanRowsTest, JoinsAreRefusedWhenNoRoomTakesThem) {
  load(kTwoRooms);
  set_rung(0, 4);
  fill();
  EXPECT_EQ(endpoint(1).flags & ES_EP_REFUSE_JOINS, 0);
  EXPECT_EQ(endpoint(1).retry_join_ms, 5000u);
  EXPECT_EQ(endpoint(2).retry_join_ms, 1000u);
  set_rung(1, 5);
  fill();
  EXPECT_NE(endpoint(1).flags & ES_EP_REFUSE_JOINS, 0);
  EXPECT_EQ(endpoint(1).retry_join_ms, 15000u);
  EXPECT_EQ(endpoint(1).retry_join_spread_10ms, 1500u) << "30 s at most in all";
}

TEST_F(PlanRowsTest, SlotQuartilesOnlyWhenNoContractComesFirst) {
  load(kTwoRooms);
  set_rung(0, 5);
  fill();
  EXPECT_EQ(endpoint(1).slot_quartiles[ES_IN][0], 0) << "room two has no threshold";
  set_rung(1, 5);
  fill();
  EXPECT_EQ(endpoint(1).slot_quartiles[ES_IN][0], 1);
  EXPECT_EQ(endpoint(1).slot_quartiles[ES_IN][1], 0);
  const std::string contract = R"(
[[class]]
name = "player"
in = { standard = { packets_per_s = 100 } }
)";
  load(std::string(kTwoRooms) + contract);
  set_rung(0, 5);
  set_rung(1, 5);
  fill();
  EXPECT_EQ(endpoint(1).slot_quartiles[ES_IN][0], 0);
  EXPECT_EQ(endpoint(1).slot_quartiles[ES_OUT][0], 1);
  load(std::string(kTwoRooms) + "[[class]]\nname = \"low\"\ntier_cap = \"best_effort\"\n");
  set_rung(0, 5);
  set_rung(1, 5);
  fill();
  EXPECT_EQ(endpoint(1).slot_quartiles[ES_IN][0], 0) << "its standard may be best-effort";
}

TEST_F(PlanRowsTest, ExemptConnectionsAreSeenBeforeAnythingIsShed) {
  load(std::string(kTwoRooms) + R"(
[[connection]]
remote = "10.0.0.9:1"
endpoint = "any"
exempt = true
)");
  set_rung(1, 5);
  fill();
  EXPECT_EQ(endpoint(2).drop_mask[ES_IN], 0);
  EXPECT_EQ(endpoint(2).slot_quartiles[ES_IN][0], 0);
  EXPECT_EQ(endpoint(2).pass_mask[ES_IN] & 0xf0, 0);
}

TEST_F(PlanRowsTest, ContractsStandAtFourThenTwoTimesAndCriticalAtOne) {
  load(std::string(kTwoRooms) + R"(
[[class]]
name = "player"
tier_cap = "standard"
critical = { packets_per_s = 100 }
standard = { packets_per_s = 100, bytes_per_s = 50000 }
)");
  const uint32_t once = 65536 * 250 / 100;
  fill();
  EXPECT_EQ(rows_.classes[1].tier_cap, ES_TIER_standard);
  for (const auto& limit : rows_.classes[1].limit) {
    EXPECT_EQ(limit[ES_TIER_critical].packet_cost, once);
    EXPECT_EQ(limit[ES_TIER_standard].packet_cost, once / 4);
    EXPECT_EQ(limit[ES_TIER_best_effort].packet_cost, 0u);
  }
  set_rung(1, 1);
  fill();
  EXPECT_EQ(rows_.classes[1].limit[ES_IN][ES_TIER_critical].packet_cost, once);
  EXPECT_EQ(rows_.classes[1].limit[ES_IN][ES_TIER_standard].packet_cost, once / 2);
  // Contracted tiers are looked up.
  EXPECT_EQ(endpoint(2).pass_mask[ES_OUT] & 0x0f, 0);
  EXPECT_EQ(endpoint(2).pass_mask[ES_IN] & 0x0f, 0);
  EXPECT_EQ(rows_.classes[0].limit[ES_IN][ES_TIER_standard].packet_cost, 0u);
}

TEST_F(PlanRowsTest, WhereOthersInContractLoseNobodyGetsMoreThanAContract) {
  load(std::string(kTwoRooms) + R"(
[[class]]
name = "player"
standard = { packets_per_s = 100 }
best_effort = { packets_per_s = 100 }
)");
  const uint32_t once = 65536 * 250 / 100;
  set_rung(1, 1);
  states_[1].scarce[kTierBestEffort] = true;
  fill();
  EXPECT_EQ(rows_.classes[1].limit[ES_IN][ES_TIER_standard].packet_cost, once / 2);
  EXPECT_EQ(rows_.classes[1].limit[ES_IN][ES_TIER_best_effort].packet_cost, once);
  states_[0].scarce[kTierStandard] = true;  // another shard: classes belong to none
  fill();
  EXPECT_EQ(rows_.classes[1].limit[ES_IN][ES_TIER_standard].packet_cost, once);
}

TEST_F(PlanRowsTest, GovernedStreamsAndLevelsAreLookedUp) {
  load(R"(
[[shard]]
name = "a"
[[room]]
name = "one"
shard = "a"
stream_cap = 4
room_bytes_per_s = 600000
level_in = { standard = { tokens_per_s = 60 } }
[[endpoint]]
name = "game"
address = "any"
port = 1
protocol = "opaque"
rooms = ["one"]
)");
  timing_.now_jiffies = 1000;
  fill();
  EXPECT_EQ(endpoint(1).pass_mask[ES_OUT], kAll) << "what a server sends is not governed";
  EXPECT_EQ(endpoint(1).pass_mask[ES_IN] & (bit(ES_LANE_command) | bit(ES_LANE_stream)), 0);
  EXPECT_NE(endpoint(1).pass_mask[ES_IN] & bit(ES_LANE_snapshot), 0);
  EXPECT_EQ(rows_.rooms[0].room_bytes_per_cpu, 10000u);
  EXPECT_EQ(rows_.rooms[0].stream_cap, 4);
  const es_level first = rows_.rooms[0].rules[ES_IN].level[0];
  EXPECT_EQ(first.v0, 0u);
  EXPECT_EQ(first.t0_jiffies, 1000u);
  EXPECT_EQ(rows_.rooms[0].rules[ES_OUT].level[0].burst, 0u);
  // The clock runs on through a change of rate.
  timing_.now_jiffies = 1250;
  model_.rooms[0].level[ES_IN][0].tokens_per_s = 30;
  fill();
  const es_level second = rows_.rooms[0].rules[ES_IN].level[0];
  EXPECT_EQ(second.v0, level_now(first, 1250));
  EXPECT_NEAR(static_cast<double>(second.v0), 60 * 256, 1);
  EXPECT_EQ(second.t0_jiffies, 1250u);
}

class RoomOverrideTest : public PlanRowsTest {
 protected:
  RoomOverrideTest() { load(kTwoRooms); }

  void fill_held(RoomOverride one, RoomOverride two = {}) {
    overrides_ = {one, two};
    PlanExtras extras;
    extras.levels = levels_;
    extras.overrides = overrides_;
    fill_plan_rows(model_, states_, timing_, rows_.rooms, rows_, extras);
  }
  const es_room_rules& in(size_t room) const { return rows_.rooms[room].rules[ES_IN]; }

  std::vector<RoomOverride> overrides_;
  TierLevels levels_[2] = {};
};

TEST_F(RoomOverrideTest, IsTheLaddersRungOfThatRoomAndNoOther) {
  for (uint8_t rung = 0; rung < kRungs; ++rung) {
    set_rung(0, rung);
    fill();
    const es_room_rules expected = in(0);
    set_rung(0, 0);
    fill_held({rung, 1});
    for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
      EXPECT_EQ(in(0).keep_q16[lane], expected.keep_q16[lane]) << +rung << " " << lane;
    }
    EXPECT_EQ(in(0).drop_mask, expected.drop_mask) << +rung;
    EXPECT_EQ(in(0).le_mask, expected.le_mask) << +rung;
    EXPECT_EQ(in(0).ce_q8, 0) << +rung << ": no pressure";
    EXPECT_EQ(in(0).threshold[kTierStandard], expected.threshold[kTierStandard]) << +rung;
    EXPECT_EQ(in(1).keep_q16[ES_LANE_snapshot], ES_KEEP_ALL) << +rung;
  }
}

TEST_F(RoomOverrideTest, RungNoughtShedsNothingWhateverTheShardDoes) {
  set_rung(0, 5);
  levels_[0] = {50, 50};
  fill_held({0, 1});
  EXPECT_EQ(in(0).drop_mask, 0);
  EXPECT_EQ(in(0).keep_q16[ES_LANE_snapshot], ES_KEEP_ALL);
  EXPECT_EQ(in(0).threshold[kTierStandard], 0);
  EXPECT_EQ(in(0).level[kTierStandard].burst, 0u);
  EXPECT_EQ(in(0).level[kTierBestEffort].burst, 0u);
  fill_held({});
  EXPECT_EQ(in(0).keep_q16[ES_LANE_snapshot], 1u) << "over: its shard again";
  EXPECT_NE(in(0).level[kTierBestEffort].burst, 0u);
}

TEST_F(RoomOverrideTest, JoinsAreRefusedWhenNoRoomOfTheEndpointTakesThem) {
  fill_held({4, 1});
  EXPECT_EQ(endpoint(1).flags & ES_EP_REFUSE_JOINS, 0) << "room two does";
  EXPECT_GE(endpoint(1).retry_join_ms, 5000);
  fill_held({4, 1}, {5, 1});
  EXPECT_NE(endpoint(1).flags & ES_EP_REFUSE_JOINS, 0);
  set_rung(0, 5);
  set_rung(1, 5);
  fill_held({0, 1}, {});
  EXPECT_EQ(endpoint(1).flags & ES_EP_REFUSE_JOINS, 0) << "room one is held open";
  EXPECT_NE(endpoint(2).flags & ES_EP_REFUSE_JOINS, 0);
}

TEST_F(RoomOverrideTest, EndsAtItsTime) {
  const RoomOverride held{3, 1000};
  EXPECT_FALSE(held.is_over(999));
  EXPECT_TRUE(held.is_over(1000));
  EXPECT_FALSE(RoomOverride{}.is_over(1000)) << "one that never was";
}

class DegreeLevelTest : public PlanRowsTest {
 protected:
  DegreeLevelTest() {
    load(kTwoRooms);
    timing_.now_jiffies = 100'000;
    timing_.hz = 250;
  }

  /// One plan, 60 a second, with a level for best-effort of the first room's shard.
  const es_level& tick(double tokens_per_s) {
    const uint64_t next = ++ticks_ * timing_.hz / 60;
    timing_.now_jiffies = 100'000 + next;
    levels_[0] = {0, tokens_per_s};
    PlanExtras extras;
    extras.levels = levels_;
    fill_plan_rows(model_, states_, timing_, rows_.rooms, rows_, extras);
    return level();
  }
  const es_level& level() const { return rows_.rooms[0].rules[ES_IN].level[kTierBestEffort]; }
  uint64_t clock() const { return level_now(level(), timing_.now_jiffies); }

  TierLevels levels_[2] = {};
  uint64_t ticks_ = 0;
};

TEST_F(DegreeLevelTest, IsYoungFromItsBeginUntilTwoHundredAndFiftySixTokens) {
  EXPECT_EQ(tick(0).burst, 0u);
  EXPECT_EQ(tick(0).begun, 0u);
  const uint32_t begun = tick(100).begun;
  EXPECT_NE(begun, 0u);
  EXPECT_EQ(begun, static_cast<uint32_t>(level().v0)) << "the clock, when it began";
  const uint64_t begin = level().v0;
  uint32_t ticks = 0;
  for (; tick(100 + ticks % 2).begun != 0; ++ticks) {
    ASSERT_EQ(level().begun, begun);
    ASSERT_LT(clock() - begin, 256 * 256u);
    ASSERT_LT(ticks, 1000u);
  }
  EXPECT_NEAR(ticks, 2.56 * 60, 3) << "256 tokens, at 100/s";
  for (uint32_t i = 0; i < 600; ++i) EXPECT_EQ(tick(100 + i % 2).begun, 0u) << "and never again";
}

// Not yet: its age is read from v0, which does not move while the rate does not.
TEST_F(DegreeLevelTest, DISABLED_OfAConstantRateIsNotYoungForEver) {
  tick(0);
  for (int i = 0; i < 10 * 60; ++i) tick(100);
  EXPECT_EQ(level().begun, 0u);
}

TEST_F(DegreeLevelTest, IsYoungWhateverItsRateDoes) {
  tick(0);
  const uint32_t begun = tick(50).begun;
  for (int i = 0; i < 60; ++i) EXPECT_EQ(tick(i % 2 == 0 ? 100 : 40).begun, begun);
  tick(0);
  EXPECT_EQ(level().burst, 0u);
  EXPECT_EQ(level().begun, 0u);
  EXPECT_NE(tick(50).begun, 0u) << "a level that was off begins again";
  EXPECT_NE(level().begun, begun);
}

TEST_F(DegreeLevelTest, BegunIsNeverTheZeroThatMeansOld) {
  tick(0);
  // The first level of a room begins at a clock of 0.
  EXPECT_EQ(rows_.rooms[1].rules[ES_IN].level[kTierBestEffort].v0, 0u);
  EXPECT_EQ(tick(10).begun, 1u);
  EXPECT_EQ(level().v0, 1u);
}

TEST_F(DegreeLevelTest, ItsBurstStaysWhileItsRateGoesUpAndDown) {
  for (const double rate : {0.5, 5.0, 50.0, 500.0, 5000.0}) {
    tick(0);
    const uint32_t burst = tick(rate).burst;
    EXPECT_GE(burst, level_of({2 * rate, 0}, 250).burst) << "twice the rate fits: " << rate;
    uint64_t before = clock();
    const uint64_t begin = before;
    for (int i = 1; i <= 1200; ++i) {
      ASSERT_EQ(tick(rate * (1 + i % 2)).burst, burst) << rate << " tick " << i;
      ASSERT_GE(clock(), before) << "the clock runs on";
      before = clock();
    }
    // 20 s at 1.5 times the rate, to within a jiffy at each change.
    EXPECT_NEAR(static_cast<double>(before - begin) / 256, 20 * 1.5 * rate, 0.02 * 30 * rate + 1);
  }
}

TEST_F(DegreeLevelTest, ItsBurstFollowsARateThatIsAnotherOne) {
  tick(0);
  tick(1000);
  const uint32_t burst = level().burst;
  EXPECT_GT(tick(4000).burst, burst) << "one that would not hold two jiffies";
  EXPECT_LT(tick(1).burst, burst) << "one that would be eight times too long";
}

TEST_F(DegreeLevelTest, TheStricterOfARoomsOwnAndTheDegreesIsInForce) {
  model_.rooms[0].level[ES_IN][kTierBestEffort].tokens_per_s = 60;
  tick(0);
  const uint64_t own_rate = level().rate_q16;
  EXPECT_EQ(level().burst, level_of({60, 0.25}, 250).burst);
  tick(30);
  EXPECT_LT(level().rate_q16, own_rate);
  EXPECT_EQ(level().begun, 0u) << "there was a level before";
  tick(90);
  EXPECT_EQ(level().rate_q16, own_rate);
  EXPECT_EQ(level().burst, level_of({60, 0.25}, 250).burst);
}

TEST_F(DegreeLevelTest, LimitsWhatComesInOnly) {
  tick(0);
  tick(50);
  for (uint32_t tier = 0; tier < kSheddableTiers; ++tier) {
    EXPECT_EQ(rows_.rooms[0].rules[ES_OUT].level[tier].burst, 0u);
    EXPECT_EQ(rows_.rooms[1].rules[ES_IN].level[tier].burst, 0u) << "another shard's room";
  }
  EXPECT_EQ(rows_.rooms[0].rules[ES_IN].level[kTierStandard].burst, 0u);
}

TEST_F(PlanRowsTest, RowsOfARemovedEndpointAreCleared) {
  load(kTwoRooms);
  fill();
  model_.endpoints.pop_back();
  model_.rooms.pop_back();
  model_.endpoints[0].rooms = {0};
  fill();
  EXPECT_EQ(endpoint(2).generation, 0u);
  EXPECT_EQ(rows_.rooms[1].generation, 0u);
}

}  // namespace
}  // namespace edgeshed::core
