// Orders of people: drains and who hears of them, and what the audit log keeps.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "userspace/daemon/audit_log.h"
#include "userspace/daemon/daemon_world.h"

namespace edgeshed::daemon {
namespace {

constexpr char kOrdersConfig[] = R"(
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
name = "cellar"
shard = "arena"
[[room]]
name = "attic"
shard = "other"
[[endpoint]]
name = "game"
address = "any"
port = 7777
protocol = "opaque"
rooms = ["lobby", "cellar", "attic"]
)";

/// Keeps the events that a server was sent.
class Heard : public session::SessionOutput {
 public:
  bool send(std::span<const std::byte> message, std::initializer_list<int>) override {
    es_session_event event{};
    if (message.size() != sizeof(event)) return true;
    std::memcpy(&event, message.data(), sizeof(event));
    events.push_back(event);
    return true;
  }
  void end() override {}

  /// "code room value", in order, and forgotten; all of one kind.
  std::vector<std::string> take(es_session_event_kind kind = ES_SESSION_EVENT_rung) {
    std::vector<std::string> lines;
    for (const es_session_event& one : events) {
      EXPECT_EQ(one.kind, std::uint32_t{kind});
      EXPECT_STRNE(one.code.text, "") << one.code.name;
      lines.push_back(std::string(one.code.name) + " " +
                      std::to_string(static_cast<int>(one.room)) + " " + std::to_string(one.value));
    }
    events.clear();
    return lines;
  }
  std::vector<es_session_event> events;
};

class OrdersTest : public testing::Test, public DaemonWorld {
 protected:
  OrdersTest() : DaemonWorld(kOrdersConfig) {
    spdlog::set_level(spdlog::level::off);
    tick();
  }
  ~OrdersTest() override {
    spdlog::set_level(spdlog::level::info);
    std::filesystem::remove_all(folder_);
  }

  void open(session::SessionId id, const char* shard, Heard& heard) {
    es_session_hello hello{};
    hello.rows = 2;
    std::strncpy(hello.shard, shard, sizeof(hello.shard) - 1);
    ASSERT_EQ(sessions_->open(id, {}, hello, heard).index(), 0u);
    sessions_->welcomed(id);
  }
  bool opens(session::SessionId id, const char* room) {
    return sessions_->room_open(id, room, 1).index() == 0;
  }
  std::string place(const char* room) { return say(PlaceRequest{room, 1}); }
  std::vector<boost::json::object> lines() {
    std::vector<boost::json::object> found;
    std::ifstream file(path());
    for (std::string line; std::getline(file, line);) {
      found.push_back(boost::json::parse(line).as_object());
    }
    return found;
  }
  std::string path() const { return folder_ + "/audit.jsonl"; }

