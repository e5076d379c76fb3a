// What game servers hear of refusals: the first of each connection in a second.
#include <gtest/gtest.h>

#include <vector>

#include "tests/bpf/harness.h"

namespace edgeshed::test {
namespace {

constexpr std::uint16_t kRoom = 2;

class TellTest : public testing::Test {
 protected:
  TellTest() {
    w_.endpoint().connect("10.0.0.2", 4000, {.room = kRoom, .priority = 50});
    w_.rules(kRoom, ES_IN).threshold[0] = 100;
    w_.publish();
    w_.control().event_sample_mask = ~0u;
    w_.advance_jiffies(w_.hz());
  }
  /// One packet each jiffy; the events of them all.
  std::vector<es_event> send(const Bytes& frame, unsigned jiffies) {
    for (unsigned i = 0; i < jiffies; ++i) {
      w_.advance_jiffies(1);
      w_.publish();  // a plan of its own for each, so that none expires
      w_.xdp(frame);
    }
    return w_.events();
  }
  World w_;
};

// Rule: A7, A8
TEST_F(TellTest, AStandardRefusalIsToldOnceASecond) {
  const auto events = send(lane_in(ES_LANE_command), 3 * w_.hz());
  ASSERT_EQ(events.size(), 3u);
  for (const es_event& event : events) {
    EXPECT_EQ(event.sampled_of, 0u);
    EXPECT_EQ(event.remote.port, key_of("10.0.0.2", 4000).port);
    EXPECT_EQ(event.room, kRoom);
    EXPECT_EQ(event.tier, ES_TIER_standard);
    EXPECT_EQ(event.reason, ES_REASON_priority);
  }
}

TEST_F(TellTest, ByTheFairShareToo) {
  w_.rules(kRoom, ES_IN).threshold[0] = 0;
  w_.rules(kRoom, ES_IN).level[0] = {
      .v0 = 0, .t0_jiffies = w_.now(), .rate_q16 = 0, .burst = 1, .begun = 0};
  w_.publish();
  const auto events = send(lane_in(ES_LANE_command), 10);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].reason, ES_REASON_fair_share);
}

TEST_F(TellTest, RefusedOnTheSlotAloneToo) {
  w_.endpoint_row().slot_quartiles[ES_IN][0] = 1;
  w_.publish();
  const auto events = send(lane_in(ES_LANE_command), 2 * w_.hz());
  ASSERT_GE(events.size(), 1u);
  EXPECT_LE(events.size(), 2u);
  EXPECT_EQ(events[0].reason, ES_REASON_slot_priority);
  EXPECT_EQ(events[0].remote.port, key_of("10.0.0.2", 4000).port);
}

TEST_F(TellTest, EachConnectionIsToldForItself) {
  w_.connect("10.0.0.3", 4000, {.room = kRoom, .priority = 50});
  w_.publish();
  send(lane_in(ES_LANE_command), 1);
  EXPECT_TRUE(send(lane_in(ES_LANE_command), 5).empty());
  EXPECT_EQ(send(lane_in(ES_LANE_command, {.remote = "10.0.0.3"}), 5).size(), 1u);
}

TEST_F(TellTest, BestEffortWhatPassesAndWhatTheServerSendsIsNot) {
  w_.rules(kRoom, ES_IN).keep_q16[ES_LANE_snapshot] = 1;
  w_.rules(kRoom, ES_OUT).threshold[0] = 100;
  w_.publish();
  EXPECT_TRUE(send(lane_in(ES_LANE_snapshot), 20).empty());
  EXPECT_TRUE(send(lane_in(ES_LANE_event), 20).empty());
  EXPECT_TRUE(w_.tc(lane_out(ES_LANE_command)).dropped());
  EXPECT_TRUE(w_.events().empty());
}

TEST_F(TellTest, NeitherInShadowNorOfAStranger) {
  EXPECT_TRUE(send(lane_in(ES_LANE_command, {.remote_port = 9}), 20).empty());
  w_.endpoint_row().flags |= ES_EP_SHADOW;
  w_.publish();
  EXPECT_TRUE(send(lane_in(ES_LANE_command), 20).empty());
}

/// A player with two streams in a room that allows each 10 samples a second.
class HintTest : public TellTest {
 protected:
  HintTest() {
    w_.connect("10.0.0.2", 5000, {.room = kRoom, .stream_block = 1});
    w_.room(kRoom).stream_samples_per_s = 10;
    w_.control().stream_hint_q8 = 205;  // .8
    w_.publish();
    w_.at_jiffies(1'000'000 * std::uint64_t{w_.hz()});
    w_.publish();
  }
  /// `per_s` samples a second for `seconds`; the events of them all.
  std::vector<es_event> play(std::uint16_t stream, unsigned per_s, unsigned seconds) {
    const Bytes frame = from_remote({.remote_port = 5000},
                                    lane_payload({.lane = ES_LANE_stream, .stream = stream}));
    for (unsigned i = 0; i < per_s * seconds; ++i) {
      w_.advance_jiffies(w_.hz() / per_s);
      w_.publish();
      w_.xdp(frame);
    }
    return w_.events();
  }
};

// Rule: A4
TEST_F(HintTest, NearALimitTheAuthorIsToldOnceASecond) {
  EXPECT_TRUE(play(7, 5, 3).empty());
  const auto events = play(7, 9, 4);
  ASSERT_GE(events.size(), 3u);
  EXPECT_LE(events.size(), 4u);
  for (const es_event& event : events) {
    EXPECT_EQ(event.sampled_of, 0u);
    EXPECT_EQ(event.reason, ES_REASON_admitted);
    EXPECT_EQ(event.verdict, ES_VERDICT_pass);
    EXPECT_EQ(event.stream, 7);
  }
}

TEST_F(HintTest, EachStreamForItselfAndBesideRefusals) {
  play(7, 9, 2);
  EXPECT_FALSE(play(8, 9, 2).empty()) << "the other stream's hint is not this one's";
}

TEST_F(HintTest, NoneInShadowNorWhereItIsOff) {
  w_.endpoint_row().flags |= ES_EP_SHADOW;
  w_.publish();
  EXPECT_TRUE(play(7, 9, 3).empty());
  w_.endpoint_row().flags &= static_cast<__u8>(~ES_EP_SHADOW);
  w_.control().stream_hint_q8 = 0;
  w_.publish();
  EXPECT_TRUE(play(7, 9, 3).empty());
}

// Rule: A4
TEST_F(TellTest, TheGovernorsRefusalsAreToldWithTheirStream) {
  w_.connect("10.0.0.2", 5000, {.room = kRoom, .stream_block = 1});
  w_.room(kRoom).stream_samples_per_s = 1;
  w_.publish();
  const Bytes frame =
      from_remote({.remote_port = 5000}, lane_payload({.lane = ES_LANE_stream, .stream = 7}));
  const auto events = send(frame, 20);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].reason, ES_REASON_stream_rate);
  EXPECT_EQ(events[0].stream, 7);
}

}  // namespace
}  // namespace edgeshed::test
