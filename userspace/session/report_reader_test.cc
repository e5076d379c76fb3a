// Reports that are believed, and those that are not: a code each, counted once, and the last good
// one stands.
#include "userspace/session/report_reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>

#include "userspace/core/codes.h"
#include "userspace/session/boards.h"

namespace edgeshed::session {
namespace {

using core::Code;

constexpr std::uint64_t kNowNs = 5'000'000'000;
constexpr std::uint32_t kRoomsMax = 8;

ServerReport good() {
  ServerReport report;
  report.number = 10;
  report.reported_ns = kNowNs - 1000;
  report.tick_p99_ms = 20;
  report.ring_occupancy = 0.5;
  report.ticks = 100;
  report.busy_ns = 1'000'000;
  return report;
}

Code judged(ServerReport report, const ServerReport& last = {}) {
  return judge_report(report, last, kNowNs, kRoomsMax).value_or(Code::count);
}

template <typename Change>
Code changed(Change change, const ServerReport& last = {}) {
  ServerReport report = good();
  change(report);
  return judged(report, last);
}

TEST(JudgeReport, EdgesAreBelieved) {
  EXPECT_EQ(judged(good()), Code::count);
  EXPECT_EQ(changed([](auto& r) { r.tick_p99_ms = 0; }), Code::count);
  EXPECT_EQ(changed([](auto& r) { r.tick_p99_ms = kTickMsMax; }), Code::count);
  EXPECT_EQ(changed([](auto& r) { r.ring_occupancy = 1; }), Code::count);
  EXPECT_EQ(changed([](auto& r) { r.rooms = kRoomsMax; }), Code::count);
  EXPECT_EQ(judged(good(), good()), Code::count) << "totals that stand still";
}

TEST(JudgeReport, TheImpossibleHasACodeEach) {
  EXPECT_EQ(changed([](auto& r) { r.tick_p99_ms = -0.1; }), Code::report_negative);
  EXPECT_EQ(changed([](auto& r) { r.ring_occupancy = -1; }), Code::report_negative);
  EXPECT_EQ(changed([](auto& r) { r.busy_ns = ~std::uint64_t{0}; }), Code::report_negative);
  EXPECT_EQ(changed([](auto& r) { r.ticks = std::uint64_t{1} << 63; }), Code::report_negative);
  EXPECT_EQ(changed([](auto& r) { r.tick_p99_ms = std::nan(""); }), Code::report_not_a_number);
  EXPECT_EQ(changed([](auto& r) { r.ring_occupancy = std::numeric_limits<double>::infinity(); }),
            Code::report_not_a_number);
  EXPECT_EQ(changed([](auto& r) { r.tick_p99_ms = kTickMsMax + 1; }), Code::report_not_a_number);
  EXPECT_EQ(changed([](auto& r) { r.ring_occupancy = 50; }), Code::report_ring_out_of_range);
  EXPECT_EQ(changed([](auto& r) { r.reported_ns = kNowNs + 1'000'000'000; }),
            Code::report_time_in_future);
  EXPECT_EQ(changed([](auto& r) { r.rooms = kRoomsMax + 1; }), Code::report_room_in_no_shard);
}

TEST(JudgeReport, NothingGoesBack) {
  const ServerReport last = good();
  EXPECT_EQ(changed([](auto& r) { --r.number; }, last), Code::report_sequence_back);
  EXPECT_EQ(changed([](auto& r) { --r.reported_ns; }, last), Code::report_sequence_back);
  EXPECT_EQ(changed([](auto& r) { --r.ticks; }, last), Code::report_sequence_back);
  EXPECT_EQ(changed([](auto& r) { --r.busy_ns; }, last), Code::report_sequence_back);
}

class ReaderTest : public testing::Test {
 protected:
  void write(const ServerReport& report) {
    es_board_report& board = boards_.report()->report;
    board.number = report.number;
    board.reported_ns = report.reported_ns;
    board.tick_p99_ms = report.tick_p99_ms;
    board.ring_occupancy = report.ring_occupancy;
    board.rooms = report.rooms;
    board.ticks = report.ticks;
    board.busy_ns = report.busy_ns;
  }
  bool read() { return reader_.read(*boards_.report(), kNowNs, kRoomsMax); }

  Boards boards_{4, 4};
  ReportReader reader_;
};

TEST_F(ReaderTest, AReportIsNewOnce) {
  EXPECT_FALSE(read()) << "nothing has been reported";
  write(good());
  EXPECT_TRUE(read());
  EXPECT_FALSE(read());
  EXPECT_EQ(reader_.accepted(), 1u);
}

TEST_F(ReaderTest, ALieIsCountedOnceAndLeavesTheLastGoodOne) {
  write(good());
  read();
  ServerReport lie = good();
  ++lie.number;
  lie.tick_p99_ms = -1;
  write(lie);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(read());
  EXPECT_EQ(reader_.refused(), 1u);
  EXPECT_EQ(reader_.refusal(), Code::report_negative);
  EXPECT_EQ(reader_.last().tick_p99_ms, 20);
  ServerReport truth = good();
  truth.number += 2;
  truth.tick_p99_ms = 30;
  write(truth);
  EXPECT_TRUE(read());
  EXPECT_EQ(reader_.last().tick_p99_ms, 30);
}

TEST_F(ReaderTest, AWriterThatNeverEndsIsNotWaitedFor) {
  write(good());
  boards_.report()->report.seq = 1;
  EXPECT_FALSE(read());
  EXPECT_EQ(reader_.refused(), 0u);
  boards_.report()->report.seq = 2;
  EXPECT_TRUE(read());
}

TEST_F(ReaderTest, TheTickThatRunsHasAnAge) {
  es_report_board& board = *boards_.report();
  EXPECT_EQ(ReportReader::running_tick_age_ms(board, kNowNs), 0);
  board.tick_started_ns = kNowNs - 40'000'000;
  EXPECT_EQ(ReportReader::running_tick_age_ms(board, kNowNs), 40);
  board.tick_started_ns = kNowNs + 1;
  EXPECT_EQ(ReportReader::running_tick_age_ms(board, kNowNs), 0) << "from the future";
  board.tick_started_ns = 1;
  EXPECT_EQ(ReportReader::running_tick_age_ms(board, 700'000'000'000), 0) << "a broken clock";
}

/// Words that belong together are equal: a report that mixes two is a torn one.
TEST_F(ReaderTest, NoReportIsTorn) {
  std::atomic<bool> stop = false;
  es_board_report& board = boards_.report()->report;
  std::thread writer([&] {
    for (std::uint64_t i = 1; !stop; ++i) {
      __atomic_store_n(&board.seq, board.seq + 1, __ATOMIC_RELEASE);
      std::atomic_thread_fence(std::memory_order_release);
      __atomic_store_n(&board.number, i, __ATOMIC_RELEASE);
      __atomic_store_n(&board.ticks, i, __ATOMIC_RELEASE);
      __atomic_store_n(&board.busy_ns, i, __ATOMIC_RELEASE);
      __atomic_store_n(&board.seq, board.seq + 1, __ATOMIC_RELEASE);
    }
  });
  std::uint64_t read_some = 0;
  std::uint64_t torn = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (read_some < 10'000 && std::chrono::steady_clock::now() < deadline) {
    if (!read()) continue;
    ++read_some;
    const ServerReport& last = reader_.last();
    torn += last.ticks != last.number || last.busy_ns != last.number;
  }
  stop = true;
  writer.join();
  EXPECT_EQ(torn, 0u);
  EXPECT_GT(read_some, 100u);
  EXPECT_EQ(reader_.refused(), 0u);
}

}  // namespace
}  // namespace edgeshed::session
