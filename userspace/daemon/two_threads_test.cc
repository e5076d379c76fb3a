// The daemon's two threads side by side, as they are at work: the real tick thread at 250 Hz, and
// this one as the service. What it shows is shown by the thread sanitizer (tools/dev test --preset
// tsan).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <thread>

#include "userspace/core/error_type.h"
#include "userspace/daemon/daemon_world.h"
#include "userspace/daemon/tick_thread.h"

namespace edgeshed::daemon {
namespace {

using testing::HasSubstr;

std::string config_of(int rooms) {
  std::string file =
      "[host]\nconnections_max = 64\nendpoints_max = 4\nrooms_max = 16\nclasses_max = 4\n"
      "tick_hz = 250\n[[shard]]\nname = \"arena\"\n[[class]]\nname = \"player\"\n";
  std::string names;
  for (int i = 0; i < rooms; ++i) {
    const std::string name = "room-" + std::to_string(i);
    file += "[[room]]\nname = \"" + name + "\"\nshard = \"arena\"\n";
    names += (names.empty() ? "\"" : ", \"") + name + "\"";
  }
  return file +
         "[[endpoint]]\nname = \"game\"\naddress = \"any\"\nport = 7777\n"
         "protocol = \"opaque\"\nrooms = [" +
         names + "]\n";
}

/// Ends nothing and keeps nothing.
class Deaf : public session::SessionOutput {
 public:
  bool send(std::span<const std::byte>, std::initializer_list<int>) override {
    ++told;
    return true;
  }
  void end() override {}
  int told = 0;
};

class TwoThreadsTest : public testing::Test, public DaemonWorld {
 protected:
  TwoThreadsTest() : DaemonWorld(config_of(4)) { spdlog::set_level(spdlog::level::off); }
  ~TwoThreadsTest() override { spdlog::set_level(spdlog::level::info); }

  void start() {
    now_ns_ = monotonic_ns();
    try {
      thread_ = std::make_unique<TickThread>(*ticker_, TickThreadOptions{});
    } catch (const Error& denied) {
      GTEST_SKIP() << denied.what();
    }
  }

  /// The service's 100 ms of work, in a few.
  void serve() {
    now_ns_ = monotonic_ns();
    service_->upkeep();
    ASSERT_THAT(say(StatusRequest{}), HasSubstr(R"("ok":true)"));
    ASSERT_THAT(say(RoomsRequest{}), HasSubstr(R"("ok":true)"));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  /// As the daemon's own reload does.
  void reload(int rooms) {
    auto next = std::make_unique<daemon::Setup>(config::parse(config_of(rooms), "test.toml"));
    ASSERT_TRUE(sender_.try_send(SetupChange{next.get()}));
    while (box_->latest().model != &next->model) {
      ASSERT_EQ(thread_->failure(), "");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    service_->log_changes();
    connections_->use(next->model);
    sessions_->use(next->model);
    service_->use(next->model);
    setup_ = std::move(next);
  }

  void join(session::SessionId id, Deaf& server) {
    es_session_hello hello{};
    hello.rows = 4;
    std::strncpy(hello.shard, "arena", sizeof(hello.shard) - 1);
    ASSERT_EQ(sessions_->open(id, {}, hello, server).index(), 0u);
    sessions_->welcomed(id);
    ASSERT_EQ(sessions_->room_open(id, "room-0", 4).index(), 0u);
  }

  std::unique_ptr<TickThread> thread_;
};

TEST_F(TwoThreadsTest, OrdersSessionsAndStatusWhileItTicks) {
  start();
  if (IsSkipped()) return;
  for (int round = 0; round < 20; ++round) {
    Deaf server;
    join(round + 2, server);
    for (int rung = 1; rung <= 5; ++rung) {
      say(SetRequest{"shard", "arena", rung, 60});
      say(SetRequest{"room", "room-1", 5 - rung, 60});
      say(ReportRequest{"arena", 10.0 * rung, 0, 0.1, 2});
      serve();
    }
    say(DrainRequest{"arena", round % 2 == 0});
    sessions_->ended(round + 2);
    EXPECT_GT(server.told, 0);
  }
  EXPECT_EQ(thread_->failure(), "");
  EXPECT_GT(box_->latest().tick_count, 20u);
  EXPECT_GT(box_->latest().room_changes[static_cast<std::size_t>(core::Cause::manual)], 0u);
}

TEST_F(TwoThreadsTest, ReloadsWhileItTicks) {
  start();
  if (IsSkipped()) return;
  for (int round = 0; round < 20; ++round) {
    say(SetRequest{"shard", "arena", round % 6, 60});
    serve();
    reload(4 + round % 3);
    serve();
  }
  EXPECT_EQ(thread_->failure(), "");
  thread_.reset();  // before the last configuration goes
}

}  // namespace
}  // namespace edgeshed::daemon
