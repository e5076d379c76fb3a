// The library against a daemon made for it: registration, loss and return, boards, wrong daemons.
#include "userspace/client/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "userspace/client/fake_daemon.h"

namespace edgeshed::client_test {
namespace {

using testing::HasSubstr;

struct CloseSession {
  void operator()(edgeshed_session* session) const { edgeshed_close(session); }
};
using Session = std::unique_ptr<edgeshed_session, CloseSession>;

/// Runs the daemon's part in a thread while the library's part, which waits for it, runs here.
template <typename Part>
auto beside(const std::function<void()>& daemons_part, Part part) {
  auto other = std::async(std::launch::async, daemons_part);
  auto result = part();
  other.get();
  return result;
}

double ms_since(std::uint64_t start_ns) { return static_cast<double>(now_ns() - start_ns) / 1e6; }

class Client : public testing::Test {
 protected:
  Client() {
    char directory[] = "/tmp/edgeshed_client_XXXXXX";
    directory_ = mkdtemp(directory);
    path_ = directory_ + "/session.sock";
    address_.sin_family = AF_INET;
    address_.sin_port = htons(4000);
    inet_pton(AF_INET, "192.0.2.7", &address_.sin_addr);
  }
  ~Client() override {
    session_.reset();
    daemon_.reset();
    rmdir(directory_.c_str());
  }

  Session open(std::uint32_t peers_max = 0) {
    const edgeshed_options options{.shard = "arena",
                                   .socket = path_.c_str(),
                                   .server = "test",
                                   .peers_max = peers_max,
                                   .sends_unasked = 0};
    return Session(edgeshed_open(&options));
  }
  void start_daemon() { daemon_.emplace(path_); }
  /// A session that the daemon has accepted.
  void accepted(std::uint32_t peers_max = 0) {
    start_daemon();
    session_ = beside([&] { daemon_->welcome(); }, [&] { return open(peers_max); });
    ASSERT_TRUE(edgeshed_connected(session_.get())) << edgeshed_problem(session_.get());
  }
  /// A room that the daemon has placed on `row`.
  int room(std::uint32_t row, const char* name = "match") {
    return beside([&] { answer_room(row); },
                  [&] { return edgeshed_room_open(session_.get(), name, 16); });
  }
  void answer_room(std::uint32_t row, const char* code = "") {
    const auto packet = daemon_->receive();
    ASSERT_TRUE(packet && packet->type() == ES_SESSION_room_open);
    daemon_->room_opened(packet->as<es_session_room_open>().head.request, row, code);
  }
  int connect(int room, std::uint64_t player = 0) {
    const edgeshed_peer peer{.room = room,
                             .addr = reinterpret_cast<const sockaddr*>(&address_),
                             .endpoint = nullptr,
                             .contract_class = nullptr,
                             .player = player,
                             .weight = 0,
                             .priority = 0};
    return edgeshed_connect(session_.get(), &peer);
  }
  /// A connection as the daemon hears of it.
  es_session_connect heard_connect() {
    const auto packet = daemon_->receive();
    if (packet && packet->type() == ES_SESSION_connect) return packet->as<es_session_connect>();
    ADD_FAILURE() << "no CONNECT came";
    return {};
  }
  std::optional<edgeshed_event> poll() {
    edgeshed_event event{};
    if (!edgeshed_poll(session_.get(), &event)) return {};
    return event;
  }
  void expect_event(int kind, const char* text) {
    const auto event = poll();
    ASSERT_TRUE(event.has_value());
    EXPECT_EQ(event->kind, kind);
    EXPECT_THAT(event->text, HasSubstr(text));
  }
  /// The second between two tries is over.
  void retry_now() { session_->next_try_ns = 0; }
  bool may_send(int peer, edgeshed_lane lane) {
    return edgeshed_may_send(session_.get(), peer, lane) == 1;
  }
  void tick() {
    edgeshed_tick_begin(session_.get());
    edgeshed_tick_end(session_.get());
  }

