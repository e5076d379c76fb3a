// Fragments: never a port from payload bytes, and a later fragment shares the fate of its first.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"
#include "tests/support/packet_builder.h"

namespace edgeshed::test {
namespace {

constexpr std::uint16_t kDatagramBytes = 3008;  // with the UDP header

/// Sheds voice, both families on one port.
class FragmentTest : public testing::Test {
 protected:
  FragmentTest() {
    w_.endpoint({.address = ""});
    w_.endpoint_row().drop_mask[ES_IN] = 1 << ES_LANE_voice;
    w_.publish();
  }

  static Bytes first4(std::uint16_t id, std::uint8_t lane, const std::string& src = "10.0.0.2") {
    return Packet()
        .eth()
        .ipv4({.src = src, .id = id, .more_fragments = true})
        .udp(4000, 7777, {.length = kDatagramBytes})
        .payload(lane_payload({.lane = lane}, 1472 - 12))
        .build();
  }
  static Bytes later4(std::uint16_t id, const Bytes& body = filler(800),
                      const std::string& src = "10.0.0.2") {
    return Packet().eth().ipv4({.src = src, .id = id, .frag_offset = 185}).payload(body).build();
  }
  static Bytes first6(std::uint32_t id, std::uint8_t lane) {
    return Packet()
        .eth()
        .ipv6()
        .fragment({.more = true, .id = id})
        .udp(4000, 7777, {.length = kDatagramBytes})
        .payload(lane_payload({.lane = lane}, 1200))
        .build();
  }
  static Bytes later6(std::uint32_t id) {
    return Packet().eth().ipv6().fragment({.offset = 152, .id = id}).payload(filler(800)).build();
  }
  /// Bytes that would read as the ports of the endpoint, and as a UDP length below 8.
  static Bytes looks_like_udp(std::uint16_t length) {
    Bytes body;
    put_be16(body, 4000);
    put_be16(body, 7777);
    put_be16(body, length);
    put_be16(body, 0);
    put_bytes(body, lane_payload({.lane = ES_LANE_voice}));
    return body;
  }

