// The small parts that ticks stand on: schedule, queue, snapshot hand-over, ring.
#include <errno.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <variant>

#include "userspace/daemon/spsc_queue.h"
#include "userspace/daemon/tick_ring.h"
#include "userspace/daemon/tick_schedule.h"
#include "userspace/daemon/tick_thread.h"
#include "userspace/daemon/triple_buffer.h"

namespace edgeshed::daemon {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(TickSchedule, DoesNotDrift) {
  TickSchedule schedule(60, 5);
  for (int i = 0; i < 60 * 3600; ++i) schedule.advance(schedule.due_ns());
  EXPECT_EQ(schedule.due_ns(), 5 + 3600 * kSecond);
  EXPECT_EQ(schedule.skipped(), 0u);
}

TEST(TickSchedule, LateTicksAreSkippedAndCounted) {
  TickSchedule schedule(100, 0);
  EXPECT_EQ(schedule.advance(1'000'000), 0u);  // tick 0 took 1 ms
  EXPECT_EQ(schedule.due_ns(), 10'000'000u);
  EXPECT_EQ(schedule.advance(35'000'000), 2u);  // tick 1 ended when 2 and 3 had been due
  EXPECT_EQ(schedule.due_ns(), 40'000'000u);
  EXPECT_EQ(schedule.skipped(), 2u);
  EXPECT_EQ(schedule.advance(3600 * kSecond), 360'000u - 4);  // a suspended machine
  EXPECT_GT(schedule.due_ns(), 3600 * kSecond);
}

TEST(SpscQueue, KeepsOrderAndRefusesWhenFull) {
  SpscQueue<int, 4> queue;
  int value = -1;
  EXPECT_FALSE(queue.try_pop(value));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.try_push(i));
  EXPECT_FALSE(queue.try_push(4));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(queue.try_pop(value));
    EXPECT_EQ(value, i);
  }
}

TEST(SpscQueue, TwoThreadsLoseNothing) {
  constexpr std::uint32_t kCount = 200'000;
  const auto queue = std::make_unique<SpscQueue<std::uint32_t, 64>>();
  std::thread producer([&] {
    for (std::uint32_t i = 0; i < kCount;) {
      if (queue->try_push(i)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < kCount;) {
    std::uint32_t value = 0;
    if (!queue->try_pop(value)) {
      std::this_thread::yield();
      continue;
    }
    wrong += value != i++;
  }
  producer.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(TripleBuffer, ReaderSeesWholeAndNewestValues) {
  struct Pair {
    std::uint64_t a = 0, b = 0;
  };
  constexpr std::uint64_t kCount = 100'000;
  TripleBuffer<Pair> box(Pair{});
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= kCount; ++i) {
      box.spare() = {i, ~i};
      box.publish();
    }
  });
  std::uint64_t last = 0;
  std::uint64_t wrong = 0;
  while (last < kCount) {
    const Pair& pair = box.latest();
    if (pair.a == 0) continue;
    wrong += pair.b != ~pair.a || pair.a < last;
    last = pair.a;
  }
  writer.join();
  EXPECT_EQ(wrong, 0u);
}

class TickRingTest : public testing::Test {
 protected:
  void open(int fd) {
    auto opened = TickRing::open(fd);
    if (auto* denied = std::get_if<std::string>(&opened)) GTEST_SKIP() << *denied;
    ring_ = std::move(std::get<std::unique_ptr<TickRing>>(opened));
  }
  std::unique_ptr<TickRing> ring_;
};

TEST_F(TickRingTest, WaitsForTheDeadlineAndNotForEvents) {
  const int fd = eventfd(1, EFD_NONBLOCK);
  open(fd);
  const std::uint64_t deadline = monotonic_ns() + 20'000'000;
  EXPECT_EQ(ring_->wait_until(deadline), 0);
  EXPECT_GE(monotonic_ns(), deadline);
  EXPECT_TRUE(ring_->take_events_ready());
  // Not read, so it is ready again at the next tick, and only then.
  EXPECT_FALSE(ring_->take_events_ready());
  EXPECT_EQ(ring_->wait_until(monotonic_ns() + 1'000'000), 0);
  EXPECT_TRUE(ring_->take_events_ready());
  close(fd);
}

TEST_F(TickRingTest, DeadlineInThePastReturnsAtOnce) {
  open(-1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ring_->wait_until(1), 0);
  EXPECT_FALSE(ring_->take_events_ready());
}

TEST(IoUringDenied, NamesTheSetting) {
  EXPECT_NE(io_uring_denied_line(EPERM, "2").find("kernel.io_uring_disabled is 2; set it to 0"),
            std::string::npos);
  EXPECT_NE(io_uring_denied_line(EPERM, "0").find("seccomp"), std::string::npos);
  EXPECT_NE(io_uring_denied_line(ENOSYS, "").find("kernel 6.1"), std::string::npos);
  for (const int error : {EPERM, EACCES, ENOSYS, ENOMEM, EINVAL}) {
    EXPECT_EQ(io_uring_denied_line(error, "1").find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace edgeshed::daemon
