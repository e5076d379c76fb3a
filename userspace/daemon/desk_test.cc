// Sessions without sockets: what a server may touch, what it hears, what it leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "userspace/daemon/daemon_world.h"
#include "userspace/daemon/session_desk.h"
#include "userspace/daemon/signal_sampler.h"
#include "userspace/session/session.h"

namespace edgeshed::daemon {
namespace {

constexpr char kDeskConfig[] = R"(
[host]
connections_max = 8
endpoints_max = 4
rooms_max = 4
classes_max = 4
[[shard]]
name = "arena"
[[shard]]
name = "other"
[[room]]
name = "lobby"
shard = "arena"
[[room]]
name = "attic"
shard = "other"
[[class]]
name = "player"
[[endpoint]]
name = "game"
address = "any"
port = 7777
protocol = "opaque"
rooms = ["lobby", "attic"]
)";

/// Keeps what a session was sent.
class Sent : public session::SessionOutput {
 public:
  bool send(std::span<const std::byte> message, std::initializer_list<int>) override {
    std::string bytes(message.size(), 0);
    std::memcpy(bytes.data(), message.data(), message.size());
    messages.push_back(bytes);
    return true;
  }

  void end() override { ended = true; }

  template <typename Message>
  Message last() const {
    Message message{};
    if (!messages.empty() && messages.back().size() == sizeof(message)) {
      std::memcpy(&message, messages.back().data(), sizeof(message));
    }
    return message;
  }
  std::vector<std::string> messages;
  bool ended = false;
};

template <typename Message>
std::string bytes_of(Message message, es_session_type type) {
  message.head = {static_cast<std::uint16_t>(type), sizeof(Message), 1};
  return {reinterpret_cast<const char*>(&message), sizeof(message)};
}

class DeskTest : public testing::Test, public DaemonWorld {
 protected:
  DeskTest() : DaemonWorld(kDeskConfig) {
    spdlog::set_level(spdlog::level::off);
    tick();
  }
  ~DeskTest() override { spdlog::set_level(spdlog::level::info); }

  struct Server {
    Server(DeskTest& test, session::SessionId id) : session(id, {}, *test.sessions_, sent) {}
    std::string say(const std::string& bytes) {
      return session.handle(std::as_bytes(std::span(bytes)));
    }
    std::string hello(const char* shard, std::uint32_t rows = 4) {
      es_session_hello message{};
      message.magic = ES_SESSION_MAGIC;
      message.version = ES_SESSION_VERSION;
      message.rows = rows;
      std::strncpy(message.shard, shard, sizeof(message.shard) - 1);
      return say(bytes_of(message, ES_SESSION_hello));
    }
    std::uint32_t open(const char* room) {
      es_session_room_open message{};
      std::strncpy(message.room, room, sizeof(message.room) - 1);
      say(bytes_of(message, ES_SESSION_room_open));
      return sent.last<es_session_room_opened>().room;
    }
    void connect(std::uint32_t row, std::uint32_t room, std::uint8_t host, float weight = 1) {
      es_session_connect message{};
      message.row = row;
      message.room = room;
      message.addr[10] = message.addr[11] = 0xff;
      message.addr[12] = 10;
      message.addr[15] = host;
      message.port = 4000;
      message.weight = weight;
      message.priority = 128;
      say(bytes_of(message, ES_SESSION_connect));
    }
    Sent sent;
    session::Session session;
  };

