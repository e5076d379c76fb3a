// What passes for want of a decision: torn plans, expired plans, shadow mode. And admission.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"

namespace edgeshed::test {
namespace {

constexpr std::uint8_t kAllLanes = 0xff;

Bytes join(std::uint16_t port = 9) {
  return from_remote({.remote_port = port}, lane_payload({.flags = EDGESHED_LANE_JOIN}));
}

TEST(TornPlanTest, OneTornRowPasses) {
  for (const int which : {0, 1, 2}) {
    World w;
    w.endpoint().connect("10.0.0.2", 4000, {.room = 3, .contract_class = 2});
    w.rules(3, ES_IN).drop_mask = kAllLanes;
    w.contract(2).limit[ES_IN][ES_TIER_critical] = limit_of_nothing();
    w.publish();
    ASSERT_EQ(w.xdp(lane_in(ES_LANE_voice)).action, kXdpDrop);
    if (which == 0) w.tear_endpoint(1);
    if (which == 1) w.tear_room(3);
    if (which == 2) w.tear_class(2);
    const Verdict v = w.xdp(lane_in(ES_LANE_voice));
    EXPECT_EQ(v.reason, ES_REASON_torn_plan) << which;
    EXPECT_EQ(v.action, kXdpPass) << which;
    EXPECT_EQ(v.endpoint, 1) << which;
    w.publish();
    EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).action, kXdpDrop) << which;
  }
}

TEST(TornPlanTest, MaskOfATornEndpointRowDoesNotDrop) {
  World w;
  w.endpoint();
  w.endpoint_row().drop_mask[ES_IN] = kAllLanes;
  w.publish();
  w.tear_endpoint(1);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_torn_plan);
}

TEST(TornPlanTest, RoomOfAStrangerMayBeTorn) {
  World w;
  w.endpoint();
  w.rules(0, ES_IN).drop_mask = kAllLanes;
  w.publish();
  w.tear_room(0);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_torn_plan);
}

TEST(TornPlanTest, GenerationsOfBothCopiesAndTheWrapAreDecided) {
  for (const std::uint32_t generation : {1u, 2u, 3u, 0x80000000u, 0xfffffffeu, 0xffffffffu}) {
    World w;
    w.endpoint();
    w.endpoint_row().drop_mask[ES_IN] = kAllLanes;
    w.publish(generation);
    EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_lane_paused) << generation;
    EXPECT_EQ(w.cpu_row().scratch.generation, generation);
  }
}

class DeadManTest : public testing::TestWithParam<unsigned> {};

// Rule: B9
TEST_P(DeadManTest, SheddingOpensLinearlyOverOneSecond) {
  World w({.hz = GetParam()});
  w.endpoint();
  w.endpoint_row().drop_mask[ES_IN] = 1 << ES_LANE_voice;
  w.publish();
  w.control().valid_until_jiffies = w.now();
  constexpr unsigned kPerJiffy = 20;
  for (unsigned i = 0; i < 50; ++i) EXPECT_FALSE(w.passes(lane_in(ES_LANE_voice)));
  for (unsigned tenth = 0; tenth < 10; ++tenth) {
    unsigned passed = 0;
    for (unsigned jiffy = 0; jiffy < w.hz() / 10; ++jiffy) {
      w.advance_jiffies(1);
      for (unsigned i = 0; i < kPerJiffy; ++i) passed += w.passes(lane_in(ES_LANE_voice));
    }
    const double sent = kPerJiffy * w.hz() / 10.0;
    EXPECT_NEAR(passed / sent, (tenth + 0.5) / 10, 0.06) << tenth;
  }
  for (unsigned i = 0; i < 50; ++i) EXPECT_TRUE(w.passes(lane_in(ES_LANE_voice)));
  const Verdict v = w.xdp(lane_in(ES_LANE_voice));
  EXPECT_EQ(v.reason, ES_REASON_dead_man);
  EXPECT_EQ(v.row, ES_LANE_voice);
  w.control().valid_until_jiffies = w.now();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_lane_paused);
}

INSTANTIATE_TEST_SUITE_P(Hz, DeadManTest, testing::Values(100u, 250u, 1000u));

// Rule: B9
TEST(DeadManReasonTest, EveryLoadReasonOpensAndContractsStay) {
  World w;
  w.endpoint({.flags = ES_EP_REFUSE_JOINS}).connect("10.0.0.2", 4000, {.contract_class = 1});
  w.rules(0, ES_IN).drop_mask = 1 << ES_LANE_voice;
  w.rules(0, ES_IN).keep_q16[ES_LANE_cosmetic] = 0;
  w.rules(0, ES_IN).level[1] = {.v0 = 0, .t0_jiffies = 0, .rate_q16 = 0, .burst = 1, .begun = 0};
  w.contract(1).limit[ES_IN][ES_TIER_standard] = limit_of_nothing();
  w.publish();
  w.control().valid_until_jiffies = w.now() - w.hz();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_dead_man);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_cosmetic)).reason, ES_REASON_dead_man);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_snapshot)).reason, ES_REASON_dead_man);
  EXPECT_EQ(w.xdp(join()).reason, ES_REASON_dead_man);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_command)).reason, ES_REASON_contract);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_command)).action, kXdpDrop);
}