  World w_;
};

TEST_F(FragmentTest, LaterFragmentsOfADroppedDatagramAreDropped) {
  const Verdict first = w_.xdp(first4(7, ES_LANE_voice));
  EXPECT_EQ(first.action, kXdpDrop);
  EXPECT_EQ(first.bytes, 20u + kDatagramBytes);
  const Verdict later = w_.xdp(later4(7));
  EXPECT_EQ(later.action, kXdpDrop);
  EXPECT_EQ(later.reason, ES_REASON_lane_paused);
  EXPECT_EQ(later.row, ES_LANE_voice);
  EXPECT_EQ(later.endpoint, 1);
  EXPECT_EQ(w_.xdp(first6(9, ES_LANE_voice)).action, kXdpDrop);
  EXPECT_EQ(w_.xdp(later6(9)).reason, ES_REASON_lane_paused);
  EXPECT_EQ(w_.xdp(later6(9)).action, kXdpDrop);
}

TEST_F(FragmentTest, LaterFragmentsOfAPassedDatagramPassUnderItsReason) {
  const Verdict first = w_.xdp(first4(7, ES_LANE_event));
  EXPECT_EQ(first.reason, ES_REASON_stranger);
  const Verdict later = w_.xdp(later4(7));
  EXPECT_EQ(later.action, kXdpPass);
  EXPECT_EQ(later.reason, ES_REASON_stranger);
  EXPECT_EQ(later.row, ES_LANE_event);
  EXPECT_EQ(w_.xdp(first6(9, ES_LANE_event)).action, kXdpPass);
  EXPECT_EQ(w_.xdp(later6(9)).row, ES_LANE_event);
}

TEST_F(FragmentTest, PayloadBytesOfALaterFragmentAreNeverPorts) {
  const Verdict v = w_.xdp(later4(7, looks_like_udp(40)));
  EXPECT_EQ(v.action, kXdpPass);
  EXPECT_EQ(v.reason, ES_REASON_frag_unknown);
  EXPECT_EQ(v.endpoint, 0);
}

TEST_F(FragmentTest, FragmentWhoseBytesReadAsAShortUdpLengthPasses) {
  for (std::uint16_t length = 0; length < 8; ++length) {
    const Verdict later = w_.xdp(later4(7, looks_like_udp(length)));
    EXPECT_EQ(later.action, kXdpPass);
    EXPECT_EQ(later.reason, ES_REASON_frag_unknown);
    // A first fragment that claims it is malformed, and passes too.
    const Bytes first = Packet()
                            .eth()
                            .ipv4({.id = 9, .more_fragments = true})
                            .udp(4000, 7777, {.length = length})
                            .payload(filler(64))
                            .build();
    EXPECT_EQ(w_.xdp(first).action, kXdpPass);
    EXPECT_EQ(w_.xdp(first).reason, ES_REASON_malformed_udp);
  }
}

TEST_F(FragmentTest, AnyOtherDatagramIsUnknown) {
  w_.xdp(first4(7, ES_LANE_voice));
  EXPECT_EQ(w_.xdp(later4(8)).reason, ES_REASON_frag_unknown);
  EXPECT_EQ(w_.xdp(later4(7, filler(100), "10.0.0.3")).reason, ES_REASON_frag_unknown);
  EXPECT_EQ(w_.xdp(later6(7)).reason, ES_REASON_frag_unknown);
  EXPECT_EQ(w_.xdp(later4(7)).reason, ES_REASON_lane_paused);
}

TEST_F(FragmentTest, FateExpiresAfterTwoSeconds) {
  w_.xdp(first4(7, ES_LANE_voice));
  w_.advance_seconds(2);
  EXPECT_EQ(w_.xdp(later4(7)).reason, ES_REASON_lane_paused);
  w_.advance_jiffies(1);
  const Verdict v = w_.xdp(later4(7));
  EXPECT_EQ(v.reason, ES_REASON_frag_unknown);
  EXPECT_EQ(v.action, kXdpPass);
}

TEST_F(FragmentTest, FateOfAnUnregisteredPortIsNotStored) {
  const Bytes first = Packet()
                          .eth()
                          .ipv4({.id = 7, .more_fragments = true})
                          .udp(4000, 9999, {.length = kDatagramBytes})
                          .payload(filler(1472))
                          .build();
  EXPECT_EQ(w_.xdp(first).reason, ES_REASON_not_ours);
  EXPECT_EQ(w_.xdp(later4(7)).reason, ES_REASON_frag_unknown);
}

TEST_F(FragmentTest, AtomicIpv6FragmentIsAWholePacket) {
  const Bytes frame = Packet()
                          .eth()
                          .ipv6()
                          .fragment({.id = 5})
                          .udp(4000, 7777)
                          .payload(lane_payload({.lane = ES_LANE_voice}))
                          .build();
  const Verdict v = w_.xdp(frame);
  EXPECT_EQ(v.reason, ES_REASON_lane_paused);
  EXPECT_EQ(v.bytes, frame.size() - 14);
  EXPECT_EQ(w_.xdp(later6(5)).reason, ES_REASON_frag_unknown);
}

TEST_F(FragmentTest, LaterFragmentFollowsAlsoBehindOptionsOfTheFragmentablePart) {
  // The fragment header of every fragment names the first header of the fragmentable part.
  const Bytes first = Packet()
                          .eth()
                          .ipv6()
                          .fragment({.more = true, .id = 11})
                          .ext(Ext::dest_opts)
                          .udp(4000, 7777, {.length = kDatagramBytes})
                          .payload(lane_payload({.lane = ES_LANE_voice}, 1200))
                          .build();
  EXPECT_EQ(w_.xdp(first).action, kXdpDrop);
  const Bytes later = Packet()
                          .eth()
                          .ipv6()
                          .ext({.kind = Ext::fragment,
                                .frag_offset = 152,
                                .id = 11,
                                .next_header = static_cast<std::uint8_t>(Ext::dest_opts)})
                          .payload(filler(800))
                          .build();
  const Verdict v = w_.xdp(later);
  EXPECT_EQ(v.reason, ES_REASON_lane_paused) << reason_name(v.reason);
  EXPECT_EQ(v.action, kXdpDrop);
}

TEST_F(FragmentTest, FirstFragmentThatEndsBeforeTheUdpHeaderPasses) {
  const Bytes frame =
      Packet()
          .eth()
          .ipv6()
          .ext({.kind = Ext::fragment, .more_fragments = true, .id = 3, .next_header = 17})
          .payload(filler(4))
          .build();
  const Verdict v = w_.xdp(frame);
  EXPECT_EQ(v.action, kXdpPass);
  EXPECT_EQ(v.reason, ES_REASON_malformed_udp);
}

TEST_F(FragmentTest, LaterFragmentIsMarkedLikeItsFirst) {
  w_.rules(0, ES_IN).le_mask = 1 << ES_LANE_snapshot;
  w_.connect("10.0.0.2", 4000).publish();
  const Verdict first = w_.xdp(first4(7, ES_LANE_snapshot));
  ASSERT_EQ(first.reason, ES_REASON_marked_le);
  const Verdict later = w_.xdp(later4(7));
  EXPECT_EQ(later.reason, ES_REASON_marked_le);
  const ParsedFrame out = parse_frame(later.frame);
  EXPECT_EQ(out.dscp, 1);
  EXPECT_EQ(out.ip_checksum, ChecksumState::right);
}

TEST_F(FragmentTest, FragmentsFollowTheirFirstAtTc) {
  w_.endpoint_row().drop_mask[ES_OUT] = 1 << ES_LANE_voice;
  w_.publish();
  const Bytes first =
      Packet()
          .eth()
          .ipv4({.src = "10.0.0.1", .dst = "10.0.0.2", .id = 7, .more_fragments = true})
          .udp(7777, 4000, {.length = kDatagramBytes})
          .payload(lane_payload({.lane = ES_LANE_voice}, 1460))
          .build();
  const Bytes later = Packet()
                          .eth()
                          .ipv4({.src = "10.0.0.1", .dst = "10.0.0.2", .id = 7, .frag_offset = 185})
                          .payload(filler(800))
                          .build();
  EXPECT_EQ(w_.tc(first).action, kTcDrop);
  EXPECT_EQ(w_.tc(later).action, kTcDrop);
}

TEST_F(FragmentTest, BytesOfADatagramAreCountedOnce) {
  w_.xdp(first4(7, ES_LANE_event));
  w_.xdp(later4(7, filler(1480)));
  const std::uint64_t counted = w_.endpoint_counters().bytes[ES_IN][ES_LANE_event];
  // Its later fragments add at most their own IP headers.
  EXPECT_LE(counted, 20u + kDatagramBytes + 2 * 20u);
}

}  // namespace
}  // namespace edgeshed::test
