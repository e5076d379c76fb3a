// The stream governor: windows per stream, player and room, and the cap on distinct streams.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"

namespace edgeshed::test {
namespace {

constexpr std::uint16_t kRoom = 3;
constexpr std::size_t kSampleBytes = 20 + 8 + 12 + 60;  // of IP

class GovernTest : public testing::Test {
 protected:
  GovernTest() {
    w_.at_jiffies(1'000'000 * std::uint64_t{w_.hz()});  // a whole second
    w_.endpoint()
        .connect("10.0.0.2", 4000, {.room = kRoom, .stream_block = 1})
        .connect("10.0.0.2", 4001, {.room = kRoom, .stream_block = 2})
        .connect("10.0.0.2", 4002, {.room = kRoom});
  }

  static Bytes sample(std::uint16_t stream, const Flow& flow = {}) {
    return from_remote(flow, lane_payload({.lane = ES_LANE_stream, .stream = stream}, 60));
  }
  es_plan_room& room() { return w_.room(kRoom); }
  void expect(es_reason reason, const Bytes& frame) {
    const Verdict v = w_.xdp(frame);
    EXPECT_EQ(reason_name(v.reason), reason_name(reason));
    EXPECT_EQ(v.row, ES_LANE_stream);
    EXPECT_EQ(v.dropped(), es_reason_verdict(reason) == ES_VERDICT_drop);
  }
  /// 10 samples a jiffy of `streams` streams; how many passed per second after the first.
  double per_second(unsigned streams, unsigned seconds) {
    std::vector<Bytes> frames;
    for (unsigned i = 0; i < streams; ++i) frames.push_back(sample(static_cast<std::uint16_t>(i)));
    std::uint64_t passed = 0;
    for (unsigned jiffy = 0; jiffy < (seconds + 1) * w_.hz(); ++jiffy) {
      w_.advance_jiffies(1);
      for (unsigned i = 0; i < 3; ++i)
        for (const Bytes& frame : frames)
          if (w_.passes(frame) && jiffy >= w_.hz()) ++passed;
    }
    return static_cast<double>(passed) / seconds;
  }

  World w_;
};

TEST_F(GovernTest, SamplesOfAStreamPerSecond) {
  room().stream_samples_per_s = 20;
  w_.publish();
  for (int i = 0; i < 20; ++i) expect(ES_REASON_admitted, sample(7));
  expect(ES_REASON_stream_rate, sample(7));
  expect(ES_REASON_admitted, sample(8));
  expect(ES_REASON_admitted, sample(7, {.remote_port = 4001}));
  w_.advance_seconds(2);
  EXPECT_NEAR(per_second(2, 20), 40, 2);
}

TEST_F(GovernTest, BytesOfAStreamPerSecond) {
  room().stream_bytes_per_s = 10 * kSampleBytes;
  w_.publish();
  for (int i = 0; i < 10; ++i) expect(ES_REASON_admitted, sample(7));
  expect(ES_REASON_stream_bytes, sample(7));
  expect(ES_REASON_admitted, sample(8));
}

TEST_F(GovernTest, BytesOfAPlayerPerSecond) {
  room().player_bytes_per_s = 10 * kSampleBytes;
  w_.publish();
  for (std::uint16_t i = 0; i < 10; ++i) expect(ES_REASON_admitted, sample(i & 1));
  expect(ES_REASON_player_bytes, sample(0));
  expect(ES_REASON_player_bytes, sample(1));
  expect(ES_REASON_admitted, sample(0, {.remote_port = 4001}));
  w_.advance_seconds(2);
  EXPECT_NEAR(per_second(2, 20), 10, 1);
}

TEST_F(GovernTest, BytesOfARoomPerCpuAndGeneration) {
  room().room_bytes_per_cpu = 10 * kSampleBytes;
  w_.publish();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) {
      expect(ES_REASON_admitted, sample(1));
      expect(ES_REASON_admitted, sample(1, {.remote_port = 4001}));
    }
    expect(ES_REASON_room_bytes, sample(1));
    expect(ES_REASON_room_bytes, sample(1, {.remote_port = 4001}));
    w_.publish();
  }
  EXPECT_EQ(w_.room_counters(kRoom).stream_bytes, 30 * kSampleBytes);
}

