// Ethernet and VLAN tags, IPv4 headers and lengths, UDP lengths, and frames that end too early.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"
#include "tests/support/packet_builder.h"

namespace edgeshed::test {
namespace {

const Flow kFlow;

/// A world that sheds voice and nothing else.
class ParseTest : public testing::Test {
 protected:
  ParseTest() {
    w_.endpoint();
    w_.endpoint_row().drop_mask[ES_IN] = 1 << ES_LANE_voice;
    w_.endpoint_row().drop_mask[ES_OUT] = 1 << ES_LANE_voice;
    w_.publish();
  }

  static Packet ipv4_udp(Packet packet, const Bytes& payload) {
    return packet.ipv4().udp(kFlow.remote_port, kFlow.local_port).payload(payload);
  }

  void expect_as_untagged(const Bytes& frame, std::uint8_t lane) {
    const Verdict plain = w_.xdp(lane_in(lane));
    const Verdict tagged = w_.xdp(frame);
    EXPECT_EQ(tagged.action, plain.action);
    EXPECT_EQ(tagged.reason, plain.reason);
    EXPECT_EQ(tagged.row, plain.row);
    EXPECT_EQ(tagged.bytes, plain.bytes);
    EXPECT_EQ(tagged.endpoint, 1);
  }

  void expect_passed_by_host(const Verdict& v, es_reason reason) {
    EXPECT_EQ(v.action, kXdpPass);
    EXPECT_EQ(v.reason, reason) << reason_name(v.reason);
    EXPECT_EQ(v.endpoint, 0);
    EXPECT_EQ(v.row, ES_ROW_UNCLASSIFIED);
  }

  World w_;
};

TEST_F(ParseTest, TaggedFrameGetsTheVerdictOfTheUntaggedOne) {
  for (const std::uint8_t lane : {ES_LANE_voice, ES_LANE_event}) {
    const Bytes payload = lane_payload({.lane = lane});
    expect_as_untagged(ipv4_udp(Packet().eth().vlan(100), payload).build(), lane);
    expect_as_untagged(ipv4_udp(Packet().eth().vlan(100, 0x88a8), payload).build(), lane);
    expect_as_untagged(ipv4_udp(Packet().eth().qinq(7, 100), payload).build(), lane);
    expect_as_untagged(ipv4_udp(Packet().eth().vlan(1).vlan(2), payload).build(), lane);
  }
}

TEST_F(ParseTest, TaggedFrameGetsTheVerdictOfTheUntaggedOneAtTc) {
  const Bytes payload = lane_payload({.lane = ES_LANE_voice});
  const Bytes frame = Packet()
                          .eth()
                          .qinq(7, 100)
                          .ipv4({.src = "10.0.0.1", .dst = "10.0.0.2"})
                          .udp(7777, 4000)
                          .payload(payload)
                          .build();
  const Verdict v = w_.tc(frame);
  EXPECT_EQ(v.action, kTcDrop);
  EXPECT_EQ(v.reason, ES_REASON_lane_paused);
  EXPECT_EQ(v.bytes, frame.size() - 14 - 8);
}

TEST_F(ParseTest, ThirdTagIsTooDeepAndPasses) {
  const Bytes payload = lane_payload({.lane = ES_LANE_voice});
  const Bytes frame = ipv4_udp(Packet().eth().vlan(1).vlan(2).vlan(3), payload).build();
  expect_passed_by_host(w_.xdp(frame), ES_REASON_too_deep);
}

TEST_F(ParseTest, FrameThatEndsInsideATagIsMalformedLinkAndPasses) {
  const Bytes whole = ipv4_udp(Packet().eth().vlan(1).vlan(2), filler(20)).build();
  for (const std::size_t size : {14, 17, 18, 21}) {
    expect_passed_by_host(
        w_.xdp(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))),
        ES_REASON_malformed_link);
  }
}

TEST_F(ParseTest, OtherProtocolsAreNotUdpAndPass) {
  expect_passed_by_host(w_.xdp(Packet().eth().arp().build()), ES_REASON_not_udp);
  expect_passed_by_host(
      w_.xdp(Packet().eth().ipv4().tcp({.src_port = 4000, .dst_port = 7777}).build()),
      ES_REASON_not_udp);
  expect_passed_by_host(w_.xdp(Packet().eth().ipv4().icmp().build()), ES_REASON_not_udp);
  expect_passed_by_host(w_.xdp(Packet().eth().ipv6().icmp().build()), ES_REASON_not_udp);
  expect_passed_by_host(w_.xdp(Packet().eth({.ethertype = 0x88cc}).payload(filler(60)).build()),
                        ES_REASON_not_udp);
}

