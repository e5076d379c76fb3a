// Plans as game servers read them, and the seals on both boards.
#include "userspace/session/plan_board.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "userspace/session/boards.h"

namespace edgeshed::session {
namespace {

constexpr std::uint8_t kAllLanes = 0xff;
constexpr std::uint32_t kSnapshot = ES_LANE_snapshot - core::kFirstThinLane;
constexpr std::uint32_t kVoice = ES_LANE_voice - core::kFirstThinLane;

TEST(PlanBoard, ARowSaysWhatTheRungSays) {
  es_board_room row{};
  const auto table = core::default_ladder_table();
  write_room(row, table[3], kAllLanes, 3, 5000);
  EXPECT_EQ(row.paused, 1 << ES_LANE_voice | 1 << ES_LANE_cosmetic);
  EXPECT_NEAR(row.keep_q16[kSnapshot], 65535 / 4.0, 1);
  EXPECT_EQ(row.min_interval_ms[kSnapshot], 100);
  EXPECT_EQ(row.max_gap_ms, 250u);
  EXPECT_EQ(row.rung, 3);
  EXPECT_EQ(row.retry_after_ms, 5000u);
  write_room(row, table[0], kAllLanes, 0, 0);
  EXPECT_EQ(row.paused, 0);
  for (const std::uint16_t keep : row.keep_q16) EXPECT_EQ(keep, ES_KEEP_ALL);
}

TEST(PlanBoard, OnlyBestEffortIsTouched) {
  es_board_room row{};
  const auto lanes = static_cast<std::uint8_t>(kAllLanes & ~(1u << ES_LANE_voice));
  write_room(row, core::default_ladder_table()[5], lanes, 5, 0);
  EXPECT_EQ(row.paused & 1 << ES_LANE_voice, 0) << "standard somewhere";
  EXPECT_EQ(row.keep_q16[kVoice], ES_KEEP_ALL);
  EXPECT_EQ(row.keep_q16[kSnapshot], 0);
}

TEST(PlanBoard, TheHeadComesLast) {
  const Boards boards(1, 1);
  write_head(*boards.plan(), 7, 99, 4, true);
  EXPECT_EQ(boards.plan()->generation, 7u);
  EXPECT_EQ(boards.plan()->valid_until_ns, 99u);
  EXPECT_EQ(boards.plan()->shard_rung, 4);
  EXPECT_EQ(boards.plan()->refuse_joins, 1);
}

TEST(Boards, AServerCanNeitherResizeThemNorWriteThePlan) {
  Boards boards(2, 3);
  for (const int fd : {boards.report_fd(), boards.plan_fd()}) {
    EXPECT_NE(ftruncate(fd, 0), 0);
    EXPECT_NE(ftruncate(fd, 1 << 20), 0);
    EXPECT_NE(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
  }
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, boards.plan_fd(), 0),
            MAP_FAILED);
  void* const plan = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, boards.plan_fd(), 0);
  ASSERT_NE(plan, MAP_FAILED);
  // What the daemon writes, the server reads, also after the descriptors are gone.
  boards.close_descriptors();
  write_head(*boards.plan(), 5, 0, 0, false);
  EXPECT_EQ(static_cast<const es_plan_board*>(plan)->generation, 5u);
  munmap(plan, 4096);
}

}  // namespace
}  // namespace edgeshed::session