// Rule: A4
TEST_F(GovernTest, FirstExceededScopeNamesTheReason) {
  room().stream_cap = 1;
  w_.publish();
  expect(ES_REASON_admitted, sample(1));
  room().stream_samples_per_s = room().stream_bytes_per_s = room().player_bytes_per_s = 1;
  room().room_bytes_per_cpu = 0;
  w_.publish();
  expect(ES_REASON_stream_cap, sample(2));
  expect(ES_REASON_stream_rate, sample(1));
  room().stream_samples_per_s = 0;
  w_.publish();
  expect(ES_REASON_stream_bytes, sample(1));
  room().stream_bytes_per_s = 0;
  w_.publish();
  expect(ES_REASON_player_bytes, sample(1));
  room().player_bytes_per_s = 0;
  w_.publish();
  expect(ES_REASON_room_bytes, sample(1));
}

TEST_F(GovernTest, RejectedSampleIsChargedToNobody) {
  room().stream_samples_per_s = 5;
  room().player_bytes_per_s = 10 * kSampleBytes;
  w_.publish();
  for (int i = 0; i < 5; ++i) expect(ES_REASON_admitted, sample(1));
  for (int i = 0; i < 50; ++i) expect(ES_REASON_stream_rate, sample(1));
  for (int i = 0; i < 5; ++i) expect(ES_REASON_admitted, sample(2));
  expect(ES_REASON_player_bytes, sample(3));
}

// Rule: A4
TEST_F(GovernTest, CapOfDistinctStreamsHoldsAndIdleOnesMakeRoom) {
  for (const std::uint8_t cap : {3, 8}) {
    room().stream_cap = cap;
    w_.publish();
    const Flow flow{.remote_port = static_cast<std::uint16_t>(cap == 3 ? 4000 : 4001)};
    for (std::uint16_t i = 0; i < cap; ++i) expect(ES_REASON_admitted, sample(i, flow));
    expect(ES_REASON_stream_cap, sample(100, flow));
    expect(ES_REASON_admitted, sample(0, flow));
    w_.advance_seconds(2);
    expect(ES_REASON_stream_cap, sample(100, flow));  // idle for 2 s, not longer
    expect(ES_REASON_admitted, sample(0, flow));
    w_.advance_jiffies(1);
    expect(ES_REASON_admitted, sample(100, flow));
    expect(ES_REASON_admitted, sample(0, flow));
  }
}

// Rule: A4, A8
TEST_F(GovernTest, AStreamThatIsRefusedForLongIsClosed) {
  room().stream_samples_per_s = 5;
  room().stream_cap = ES_ROOM_CLOSES | 3;
  w_.publish();
  // Twice its rate, in each second; its neighbour stays below.
  unsigned jiffy = 0;
  const unsigned close = ES_STREAM_CLOSE_SECONDS * w_.hz();
  for (; jiffy < 2 * close; jiffy += w_.hz() / 10) {
    w_.advance_jiffies(w_.hz() / 10);
    w_.publish();
    if (jiffy % (w_.hz() / 2) == 0) expect(ES_REASON_admitted, sample(2));
    if (w_.xdp(sample(1)).reason == ES_REASON_stream_closed) break;
  }
  EXPECT_GE(jiffy, close);
  EXPECT_LE(jiffy, close + w_.hz() + w_.hz() / 5);
  w_.advance_jiffies(ES_STREAM_REOPEN_SECONDS * w_.hz());
  w_.publish();
  expect(ES_REASON_stream_closed, sample(1));
  expect(ES_REASON_admitted, sample(1, {.remote_port = 4001}));
  w_.advance_jiffies(ES_STREAM_REOPEN_SECONDS * w_.hz() + 1);
  w_.publish();
  expect(ES_REASON_admitted, sample(1));
}

TEST_F(GovernTest, OneThatIsNeverAcceptedIsClosedAndStaysSo) {
  room().stream_bytes_per_s = 10;  // less than a sample
  room().stream_cap = ES_ROOM_CLOSES;
  w_.publish();
  for (unsigned i = 0; i < 10 * (ES_STREAM_CLOSE_SECONDS + 1); ++i) {
    w_.advance_jiffies(w_.hz() / 10);
    w_.publish();
    w_.xdp(sample(1));
  }
  for (unsigned i = 0; i < 50; ++i) {
    w_.advance_jiffies(w_.hz() / 10);
    w_.publish();
    expect(ES_REASON_stream_closed, sample(1));
  }
}

TEST_F(GovernTest, ARefusalLongAgoIsNotTheFirstOfARow) {
  room().stream_samples_per_s = 5;
  room().stream_cap = ES_ROOM_CLOSES;
  w_.publish();
  for (int i = 0; i < 6; ++i) w_.xdp(sample(1));  // the last one is refused
  const std::uint64_t refused = w_.now();
  w_.advance_seconds(2);
  while (w_.now() < refused + 65536) {  // until 16 bits of the clock have come around
    w_.advance_jiffies(w_.hz() / 2);
    w_.publish();
    expect(ES_REASON_admitted, sample(1));
  }
  for (int i = 0; i < 6; ++i) EXPECT_NE(w_.xdp(sample(1)).reason, ES_REASON_stream_closed);
}