TEST_F(ParseTest, Ipv4OptionsDoNotShiftThePorts) {
  for (std::uint8_t words = 0; words <= 10; ++words) {
    const Bytes frame = Packet()
                            .eth()
                            .ipv4({.options_words = words})
                            .udp(4000, 7777)
                            .payload(lane_payload({.lane = ES_LANE_voice}))
                            .build();
    const Verdict v = w_.xdp(frame);
    EXPECT_EQ(v.action, kXdpDrop) << int{words};
    EXPECT_EQ(v.reason, ES_REASON_lane_paused) << int{words};
    EXPECT_EQ(v.bytes, frame.size() - 14);
  }
}

TEST_F(ParseTest, Ipv4OptionsFindTheConnectionOfTheRemote) {
  w_.connect("10.0.0.2", 4000, {.room = 3});
  w_.rules(3, ES_IN).threshold[0] = 255;
  w_.publish();
  for (std::uint8_t words = 0; words <= 10; ++words) {
    const Verdict v = w_.xdp(Packet()
                                 .eth()
                                 .ipv4({.options_words = words})
                                 .udp(4000, 7777)
                                 .payload(lane_payload({}))
                                 .build());
    EXPECT_EQ(v.reason, ES_REASON_priority) << int{words};
  }
}

TEST_F(ParseTest, Ipv4HeaderThatContradictsItselfIsMalformedAndPasses) {
  const auto frame = [](const Ipv4Fields& fields) {
    return Packet()
        .eth()
        .ipv4(fields)
        .udp(4000, 7777)
        .payload(lane_payload({.lane = ES_LANE_voice}))
        .build();
  };
  for (std::uint8_t ihl = 0; ihl < 5; ++ihl)
    expect_passed_by_host(w_.xdp(frame({.ihl = ihl})), ES_REASON_malformed_ip);
  expect_passed_by_host(w_.xdp(frame({.version = 6})), ES_REASON_malformed_ip);
  expect_passed_by_host(w_.xdp(frame({.total_length = 19})), ES_REASON_malformed_ip);
  expect_passed_by_host(w_.xdp(frame({.options_words = 4, .total_length = 32})),
                        ES_REASON_malformed_ip);
  Bytes short_options = frame({.ihl = 15});
  short_options.resize(14 + 40);
  expect_passed_by_host(w_.xdp(short_options), ES_REASON_malformed_ip);
}

TEST_F(ParseTest, UdpLengthThatContradictsItselfIsMalformedAndPasses) {
  for (const std::uint16_t length : {0, 1, 7, 41, 42, 65535}) {
    const Bytes frame = Packet()
                            .eth()
                            .ipv4()
                            .udp(4000, 7777, {.length = length})
                            .payload(lane_payload({.lane = ES_LANE_voice}))
                            .build();
    expect_passed_by_host(w_.xdp(frame), ES_REASON_malformed_udp);
  }
  const Bytes empty = Packet().eth().ipv4({.total_length = 24}).udp(4000, 7777).build();
  expect_passed_by_host(w_.xdp(empty), ES_REASON_malformed_udp);
}

TEST_F(ParseTest, EmptyUdpPayloadIsDecided) {
  const Verdict v = w_.xdp(Packet().eth().ipv4().udp(4000, 7777).build());
  EXPECT_EQ(v.action, kXdpPass);
  EXPECT_EQ(v.endpoint, 1);
  EXPECT_EQ(v.bytes, 28u);
}

TEST_F(ParseTest, PaddingIsNotCharged) {
  for (std::size_t payload_bytes = 1; payload_bytes <= 18; ++payload_bytes) {
    const Bytes frame =
        Packet().eth().ipv4().udp(4000, 7777).payload(filler(payload_bytes)).pad_to(60).build();
    ASSERT_EQ(frame.size(), 60u);
    EXPECT_EQ(w_.xdp(frame).bytes, 28 + payload_bytes);
  }
}

TEST_F(ParseTest, PaddingIsNotReadAsPayload) {
  Bytes frame = Packet().eth().ipv4().udp(4000, 7777).payload(filler(4)).pad_to(60).build();
  const Bytes header = lane_payload({.lane = ES_LANE_voice}, 0);
  std::copy(header.begin(), header.end(), frame.begin() + 42);
  const Verdict v = w_.xdp(frame);
  EXPECT_TRUE(v.walk_error);
  EXPECT_EQ(v.row, ES_LANE_command);
  EXPECT_EQ(v.action, kXdpPass);
}

