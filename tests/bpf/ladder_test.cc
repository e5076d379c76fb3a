// What the ladder sheds, in which order, and what it never sheds.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"

namespace edgeshed::test {
namespace {

constexpr std::uint16_t kRoom = 3;
constexpr std::uint8_t kClass = 2;

/// One connection in a room that everything refuses; a test takes refusals away.
class RefusalTest : public testing::Test {
 protected:
  RefusalTest() {
    w_.endpoint().connect("10.0.0.2", 4000,
                          {.room = kRoom, .contract_class = kClass, .stream_block = 1});
    for (const es_direction direction : {ES_IN, ES_OUT}) {
      es_room_rules& rules = w_.rules(kRoom, direction);
      rules.drop_mask = 0xff;
      rules.threshold[0] = rules.threshold[1] = 255;
      for (auto& keep : rules.keep_q16) keep = 1;
      for (auto& interval : rules.min_interval_jiffies) interval = 1000;
      for (auto& level : rules.level)
        level = {.v0 = 0, .t0_jiffies = 0, .rate_q16 = 0, .burst = 1, .begun = 0};
      for (auto& limit : w_.contract(kClass).limit[direction]) limit = limit_of_nothing();
      for (auto& thin : w_.flow_state(w_.last_record(), direction).thin)
        thin = {.error_q16 = 0, .passed_jiffies = static_cast<__u16>(w_.now())};
    }
    w_.room(kRoom).player_bytes_per_s = 1;
  }

  void lift_contract() {
    for (auto& direction : w_.contract(kClass).limit)
      for (auto& limit : direction) limit = {};
  }
  void expect(es_reason reason, std::uint8_t lane = ES_LANE_stream) {
    expect(reason, reason, lane);
  }
  void expect(es_reason reason, es_reason reason_out, std::uint8_t lane = ES_LANE_stream) {
    w_.publish();
    const Verdict in = w_.xdp(lane_in(lane));
    EXPECT_EQ(reason_name(in.reason), reason_name(reason));
    EXPECT_EQ(in.action, kXdpDrop);
    EXPECT_EQ(in.row, lane);
    EXPECT_EQ(in.bytes_shed, in.bytes);
    const Verdict out = w_.tc(lane_out(lane));
    EXPECT_EQ(reason_name(out.reason), reason_name(reason_out));
    EXPECT_EQ(out.action, kTcDrop);
  }
  template <typename Change>
  void both(Change change) {
    change(w_.rules(kRoom, ES_IN));
    change(w_.rules(kRoom, ES_OUT));
  }

  World w_;
};

TEST_F(RefusalTest, StandsInOneOrder) {
  w_.endpoint_row().drop_mask[ES_IN] = w_.endpoint_row().drop_mask[ES_OUT] = 0xff;
  for (auto& direction : w_.endpoint_row().slot_quartiles) direction[0] = direction[1] = 4;
  expect(ES_REASON_lane_paused);
  w_.endpoint_row().drop_mask[ES_IN] = w_.endpoint_row().drop_mask[ES_OUT] = 0;
  expect(ES_REASON_slot_priority);
  for (auto& direction : w_.endpoint_row().slot_quartiles) direction[0] = direction[1] = 0;
  expect(ES_REASON_contract);
  lift_contract();
  expect(ES_REASON_player_bytes, ES_REASON_room_paused);  // a server's streams are not governed
  w_.room(kRoom).player_bytes_per_s = 0;
  expect(ES_REASON_room_paused);
  both([](es_room_rules& rules) { rules.drop_mask = 0; });
  expect(ES_REASON_priority);
  both([](es_room_rules& rules) { rules.threshold[1] = 128; });
  expect(ES_REASON_min_interval);
  both([](es_room_rules& rules) { rules.min_interval_jiffies[ES_LANE_stream & 3] = 0; });
  expect(ES_REASON_thinned);
  both([](es_room_rules& rules) { rules.keep_q16[ES_LANE_stream] = ES_KEEP_ALL; });
  expect(ES_REASON_fair_share);
  both([](es_room_rules& rules) { rules.level[1].burst = 0; });
  w_.publish();
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_stream)).reason, ES_REASON_admitted);
  EXPECT_EQ(w_.tc(lane_out(ES_LANE_stream)).reason, ES_REASON_admitted);
}

TEST_F(RefusalTest, OfTheRoomTouchesNoStateWhereNoContractCouldRefuse) {
  lift_contract();
  for (const es_direction direction : {ES_IN, ES_OUT})
    w_.flow_state(w_.last_record(), direction).seen_jiffies = 1;
  expect(ES_REASON_room_paused, ES_LANE_voice);
  expect(ES_REASON_priority, ES_LANE_command);
  for (const es_direction direction : {ES_IN, ES_OUT}) {
    const es_flow_state& state = w_.flow_state(w_.last_record(), direction);
    EXPECT_EQ(state.seen_jiffies, 1u);
    EXPECT_EQ(state.contract[ES_TIER_standard] | state.contract[ES_TIER_best_effort], 0u);
    // It stayed within its contract, which has no limit: it is demand of the room.
    EXPECT_EQ(w_.room_counters(kRoom).arrivals[direction][ES_LANE_voice], 1u);
    EXPECT_EQ(w_.room_counters(kRoom).arrivals[direction][ES_LANE_command], 1u);
  }
}