  std::string refusal(const Server& server) {
    return server.sent.last<es_session_event>().code.name;
  }
};

TEST_F(DeskTest, ARegisteredPeerIsAConnection) {
  Server server(*this, 2);
  EXPECT_EQ(server.hello("arena"), "");
  EXPECT_EQ(server.sent.last<es_session_welcome>().rows, 4u);
  const std::uint32_t room = server.open("lobby");
  EXPECT_EQ(room, 0u);
  server.connect(0, room, 1);
  server.connect(0, room, 1);  // idempotent
  EXPECT_EQ(connections_->size(), 1u);
  server.connect(0, room, 2);  // the row is somebody else's now
  EXPECT_EQ(connections_->size(), 1u);
  EXPECT_EQ(server.sent.messages.size(), 2u) << "welcome and room_opened: nothing was refused";
}

TEST_F(DeskTest, AServerTouchesOnlyItsShard) {
  Server server(*this, 2);
  Server other(*this, 3);
  server.hello("arena");
  other.hello("other");
  EXPECT_EQ(server.open("attic"), ES_SESSION_NONE);
  const std::uint32_t attic = other.open("attic");
  server.connect(0, attic, 1);
  EXPECT_EQ(refusal(server), "register_room_unknown");
  server.connect(9, server.open("lobby"), 1);
  EXPECT_EQ(refusal(server), "register_rows_over_limit");
  server.connect(0, 0, 1);
  other.connect(0, attic, 1);
  EXPECT_EQ(refusal(other), "register_other_session");
  EXPECT_EQ(connections_->size(), 1u);
}

TEST_F(DeskTest, OneServerPerShard) {
  Server server(*this, 2);
  server.hello("arena");
  Server second(*this, 3);
  EXPECT_NE(second.hello("arena"), "");
  EXPECT_STREQ(second.sent.last<es_session_welcome>().refused.name, "register_shard_taken");
  EXPECT_NE(second.hello("nowhere"), "");
  EXPECT_STREQ(second.sent.last<es_session_welcome>().refused.name, "register_shard_unknown");
  EXPECT_NE(second.hello("other", 0), "");
}

/// What the packet path says of a refusal of the player with that address.
es_event refusal_of(std::uint8_t host, std::uint8_t reason) {
  es_event event{};
  event.remote.addr_lo = __builtin_bswap64(0x0000ffff0a000000ull | host);
  event.remote.port = __builtin_bswap16(4000);
  event.remote.endpoint = 1;
  event.reason = reason;
  event.verdict = es_reason_verdict(reason);
  event.stream = 7;
  return event;
}

TEST_F(DeskTest, AServerHearsOfItsPlayersRefusals) {
  Server server(*this, 2);
  server.hello("arena");
  const std::uint32_t room = server.open("lobby");
  server.connect(3, room, 1);
  tick();
  ASSERT_TRUE(refusals_.try_push(refusal_of(1, ES_REASON_fair_share)));
  ASSERT_TRUE(refusals_.try_push(refusal_of(9, ES_REASON_fair_share)));  // nobody's
  sessions_->upkeep();
  const auto told = server.sent.last<es_session_event>();
  EXPECT_EQ(told.kind, static_cast<std::uint32_t>(ES_SESSION_EVENT_message_refused));
  EXPECT_EQ(std::make_tuple(told.row, told.room, told.value), std::make_tuple(3u, room, 0u));
  EXPECT_STREQ(told.code.name, "room_reject_commands");
  EXPECT_GE(told.code.retry_after_ms, 1000u);
  EXPECT_LE(told.code.retry_after_ms, 30000u);
  const std::size_t before = server.sent.messages.size();
  ASSERT_TRUE(refusals_.try_push(refusal_of(1, ES_REASON_stream_rate)));
  sessions_->upkeep();
  EXPECT_EQ(server.sent.messages.size(), before + 1);
  EXPECT_STREQ(server.sent.last<es_session_event>().code.name, "stream_rate");
  EXPECT_EQ(server.sent.last<es_session_event>().value, 7u);
  EXPECT_THAT(server.sent.last<es_session_event>().code.text, testing::HasSubstr("leave the next"));
}

TEST_F(DeskTest, AServerHearsWhichStreamComesNearItsLimit) {
  Server server(*this, 2);
  server.hello("arena");
  const std::uint32_t room = server.open("lobby");
  server.connect(3, room, 1);
  tick();
  ASSERT_TRUE(refusals_.try_push(refusal_of(1, ES_REASON_admitted)));
  sessions_->upkeep();
  const auto told = server.sent.last<es_session_event>();
  EXPECT_EQ(told.kind, static_cast<std::uint32_t>(ES_SESSION_EVENT_stream_hint));
  EXPECT_EQ(std::make_tuple(told.row, told.room, told.value), std::make_tuple(3u, room, 7u));
  EXPECT_STREQ(told.code.name, "stream_near_limit");
  EXPECT_THAT(told.code.text, testing::HasSubstr("less"));
  EXPECT_FALSE(sessions_->rooms().governor_rejects(0, now_ns_)) << "nothing was rejected";
}

TEST_F(DeskTest, StreamsOfItsOwnPlayersAreAServersToClose) {
  model_.rooms[0].closes_streams = true;  // and so they have slots
  Server server(*this, 2), other(*this, 3);
  server.hello("arena");
  other.hello("other");
  server.connect(0, server.open("lobby"), 1);
  const auto order = [](std::uint32_t row, std::uint8_t closed) {
    es_session_stream message{};
    message.row = row;
    message.stream = 7;
    message.closed = closed;
    return bytes_of(message, ES_SESSION_stream);
  };
  const auto closed = [this] {
    return std::any_of(streams_.begin(), streams_.end(), [](const es_stream_block& block) {
      return block.slot[0].stream_id == (8u | ES_STREAM_CLOSED);
    });
  };
  const std::size_t before = server.sent.messages.size();
  EXPECT_EQ(server.say(order(0, 1)), "");
  EXPECT_TRUE(closed());
  EXPECT_EQ(other.say(order(0, 0)), "") << "a refusal ends no session";
  EXPECT_STREQ(other.sent.last<es_session_event>().code.name, "stream_unmanaged");
  EXPECT_TRUE(closed());
  EXPECT_EQ(server.say(order(0, 0)), "");
  EXPECT_FALSE(closed());
  EXPECT_EQ(server.sent.messages.size(), before) << "answered only by a refusal";
  EXPECT_EQ(server.say(order(1, 1)), "");
  EXPECT_STREQ(server.sent.last<es_session_event>().code.name, "stream_unmanaged");
}

TEST_F(DeskTest, ARungOfTheFirstTicksAfterAReloadIsTold) {
  Server server(*this, 2);
  server.hello("arena");
  const core::Model next = model_;
  core::RungChange change;
  change.to = 3;
  const std::size_t before = server.sent.messages.size();
  sessions_->rung_changed({&next, 0, change});
  ASSERT_EQ(server.sent.messages.size(), before + 1);
  EXPECT_EQ(server.sent.last<es_session_event>().value, 3u);
  core::Model other = model_;
  other.shards[0].name = "another";
  sessions_->rung_changed({&other, 0, change});
  EXPECT_EQ(server.sent.messages.size(), before + 1);
}

TEST_F(DeskTest, ASlowConsumerIsThrottledInThePacketPath) {
  Server server(*this, 2);
  server.hello("arena");
  const std::uint32_t room = server.open("lobby");
  server.connect(0, room, 1);
  server.connect(1, room, 2);
  connections_->throttle(2, 0, refusal_of(1, 0).remote);
  connections_->throttle(2, 1, refusal_of(1, 0).remote);  // another row's: nothing
  connections_->throttle(3, 1, refusal_of(2, 0).remote);  // another session's
  const auto throttled = [this] {
    return std::count_if(records_.begin(), records_.end(), [](const es_connection& one) {
      return (one.policy.flags & ES_CONN_THROTTLED) != 0;
    });
  };
  EXPECT_EQ(throttled(), 1);
  const std::uint8_t voice = 1 << ES_LANE_voice;
  tick();
  EXPECT_NE(live_endpoint().pass_mask[ES_OUT] & voice, 0);
  service_->upkeep();
  tick();
  EXPECT_EQ(live_endpoint().pass_mask[ES_OUT] & voice, 0) << "looked up";
  EXPECT_NE(live_endpoint().pass_mask[ES_IN] & voice, 0);
  server.connect(0, room, 1);
  EXPECT_EQ(throttled(), 1) << "naming it again does not make it faster";
  server.connect(2, room, 1);
  EXPECT_EQ(throttled(), 0) << "by another row it is looked at anew";
  connections_->throttle(2, 2, refusal_of(1, 0).remote);
  server.connect(2, room, 3);
  service_->upkeep();
  tick();
  EXPECT_NE(live_endpoint().pass_mask[ES_OUT] & voice, 0) << "the slow one has left";
}

TEST_F(DeskTest, AReloadTellsOfThrottledOnlyWhereANumberMeansAnotherEndpoint) {
  Server server(*this, 2);
  server.hello("arena");
  server.connect(0, server.open("lobby"), 1);
  connections_->throttle(2, 0, refusal_of(1, 0).remote);
  std::vector<std::pair<unsigned, unsigned>> told;
  const auto take = [&] {
    told.clear();
    connections_->take_throttled_changes([&](std::uint8_t endpoint, std::uint32_t connections) {
      told.emplace_back(endpoint, connections);
    });
    return told;
  };
  const std::vector<std::pair<unsigned, unsigned>> one = {{1, 1}}, nothing = {};
  EXPECT_EQ(take(), one);
  const core::Model same = model_;
  connections_->use(same);
  EXPECT_EQ(take(), nothing) << "the next setup takes the number over";
  core::Model other = model_;
  other.endpoints[0].name = "another";
  connections_->use(other);
  EXPECT_EQ(take(), one) << "of that one nothing is known";
  connections_->use(model_);
}

TEST_F(DeskTest, AFullTableIsSaid) {
  Server server(*this, 2);
  server.hello("arena", 16);
  const std::uint32_t room = server.open("lobby");
  for (std::uint8_t i = 0; i < 9; ++i) server.connect(i, room, i);
  EXPECT_EQ(refusal(server), "register_table_full");
  EXPECT_EQ(connections_->size(), 8u);
}

TEST_F(DeskTest, WhatADeadServerLeavesGoesAfterTenSeconds) {
  {
    Server server(*this, 2);
    server.hello("arena");
    server.connect(0, server.open("lobby"), 1);
    server.connect(1, 0, 2);
  }
  EXPECT_TRUE(sessions_->to_json(0, 9).empty());
  now_ns_ += 5'000'000'000;
  tick();
  service_->upkeep();
  EXPECT_EQ(connections_->size(), 2u);
  Server back(*this, 3);
  back.hello("arena");
  back.connect(0, back.open("lobby"), 2);
  now_ns_ += 5'100'000'000;
  service_->upkeep();
  EXPECT_EQ(connections_->size(), 1u) << "the one that was named again";
}

TEST_F(DeskTest, ImpossibleWeightsCountAsOne) {
  Server server(*this, 2);
  server.hello("arena", 8);
  const std::uint32_t room = server.open("lobby");
  std::uint8_t row = 0;
  for (const float weight : {0.0F, -1.0F, std::nanf(""), 1.0F}) {
    server.connect(row, room, row);
    ++row;
    (void)weight;
  }
  service_->upkeep();
  tick();
  EXPECT_EQ(setup_->room_weight[room], 4);
}

TEST_F(DeskTest, AReloadThatTakesAShardEndsItsSession) {
  // A session that ends asks the model: it goes last.
  core::Model next = config::parse(
      "[host]\nconnections_max = 8\n[[shard]]\nname = \"arena\"\n[[room]]\nname = \"lobby\"\n"
      "shard = \"arena\"\n",
      "next.toml");
  Server server(*this, 2);
  server.hello("other");
  server.connect(0, server.open("attic"), 1);
  Server stays(*this, 3);
  stays.hello("arena");
  stays.connect(0, stays.open("lobby"), 2);
  sessions_->use(next);
  EXPECT_TRUE(server.sent.ended);
  EXPECT_FALSE(stays.sent.ended);
  // What was under way is answered all the same.
  EXPECT_EQ(server.open("attic"), ES_SESSION_NONE);
  server.connect(0, 1, 1);
  EXPECT_EQ(refusal(server), "register_shard_unknown");
  server.say(bytes_of(es_session_disconnect{}, ES_SESSION_disconnect));
  server.say(bytes_of(es_session_room_close{}, ES_SESSION_room_close));
}

TEST_F(DeskTest, ARoomThatMovesEndsTheSessionThatHasIt) {
  core::Model next = setup_->model;
  next.rooms[0].shard = 1;
  Server server(*this, 2);
  server.hello("arena");
  server.connect(0, server.open("lobby"), 1);
  sessions_->use(next);
  EXPECT_TRUE(server.sent.ended);
  EXPECT_FALSE(sessions_->places().is_open(0));
}

TEST_F(DeskTest, RoomsMustBeOpenAndPlacedForConnections) {
  Server server(*this, 2);
  server.hello("arena");
  server.connect(0, 0, 1);
  EXPECT_EQ(refusal(server), "register_room_unknown");
  EXPECT_EQ(server.open("lobby"), 0u);
  server.connect(0, 0, 1);
  EXPECT_EQ(connections_->size(), 1u);
}

TEST_F(DeskTest, ARepeatedConnectKeepsWhatIsKnown) {
  Server server(*this, 2);
  server.hello("arena");
  const std::uint32_t room = server.open("lobby");
  server.connect(0, room, 1);
  records_in_[0].contract[0] = 77;
  server.connect(0, room, 1);
  EXPECT_EQ(records_in_[0].contract[0], 77u);
  // A rejoin: the new row connects before the old one leaves.
  server.connect(1, room, 1);
  es_session_disconnect leave{};
  leave.row = 0;
  server.say(bytes_of(leave, ES_SESSION_disconnect));
  EXPECT_EQ(connections_->size(), 1u);
}

TEST_F(DeskTest, AConfiguredConnectionOutlivesItsSession) {
  core::Model& model = const_cast<core::Model&>(setup_->model);
  core::Connection configured;
  ASSERT_TRUE(core::parse_remote("10.0.0.9:4000", configured.key));
  configured.key.endpoint = 1;
  configured.policy.priority = 200;
  configured.policy.weight_inverse_q8 = 256;
  model.connections.push_back(configured);
  connections_->use(model);
  {
    Server server(*this, 2);
    server.hello("arena");
    server.connect(0, server.open("lobby"), 9);
    EXPECT_EQ(records_[0].policy.priority, 128);
  }
  now_ns_ += 11'000'000'000;
  service_->upkeep();
  EXPECT_EQ(connections_->size(), 1u);
  EXPECT_EQ(records_[0].policy.priority, 200);
}

TEST_F(DeskTest, RoomsAreCountedWithoutAReportOfThem) {
  Server server(*this, 2);
  server.hello("arena");
  server.open("lobby");
  service_->upkeep();
  tick(2);
  EXPECT_EQ(box_->latest().shards[0].signals.room_count, 1u);
}

TEST_F(DeskTest, ANameIsShownAsFarAsItCanBe) {
  Server server(*this, 2);
  es_session_hello hello{};
  hello.magic = ES_SESSION_MAGIC;
  hello.version = ES_SESSION_VERSION;
  hello.rows = 1;
  std::strcpy(hello.shard, "arena");
  std::strcpy(hello.server, "g\xc3\x1b[2J\n");
  EXPECT_EQ(server.say(bytes_of(hello, ES_SESSION_hello)), "");
  const auto list = sessions_->to_json(0, 2);
  EXPECT_EQ(list.at(0).at("server").as_string(), "g??[2J?");
}

TEST_F(DeskTest, AServerThatFlapsIsPutOff) {
  std::string last;
  for (session::SessionId id = 2; id < 500; ++id) {
    Server server(*this, id);
    last = server.hello("arena");
  }
  EXPECT_NE(last.find("come and go"), std::string::npos) << last;
  service_->upkeep();
  tick(3);
  service_->upkeep();
  Server server(*this, 1000);
  EXPECT_EQ(server.hello("arena"), "");
}

TEST_F(DeskTest, LagsAndRejectsOfPlayersPressTheirShardButNotThoseOfOne) {
  Server server(*this, 2);
  server.hello("arena");
  const std::uint32_t room = server.open("lobby");
  for (std::uint8_t row = 0; row < 3; ++row) server.connect(row, room, row + 1);
  tick();
  auto& board = const_cast<es_report_board&>(*setup_->shards[0].boards.report);
  SignalSampler sampler(setup_->model, *sessions_, signals_);
  const auto play = [&](std::uint32_t rejecting) -> const core::ShardSignals& {
    for (int i = 0; i < 20; ++i) {
      now_ns_ += 100'000'000;
      for (std::uint32_t row = 0; row < rejecting; ++row) ++board.connection[row].rejects[1];
      sessions_->upkeep();
      sampler.sample(now_ns_);
      tick();
    }
    return box_->latest().shards[0].signals;
  };
  EXPECT_EQ(play(0).rejected_share, 0);
  EXPECT_EQ(play(1).rejected_share, 0) << "an abuser does not speak for the shard";
  EXPECT_NEAR(play(2).rejected_share, 2 / 3.0, 1e-9);
  board.connection[2].latest_seq = 30;
  board.connection[2].acked_seq = 10;
  EXPECT_EQ(play(0).ack_lag_p95, 20 - model_.room_state.ack_lag[0]);
  // Nobody says so of a shard without a session.
  const core::ShardSignals& other = box_->latest().shards[1].signals;
  EXPECT_EQ(other.missing & kRoomSignals, kRoomSignals);
  EXPECT_EQ(other.lost, 0);
}

TEST_F(DeskTest, RandomBytesEndTheirSessionAndNothingElse) {
  std::mt19937 random(7);
  Server steady(*this, 2);
  steady.hello("arena");
  steady.connect(0, steady.open("lobby"), 1);
  for (int round = 0; round < 20'000; ++round) {
    Server server(*this, static_cast<session::SessionId>(3 + round));
    if (round % 2 == 0) server.hello("other");
    std::string bytes(random() % 300, 0);
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (bytes.size() >= 4 && round % 3 == 0) {
      bytes[0] = static_cast<char>(random() % 9);
      bytes[1] = 0;
      const auto size = static_cast<std::uint16_t>(bytes.size());
      std::memcpy(bytes.data() + 2, &size, sizeof(size));
    }
    (void)server.say(bytes);
    if (round % 16 == 0) {
      tick(2);
      service_->upkeep();
    }
  }
  EXPECT_EQ(connections_->size(), 1u);
  steady.connect(1, 0, 2);
  EXPECT_EQ(connections_->size(), 2u);
}

}  // namespace
}  // namespace edgeshed::daemon
