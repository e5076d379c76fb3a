// The library against a daemon made for it: registration, loss and return.
#include <errno.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "userspace/client/client_fixture.h"

namespace edgeshed::client_test {
namespace {

using testing::HasSubstr;

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
  EXPECT_LT(ms_since(start), 600);
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
  EXPECT_LT(ms_since(start), 190);
}

TEST_F(Client, ASilentDaemonCostsOpenAtMost200Ms) {
  start_daemon();
  const std::uint64_t start = now_ns();
  session_ = open();
  EXPECT_GE(ms_since(start), 190);
  EXPECT_LT(ms_since(start), 600);
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

}  // namespace
}  // namespace edgeshed::client_test