TEST_F(RefusalTest, OfTheContractStandsFirstWithEitherLimit) {
  const es_limit over_packets = limit_of_nothing();
  const es_limit over_bytes = {
      .packet_cost = 0, .packet_burst = 0, .byte_cost_q12 = 4096, .byte_burst = 1};
  for (const es_limit& over : {over_packets, over_bytes}) {
    lift_contract();
    for (auto& direction : w_.contract(kClass).limit) direction[ES_TIER_best_effort] = over;
    expect(ES_REASON_contract, ES_LANE_voice);
    expect(ES_REASON_priority, ES_LANE_command);  // no limit on its tier
  }
  lift_contract();
  for (auto& direction : w_.contract(kClass).limit)
    direction[ES_TIER_best_effort] = limit_of(0, 1e6, 1, w_.hz());
  expect(ES_REASON_room_paused, ES_LANE_voice);
  EXPECT_NE(w_.flow_state(w_.last_record(), ES_IN).contract[ES_TIER_best_effort], 0u);
  EXPECT_NE(w_.flow_state(w_.last_record(), ES_OUT).contract[ES_TIER_best_effort], 0u);
}

TEST_F(RefusalTest, StandardHasItsOwnThresholdAndLevel) {
  lift_contract();
  both([](es_room_rules& rules) {
    rules.drop_mask = 0;
    rules.threshold[0] = 0;
    rules.keep_q16[ES_LANE_command] = ES_KEEP_ALL;
  });
  expect(ES_REASON_fair_share, ES_LANE_command);
  both([](es_room_rules& rules) {
    rules.threshold[0] = 129;
    rules.level[0].burst = 0;
  });
  expect(ES_REASON_priority, ES_LANE_command);
  both([](es_room_rules& rules) { rules.threshold[0] = 128; });
  w_.publish();
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_command)).reason, ES_REASON_admitted);
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_voice)).action, kXdpDrop);
}

TEST_F(RefusalTest, CriticalIsNeverShedByLoad) {
  lift_contract();
  es_plan_endpoint& endpoint = w_.endpoint_row();
  endpoint.drop_mask[ES_IN] = endpoint.drop_mask[ES_OUT] = 0xff;
  for (auto& direction : endpoint.slot_quartiles) direction[0] = direction[1] = 4;
  both([](es_room_rules& rules) {
    for (auto& keep : rules.keep_q16) keep = 0;
  });
  w_.publish();
  for (const std::uint8_t lane : {ES_LANE_control, ES_LANE_join, ES_LANE_event}) {
    EXPECT_EQ(w_.xdp(lane_in(lane)).reason, ES_REASON_admitted) << int{lane};
    EXPECT_EQ(w_.tc(lane_out(lane)).reason, ES_REASON_admitted) << int{lane};
    if (lane == ES_LANE_join) continue;  // a stranger's is capped: admission_test
    EXPECT_EQ(w_.xdp(lane_in(lane, {.remote_port = 9})).reason, ES_REASON_stranger) << int{lane};
    EXPECT_EQ(w_.tc(lane_out(lane, {.remote_port = 9})).reason, ES_REASON_stranger) << int{lane};
  }
  endpoint.lane_tiers = 0;  // every lane is critical
  w_.room(kRoom).player_bytes_per_s = 0;
  w_.publish();
  for (std::uint8_t lane = 0; lane < ES_LANES; ++lane) {
    EXPECT_EQ(w_.xdp(lane_in(lane)).action, kXdpPass) << int{lane};
    EXPECT_EQ(w_.tc(lane_out(lane)).action, kTcPass) << int{lane};
  }
}

TEST_F(RefusalTest, ExemptConnectionIsNeverShed) {
  w_.table().set_policy(w_.last_record(), {.room = kRoom,
                                           .contract_class = kClass,
                                           .priority = 0,
                                           .flags = ES_CONN_EXEMPT,
                                           .weight_inverse_q8 = 256});
  w_.publish();
  for (std::uint8_t lane = 0; lane < ES_LANES; ++lane) {
    EXPECT_EQ(w_.xdp(lane_in(lane)).reason, ES_REASON_admitted);
    EXPECT_EQ(w_.tc(lane_out(lane)).reason, ES_REASON_admitted);
  }
}

TEST(LadderTest, PassMaskPassesBeforeTheTable) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000, {.room = kRoom});
  w.rules(kRoom, ES_IN).drop_mask = 0xff;
  w.endpoint_row().pass_mask[ES_IN] = 1 << ES_LANE_voice;
  w.publish();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_class_pass);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_cosmetic)).reason, ES_REASON_room_paused);
}

TEST(LadderTest, DropMaskOfTheEndpointBeatsItsPassMask) {
  World w;
  w.endpoint();
  w.endpoint_row().pass_mask[ES_IN] = w.endpoint_row().drop_mask[ES_IN] = 1 << ES_LANE_voice;
  w.publish();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_lane_paused);
}

