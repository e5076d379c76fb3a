// Ticks and connections over plain memory: what a report does to the published rows, how long a
// plan is valid, what a restart keeps.
#include "userspace/daemon/ticker.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "userspace/core/expiry.h"
#include "userspace/daemon/daemon_world.h"

namespace edgeshed::daemon {
namespace {

constexpr char kTickerConfig[] = R"(
[host]
connections_max = 64
endpoints_max = 4
rooms_max = 4
classes_max = 4
streams_max = 2
[[shard]]
name = "arena"
frame_budget_ms = 20
[[room]]
name = "lobby"
shard = "arena"
stream_cap = 2
[[endpoint]]
name = "game"
address = "any"
port = 7777
protocol = "opaque"
rooms = ["lobby"]
)";

class TickerTest : public testing::Test, public DaemonWorld {
 protected:
  TickerTest() : DaemonWorld(kTickerConfig) {}
};

TEST_F(TickerTest, ReportReachesTheRowsInOneTick) {
  tick();
  EXPECT_EQ(live_room().generation, control_->generation);
  EXPECT_EQ(live_room().rules[ES_IN].keep_q16[ES_LANE_snapshot], ES_KEEP_ALL);
  EXPECT_EQ(say(ReportRequest{"arena", 26, 0, 0, {}}), R"({"ok":true})");
  tick();
  EXPECT_EQ(box_->latest().shards[0].state.rung, 3);
  EXPECT_NEAR(live_room().rules[ES_IN].keep_q16[ES_LANE_snapshot], 16384, 2);
  ShardChange entry;
  ASSERT_TRUE(changes_.try_pop(entry));
  EXPECT_EQ(entry.change.to, 3);
}

TEST_F(TickerTest, RowsBeyondTheModelAreAbsent) {
  tick(3);
  EXPECT_EQ(live_endpoint().generation, control_->generation);
  for (std::size_t i = 1; i < control_->geometry.rooms; ++i) {
    EXPECT_EQ((&live_room())[i].generation, 0u);
  }
  EXPECT_EQ((&live_endpoint())[1].generation, 0u);
}

TEST_F(TickerTest, UnknownShardIsCountedAndChangesNothing) {
  say(ReportRequest{"arena", 26, 0, 0, {}});
  tick();
  EXPECT_NE(say(ReportRequest{"nowhere", 1, 0, 0, {}}).find("configured: arena"),
            std::string::npos);
  tick();
  EXPECT_EQ(box_->latest().shards[0].state.rung, 3);
  EXPECT_EQ(service_->figures().reports_refused, 1u);
}

TEST_F(TickerTest, OverrideWinsAndExpires) {
  say(SetRequest{"shard", "arena", 2, 0.1});
  tick();
  EXPECT_EQ(box_->latest().shards[0].state.rung, 2);
  EXPECT_TRUE(box_->latest().shards[0].state.overridden);
  tick(6 + 60 * 30);
  EXPECT_EQ(box_->latest().shards[0].state.rung, 0);
}

TEST_F(TickerTest, ARoomIsHeldApartFromItsShardAndLetGo) {
  tick();
  EXPECT_EQ(say(SetRequest{"room", "lobby", 3, 0.1}), R"({"ok":true})");
  tick();
  EXPECT_EQ(box_->latest().shards[0].state.rung, 0);
  EXPECT_NEAR(live_room().rules[ES_IN].keep_q16[ES_LANE_snapshot], 16384, 2);
  const std::string held = say(RoomsRequest{});
  for (const char* part : {R"("rung":3)", R"("overridden":true)", R"("code":"shard_pause_lanes")",
                           R"("why":"manual")", R"("seconds_left":1)", "the override's end in"}) {
    EXPECT_NE(held.find(part), std::string::npos) << part << held;
  }
  tick(7);
  EXPECT_EQ(live_room().rules[ES_IN].keep_q16[ES_LANE_snapshot], ES_KEEP_ALL);
  EXPECT_NE(say(RoomsRequest{}).find(R"("overridden":false)"), std::string::npos);
  ShardChange entry;
  for (const core::Cause cause : {core::Cause::manual, core::Cause::manual_ended}) {
    ASSERT_TRUE(changes_.try_pop(entry));
    EXPECT_EQ(entry.room, 0);
    EXPECT_EQ(entry.change.cause, cause);
  }
  EXPECT_NE(say(StatusRequest{}).find(R"("room_changes_by_cause":{"manual":1,"manual_ended":1})"),
            std::string::npos);
}

TEST_F(TickerTest, ARungByHandEndsByHand) {
  say(SetRequest{"room", "lobby", 5, 3600});
  say(SetRequest{"shard", "arena", 1, 3600});
  tick();
  EXPECT_EQ(live_room().rules[ES_IN].drop_mask & (1 << ES_LANE_voice), 1 << ES_LANE_voice);
  say(SetRequest{"room", "lobby", {}, 0});
  say(SetRequest{"shard", "arena", {}, 0});
  tick(60 * 30);
  EXPECT_EQ(live_room().rules[ES_IN].keep_q16[ES_LANE_snapshot], ES_KEEP_ALL);
  EXPECT_EQ(box_->latest().shards[0].state.rung, 0);
  EXPECT_NE(say(StatusRequest{}).find(R"("changes_by_cause":{"released":1,"manual":1})"),
            std::string::npos)
      << say(StatusRequest{});
}

TEST_F(TickerTest, AWrongOrderSaysWhatThereIs) {
  EXPECT_NE(
      say(SetRequest{"room", "attic", 1, 1}).find("unknown room \\\"attic\\\"; configured: lobby"),
      std::string::npos);
  EXPECT_NE(say(SetRequest{"shard", "attic", 1, 1}).find("configured: arena"), std::string::npos);
  EXPECT_NE(say(SetRequest{"host", "arena", 1, 1}).find("allowed: shard, room"), std::string::npos);
  EXPECT_NE(say(DrainRequest{"attic", true}).find("configured: arena"), std::string::npos);
}

TEST_F(TickerTest, PlanIsValidForFiveIntervalsOr150Ms) {
  EXPECT_EQ(core::plan_valid_jiffies(60, 250), 38u);   // 150 ms
  EXPECT_EQ(core::plan_valid_jiffies(10, 250), 125u);  // 500 ms
  EXPECT_EQ(core::plan_valid_jiffies(250, 1000), 150u);
  tick();
  EXPECT_EQ(control_->valid_until_jiffies, now_ns_ / 4'000'000 + 38);
}

TEST_F(TickerTest, DefaultModeFollowsTheControlPage) {
  tick();
  EXPECT_NE(live_endpoint().flags & ES_EP_SHADOW, 0);
  control_->default_enforce = 1;
  tick();
  EXPECT_EQ(live_endpoint().flags & ES_EP_SHADOW, 0);
}

TEST_F(TickerTest, WritesNeitherBypassNorStash) {
  control_->bypass = 1;
  control_->stash_used = 3;
  tick(3);
  EXPECT_EQ(control_->bypass, 1u);
  EXPECT_EQ(control_->stash_used, 3u);
}

TEST_F(TickerTest, RestartGoesOnFromTheGeneration) {
  tick(5);
  const std::uint32_t generation = control_->generation;
  start();
  tick();
  EXPECT_EQ(control_->generation, generation + 1);
  EXPECT_EQ(control_->tick_rate_hz, 60u);
}

TEST_F(TickerTest, ConnectionsSurviveARestart) {
  EXPECT_EQ(say(ConnectRequest{"10.0.0.1:4000", "game", "", "", {}, {}}), R"({"ok":true})");
  EXPECT_EQ(say(ConnectRequest{"10.0.0.2:4000", "game", "lobby", "", 7, 2.0}), R"({"ok":true})");
  // Stream blocks: two, one per connection, and none for the third.
  EXPECT_EQ(say(ConnectRequest{"10.0.0.3:4000", "game", "", "", {}, {}}), R"({"ok":true})");
  start();
  EXPECT_EQ(adopted_.kept, 3u);
  EXPECT_EQ(connections_->size(), 3u);
  EXPECT_EQ(say(DisconnectRequest{"10.0.0.1:4000", "game"}), R"({"ok":true})");
  connections_->upkeep();
  EXPECT_EQ(say(ConnectRequest{"10.0.0.4:4000", "game", "", "", {}, {}}), R"({"ok":true})");
  std::vector<int> blocks(3);
  for (const es_connection& record : records_) ++blocks[record.key.stream_block];
  EXPECT_EQ(blocks[1], 1);
  EXPECT_EQ(blocks[2], 1);
}

TEST_F(TickerTest, ConnectSaysWhatIsWrong) {
  EXPECT_NE(say(ConnectRequest{"10.0.0.1", "game", "", "", {}, {}}).find("address and port"),
            std::string::npos);
  EXPECT_NE(say(ConnectRequest{"10.0.0.1:1", "gmae", "", "", {}, {}}).find("configured: game"),
            std::string::npos);
  EXPECT_NE(say(ConnectRequest{"10.0.0.1:1", "game", "attic", "", {}, {}}).find("no room"),
            std::string::npos);
  EXPECT_NE(say(DisconnectRequest{"10.0.0.1:1", "game"}).find("is no connection"),
            std::string::npos);
  for (int i = 1; i <= 65; ++i) {
    const std::string answer =
        say(ConnectRequest{"10.0.0.1:" + std::to_string(i), "game", "", "", {}, {}});
    const bool full = answer.find("connections_max") != std::string::npos;
    EXPECT_EQ(full, i == 65) << answer;
  }
}

}  // namespace
}  // namespace edgeshed::daemon
