// The lane by protocol: lane header, DSCP, match rules, opaque.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"

namespace edgeshed::test {
namespace {

class LaneHeaderTest : public testing::Test {
 protected:
  LaneHeaderTest() { w_.endpoint().publish(); }

  Verdict verdict(const LaneFields& fields) {
    return w_.xdp(from_remote({}, lane_payload(fields)));
  }

  World w_;
};

TEST_F(LaneHeaderTest, EveryLaneIsReadAtBothHooks) {
  for (std::uint8_t lane = 0; lane < ES_LANES; ++lane) {
    EXPECT_EQ(w_.xdp(lane_in(lane)).row, lane);
    EXPECT_EQ(w_.tc(lane_out(lane)).row, lane);
    EXPECT_EQ(w_.xdp(lane_in(lane)).bytes, 20u + 8u + 12u + 20u);
  }
}

TEST_F(LaneHeaderTest, ClaimBelowTheLanesTierMovesToALaneOfThatTier) {
  for (std::uint8_t lane = 0; lane < ES_LANES; ++lane) {
    const unsigned tier = es_lane_tier(w_.endpoint_row().lane_tiers, lane);
    for (std::uint8_t claim = 0; claim < ES_TIERS; ++claim) {
      const unsigned expected = claim <= tier               ? lane
                                : claim == ES_TIER_standard ? unsigned{ES_LANE_command}
                                                            : unsigned{ES_LANE_cosmetic};
      EXPECT_EQ(verdict({.lane = lane, .claim = claim}).row, expected)
          << int{lane} << " claims " << int{claim};
    }
  }
}

TEST_F(LaneHeaderTest, ClaimAboveTheLanesTierGainsNothing) {
  w_.connect("10.0.0.2", 4000, {.room = 1});
  w_.rules(1, ES_IN).drop_mask = 1 << ES_LANE_voice;
  w_.publish();
  EXPECT_EQ(verdict({.lane = ES_LANE_voice, .claim = ES_TIER_critical}).action, kXdpDrop);
}

TEST_F(LaneHeaderTest, JoinAndCloseFlagsHaveTheirLanes) {
  for (std::uint8_t lane = 0; lane < ES_LANES; ++lane) {
    EXPECT_EQ(verdict({.lane = lane, .flags = EDGESHED_LANE_JOIN}).row, ES_LANE_join);
    EXPECT_EQ(verdict({.lane = lane, .flags = EDGESHED_LANE_CLOSE}).row, ES_LANE_control);
    EXPECT_EQ(verdict({.lane = lane, .flags = EDGESHED_LANE_ACK}).row, lane);
  }
}

TEST_F(LaneHeaderTest, OtherMagicVersionOrLengthIsACommandWithAWalkError) {
  for (const Verdict& v :
       {verdict({.lane = ES_LANE_voice, .magic = 0xe4}),
        verdict({.lane = ES_LANE_voice, .version = 2}),
        verdict({.lane = ES_LANE_voice, .version = 0}), w_.xdp(from_remote({}, {}))}) {
    EXPECT_EQ(v.row, ES_LANE_command);
    EXPECT_TRUE(v.walk_error);
    EXPECT_EQ(v.action, kXdpPass);
  }
  Bytes header = lane_payload({.lane = ES_LANE_voice}, 0);
  EXPECT_EQ(w_.xdp(from_remote({}, header)).row, ES_LANE_voice);
  header.pop_back();
  EXPECT_TRUE(w_.xdp(from_remote({}, header)).walk_error);
}

TEST(DscpTest, LaneIsLookedUpByDscpAndNotByEcn) {
  World w;
  w.endpoint({.protocol = ES_PROTOCOL_dscp, .address = ""});
  for (unsigned i = 0; i < 64; ++i)
    w.endpoint_row().classifier.dscp_lane[i] = static_cast<std::uint8_t>((i * 5) & 7);
  w.publish();
  for (unsigned tos = 0; tos < 256; ++tos) {
    const auto byte = static_cast<std::uint8_t>(tos);
    const unsigned lane = (tos / 4 * 5) & 7;
    EXPECT_EQ(w.xdp(from_remote({.tos = byte}, filler(20))).row, lane);
    EXPECT_EQ(w.tc(to_remote({.tos = byte}, filler(20))).row, lane);
    EXPECT_EQ(
        w.xdp(from_remote({.remote = "fd00::2", .local = "fd00::1", .tos = byte}, filler(20))).row,
        lane);
  }
}

class MatchTest : public testing::Test {
 protected:
  MatchTest() { w_.endpoint({.protocol = ES_PROTOCOL_match, .default_lane = ES_LANE_stream}); }