TEST(ShadowTest, EverythingPassesAndWhatWouldHaveBeenIsCounted) {
  World w;
  w.endpoint({.flags = ES_EP_SHADOW | ES_EP_REJECTS}).connect("10.0.0.2", 4000, {.room = 3});
  w.rules(3, ES_IN).drop_mask = 1 << ES_LANE_voice;
  w.rules(3, ES_IN).threshold[0] = 255;
  w.rules(3, ES_IN).le_mask = 1 << ES_LANE_snapshot;
  w.endpoint_row().drop_mask[ES_OUT] = 1 << ES_LANE_voice;
  w.publish();
  const auto expect = [&](const Bytes& frame, es_reason reason) {
    const Verdict v = w.xdp(frame);
    EXPECT_EQ(v.action, kXdpPass);
    EXPECT_EQ(v.reason, ES_REASON_shadow);
    EXPECT_EQ(reason_name(v.shadowed), reason_name(reason));
    EXPECT_EQ(v.frame, frame);
    EXPECT_EQ(v.bytes_shed, 0u);
    EXPECT_FALSE(v.rejected);
  };
  expect(lane_in(ES_LANE_voice), ES_REASON_room_paused);
  expect(lane_in(ES_LANE_command), ES_REASON_priority);
  expect(lane_in(ES_LANE_snapshot), ES_REASON_marked_le);
  EXPECT_EQ(w.tc(lane_out(ES_LANE_voice)).shadowed, ES_REASON_lane_paused);
  const Verdict passed = w.xdp(lane_in(ES_LANE_event));
  EXPECT_EQ(passed.reason, ES_REASON_admitted);
  EXPECT_EQ(passed.shadowed, kNoReason);
  EXPECT_EQ(w.room_counters(3).cell[ES_IN][ES_TIER_best_effort][ES_OUTCOME_open], 2u);
}

TEST(AdmissionTest, HandshakesOfStrangersAreCappedPerCpuAndGeneration) {
  World w;
  w.endpoint();
  w.endpoint_row().handshakes_per_cpu = 5;
  w.publish();
  for (int round = 0; round < 3; ++round) {
    for (std::uint16_t i = 0; i < 5; ++i) EXPECT_EQ(w.xdp(join(i)).reason, ES_REASON_stranger);
    const Verdict v = w.xdp(join(99));
    EXPECT_EQ(v.reason, ES_REASON_handshake_cap);
    EXPECT_EQ(v.action, kXdpDrop);
    EXPECT_EQ(v.row, ES_LANE_join);
    w.publish();
  }
}

TEST(AdmissionTest, ConnectionsAndTheServersAnswersAreNotCapped) {
  World w;
  w.endpoint({.flags = ES_EP_REFUSE_JOINS}).connect("10.0.0.2", 4000);
  w.endpoint_row().handshakes_per_cpu = 0;
  w.publish();
  EXPECT_EQ(w.xdp(join(4000)).reason, ES_REASON_admitted);
  EXPECT_EQ(w.xdp(join(9)).reason, ES_REASON_join_refused);
  EXPECT_EQ(w.tc(lane_out(ES_LANE_join, {.remote_port = 9})).reason, ES_REASON_stranger);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_event, {.remote_port = 9})).reason, ES_REASON_stranger);
}

TEST(AdmissionTest, RefusedJoinsDoNotUseUpTheCap) {
  World w;
  w.endpoint({.flags = ES_EP_REFUSE_JOINS});
  w.endpoint_row().handshakes_per_cpu = 1;
  w.publish();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(w.xdp(join()).reason, ES_REASON_join_refused);
  w.endpoint_row().flags = 0;
  w.publish(w.generation() + 1);
  EXPECT_EQ(w.xdp(join()).reason, ES_REASON_stranger);
  EXPECT_EQ(w.xdp(join()).reason, ES_REASON_handshake_cap);
}

TEST(AdmissionTest, CapIsNotEnforcedUnderAnExpiredPlan) {
  World w;
  w.endpoint();
  w.endpoint_row().handshakes_per_cpu = 1;
  w.publish();
  w.control().valid_until_jiffies = w.now() - 1;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(w.xdp(join()).reason, ES_REASON_stranger);
}

}  // namespace
}  // namespace edgeshed::test