TEST_F(GovernTest, WhatTheServerSendsIsNotGoverned) {
  room().stream_samples_per_s = 1;
  room().stream_cap = ES_ROOM_CLOSES;
  w_.publish();
  for (unsigned i = 0; i < 100; ++i) {
    EXPECT_EQ(w_.tc(lane_out(ES_LANE_stream)).reason, ES_REASON_admitted);
    w_.advance_jiffies(w_.hz() / 10);
    w_.publish();
  }
  EXPECT_EQ(w_.xdp(sample(0)).reason, ES_REASON_admitted);
}

TEST_F(GovernTest, ARefusalNowAndThenClosesNothing) {
  room().stream_samples_per_s = 5;
  room().stream_cap = ES_ROOM_CLOSES;
  w_.publish();
  for (int burst = 0; burst < 10; ++burst) {
    for (int i = 0; i < 5; ++i) expect(ES_REASON_admitted, sample(1));
    expect(ES_REASON_stream_rate, sample(1));
    w_.advance_jiffies(2 * w_.hz());
    w_.publish();
  }
}

TEST_F(GovernTest, WithoutTheFlagARefusedStreamStaysOpen) {
  room().stream_samples_per_s = 5;
  w_.publish();
  for (unsigned i = 0; i < 100; ++i) {
    EXPECT_NE(w_.xdp(sample(1)).reason, ES_REASON_stream_closed);
    w_.advance_jiffies(w_.hz() / 10);
    w_.publish();
  }
}

TEST_F(GovernTest, CapAboveEightActsAsEight) {
  room().stream_cap = 100;
  w_.publish();
  for (std::uint16_t i = 0; i < 8; ++i) expect(ES_REASON_admitted, sample(i));
  expect(ES_REASON_stream_cap, sample(8));
}

TEST_F(GovernTest, StreamWithoutASlotStillHasThePlayersWindow) {
  room().stream_samples_per_s = 1;
  room().player_bytes_per_s = 12 * kSampleBytes;
  w_.publish();
  for (std::uint16_t i = 0; i < 8; ++i) expect(ES_REASON_admitted, sample(i));
  for (int i = 0; i < 4; ++i) expect(ES_REASON_admitted, sample(9));
  expect(ES_REASON_player_bytes, sample(9));
}

TEST_F(GovernTest, ReclaimedSlotStartsWithEmptyWindows) {
  room().stream_cap = 1;
  room().stream_samples_per_s = 5;
  w_.publish();
  for (int i = 0; i < 5; ++i) expect(ES_REASON_admitted, sample(1));
  expect(ES_REASON_stream_rate, sample(1));
  w_.advance_jiffies(2 * w_.hz() + 1);
  for (int i = 0; i < 5; ++i) expect(ES_REASON_admitted, sample(2));
  expect(ES_REASON_stream_rate, sample(2));
}

TEST_F(GovernTest, OnlyStreamSamplesOfPlayersWithABlockAreGoverned) {
  room().player_bytes_per_s = 1;
  w_.publish();
  expect(ES_REASON_player_bytes, sample(1));
  expect(ES_REASON_admitted, sample(1, {.remote_port = 4002}));
  expect(ES_REASON_stranger, sample(1, {.remote_port = 9}));
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_admitted);
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_snapshot)).reason, ES_REASON_admitted);
}

TEST_F(GovernTest, FarewellAndHandshakeOfAStreamAreNotSamples) {
  room().player_bytes_per_s = 1;
  w_.publish();
  for (const std::uint8_t flag : {EDGESHED_LANE_CLOSE, EDGESHED_LANE_JOIN}) {
    const Verdict v =
        w_.xdp(from_remote({}, lane_payload({.lane = ES_LANE_stream, .flags = flag}, 60)));
    EXPECT_EQ(reason_name(v.reason), "admitted") << int{flag};
    EXPECT_EQ(v.action, kXdpPass) << "critical was shed";
  }
}

TEST_F(GovernTest, WindowOfTheRoomIsNotEnforcedUnderAnExpiredPlanAndTheOthersAre) {
  room().room_bytes_per_cpu = 0;
  room().stream_samples_per_s = 5;
  w_.publish();
  w_.control().valid_until_jiffies = w_.now();
  expect(ES_REASON_room_bytes, sample(1));
  w_.advance_seconds(5);
  for (int i = 0; i < 5; ++i) expect(ES_REASON_admitted, sample(1));
  expect(ES_REASON_stream_rate, sample(1));
}

}  // namespace
}  // namespace edgeshed::test