TEST(LadderTest, EachLaneIsPausedByItsOwnBit) {
  for (std::uint8_t bit = 0; bit < ES_LANES; ++bit) {
    World w;
    w.endpoint().connect("10.0.0.2", 4000, {.room = kRoom});
    w.rules(kRoom, ES_IN).drop_mask = static_cast<__u8>(1 << bit);
    w.publish();
    for (std::uint8_t lane = 0; lane < ES_LANES; ++lane) {
      // Standard is refused by priority, never paused by its lane.
      const bool best_effort =
          es_lane_tier(w.endpoint_row().lane_tiers, lane) == ES_TIER_best_effort;
      EXPECT_EQ(w.xdp(lane_in(lane)).dropped(), lane == bit && best_effort) << int{lane};
      EXPECT_EQ(w.tc(lane_out(lane)).action, kTcPass);
    }
  }
}

TEST(LadderTest, RulesOfARoomStayInIt) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000, {.room = 3}).connect("10.0.0.2", 4001, {.room = 4});
  w.rules(3, ES_IN).drop_mask = 0xff;
  w.publish();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).action, kXdpDrop);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, {.remote_port = 4001})).action, kXdpPass);
}

TEST(LadderTest, SlotQuartilesShedByPriorityAndTier) {
  World w;
  w.endpoint();
  for (unsigned i = 0; i < 8; ++i) {
    w.connect("10.0.0.2", static_cast<std::uint16_t>(4000 + i),
              {.priority = static_cast<std::uint8_t>(i * 32)});
  }
  for (std::uint8_t quartiles = 0; quartiles <= 4; ++quartiles) {
    w.endpoint_row().slot_quartiles[ES_IN][1] = quartiles;
    w.publish();
    for (unsigned i = 0; i < 8; ++i) {
      const Flow flow{.remote_port = static_cast<std::uint16_t>(4000 + i)};
      const Verdict v = w.xdp(lane_in(ES_LANE_voice, flow));
      EXPECT_EQ(v.reason, i * 32 / 64 < quartiles ? ES_REASON_slot_priority : ES_REASON_admitted);
      EXPECT_EQ(w.xdp(lane_in(ES_LANE_command, flow)).reason, ES_REASON_admitted);
      EXPECT_EQ(w.xdp(lane_in(ES_LANE_event, flow)).reason, ES_REASON_admitted);
      EXPECT_EQ(w.tc(lane_out(ES_LANE_voice, flow)).reason, ES_REASON_admitted);
    }
    EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, {.remote_port = 9})).reason, ES_REASON_stranger);
  }
}

TEST(LadderTest, PriorityThresholdIsExact) {
  World w;
  w.endpoint();
  for (unsigned priority = 0; priority < 256; priority += 5) {
    w.connect("10.0.0.2", static_cast<std::uint16_t>(1000 + priority),
              {.room = kRoom, .priority = static_cast<std::uint8_t>(priority)});
  }
  for (const std::uint8_t threshold : {0, 1, 100, 255}) {
    w.rules(kRoom, ES_OUT).threshold[1] = threshold;
    w.publish();
    for (unsigned priority = 0; priority < 256; priority += 5) {
      const Flow flow{.remote_port = static_cast<std::uint16_t>(1000 + priority)};
      EXPECT_EQ(w.tc(lane_out(ES_LANE_voice, flow)).dropped(), priority < threshold);
    }
  }
}

// Rule: A5
TEST(LadderTest, ToASlowConsumerOnlyBestEffortIsDropped) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000, {.flags = ES_CONN_THROTTLED});
  w.connect("10.0.0.2", 4001);
  w.publish();
  for (std::uint8_t lane = 0; lane < ES_LANES; ++lane) {
    const bool best_effort = lane >= ES_LANE_snapshot;
    const Verdict verdict = w.tc(lane_out(lane));
    EXPECT_EQ(verdict.reason == ES_REASON_backpressure_throttle, best_effort) << unsigned{lane};
    EXPECT_EQ(verdict.dropped(), best_effort) << unsigned{lane};
    EXPECT_FALSE(w.xdp(lane_in(lane)).dropped()) << "what it sends is its own";
    EXPECT_FALSE(w.tc(lane_out(lane, {.remote_port = 4001})).dropped()) << "nor anybody else's";
  }
}

TEST(LadderTest, StrangersFollowTheirRoomWithTheirPriority) {
  World w;
  w.endpoint();
  w.endpoint_row().stranger_room = 5;
  w.endpoint_row().stranger_priority = 10;
  w.rules(5, ES_IN).drop_mask = 1 << ES_LANE_cosmetic;
  w.rules(5, ES_IN).threshold[1] = 11;
  w.rules(5, ES_OUT).keep_q16[ES_LANE_voice] = 0;
  w.publish();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_cosmetic)).reason, ES_REASON_room_paused);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_priority);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_command)).reason, ES_REASON_stranger);
  EXPECT_EQ(w.tc(lane_out(ES_LANE_voice)).reason, ES_REASON_room_paused);
  w.endpoint_row().stranger_priority = 11;
  w.publish();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_stranger);
}

}  // namespace
}  // namespace edgeshed::test
