// What comes from the daemon: wrong boards, garbage, and events.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "userspace/client/client_fixture.h"

namespace edgeshed::client_test {
namespace {

using testing::HasSubstr;

// ---- wrong daemons ----

struct Wrong {
  const char* name;
  Lies lies;
  const char* problem;
};

class WrongDaemon : public Client, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongDaemon, IsAProblemLineAndNothingElse) {
  start_daemon();
  session_ = beside([&] { daemon_->welcome(GetParam().lies); }, [&] { return open(); });
  ASSERT_NE(session_, nullptr);
  EXPECT_FALSE(edgeshed_connected(session_.get()));
  EXPECT_THAT(edgeshed_problem(session_.get()), HasSubstr(GetParam().problem));
  EXPECT_TRUE(daemon_->closed());
  EXPECT_FALSE(poll().has_value());
  EXPECT_TRUE(may_send(0, EDGESHED_LANE_SNAPSHOT));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongDaemon,
    testing::Values(
        Wrong{"version", {.version = 9}, "board has version 9, this library speaks version 3"},
        Wrong{"magic", {.magic = 7}, "report board has a wrong head"},
        Wrong{"report_small", {.report_bytes_missing = 1}, "report board is too small"},
        Wrong{"plan_small", {.plan_bytes_missing = 1}, "plan board is too small"},
        Wrong{"unsealed", {.sealed = false}, "not sealed against shrinking"},
        Wrong{"no_board", {.boards = 0}, "sent 0 boards instead of 2"},
        Wrong{"one_board", {.boards = 1}, "sent 1 boards instead of 2"},
        Wrong{"three_boards", {.boards = 3}, "sent 3 boards instead of 2"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_F(Client, GarbageEndsTheSessionAndNothingElse) {
  accepted();
  std::vector<char> garbage(600, 'x');
  const es_session_head unknown{.type = 99, .bytes = 8, .request = 0};
  const es_session_head lying{.type = ES_SESSION_event, .bytes = 264, .request = 0};
  es_session_event unterminated{};
  unterminated.head = {.type = ES_SESSION_event, .bytes = sizeof(unterminated), .request = 0};
  unterminated.kind = ES_SESSION_EVENT_rung;
  unterminated.row = unterminated.room = ES_SESSION_NONE;
  std::memset(unterminated.code.text, 'x', sizeof(unterminated.code.text));
  const std::vector<std::function<void()>> all{
      [&] { daemon_->send(garbage.data(), garbage.size()); },
      [&] { daemon_->send(garbage.data(), 264); },
      [&] { daemon_->send(garbage.data(), 3); },
      [&] { daemon_->send(&unknown, sizeof(unknown)); },
      [&] { daemon_->send(&lying, sizeof(lying)); },
      [&] { daemon_->send(&unterminated, sizeof(unterminated)); },
      [&] { daemon_->event(99, ES_SESSION_NONE, ES_SESSION_NONE, 0, 0, "x"); },
      [&] { daemon_->event(ES_SESSION_EVENT_NONE, ES_SESSION_NONE, ES_SESSION_NONE, 0, 0, "x"); },
      [&] { daemon_->event(ES_SESSION_EVENT_daemon_gone, 0, 0, 0, 0, "x"); },
      [&] { daemon_->event(ES_SESSION_EVENT_refused, 1 << 19, ES_SESSION_NONE, 0, 0, "x"); },
      [&] { daemon_->event(ES_SESSION_EVENT_room_state, ES_SESSION_NONE, 64, 0, 0, "x"); },
      [&] { daemon_->room_opened(4711, 0); },
      [&] { daemon_->send(&unknown, sizeof(unknown), std::vector<int>(8, some_fd_)); },
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i]();
    const auto event = poll();
    ASSERT_TRUE(event.has_value()) << i;
    EXPECT_EQ(event->kind, EDGESHED_EVENT_DAEMON_GONE) << i;
    EXPECT_TRUE(daemon_->closed()) << i;
    retry_now();
    tick();
    daemon_->welcome();
    tick();
    EXPECT_TRUE(edgeshed_connected(session_.get()));
    expect_event(EDGESHED_EVENT_DAEMON_BACK, "back");
  }
}

TEST_F(Client, LeaksNoDescriptors) {
  accepted();
  const int before = dup(some_fd_);
  close(before);
  for (int i = 0; i < 20; ++i) {
    const es_session_head unknown{.type = 99, .bytes = 8, .request = 0};
    daemon_->send(&unknown, sizeof(unknown), {some_fd_, some_fd_});
    tick();
    retry_now();
    tick();
    daemon_->welcome(Lies{.version = i % 2 ? ES_SESSION_VERSION : 9});
    tick();
    if (edgeshed_connected(session_.get())) continue;
    retry_now();
    tick();
    daemon_->welcome();
    tick();
    ASSERT_TRUE(edgeshed_connected(session_.get()));
  }
  const int after = dup(some_fd_);
  close(after);
  EXPECT_LE(after, before + 2);
}

// ---- events ----

TEST_F(Client, EventsComeInOrderWithNumbersOfTheServer) {
  accepted();
  room(5, "first");
  const int number = room(9, "second");
  const int peer = connect(number, 77);
  daemon_->event(ES_SESSION_EVENT_rung, ES_SESSION_NONE, ES_SESSION_NONE, 3, 0, "shard_degraded");
  daemon_->event(ES_SESSION_EVENT_room_state, ES_SESSION_NONE, 9, 2, 0, "room_throttling");
  daemon_->event(ES_SESSION_EVENT_slow_consumer, static_cast<std::uint32_t>(peer), 9, 3, 77,
                 "evict");
  daemon_->event(ES_SESSION_EVENT_slow_consumer, static_cast<std::uint32_t>(peer), 9, 3, 76,
                 "evict");
  daemon_->event(ES_SESSION_EVENT_room_state, ES_SESSION_NONE, 1, 2, 0, "of a closed room");

  auto event = poll();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, EDGESHED_EVENT_RUNG);
  EXPECT_EQ(event->value, 3u);
  EXPECT_EQ(event->room, -1);
  EXPECT_EQ(event->peer, -1);
  EXPECT_STREQ(event->code, "shard_degraded");
  EXPECT_STREQ(event->text, "one line");
  event = poll();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, EDGESHED_EVENT_ROOM_STATE);
  EXPECT_EQ(event->room, number);
  event = poll();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, EDGESHED_EVENT_SLOW_CONSUMER);
  EXPECT_EQ(event->peer, peer);
  EXPECT_EQ(event->player, 77u);
  event = poll();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->peer, -1) << "the number belongs to another player by now";
  EXPECT_EQ(event->player, 76u);
  EXPECT_FALSE(poll().has_value());
}

TEST_F(Client, AServerThatNeverPollsKeepsTheNewestEvents) {
  accepted();
  for (std::uint32_t i = 0; i < 400; ++i) {
    daemon_->event(ES_SESSION_EVENT_rung, ES_SESSION_NONE, ES_SESSION_NONE, i, 0, "x");
    if (i % 100 == 99) tick();
  }
  auto event = poll();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->dropped, 400u - ES_CLIENT_EVENTS_MAX);
  EXPECT_EQ(event->value, 400u - ES_CLIENT_EVENTS_MAX);
  std::uint32_t last = event->value;
  for (; (event = poll()); last = event->value) EXPECT_EQ(event->dropped, 0u);
  EXPECT_EQ(last, 399u);
}

}  // namespace
}  // namespace edgeshed::client_test
