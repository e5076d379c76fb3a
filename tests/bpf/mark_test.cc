// DSCP and ECN marks: which packets, and that nothing else of the frame changes.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"
#include "tests/support/packet_builder.h"

namespace edgeshed::test {
namespace {

const Flow kV6{.remote = "fd00::2", .local = "fd00::1"};

Flow with_tos(Flow flow, unsigned tos) {
  flow.tos = static_cast<std::uint8_t>(tos);
  return flow;
}

class MarkTest : public testing::Test {
 protected:
  MarkTest() { w_.endpoint({.address = ""}).connect("10.0.0.2", 4000).connect("fd00::2", 4000); }

  World w_;
};

// Rule: B8
TEST_F(MarkTest, CongestionIsMarkedOnEcnCapablePacketsAndOnlyTheMarkChanges) {
  w_.rules(0, ES_IN).ce_q8 = w_.rules(0, ES_OUT).ce_q8 = 255;
  w_.publish();
  for (const Flow& flow : {Flow{}, kV6}) {
    for (unsigned tos = 0; tos < 256; ++tos) {
      const bool ect = (tos & 3) == 1 || (tos & 3) == 2;
      const es_reason reason = ect ? ES_REASON_marked_ce : ES_REASON_admitted;
      const Flow after = with_tos(flow, ect ? tos | 3 : tos);
      const Verdict in = w_.xdp(lane_in(ES_LANE_snapshot, with_tos(flow, tos)));
      ASSERT_EQ(in.reason, reason) << tos;
      ASSERT_EQ(in.action, kXdpPass);
      ASSERT_EQ(in.frame, lane_in(ES_LANE_snapshot, after)) << tos;
      const Verdict out = w_.tc(lane_out(ES_LANE_snapshot, with_tos(flow, tos)));
      ASSERT_EQ(out.reason, reason);
      ASSERT_EQ(out.frame, lane_out(ES_LANE_snapshot, after)) << tos;
    }
  }
}

TEST_F(MarkTest, LowerEffortReplacesTheDscpAndKeepsEcn) {
  w_.rules(0, ES_IN).le_mask = w_.rules(0, ES_OUT).le_mask = 1 << ES_LANE_snapshot;
  w_.publish();
  for (const Flow& flow : {Flow{}, kV6}) {
    for (unsigned tos = 0; tos < 256; ++tos) {
      const Flow after = with_tos(flow, 1 << 2 | (tos & 3));
      const Verdict in = w_.xdp(lane_in(ES_LANE_snapshot, with_tos(flow, tos)));
      ASSERT_EQ(in.reason, ES_REASON_marked_le) << tos;
      ASSERT_EQ(in.frame, lane_in(ES_LANE_snapshot, after)) << tos;
      const Verdict out = w_.tc(lane_out(ES_LANE_snapshot, with_tos(flow, tos)));
      ASSERT_EQ(out.frame, lane_out(ES_LANE_snapshot, after)) << tos;
    }
  }
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_admitted);
}

TEST_F(MarkTest, LowerEffortIsForBestEffortOnly) {
  w_.rules(0, ES_IN).le_mask = 0xff;
  w_.publish();
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_command)).reason, ES_REASON_admitted);
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_event)).reason, ES_REASON_admitted);
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_cosmetic)).reason, ES_REASON_marked_le);
}

TEST_F(MarkTest, ShareOfCongestionMarksIsKept) {
  for (const unsigned share : {1u, 25u, 128u, 200u, 254u}) {
    w_.rules(0, ES_IN).ce_q8 = static_cast<__u8>(share);
    w_.publish();
    unsigned marked = 0;
    for (int i = 0; i < 2550; ++i)
      marked += w_.xdp(lane_in(ES_LANE_event, {.tos = 2})).reason == ES_REASON_marked_ce;
    EXPECT_NEAR(marked, share * 10, 1) << share;
  }
}

TEST_F(MarkTest, FlowLabelAndIpv4OptionsSurviveAMark) {
  w_.rules(0, ES_IN).le_mask = 1 << ES_LANE_snapshot;
  w_.publish();
  const Bytes payload = lane_payload({.lane = ES_LANE_snapshot});
  const auto v6 = [&](std::uint8_t tos) {
    return Packet()
        .eth()
        .vlan(5)
        .ipv6({.tos = tos, .flow_label = 0xabcde})
        .ext(Ext::dest_opts)
        .udp(4000, 7777)
        .payload(payload)
        .build();
  };
  EXPECT_EQ(w_.xdp(v6(0xfe)).frame, v6(0x06));
  const auto v4 = [&](std::uint8_t tos, std::uint16_t id) {
    return Packet()
        .eth()
        .qinq(1, 2)
        .ipv4({.tos = tos, .options_words = 3, .id = id})
        .udp(4000, 7777)
        .payload(payload)
        .build();
  };
  // The checksum is right whatever the rest of the header sums up to.
  for (unsigned id = 0; id < 65536; id += 257) {
    const Verdict v = w_.xdp(v4(0xb8, static_cast<std::uint16_t>(id)));
    ASSERT_EQ(parse_frame(v.frame).ip_checksum, ChecksumState::right) << id;
    ASSERT_EQ(v.frame, v4(0x04, static_cast<std::uint16_t>(id))) << id;
  }
}

TEST_F(MarkTest, MarksCountAsMarkedInTheRoom) {
  w_.rules(0, ES_IN).ce_q8 = 255;
  w_.publish();
  w_.xdp(lane_in(ES_LANE_event, {.tos = 1}));
  EXPECT_EQ(w_.room_counters(0).cell[ES_IN][ES_TIER_critical][ES_OUTCOME_marked], 1u);
}

}  // namespace
}  // namespace edgeshed::test
