// How far a player's acknowledgements are behind, as the packet path sees them go by.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"
#include "tests/support/enet_messages.h"

namespace edgeshed::test {
namespace {

constexpr std::uint16_t kRoom = 2;

class AcksTest : public testing::Test {
 protected:
  void play(es_protocol protocol) {
    w_.endpoint({.protocol = protocol}).connect("10.0.0.2", 4000, {.room = kRoom});
    for (auto& byte : w_.endpoint_row().classifier.enet_channel)
      byte = ES_LANE_event << 4 | ES_LANE_snapshot;
    w_.publish();
  }
  void enet_sent(std::uint16_t ms) {
    w_.tc(to_remote({}, EnetDatagram({.sent_time_ms = ms}).reliable(0, 1, 20).bytes()));
  }
  void enet_acked(std::uint16_t ms) {
    w_.xdp(from_remote({}, EnetDatagram().ack(0, 1, ms).bytes()));
  }
  void lane_sent(std::uint16_t sequence) {
    w_.tc(to_remote({}, lane_payload({.lane = ES_LANE_snapshot, .sequence = sequence})));
  }
  void lane_acked(std::uint16_t sequence, std::uint8_t flags = EDGESHED_LANE_ACK) {
    w_.xdp(from_remote({}, lane_payload({.flags = flags, .ack = sequence})));
  }
  const es_ack_watch& acks() const { return w_.flow_state(w_.last_record(), ES_OUT).acks; }

  World w_;
};

// Rule: A1
TEST_F(AcksTest, EnetsAcknowledgementsTellTheTimeThatTheyAreBehind) {
  play(ES_PROTOCOL_enet);
  EXPECT_EQ(acks().acked_at, 0) << "nothing is known";
  enet_sent(40000);
  enet_acked(40000);
  EXPECT_EQ(acks().lag, 0);
  EXPECT_NE(acks().acked_at, 0);
  enet_sent(40320);
  enet_acked(40000);
  EXPECT_EQ(acks().lag, 320 / ES_ACK_LAG_UNIT_MS);
  enet_sent(65530);
  enet_sent(100);  // the sender's clock wraps
  enet_acked(65530);
  EXPECT_EQ(acks().lag, (100 + 6) / ES_ACK_LAG_UNIT_MS);
  enet_sent(8100);
  enet_acked(100);
  EXPECT_EQ(acks().lag, 255) << "more than can be told";
}

TEST_F(AcksTest, AnAcknowledgementBesideDataCountsAndUnreliableDataTellsNothing) {
  play(ES_PROTOCOL_enet);
  enet_sent(1000);
  w_.tc(to_remote({}, EnetDatagram().unreliable(0, 1, 1, 50).bytes()));  // carries no time
  w_.xdp(from_remote({}, EnetDatagram().ack(0, 1, 840).unreliable(0, 1, 1, 50).bytes()));
  EXPECT_EQ(acks().lag, 10);
  w_.xdp(from_remote({}, EnetDatagram().unreliable(0, 1, 2, 50).bytes()));
  EXPECT_EQ(acks().lag, 10);
}

// Rule: A1
TEST_F(AcksTest, LaneHeadersTellTheUpdatesThatTheyAreBehind) {
  play(ES_PROTOCOL_lane);
  for (std::uint16_t i = 0; i < 20; ++i) lane_sent(65530 + i);
  lane_acked(65530);
  EXPECT_EQ(acks().lag, 19);
  lane_acked(13);
  EXPECT_EQ(acks().lag, 0);
  lane_sent(300);
  lane_acked(7, 0);
  EXPECT_EQ(acks().lag, 0) << "its flag does not say that it acknowledges";
}

TEST_F(AcksTest, WhatNobodySawGoOutIsNoLag) {
  play(ES_PROTOCOL_enet);
  enet_acked(40000);
  EXPECT_EQ(acks().lag, 0);
  enet_sent(1000);
  enet_acked(2000);
  EXPECT_EQ(acks().lag, 0) << "sent by a packet that was not looked up";
  EXPECT_EQ(acks().sent, 2000) << "and shows what is the newest";
  enet_acked(500);
  EXPECT_EQ(acks().lag, 93);
  enet_acked(30000);
  EXPECT_EQ(acks().lag, 0) << "too far";
}

TEST_F(AcksTest, WhatWasShedWasNotSent) {
  play(ES_PROTOCOL_lane);
  lane_sent(10);
  w_.rules(kRoom, ES_OUT).drop_mask = 1 << ES_LANE_snapshot;
  w_.publish();
  lane_sent(50);
  lane_acked(10);
  EXPECT_EQ(acks().lag, 0);
}

TEST_F(AcksTest, TheTimeOfTheLastOneIsKept) {
  play(ES_PROTOCOL_lane);
  w_.at_jiffies(5u << ES_ACK_AT_SHIFT);
  w_.publish();
  lane_acked(1);
  EXPECT_EQ(acks().acked_at, 5);
  w_.at_jiffies(256u << ES_ACK_AT_SHIFT);
  w_.publish();
  lane_acked(1);
  EXPECT_EQ(acks().acked_at, 1) << "0 would mean never";
}

}  // namespace
}  // namespace edgeshed::test