  std::string directory_;
  std::string path_;
  sockaddr_in address_{};
  std::optional<FakeDaemon> daemon_;
  Session session_;
};

// ---- registration ----

TEST_F(Client, SaysHelloAndIsWelcome) {
  start_daemon();
  es_session_hello hello{};
  session_ = beside([&] { hello = daemon_->welcome(); }, [&] { return open(77); });
  EXPECT_TRUE(edgeshed_connected(session_.get()));
  EXPECT_STREQ(edgeshed_problem(session_.get()), "");
  EXPECT_GE(edgeshed_fd(session_.get()), 0);
  EXPECT_EQ(hello.magic, ES_SESSION_MAGIC);
  EXPECT_EQ(hello.version, ES_SESSION_VERSION);
  EXPECT_EQ(hello.flags, ES_SESSION_HONOURS_MAY_SEND);
  EXPECT_EQ(hello.rows, 77u);
  EXPECT_STREQ(hello.shard, "arena");
  EXPECT_STREQ(hello.server, "test");
  EXPECT_FALSE(poll().has_value()) << "the first success is no event";
}

TEST_F(Client, RefusesOptionsThatCannotBe) {
  errno = 0;
  EXPECT_EQ(edgeshed_open(nullptr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  edgeshed_options options{};
  EXPECT_EQ(edgeshed_open(&options), nullptr);
  const std::string long_name(64, 'x');
  options.shard = long_name.c_str();
  EXPECT_EQ(edgeshed_open(&options), nullptr);
  options.shard = "arena";
  options.peers_max = ES_SESSION_ROWS_MAX + 1;
  EXPECT_EQ(edgeshed_open(&options), nullptr);
}

TEST_F(Client, ASocketPathThatIsTooLongIsAProblemLine) {
  path_ = "/tmp/" + std::string(200, 'x');
  session_ = open();
  EXPECT_THAT(edgeshed_problem(session_.get()), HasSubstr("allowed: 1 to 107"));
  tick();
  EXPECT_FALSE(edgeshed_connected(session_.get()));
}

TEST_F(Client, RegistersRoomAndPeer) {
  accepted();
  const int number = room(9);
  ASSERT_GE(number, 0);
  const edgeshed_peer peer{.room = number,
                           .addr = reinterpret_cast<const sockaddr*>(&address_),
                           .endpoint = "game",
                           .contract_class = "player",
                           .player = 5,
                           .weight = 2.5F,
                           .priority = 200};
  const int handle = edgeshed_connect(session_.get(), &peer);
  const auto heard = heard_connect();
  EXPECT_EQ(heard.row, static_cast<std::uint32_t>(handle));
  EXPECT_EQ(heard.room, 9u);
  EXPECT_EQ(heard.port, 4000);
  const std::uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7};
  EXPECT_EQ(std::memcmp(heard.addr, mapped, 16), 0);
  EXPECT_EQ(heard.priority, 200);
  EXPECT_EQ(heard.weight, 2.5F);
  EXPECT_EQ(heard.player, 5u);
  EXPECT_STREQ(heard.endpoint, "game");
  EXPECT_STREQ(heard.contract_class, "player");

  edgeshed_disconnect(session_.get(), handle);
  const auto gone = daemon_->receive();
  ASSERT_TRUE(gone && gone->type() == ES_SESSION_disconnect);
  EXPECT_EQ(gone->as<es_session_disconnect>().row, heard.row);
  edgeshed_room_close(session_.get(), number);
  const auto closed = daemon_->receive();
  ASSERT_TRUE(closed && closed->type() == ES_SESSION_room_close);
  EXPECT_EQ(closed->as<es_session_room_close>().room, 9u);
}

TEST_F(Client, RefusesPeersThatCannotBe) {
  session_ = open(2);
  const int number = edgeshed_room_open(session_.get(), "match", 1);
  EXPECT_EQ(edgeshed_room_open(session_.get(), "", 1), -1);
  EXPECT_EQ(edgeshed_room_open(session_.get(), std::string(64, 'x').c_str(), 1), -1);
  EXPECT_EQ(connect(number + 1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(connect(-1), -1);
  address_.sin_family = AF_UNIX;
  EXPECT_EQ(connect(number), -1);
  address_.sin_family = AF_INET;
  EXPECT_GE(connect(number), 0);
  const int second = connect(number);
  EXPECT_EQ(connect(number), -1);
  EXPECT_EQ(errno, ENOSPC);
  edgeshed_disconnect(session_.get(), second);
  edgeshed_disconnect(session_.get(), second);
  EXPECT_EQ(connect(number), second);
  EXPECT_EQ(connect(number), -1);
  edgeshed_disconnect(session_.get(), 12345);
  edgeshed_room_close(session_.get(), -1);
}

TEST_F(Client, ARefusedRoomIsBusyAndAnEventSaysWhy) {
  accepted();
  const int number = beside([&] { answer_room(0, "room_refused"); },
                            [&] {
                              const int opened = edgeshed_room_open(session_.get(), "match", 16);
                              EXPECT_EQ(errno, EBUSY);
                              return opened;
                            });
  EXPECT_EQ(number, -1);
  const auto event = poll();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, EDGESHED_EVENT_REFUSED);
  EXPECT_EQ(event->room, -1);
  EXPECT_STREQ(event->code, "room_refused");
  EXPECT_EQ(event->retry_after_ms, 3000u);
}

TEST_F(Client, ARoomWithoutAnAnswerIsKeptAfter200Ms) {
  accepted();
  const std::uint64_t start = now_ns();
  const int number = edgeshed_room_open(session_.get(), "match", 16);
  EXPECT_GE(ms_since(start), 190);
  EXPECT_LT(ms_since(start), 350);
  ASSERT_GE(number, 0);
  const int peer = connect(number);
  answer_room(4);  // late
  tick();
  EXPECT_EQ(heard_connect().row, static_cast<std::uint32_t>(peer));
}

TEST_F(Client, ARoomClosedBeforeItsAnswerIsClosedAfterIt) {
  accepted();
  const int number = edgeshed_room_open(session_.get(), "match", 16);
  edgeshed_room_close(session_.get(), number);
  answer_room(4);
  tick();
  const auto closed = daemon_->receive();
  ASSERT_TRUE(closed && closed->type() == ES_SESSION_room_close);
  EXPECT_EQ(closed->as<es_session_room_close>().room, 4u);
}

TEST_F(Client, ANumberUsedAgainIsDisconnectedBeforeItIsConnected) {
  accepted();
  const int number = room(0);
  const int peer = connect(number, 1);
  EXPECT_EQ(heard_connect().player, 1u);
  edgeshed_note_reject(session_.get(), peer, EDGESHED_REJECT_OVER_BUDGET);
  edgeshed_disconnect(session_.get(), peer);
  EXPECT_EQ(connect(number, 2), peer);
  EXPECT_EQ(daemon_->report().connection[peer].rejects[1], 0u);
  const auto gone = daemon_->receive();
  ASSERT_TRUE(gone && gone->type() == ES_SESSION_disconnect);
  EXPECT_EQ(heard_connect().player, 2u);
}

// ---- no daemon, and its return ----

TEST_F(Client, WithoutADaemonEverythingSucceedsAtOnce) {
  const std::uint64_t start = now_ns();
  session_ = open();
  ASSERT_NE(session_, nullptr);
  EXPECT_FALSE(edgeshed_connected(session_.get()));
  EXPECT_THAT(edgeshed_problem(session_.get()), HasSubstr("no daemon at"));
  EXPECT_EQ(edgeshed_fd(session_.get()), -1);
  const int number = edgeshed_room_open(session_.get(), "match", 16);
  const int peer = connect(number);
  EXPECT_GE(number, 0);
  EXPECT_GE(peer, 0);
  for (int i = 0; i < 1000; ++i) {
    edgeshed_tick_begin(session_.get());
    EXPECT_TRUE(may_send(peer, EDGESHED_LANE_SNAPSHOT));
    edgeshed_note_ack(session_.get(), peer, 2, 1, 0);
    edgeshed_note_reject(session_.get(), peer, EDGESHED_REJECT_OVERSIZED);
    edgeshed_tick_end(session_.get());
    EXPECT_FALSE(poll().has_value());
  }
  EXPECT_LT(ms_since(start), 150);
}

TEST_F(Client, ASilentDaemonCostsOpenAtMost200Ms) {
  start_daemon();
  const std::uint64_t start = now_ns();
  session_ = open();
  EXPECT_GE(ms_since(start), 190);
  EXPECT_LT(ms_since(start), 350);
  EXPECT_THAT(edgeshed_problem(session_.get()), HasSubstr("has not answered yet"));
  daemon_->welcome();  // late, but welcome
  tick();
  EXPECT_TRUE(edgeshed_connected(session_.get()));
}

TEST_F(Client, ADaemonThatNeverAnswersIsGivenUp) {
  start_daemon();
  session_ = open();
  session_->greeted_ns -= 3'000'000'000;
  tick();
  EXPECT_THAT(edgeshed_problem(session_.get()), HasSubstr("did not answer"));
  EXPECT_EQ(edgeshed_fd(session_.get()), -1);
}

TEST_F(Client, LooksForTheDaemonOnceASecond) {
  session_ = open();
  start_daemon();
  for (int i = 0; i < 100; ++i) tick();
  EXPECT_EQ(edgeshed_fd(session_.get()), -1) << "the second is not over";
  EXPECT_LT(session_->next_try_ns, now_ns() + 1'000'000'000);
  retry_now();
  tick();
  EXPECT_GE(edgeshed_fd(session_.get()), 0);
}

TEST_F(Client, RegistersEverythingWhenTheDaemonComesLate) {
  session_ = open();
  const int number = edgeshed_room_open(session_.get(), "match", 16);
  for (std::uint64_t player = 0; player < 5; ++player) connect(number, player);
  edgeshed_disconnect(session_.get(), 3);
  start_daemon();
  retry_now();
  tick();
  daemon_->welcome();
  tick();
  answer_room(7);
  tick();
  for (const std::uint64_t player : {0u, 1u, 2u, 4u}) {
    const auto heard = heard_connect();
    EXPECT_EQ(heard.player, player);
    EXPECT_EQ(heard.room, 7u);
  }
  EXPECT_FALSE(poll().has_value()) << "the first success is no event";
}

TEST_F(Client, RegistersAgainWhenTheDaemonIsBack) {
  accepted();
  const int first = room(1, "first");
  const int second = room(2, "second");
  const int peer = connect(first, 11);
  connect(second, 22);
  heard_connect();
  heard_connect();
  daemon_->open_plan(1, 10'000).paused = 0xff;
  edgeshed_tick_begin(session_.get());
  EXPECT_FALSE(may_send(peer, EDGESHED_LANE_SNAPSHOT));
  daemon_->hang_up();
  expect_event(EDGESHED_EVENT_DAEMON_GONE, "closed the session");
  EXPECT_TRUE(may_send(peer, EDGESHED_LANE_SNAPSHOT));
  EXPECT_FALSE(edgeshed_connected(session_.get()));
  EXPECT_EQ(edgeshed_fd(session_.get()), -1);

  retry_now();
  tick();
  daemon_->welcome();
  tick();
  answer_room(33);
  tick();
  EXPECT_FALSE(poll().has_value()) << "not all is registered yet";
  answer_room(0);
  expect_event(EDGESHED_EVENT_DAEMON_BACK, "registered again");
  // Row 33 was known a tick earlier than row 0, and its peer told then.
  EXPECT_EQ(heard_connect().room, 33u);
  EXPECT_EQ(heard_connect().room, 0u);
  daemon_->open_plan(33, 10'000).paused = 0xff;
  edgeshed_tick_begin(session_.get());
  EXPECT_FALSE(may_send(peer, EDGESHED_LANE_SNAPSHOT)) << "the row is another one now";
}

TEST_F(Client, ARoomRefusedOnReturnIsAnEventWithItsNumber) {
  session_ = open();
  const int number = edgeshed_room_open(session_.get(), "match", 16);
  start_daemon();
  retry_now();
  tick();
  daemon_->welcome();
  tick();
  answer_room(0, "room_refused");
  const auto event = poll();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, EDGESHED_EVENT_REFUSED);
  EXPECT_EQ(event->room, number);
}

TEST_F(Client, ARefusedSessionWaitsAsLongAsItIsTold) {
  start_daemon();
  session_ = beside([&] { daemon_->refuse_welcome("shard_unknown", "no such shard", 5000); },
                    [&] { return open(); });
  EXPECT_STREQ(edgeshed_problem(session_.get()), "refused: shard_unknown: no such shard");
  EXPECT_GT(session_->next_try_ns, now_ns() + 4'000'000'000);
  EXPECT_FALSE(poll().has_value()) << "it was never there, so it is not gone";
}

TEST_F(Client, TenThousandConnectsNeitherBlockNorGetLost) {
  constexpr std::uint32_t kPeers = 12'000;
  accepted(kPeers);
  const int number = room(0);
  edgeshed_tick_begin(session_.get());
  const std::uint64_t start = now_ns();
  for (std::uint32_t i = 0; i < kPeers; ++i) {
    ASSERT_EQ(connect(number, i), static_cast<int>(i));
  }
  const double took_ms = ms_since(start);
  RecordProperty("connects_ms", std::to_string(took_ms));
  EXPECT_LT(took_ms, 1000) << "nobody read";
  // Some leave before they were told, one number is used again.
  for (int i = 5000; i < 5100; ++i) edgeshed_disconnect(session_.get(), i);
  EXPECT_EQ(connect(number, 99'999), 5099);
  edgeshed_tick_end(session_.get());

  std::vector<int> heard(kPeers);
  int ticks = 0;
  for (; ticks < 5000; ++ticks) {
    int packets = 0;
    for (; packets < 500; ++packets) {  // a slow reader
      const auto packet = daemon_->receive(0);
      if (!packet) break;
      ASSERT_EQ(packet->type(), ES_SESSION_connect);
      const auto& told = packet->as<es_session_connect>();
      heard[told.row]++;
      EXPECT_EQ(told.player, told.row == 5099 ? 99'999u : told.row);
    }
    if (!packets) break;
    tick();
  }
  RecordProperty("ticks_to_tell_all", ticks);
  for (std::uint32_t i = 0; i < kPeers; ++i) {
    EXPECT_EQ(heard[i], i >= 5000 && i < 5099 ? 0 : 1) << i;
  }
}

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
        Wrong{"version", {.version = 2}, "board has version 2, this library speaks version 1"},
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
      [&] { daemon_->send(&unknown, sizeof(unknown), {0, 1, 2, 0, 1, 2, 0, 1}); },
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
  const int before = dup(0);
  close(before);
  for (int i = 0; i < 20; ++i) {
    const es_session_head unknown{.type = 99, .bytes = 8, .request = 0};
    daemon_->send(&unknown, sizeof(unknown), {0, 1});
    tick();
    retry_now();
    tick();
    daemon_->welcome(Lies{.version = i % 2 ? ES_SESSION_VERSION : 2});
    tick();
    if (edgeshed_connected(session_.get())) continue;
    retry_now();
    tick();
    daemon_->welcome();
    tick();
    ASSERT_TRUE(edgeshed_connected(session_.get()));
  }
  const int after = dup(0);
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
  daemon_->open_plan(6, 15).paused = 0xff;
  edgeshed_tick_begin(session_.get());
  EXPECT_EQ(sent(10), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(sent(10), 0) << "looked at once a tick";
  edgeshed_tick_begin(session_.get());
  EXPECT_EQ(sent(10), 10);
}

TEST_F(MaySend, BetweenTicksThePlanIsLookedAtToo) {
  daemon_->open_plan(6, 10'000);
  EXPECT_EQ(sent(10), 10);
  daemon_->open_plan(6, 15).paused = 0xff;
  EXPECT_EQ(sent(10), 0) << "another generation";
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
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
    EXPECT_LT(each_ns, 100) << name;
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
  for (std::uint64_t i = 1; i <= 200'000; ++i) {
    data.tick_p99_ms = static_cast<double>(i);
    data.ticks = 3 * i;
    data.busy_ns = 5 * i;
    es_client_boards_report(session_.get(), &data, i);
    if (i % 20'000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  done = true;
  reader.join();
  RecordProperty("reports_read", std::to_string(read));
  EXPECT_GT(read, 0u);
  EXPECT_EQ(torn, 0u);
}

}  // namespace
}  // namespace edgeshed::client_test
