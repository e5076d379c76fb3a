// What a steady tick must not do: allocate, or call the kernel. A thousand rooms, a hundred shards
// with sessions that report.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "userspace/daemon/daemon_world.h"
#include "userspace/session/boards.h"

// Sanitizers have an operator new, and system calls, of their own.
#ifndef EDGESHED_SANITIZED

namespace {

std::atomic<std::uint64_t> allocations = 0;

}  // namespace

// Every allocation of this test program, in any library that uses operator new.
void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace edgeshed::daemon {
namespace {

constexpr int kShards = 100;
constexpr int kRoomsPerShard = 10;

std::string large_config() {
  std::string text = "[host]\nrooms_max = 1024\nendpoints_max = 128\nconnections_max = 1024\n";
  for (int shard = 0; shard < kShards; ++shard) {
    text += fmt::format("[[shard]]\nname = \"s{}\"\n", shard);
    std::string rooms;
    for (int room = 0; room < kRoomsPerShard; ++room) {
      text += fmt::format("[[room]]\nname = \"r{}-{}\"\nshard = \"s{}\"\n", shard, room, shard);
      rooms += fmt::format("{}\"r{}-{}\"", room == 0 ? "" : ", ", shard, room);
    }
    text += fmt::format(
        "[[endpoint]]\nname = \"e{}\"\naddress = \"any\"\nport = {}\nprotocol = \"opaque\"\n"
        "rooms = [{}]\n",
        shard, 7000 + shard, rooms);
  }
  return text;
}

class TickCost : public testing::Test, public DaemonWorld {
 protected:
  TickCost() : DaemonWorld(large_config()) {
    for (std::uint32_t shard = 0; shard < kShards; ++shard) {
      boards_.push_back(std::make_unique<session::Boards>(16, control_->geometry.rooms));
      sender_.send(SessionChange{shard, {boards_.back()->report(), boards_.back()->plan()}});
    }
    tick(10);
  }

  /// A report and some arrivals at every shard, then a tick; the rung goes up and down.
  void busy_tick(std::uint64_t number) {
    for (std::size_t shard = 0; shard < boards_.size(); ++shard) {
      es_board_report& report = boards_[shard]->report()->report;
      report.number = number;
      report.reported_ns = now_ns_;
      report.tick_p99_ms = number % 200 < 100 ? 10 : 60;
      report.ticks = number;
      report.busy_ns = number * 5'000'000;
      room_counters_[shard * kRoomsPerShard].arrivals[ES_IN][ES_LANE_command] += 40;
    }
    tick();
    // The log's end of the queue, which is the service thread's.
    ShardChange change;
    while (changes_.try_pop(change)) {
    }
  }

  std::vector<std::unique_ptr<session::Boards>> boards_;
};

TEST_F(TickCost, ASteadyTickAllocatesNothing) {
  for (std::uint64_t i = 1; i <= 20; ++i) busy_tick(i);
  const std::uint64_t before = allocations.load();
  for (std::uint64_t i = 21; i <= 420; ++i) busy_tick(i);
  EXPECT_EQ(allocations.load() - before, 0u);
  EXPECT_GT(box_->latest().shards[0].state.changes, 0u);
}

/// From here on any syscall but exit_group ends this process with SIGSYS.
bool forbid_syscalls() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program{sizeof(code) / sizeof(code[0]), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// How a child ends that runs `body` without the right to any syscall: 0 if it needed none.
template <typename Body>
int status_without_syscalls(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    if (!forbid_syscalls()) _exit(2);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(TickCost, ASteadyTickCallsNoKernel) {
  for (std::uint64_t i = 1; i <= 20; ++i) busy_tick(i);
  const int status = status_without_syscalls([this] {
    for (std::uint64_t i = 21; i <= 220; ++i) busy_tick(i);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  // And the jail is one: a syscall ends it.
  const int caught = status_without_syscalls([] { (void)!write(-1, "", 0); });
  EXPECT_TRUE(WIFSIGNALED(caught)) << "status " << caught;
}

}  // namespace
}  // namespace edgeshed::daemon

#endif
