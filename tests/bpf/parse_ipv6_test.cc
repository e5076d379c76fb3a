// IPv6 and its extension headers.
#include <gtest/gtest.h>

#include <vector>

#include "tests/bpf/harness.h"
#include "tests/support/packet_builder.h"

namespace edgeshed::test {
namespace {

/// Sheds voice at an IPv6 endpoint.
class ParseIpv6Test : public testing::Test {
 protected:
  ParseIpv6Test() {
    w_.endpoint({.address = "fd00::1"});
    w_.endpoint_row().drop_mask[ES_IN] = 1 << ES_LANE_voice;
    w_.publish();
  }

  static Bytes chain(const std::vector<Ext>& kinds, std::uint8_t lane = ES_LANE_voice) {
    Packet packet;
    packet.eth().ipv6();
    for (const Ext kind : kinds) packet.ext(kind);
    return packet.udp(4000, 7777).payload(lane_payload({.lane = lane})).build();
  }

  World w_;
};

TEST_F(ParseIpv6Test, PlainPacketIsDecidedAndChargedItsIpLength) {
  const Bytes frame = chain({});
  const Verdict v = w_.xdp(frame);
  EXPECT_EQ(v.action, kXdpDrop);
  EXPECT_EQ(v.reason, ES_REASON_lane_paused);
  EXPECT_EQ(v.bytes, frame.size() - 14);
}

TEST_F(ParseIpv6Test, AuthenticationAndHopByHopHeadersAreWalkedRight) {
  for (const std::vector<Ext>& kinds : std::vector<std::vector<Ext>>{
           {Ext::auth, Ext::hop_by_hop},
           {Ext::hop_by_hop, Ext::auth},
           {Ext::hop_by_hop, Ext::dest_opts, Ext::routing, Ext::auth, Ext::dest_opts},
           {Ext::mobility}}) {
    const Verdict v = w_.xdp(chain(kinds));
    EXPECT_EQ(v.reason, ES_REASON_lane_paused) << kinds.size();
    EXPECT_EQ(v.action, kXdpDrop);
    EXPECT_EQ(w_.xdp(chain(kinds, ES_LANE_event)).row, ES_LANE_event);
  }
}

TEST_F(ParseIpv6Test, LongHeadersAreWalkedRight) {
  for (const std::uint16_t words : {1, 2, 31, 128}) {
    const Bytes frame = Packet()
                            .eth()
                            .ipv6()
                            .ext(Ext::hop_by_hop, words)
                            .ext(Ext::dest_opts, 1)
                            .udp(4000, 7777)
                            .payload(lane_payload({.lane = ES_LANE_voice}))
                            .build();
    EXPECT_EQ(w_.xdp(frame).reason, ES_REASON_lane_paused) << words;
  }
}

TEST_F(ParseIpv6Test, ChainsOfUpToEightAreWalkedAndTheNinthIsTooDeep) {
  for (std::size_t depth = 1; depth <= 10; ++depth) {
    std::vector<Ext> kinds(depth, Ext::dest_opts);
    kinds[0] = Ext::hop_by_hop;
    if (depth > 2) kinds[2] = Ext::auth;
    const Verdict v = w_.xdp(chain(kinds));
    EXPECT_EQ(v.reason, depth <= 8 ? ES_REASON_lane_paused : ES_REASON_too_deep) << depth;
    EXPECT_EQ(v.action, depth <= 8 ? kXdpDrop : kXdpPass) << depth;
  }
}

TEST_F(ParseIpv6Test, ChainsAreWalkedAtTc) {
  for (std::size_t depth = 1; depth <= 9; ++depth) {
    const std::vector<Ext> kinds(depth, Ext::dest_opts);
    const Verdict v = w_.tc_servers(chain(kinds));
    EXPECT_EQ(v.reason, depth <= 8 ? ES_REASON_lane_paused : ES_REASON_too_deep) << depth;
    EXPECT_EQ(v.action, depth <= 8 ? kTcDrop : kTcPass) << depth;
  }
}

TEST_F(ParseIpv6Test, HeaderThatIsCutShortIsMalformedAndPasses) {
  const Bytes whole = chain({Ext::hop_by_hop});
  for (std::size_t size = 14 + 40; size < 14 + 40 + 8; ++size) {
    const Verdict v =
        w_.xdp(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_EQ(v.reason, ES_REASON_malformed_ip) << size;
    EXPECT_EQ(v.action, kXdpPass) << size;
  }
  // A header whose length points beyond the frame.
  const Bytes beyond = Packet()
                           .eth()
                           .ipv6()
                           .ext({.kind = Ext::dest_opts, .length_field = 200})
                           .udp(4000, 7777)
                           .payload(filler(20))
                           .build();
  EXPECT_EQ(w_.xdp(beyond).reason, ES_REASON_malformed_ip);
}

TEST_F(ParseIpv6Test, FixedHeaderThatIsWrongIsMalformedAndPasses) {
  const Bytes wrong_version =
      Packet().eth().ipv6({.version = 4}).udp(4000, 7777).payload(filler(20)).build();
  EXPECT_EQ(w_.xdp(wrong_version).reason, ES_REASON_malformed_ip);
  const Bytes whole = chain({});
  EXPECT_EQ(w_.xdp(Bytes(whole.begin(), whole.begin() + 53)).reason, ES_REASON_malformed_ip);
  const Bytes empty =
      Packet().eth().ipv6({.payload_length = 0}).udp(4000, 7777).payload(filler(20)).build();
  const Verdict v = w_.xdp(empty);
  EXPECT_EQ(v.reason, ES_REASON_malformed_udp);
  EXPECT_EQ(v.action, kXdpPass);
}

TEST_F(ParseIpv6Test, PayloadLengthShorterThanTheChainIsMalformedAndPasses) {
  const Bytes frame = Packet()
                          .eth()
                          .ipv6({.payload_length = 20})
                          .ext(Ext::hop_by_hop)
                          .ext(Ext::dest_opts)
                          .ext(Ext::dest_opts)
                          .ext(Ext::dest_opts)
                          .udp(4000, 7777)
                          .payload(lane_payload({.lane = ES_LANE_voice}))
                          .build();
  const Verdict v = w_.xdp(frame);
  EXPECT_EQ(v.action, kXdpPass);
  EXPECT_TRUE(v.reason == ES_REASON_malformed_udp || v.reason == ES_REASON_malformed_ip)
      << reason_name(v.reason);
}

TEST_F(ParseIpv6Test, FlowLabelIsNotReadAsTrafficClass) {
  w_.endpoint({.number = 2, .port = 7000, .protocol = ES_PROTOCOL_dscp, .address = "fd00::1"});
  for (unsigned i = 0; i < 64; ++i) w_.endpoint_row(2).classifier.dscp_lane[i] = i & 7;
  w_.publish();
  for (unsigned dscp = 0; dscp < 64; ++dscp) {
    const Bytes frame =
        Packet()
            .eth()
            .ipv6({.tos = static_cast<std::uint8_t>(dscp << 2 | 1), .flow_label = 0xfffff})
            .udp(4000, 7000)
            .payload(filler(20))
            .build();
    EXPECT_EQ(w_.xdp(frame).row, dscp & 7);
  }
}

}  // namespace
}  // namespace edgeshed::test
