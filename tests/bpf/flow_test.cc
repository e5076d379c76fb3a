// Which endpoint a packet belongs to, which end is the remote, and what passes before that.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"

namespace edgeshed::test {
namespace {

constexpr std::uint8_t kVoice = 1 << ES_LANE_voice;

TEST(FlowTest, PacketOfAnUnregisteredPortPassesUncounted) {
  World w;
  w.endpoint().publish();
  const Verdict v = w.xdp(lane_in(ES_LANE_voice, {.local_port = 7778}));
  EXPECT_EQ(v.action, kXdpPass);
  EXPECT_EQ(v.reason, ES_REASON_not_ours);
  EXPECT_EQ(v.endpoint, 0);
  EXPECT_EQ(v.row, ES_ROW_UNCLASSIFIED);
}

TEST(FlowTest, RemotePortIsNotTakenForTheLocalOne) {
  World w;
  w.endpoint().publish();
  const Flow backwards{.remote_port = 7777, .local_port = 4000};
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, backwards)).reason, ES_REASON_not_ours);
  EXPECT_EQ(w.tc(lane_out(ES_LANE_voice, backwards)).reason, ES_REASON_not_ours);
}

TEST(FlowTest, OtherLocalAddressIsNotOurs) {
  World w;
  w.endpoint().publish();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, {.local = "10.0.0.9"})).reason, ES_REASON_not_ours);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, {.remote = "fd00::2", .local = "fd00::1"})).reason,
            ES_REASON_not_ours);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).endpoint, 1);
}

TEST(FlowTest, AnyAddressOwnsBothFamilies) {
  World w;
  w.endpoint({.address = ""}).publish();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, {.local = "10.0.0.9"})).endpoint, 1);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, {.remote = "fd00::2", .local = "fd00::1"})).endpoint, 1);
}

TEST(FlowTest, EndpointsOnOnePortAreToldApartByAddress) {
  World w;
  w.endpoint({.number = 1, .address = "10.0.0.1"})
      .endpoint({.number = 2, .address = "10.0.0.9"})
      .endpoint({.number = 3, .address = "fd00::1"})
      .endpoint({.number = 4, .address = "fd00::9"})
      .publish();
  EXPECT_EQ(w.xdp(lane_in(0, {.local = "10.0.0.1"})).endpoint, 1);
  EXPECT_EQ(w.xdp(lane_in(0, {.local = "10.0.0.9"})).endpoint, 2);
  EXPECT_EQ(w.xdp(lane_in(0, {.remote = "fd00::2", .local = "fd00::1"})).endpoint, 3);
  EXPECT_EQ(w.xdp(lane_in(0, {.remote = "fd00::2", .local = "fd00::9"})).endpoint, 4);
  EXPECT_EQ(w.xdp(lane_in(0, {.local = "10.0.0.8"})).reason, ES_REASON_not_ours);
}

TEST(FlowTest, ConnectionBelongsToItsEndpointOnly) {
  World w;
  w.endpoint({.number = 1, .port = 7777}).endpoint({.number = 2, .port = 7778});
  w.connect("10.0.0.2", 4000, {.endpoint = 2, .room = 3});
  w.rules(3, ES_IN).drop_mask = 0xff;
  w.publish();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_stranger);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, {.local_port = 7778})).reason, ES_REASON_room_paused);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, {.remote_port = 4001, .local_port = 7778})).reason,
            ES_REASON_stranger);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, {.remote = "10.0.0.3", .local_port = 7778})).reason,
            ES_REASON_stranger);
}

TEST(FlowTest, Ipv6ConnectionIsFoundByItsWholeAddress) {
  World w;
  w.endpoint({.address = "fd00::1"}).connect("fd00::1:0:0:2", 4000, {.room = 3});
  w.rules(3, ES_IN).drop_mask = w.rules(3, ES_OUT).drop_mask = kVoice;
  w.publish();
  const auto flow = [](const char* remote) { return Flow{.remote = remote, .local = "fd00::1"}; };
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, flow("fd00::1:0:0:2"))).action, kXdpDrop);
  EXPECT_EQ(w.tc(lane_out(ES_LANE_voice, flow("fd00::1:0:0:2"))).action, kTcDrop);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, flow("fd00::2:0:0:2"))).reason, ES_REASON_stranger);
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, flow("fd00:0:0:1::2"))).reason, ES_REASON_stranger);
}