  void rule(unsigned number, std::uint16_t offset, std::uint32_t mask, std::uint32_t value,
            std::uint8_t lane) {
    w_.endpoint_row().classifier.match[number] = {
        .offset = offset, .lane = lane, .reserved = 0, .mask = mask, .value = value};
  }
  std::uint8_t lane_of(const Bytes& payload) {
    const Verdict at_xdp = w_.xdp(from_remote({}, payload));
    const Verdict at_tc = w_.tc(to_remote({}, payload));
    EXPECT_EQ(at_xdp.row, at_tc.row);
    return at_xdp.row;
  }

  World w_;
};

TEST_F(MatchTest, EachOfEightRulesMatchesAtItsOffset) {
  for (unsigned i = 0; i < ES_MATCH_RULES; ++i)
    rule(i, static_cast<std::uint16_t>(i * 3), ~0u, 0xaabbcc00 | i, static_cast<std::uint8_t>(i));
  w_.publish();
  for (std::size_t i = 0; i < ES_MATCH_RULES; ++i) {
    Bytes payload(40, 0);
    set_be32(payload, i * 3, static_cast<std::uint32_t>(0xaabbcc00 | i));
    EXPECT_EQ(lane_of(payload), i);
  }
  EXPECT_EQ(lane_of(Bytes(40, 0)), ES_LANE_stream);
}

TEST_F(MatchTest, FirstMatchingRuleWins) {
  rule(0, 0, 0xff000000, 0x11000000, ES_LANE_event);
  rule(1, 0, 0xffff0000, 0x11220000, ES_LANE_voice);
  rule(2, 0, 0xff000000, 0x33000000, ES_LANE_cosmetic);
  w_.publish();
  EXPECT_EQ(lane_of({0x11, 0x22, 0, 0}), ES_LANE_event);
  EXPECT_EQ(lane_of({0x33, 0x22, 0, 0}), ES_LANE_cosmetic);
}

TEST_F(MatchTest, MaskHidesTheOtherBits) {
  rule(0, 4, 0x00f00000, 0x00500000, ES_LANE_voice);
  w_.publish();
  EXPECT_EQ(lane_of({0, 0, 0, 0, 0xff, 0x5f, 0xff, 0xff}), ES_LANE_voice);
  EXPECT_EQ(lane_of({0, 0, 0, 0, 0xff, 0x4f, 0xff, 0xff}), ES_LANE_stream);
}

TEST_F(MatchTest, RuleBeyondThePayloadDoesNotMatchAndTheNextOneIsTried) {
  rule(0, 17, 0xffffffff, 0, ES_LANE_voice);
  rule(1, 16, 0xffffffff, 0, ES_LANE_event);
  w_.publish();
  EXPECT_EQ(lane_of(Bytes(21, 0)), ES_LANE_voice);
  EXPECT_EQ(lane_of(Bytes(20, 0)), ES_LANE_event);
  EXPECT_EQ(lane_of(Bytes(19, 0)), ES_LANE_stream);
  EXPECT_EQ(lane_of({}), ES_LANE_stream);
}

TEST_F(MatchTest, RuleAtTheLargestOffsetMatchesAtBothHooks) {
  rule(0, 255, 0xffffffff, 0x01020304, ES_LANE_event);
  w_.publish();
  Bytes payload(400, 0);
  set_be32(payload, 255, 0x01020304);
  EXPECT_EQ(lane_of(payload), ES_LANE_event);
}

TEST_F(MatchTest, RulesAfterAnUnusedOneAreNotRead) {
  rule(1, 0, 0xffffffff, 0, ES_LANE_event);
  w_.publish();
  EXPECT_EQ(lane_of(Bytes(20, 0)), ES_LANE_stream);
}

TEST(OpaqueTest, EverythingIsOfTheDefaultLane) {
  for (std::uint8_t lane = 0; lane < ES_LANES; ++lane) {
    World w;
    w.endpoint({.protocol = ES_PROTOCOL_opaque, .default_lane = lane}).publish();
    EXPECT_EQ(w.xdp(from_remote({}, filler(30))).row, lane);
    EXPECT_EQ(w.xdp(from_remote({}, {})).row, lane);
    EXPECT_EQ(w.tc(to_remote({}, lane_payload({.lane = ES_LANE_voice}))).row, lane);
  }
}

}  // namespace
}  // namespace edgeshed::test