  std::string folder_ =
      std::filesystem::temp_directory_path() / ("edgeshed-orders-" + std::to_string(getpid()));
};

using Lines = std::vector<std::string>;

TEST_F(OrdersTest, ADrainingShardTakesNoNewRooms) {
  Heard heard;
  open(2, "arena", heard);
  EXPECT_TRUE(opens(2, "lobby"));
  EXPECT_EQ(say(DrainRequest{"arena", true}), R"({"ok":true,"changed":true})");
  EXPECT_EQ(say(DrainRequest{"arena", true}), R"({"ok":true,"changed":false})");
  EXPECT_NE(place("cellar").find(R"("code":"shard_draining","category":"capacity")"),
            std::string::npos);
  EXPECT_NE(place("attic").find(R"("admitted":true)"), std::string::npos) << "the other shard's";
  EXPECT_FALSE(opens(2, "cellar"));
  EXPECT_TRUE(opens(2, "lobby")) << "it is open already";
  EXPECT_NE(say(StatusRequest{}).find(R"("placement":"draining")"), std::string::npos);
  EXPECT_EQ(live_endpoint().flags & ES_EP_REFUSE_JOINS, 0) << "joins follow the ladder";
  say(DrainRequest{"arena", false});
  EXPECT_TRUE(opens(2, "cellar"));
  EXPECT_EQ(say(StatusRequest{}).find("draining"), std::string::npos);
}

TEST_F(OrdersTest, TheServerHearsOfADrain) {
  Heard arena;
  Heard other;
  open(2, "arena", arena);
  open(3, "other", other);
  say(DrainRequest{"arena", true});
  EXPECT_EQ(arena.take(), Lines{"shard_draining -1 0"});
  say(SetRequest{"shard", "arena", 2, 60});
  tick();
  service_->log_changes();
  EXPECT_EQ(arena.take(), (Lines{"shard_reduce_snapshot_rate -1 2", "shard_draining -1 2"}))
      << "which still holds, so it comes last";
  sessions_->ended(2);
  Heard again;
  open(4, "arena", again);
  EXPECT_EQ(again.take(), Lines{"shard_draining -1 2"}) << "whoever comes next";
  say(DrainRequest{"arena", false});
  EXPECT_EQ(again.take(), Lines{"shard_reduce_snapshot_rate -1 2"});
  EXPECT_EQ(other.take(), Lines{});
}

TEST_F(OrdersTest, ADrainOutlastsAReload) {
  say(DrainRequest{"other", true});
  const core::Model next = config::parse(kOrdersConfig, "test.toml");
  sessions_->use(next);
  service_->use(next);
  EXPECT_NE(place("attic").find("shard_draining"), std::string::npos);
  EXPECT_NE(place("lobby").find(R"("admitted":true)"), std::string::npos);
  sessions_->use(setup_->model);
}

TEST_F(OrdersTest, TheServerHearsOfARoomHeldByHand) {
  Heard heard;
  open(2, "arena", heard);
  ASSERT_TRUE(opens(2, "lobby"));
  say(SetRequest{"room", "lobby", 3, 0.05});
  say(SetRequest{"room", "cellar", 3, 0.05});  // not open: nobody's
  tick(5);
  service_->log_changes();
  EXPECT_EQ(heard.take(), (Lines{"shard_pause_lanes 0 3", "shard_normal 0 0"}));
}

TEST_F(OrdersTest, ARoomsOwnRungIsToldAndCountedByItsCause) {
  Heard heard;
  open(2, "arena", heard);
  ASSERT_TRUE(opens(2, "lobby"));
  ASSERT_TRUE(opens(2, "cellar"));
  service_->upkeep();
  EXPECT_EQ(heard.take(), Lines{});
  say(SetRequest{"shard", "arena", 3, 60});
  tick(2);
  service_->log_changes();
  EXPECT_EQ(heard.take(), Lines{"shard_pause_lanes -1 3"});
  service_->upkeep();
  EXPECT_EQ(heard.take(ES_SESSION_EVENT_room_rung), Lines{"room_drop_low_priority -1 2"})
      << "each of its rooms, in one event";
  // The governor says so of one room alone, which is no higher rung; by hand a room has another.
  say(SetRequest{"room", "lobby", 0, 60});
  say(SetRequest{"shard", "arena", 5, 60});
  tick(2);
  service_->log_changes();
  heard.take();
  service_->upkeep();
  EXPECT_EQ(heard.take(ES_SESSION_EVENT_room_rung), Lines{"room_reject_commands 1 3"});
  EXPECT_NE(say(StatusRequest{}).find(R"("best_effort_keep":2,"standard_keep":1)"),
            std::string::npos)
      << say(StatusRequest{});
}

/// As many shards, sessions, endpoints and allowed addresses as one answer holds, with names as
/// long as they may be.
TEST(StatusPage, FitsIntoAnAnswerWhateverItHolds) {
  std::string file = "[host]\nconnections_max = 8\nendpoints_max = 64\nrooms_max = 64\n";
  const auto name = [](char kind, std::size_t i) {
    return std::string(60, kind) + std::to_string(100 + i);
  };
  for (std::size_t i = 0; i < kShardsPerAnswer; ++i) {
    file += "[[shard]]\nname = \"" + name('s', i) + "\"\n[[room]]\nname = \"" + name('r', i) +
            "\"\nshard = \"" + name('s', i) + "\"\n[[endpoint]]\nname = \"" + name('e', i) +
            "\"\naddress = \"2001:db8:aaaa:bbbb:cccc:dddd:eeee:" + std::to_string(1000 + i) +
            "\"\nport = " + std::to_string(20000 + i) + "\nprotocol = \"opaque\"\nrooms = [\"" +
            name('r', i) + "\"]\n";
  }
  spdlog::set_level(spdlog::level::off);
  DaemonWorld world(file);
  Heard heard;
  for (std::size_t i = 0; i < kShardsPerAnswer; ++i) {
    es_session_hello hello{};
    hello.rows = 1;
    name('s', i).copy(hello.shard, sizeof(hello.shard) - 1);
    std::string(63, 'v').copy(hello.server, sizeof(hello.server) - 1);
    const auto id = static_cast<session::SessionId>(4'000'000'000 + i);
    ASSERT_EQ(world.sessions_->open(id, {4'000'000, 4'000'000'000}, hello, heard).index(), 0u);
    world.say(SetRequest{"shard", name('s', i), 5, kSetSecondsMax});
  }
  world.tick();
  for (ShardSlot& shard : world.setup_->shards) {
    shard.law.state.changes_by_cause.fill(4'000'000'000);
    shard.law.state.changes = 40'000'000'000;
  }
  world.now_ns_ += 86'000'000'000'000;
  world.tick();
  for (std::size_t i = 0; i < AllowList::kAllowedMax; ++i) {
    world.say(AllowRequest{"2001:db8:aaaa:bbbb:cccc:dddd:eeee:" + std::to_string(1000 + i),
                           kAllowSecondsMax});
  }
  const std::string answer = world.say(StatusRequest{});
  EXPECT_NE(answer.find("eeee:1255"), std::string::npos);
  EXPECT_LT(answer.size(), kMessageBytesMax * 9 / 10);
  spdlog::set_level(spdlog::level::info);
}

TEST_F(OrdersTest, OrdersAreOnRecordWithWhoGaveThem) {
  audit_.use(path());
  const auto order = [&](const Request& request) {
    return service_->handle(to_message(request), ucred{77, 1000, 1000}).text;
  };
  order(SetRequest{"shard", "arena", 2, 30});
  order(DrainRequest{"nowhere", true});
  order(BypassRequest{true});
  order(AllowRequest{"203.0.113.7", 60});
  order(ReportRequest{"arena", 1, 0, 0, {}});
  order(ConnectRequest{"10.0.0.1:4000", "game", "lobby", "", {}, {}});
  order(StatusRequest{});
  say(SetRequest{"room", "lobby", {}, 0});
  const auto found = lines();
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(boost::json::serialize(found[0]).substr(31),
            R"("uid":1000,"pid":77,"command":"set","arguments":{"kind":"shard","name":"arena",)"
            R"("rung":2,"for_s":3E1},"result":"ok"})");
  EXPECT_EQ(found[0].at("time").as_string().size(), sizeof("2026-01-31T12:00:00Z") - 1);
  EXPECT_NE(found[1].at("result").as_string().find("unknown shard"), std::string::npos);
  EXPECT_EQ(found[2].at("command").as_string(), "bypass");
  EXPECT_EQ(found[3].at("command").as_string(), "allow");
  EXPECT_TRUE(found[4].at("uid").is_null());
  EXPECT_EQ(audit_.lost(), 0u);
}

TEST_F(OrdersTest, AnAuditLogThatCannotBeWrittenStopsNothing) {
  for (const char* path : {"/dev/full", "/proc/nowhere/audit.jsonl", "/"}) {
    const std::uint64_t lost = audit_.lost();
    audit_.use(path);
    EXPECT_EQ(say(SetRequest{"shard", "arena", 2, 30}), R"({"ok":true})") << path;
    EXPECT_EQ(audit_.lost(), lost + 1) << path;
  }
  audit_.use(path());
  say(SetRequest{"shard", "arena", 2, 30});
  EXPECT_EQ(lines().size(), 1u) << "and a new file is used at once";
  EXPECT_NE(say(StatusRequest{}).find(R"("audit_lost":3)"), std::string::npos);
}

}  // namespace
}  // namespace edgeshed::daemon