TEST_F(ParseTest, TrainOfSegmentsIsChargedAsWhatItBecomes) {
  const Bytes frame = to_remote(kFlow, lane_payload({.lane = ES_LANE_voice}, 3000 - 12));
  const std::uint32_t wire = 3 * (14 + 28 + 1000);
  const Verdict v = w_.tc(frame, {.gso_segs = 3, .wire_len = wire});
  EXPECT_EQ(v.action, kTcDrop);
  EXPECT_EQ(v.bytes, 3u * 1028u);
  EXPECT_EQ(v.bytes_shed, 3u * 1028u);
}

TEST_F(ParseTest, FrameOfSeveralBuffersIsDecided) {
  const Bytes frame = from_remote(kFlow, lane_payload({.lane = ES_LANE_voice}, 8900));
  const Verdict v = w_.xdp(frame);
  EXPECT_EQ(v.reason, ES_REASON_lane_paused);
  EXPECT_EQ(v.action, kXdpDrop);
  EXPECT_EQ(v.bytes, frame.size() - 14);
}

TEST_F(ParseTest, SinglePacketAtTcIsChargedItsIpLength) {
  const Bytes frame = to_remote(kFlow, lane_payload({}));
  EXPECT_EQ(w_.tc(frame).bytes, frame.size() - 14);
  EXPECT_EQ(
      w_.tc(frame, {.gso_segs = 1, .wire_len = static_cast<std::uint32_t>(frame.size())}).bytes,
      frame.size() - 14);
}

/// Cuts a frame at every length that PROG_RUN accepts.
void expect_cuts_pass(World& w, const Bytes& frame, std::size_t until, bool at_tc) {
  for (std::size_t size = at_tc ? 54 : 14; size < until; ++size) {
    const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
    const Verdict v = at_tc ? w.tc(cut) : w.xdp(cut);
    ASSERT_EQ(v.action, at_tc ? kTcPass : kXdpPass) << size << " bytes of " << hex(frame);
    ASSERT_NE(v.reason, kNoReason) << size;
  }
}

TEST_F(ParseTest, FrameCutAtAnyLengthPasses) {
  // Everything whose lane can be read is dropped, so a cut inside the headers shows if it is not
  // passed: the first byte of the lane header is the last one that is missing.
  w_.endpoint_row().drop_mask[ES_IN] = w_.endpoint_row().drop_mask[ES_OUT] =
      0xff & ~(1 << ES_LANE_command);
  w_.publish();
  const Bytes payload = lane_payload({.lane = ES_LANE_voice});
  const auto layers = [&](Packet packet, bool out) {
    return packet.udp(out ? 7777 : 4000, out ? 4000 : 7777).payload(payload).build();
  };
  for (const bool out : {false, true}) {
    const Ipv4Fields v4 = out ? Ipv4Fields{.src = "10.0.0.1", .dst = "10.0.0.2", .options_words = 3}
                              : Ipv4Fields{.options_words = 3};
    const Ipv6Fields v6 = out ? Ipv6Fields{.src = "fd00::1", .dst = "fd00::2"} : Ipv6Fields{};
    for (const Bytes& frame :
         {layers(Packet().eth().ipv4(v4), out), layers(Packet().eth().qinq(1, 2).ipv4(v4), out),
          layers(Packet().eth().ipv6(v6), out),
          layers(Packet().eth().vlan(5).ipv6(v6).ext(Ext::hop_by_hop).ext(Ext::auth), out)}) {
      expect_cuts_pass(w_, frame, frame.size() - payload.size() + 12, out);
    }
  }
}

TEST(ParseCutTest, FrameCutAtAnyLengthPassesAPlanThatShedsNothing) {
  World w;
  w.endpoint({.protocol = ES_PROTOCOL_enet}).endpoint({.number = 2, .address = "fd00::1"});
  w.publish();
  const Bytes v4 = from_remote({}, filler(80));
  const Bytes v6 =
      from_remote({.remote = "fd00::2", .local = "fd00::1"}, lane_payload({.lane = 4}));
  expect_cuts_pass(w, v4, v4.size(), false);
  expect_cuts_pass(w, v6, v6.size(), false);
  expect_cuts_pass(w, v4, v4.size(), true);
}

}  // namespace
}  // namespace edgeshed::test