TEST(FlowTest, FacesDifferOnlyInWhichEndIsLocal) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000, {.room = 3});
  w.rules(3, ES_IN).drop_mask = kVoice;
  w.rules(3, ES_OUT).drop_mask = 1 << ES_LANE_snapshot;
  w.publish();
  const Bytes in = lane_in(ES_LANE_voice), out = lane_out(ES_LANE_snapshot);
  EXPECT_EQ(w.xdp(in).direction, ES_IN);
  EXPECT_EQ(w.xdp(in).action, kXdpDrop);
  EXPECT_EQ(w.tc(out).direction, ES_OUT);
  EXPECT_EQ(w.tc(out).action, kTcDrop);
  EXPECT_EQ(w.xdp_servers(out).direction, ES_OUT);
  EXPECT_EQ(w.xdp_servers(out).action, kXdpDrop);
  EXPECT_EQ(w.tc_servers(in).direction, ES_IN);
  EXPECT_EQ(w.tc_servers(in).action, kTcDrop);
  EXPECT_EQ(w.xdp_servers(in).reason, ES_REASON_not_ours);
  EXPECT_EQ(w.tc(in).reason, ES_REASON_not_ours);
  EXPECT_EQ(w.cell(ES_IN, ES_LANE_voice, ES_REASON_room_paused), 4u);
  EXPECT_EQ(w.cell(ES_OUT, ES_LANE_snapshot, ES_REASON_room_paused), 4u);
}

TEST(FlowTest, BypassPassesEverythingBeforeItIsRead) {
  World w;
  w.endpoint();
  w.endpoint_row().drop_mask[ES_IN] = 0xff;
  w.publish();
  w.control().bypass = 1;
  const Verdict v = w.xdp(lane_in(ES_LANE_voice));
  EXPECT_EQ(v.action, kXdpPass);
  EXPECT_EQ(v.reason, ES_REASON_bypass);
  EXPECT_EQ(v.endpoint, 0);
  EXPECT_EQ(w.tc(lane_out(ES_LANE_voice)).reason, ES_REASON_bypass);
  w.control().bypass = 0;
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).action, kXdpDrop);
}

TEST(FlowTest, WithoutAPlanEverythingPassesAsNoPlan) {
  World w;
  w.endpoint();  // the port is known, but no row was published
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_no_plan);
  const Verdict v = w.xdp(lane_in(ES_LANE_voice));
  EXPECT_EQ(v.action, kXdpPass);
  EXPECT_EQ(v.endpoint, 0);
}

TEST(FlowTest, EndpointOfAPortThatHasNoRowYetIsNotOurs) {
  World w;
  w.endpoint({.number = 1, .port = 7777}).publish();
  w.maps().ports()[7778] = 2;  // ahead of the plan that brings its row
  const Verdict v = w.xdp(lane_in(ES_LANE_voice, {.local_port = 7778}));
  EXPECT_EQ(v.action, kXdpPass);
  EXPECT_EQ(v.reason, ES_REASON_not_ours);
}

TEST(FlowTest, LoopOfEndpointsOnOnePortEnds) {
  World w;
  w.endpoint({.number = 1}).endpoint({.number = 2, .address = "10.0.0.9"});
  w.endpoint_row(1).next_same_port = 2;
  w.publish();
  EXPECT_EQ(w.xdp(lane_in(0, {.local = "10.0.0.8"})).reason, ES_REASON_not_ours);
}

TEST(FlowTest, RecordBeyondTheTablesPassesAsNoRecord) {
  World w;
  w.endpoint()
      .connect("10.0.0.2", 4000, {.room = 999})
      .connect("10.0.0.2", 4001, {.contract_class = 200});
  w.publish();
  for (const std::uint16_t port : {4000, 4001}) {
    const Verdict v = w.xdp(lane_in(ES_LANE_voice, {.remote_port = port}));
    EXPECT_EQ(v.action, kXdpPass);
    EXPECT_EQ(v.reason, ES_REASON_no_record);
    EXPECT_EQ(v.endpoint, 1);
  }
  w.endpoint_row().stranger_room = 999;
  w.publish();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice, {.remote_port = 4002})).reason, ES_REASON_no_record);
}

TEST(FlowTest, DisconnectedRemoteIsAStrangerAgain) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000).publish();
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_admitted);
  EXPECT_TRUE(w.disconnect("10.0.0.2", 4000));
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_stranger);
}

}  // namespace
}  // namespace edgeshed::test
