// The two boards: edgeshed_may_send on the plan board, and what the report board says.
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>

#include "userspace/client/client_fixture.h"

namespace edgeshed::client_test {
namespace {

// ---- may_send ----

class MaySend : public Client {
 protected:
  void SetUp() override {
    accepted();
    peer_ = connect(room(6));
  }
  int sent(int count, edgeshed_lane lane = EDGESHED_LANE_SNAPSHOT) {
    int yes = 0;
    for (int i = 0; i < count; ++i) yes += may_send(peer_, lane);
    return yes;
  }
  int peer_ = -1;
};

TEST_F(MaySend, APausedLaneIsNotSentWhateverTheGap) {
  auto& row = daemon_->open_plan(6, 10'000);
  row.paused = 1U << EDGESHED_LANE_VOICE | 1U << EDGESHED_LANE_COMMAND;
  row.max_gap_ms = 1;
  edgeshed_tick_begin(session_.get());
  EXPECT_EQ(sent(100, EDGESHED_LANE_VOICE), 0);
  EXPECT_EQ(sent(100, EDGESHED_LANE_COMMAND), 0);
  EXPECT_EQ(sent(100, EDGESHED_LANE_COSMETIC), 100);
  EXPECT_EQ(sent(100, EDGESHED_LANE_CONTROL), 100);
}

TEST_F(MaySend, HalfIsEverySecondOneForEachPeerAndLane) {
  auto& row = daemon_->open_plan(6, 10'000);
  row.keep_q16[0] = row.keep_q16[1] = 0x8000;
  const int other = connect(edgeshed_room_open(session_.get(), "unanswered", 1));
  edgeshed_tick_begin(session_.get());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(may_send(peer_, EDGESHED_LANE_SNAPSHOT), i % 2 == 1);
    EXPECT_EQ(may_send(peer_, EDGESHED_LANE_STREAM), i % 2 == 1);
    EXPECT_TRUE(may_send(peer_, EDGESHED_LANE_EVENT));
    EXPECT_TRUE(may_send(other, EDGESHED_LANE_SNAPSHOT)) << "its room is not placed";
  }
}

TEST_F(MaySend, TimeIsTheTicksTime) {
  auto& row = daemon_->open_plan(6, 10'000);
  row.keep_q16[0] = 0;
  row.max_gap_ms = 20;
  row.min_interval_ms[1] = 20;
  for (int ticks = 0; ticks < 3; ++ticks) {
    edgeshed_tick_begin(session_.get());
    EXPECT_EQ(sent(50), 1) << "one per gap";
    EXPECT_EQ(sent(50, EDGESHED_LANE_STREAM), 1) << "one per interval";
    edgeshed_tick_end(session_.get());
    std::this_thread::sleep_for(std::chrono::milliseconds(22));
  }
}

TEST_F(MaySend, AnExpiredPlanShedsNothing) {
  daemon_->open_plan(6, 10'000).paused = 0xff;
  edgeshed_tick_begin(session_.get());
  EXPECT_EQ(sent(10), 0);
  daemon_->plan().valid_until_ns = now_ns();
  EXPECT_EQ(sent(10), 0) << "looked at once a tick";
  edgeshed_tick_begin(session_.get());
  EXPECT_EQ(sent(10), 10);
}

TEST_F(MaySend, BetweenTicksThePlanIsLookedAtToo) {
  daemon_->open_plan(6, 10'000);
  EXPECT_EQ(sent(10), 10);
  daemon_->open_plan(6, 10'000).paused = 0xff;
  EXPECT_EQ(sent(10), 0) << "another generation";
  daemon_->plan().valid_until_ns = now_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(sent(10), 10) << "expired";
  daemon_->open_plan(6, 10'000).paused = 0xff;
  EXPECT_EQ(sent(10), 0);
  tick();
  EXPECT_EQ(sent(10), 0) << "after a tick as before one";
}

TEST_F(MaySend, WhatIsUnknownIsSent) {
  daemon_->open_plan(6, 10'000).paused = 0xff;
  edgeshed_tick_begin(session_.get());
  EXPECT_FALSE(may_send(peer_, EDGESHED_LANE_SNAPSHOT));
  EXPECT_TRUE(may_send(-1, EDGESHED_LANE_SNAPSHOT));
  EXPECT_TRUE(may_send(peer_ + 1, EDGESHED_LANE_SNAPSHOT));
  EXPECT_TRUE(may_send(1 << 30, EDGESHED_LANE_SNAPSHOT));
  EXPECT_EQ(edgeshed_may_send(session_.get(), peer_, static_cast<edgeshed_lane>(8)), 1);
  EXPECT_EQ(edgeshed_may_send(session_.get(), peer_, static_cast<edgeshed_lane>(7)), 0);
  daemon_->plan().room[6].open = 0;
  EXPECT_TRUE(may_send(peer_, EDGESHED_LANE_SNAPSHOT)) << "the room is not placed any more";
}

TEST_F(MaySend, TakesAboutANanosecond) {
  constexpr int kCalls = 5'000'000;
  const auto measure = [&](const char* name) {
    const std::uint64_t start = now_ns();
    int yes = 0;
    for (int i = 0; i < kCalls; ++i) {
      yes += edgeshed_may_send(session_.get(), peer_, EDGESHED_LANE_SNAPSHOT);
    }
    const double each_ns = static_cast<double>(now_ns() - start) / kCalls;
    RecordProperty(name, std::to_string(each_ns));
#ifndef EDGESHED_SANITIZED
    EXPECT_LT(each_ns, 100) << name;
#endif
    return yes;
  };
  daemon_->open_plan(6, 60'000);
  EXPECT_EQ(measure("between_ticks_ns"), kCalls);
  edgeshed_tick_begin(session_.get());
  EXPECT_EQ(measure("in_tick_ns"), kCalls);
  daemon_->open_plan(6, 60'000).keep_q16[0] = 0x8000;
  edgeshed_tick_begin(session_.get());
  EXPECT_EQ(measure("in_tick_thinned_ns"), kCalls / 2);
}

// ---- reports ----

TEST_F(Client, TicksAreMeasuredAndReported) {
  accepted();
  edgeshed_set_ring(session_.get(), 0.25);
  edgeshed_tick_begin(session_.get());
  const std::uint64_t started = daemon_->report().tick_started_ns;
  EXPECT_LT(now_ns() - started, 1'000'000'000u);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  edgeshed_tick_end(session_.get());
  edgeshed_tick_end(session_.get());  // without a begin: nothing
  const auto& board = daemon_->report();
  EXPECT_EQ(board.tick_started_ns, 0u);
  EXPECT_EQ(board.report.seq, 2u);
  EXPECT_EQ(board.report.number, 1u);
  EXPECT_EQ(board.report.ticks, 1u);
  EXPECT_EQ(board.report.rooms, ES_SESSION_NONE);
  EXPECT_EQ(board.report.ring_occupancy, 0.25);
  EXPECT_GE(board.report.tick_p99_ms, 5);
  EXPECT_DOUBLE_EQ(board.report.tick_p99_ms, static_cast<double>(board.report.busy_ns) / 1e6);
  EXPECT_GE(board.report.reported_ns, started + 5'000'000);
}

TEST_F(Client, AReportGoesOnAsTheServerSaidIt) {
  accepted();
  const edgeshed_report_data data{.tick_p99_ms = std::numeric_limits<double>::quiet_NaN(),
                                  .ring_occupancy = -7,
                                  .ticks = 1000,
                                  .busy_ns = 1};
  daemon_->report().report.seq = 41;  // as a server that died while it wrote had left it
  edgeshed_report(session_.get(), &data);
  const auto& report = daemon_->report().report;
  EXPECT_EQ(report.seq, 44u);
  EXPECT_TRUE(std::isnan(report.tick_p99_ms));
  EXPECT_EQ(report.ring_occupancy, -7);
  EXPECT_EQ(report.ticks, 1000u);
  EXPECT_EQ(report.busy_ns, 1u);
}

TEST_F(Client, AcksAndRejectsAreOnTheBoard) {
  accepted();
  const int number = room(0);
  connect(number);
  const int peer = connect(number);
  edgeshed_note_ack(session_.get(), peer, 100, 90, 4096);
  for (int i = 0; i < 3; ++i) {
    edgeshed_note_reject(session_.get(), peer, EDGESHED_REJECT_OVER_BUDGET);
  }
  edgeshed_note_reject(session_.get(), peer, EDGESHED_REJECT_OVERSIZED);
  edgeshed_note_reject(session_.get(), peer, static_cast<edgeshed_reject>(2));
  edgeshed_note_ack(session_.get(), 500, 1, 1, 1);
  const auto& row = daemon_->report().connection[peer];
  EXPECT_EQ(row.latest_seq, 100u);
  EXPECT_EQ(row.acked_seq, 90u);
  EXPECT_EQ(row.buffered_bytes, 4096u);
  EXPECT_EQ(row.rejects[0], 1u);
  EXPECT_EQ(row.rejects[1], 3u);
}

/// One try of the daemon's reader. False: it was being written.
bool read_report(es_board_report& board, std::uint64_t (&words)[4]) {
  const std::uint32_t before = __atomic_load_n(&board.seq, __ATOMIC_ACQUIRE);
  double p99 = 0;
  // Each load is an acquire, so that the second look at `seq` stays behind them all.
  words[0] = __atomic_load_n(&board.number, __ATOMIC_ACQUIRE);
  words[1] = __atomic_load_n(&board.ticks, __ATOMIC_ACQUIRE);
  words[2] = __atomic_load_n(&board.busy_ns, __ATOMIC_ACQUIRE);
  __atomic_load(&board.tick_p99_ms, &p99, __ATOMIC_ACQUIRE);
  words[3] = static_cast<std::uint64_t>(p99);
  return before % 2 == 0 && __atomic_load_n(&board.seq, __ATOMIC_RELAXED) == before;
}

TEST_F(Client, AReaderBesideTheWriterSeesNoTornReport) {
  accepted();
  std::atomic<bool> done = false;
  std::uint64_t read = 0;
  std::uint64_t torn = 0;
  std::thread reader([&] {
    auto& board = daemon_->report().report;
    while (!done) {
      std::uint64_t words[4];
      if (!read_report(board, words)) continue;
      read++;
      torn += words[1] != 3 * words[0] || words[2] != 5 * words[0] || words[3] != words[0];
    }
  });
  edgeshed_report_data data{};
  const std::uint64_t end = now_ns() + 300'000'000;
  for (std::uint64_t i = 1; i % 64 != 0 || now_ns() < end; ++i) {
    data.tick_p99_ms = static_cast<double>(i);
    data.ticks = 3 * i;
    data.busy_ns = 5 * i;
    es_client_boards_report(session_.get(), &data, i);
    // A pause of changing length: a reader fits in between, and now and then only nearly.
    for (std::uint64_t spin = 0; spin < i * 7 % 401; ++spin) asm volatile("" ::: "memory");
  }
  done = true;
  reader.join();
  RecordProperty("reports_read", std::to_string(read));
  EXPECT_GT(read, 0u);
  EXPECT_EQ(torn, 0u);
}

}  // namespace
}  // namespace edgeshed::client_test
