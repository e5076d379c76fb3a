// A reload as the tick thread sees it: one configuration after another, and what goes on.
#include "userspace/daemon/setup.h"

#include <gtest/gtest.h>

#include <string>

#include "userspace/core/numbering.h"
#include "userspace/daemon/daemon_world.h"

namespace edgeshed::daemon {
namespace {

std::string file_of(const std::string& shards, const std::string& rooms) {
  return "[host]\nrooms_max = 4\nendpoints_max = 4\nclasses_max = 4\nconnections_max = 64\n" +
         shards + rooms;
}
const std::string kArena = "[[shard]]\nname = \"arena\"\nframe_budget_ms = 20\n";
const std::string kOther = "[[shard]]\nname = \"other\"\nframe_budget_ms = 20\n";
const std::string kLobby =
    "[[room]]\nname = \"lobby\"\nshard = \"arena\"\n[[endpoint]]\nname = \"game\"\naddress = "
    "\"any\"\nport = 7777\nprotocol = \"opaque\"\nrooms = [\"lobby\"]\n";
const std::string kCellar =
    "[[room]]\nname = \"cellar\"\nshard = \"other\"\n[[endpoint]]\nname = \"query\"\naddress = "
    "\"any\"\nport = 7778\nprotocol = \"opaque\"\nrooms = [\"cellar\"]\n";

class SetupTest : public testing::Test, public DaemonWorld {
 protected:
  SetupTest() : DaemonWorld(file_of(kArena, kLobby)) { tick(); }

  /// As the daemon does: numbers of the live rows stay with their names.
  std::unique_ptr<daemon::Setup> next_of(const std::string& text) {
    core::Model model = config::parse(text, "next.toml");
    const std::size_t copy = control_->generation & 1;
    const es_geometry& g = control_->geometry;
    const std::span endpoints(endpoints_);
    const std::span rooms(rooms_);
    const std::span classes(classes_);
    const auto live = core::numbering_of(endpoints.subspan(copy * g.endpoints, g.endpoints),
                                         rooms.subspan(copy * g.rooms, g.rooms),
                                         classes.subspan(copy * g.classes, g.classes));
    EXPECT_EQ(core::keep_numbers(model, live, g), "");
    core::keep_shard_numbers(model, setup_->model);
    return std::make_unique<daemon::Setup>(std::move(model));
  }

  const es_plan_room& room(std::size_t number) const {
    return rooms_[(control_->generation & 1) * control_->geometry.rooms + number];
  }
};

TEST_F(SetupTest, AReloadBringsTheContractThatTheLawGoesBy) {
  EXPECT_EQ(setup_->shards[0].sample.best_effort_contract_per_s, 0);
  const auto next = next_of(file_of(kArena, kLobby) +
                            "[[class]]\nname = \"player\"\nbest_effort = { packets_per_s = 36 }\n");
  sender_.send(SetupChange{next.get()});
  tick();
  EXPECT_EQ(next->shards[0].sample.best_effort_contract_per_s, 36);
}

TEST_F(SetupTest, ShardsGoOnWhereTheyStand) {
  say(ReportRequest{"arena", 26, 0, 0, {}});
  tick();
  ASSERT_EQ(box_->latest().shards[0].state.rung, 3);
  const auto next = next_of(file_of(kOther + kArena, kCellar + kLobby));
  sender_.send(SetupChange{next.get()});
  const std::uint32_t generation = control_->generation;
  tick();
  EXPECT_EQ(control_->generation, generation + 1) << "one plan";
  const Snapshot& snapshot = box_->latest();
  ASSERT_EQ(snapshot.model, &next->model);
  EXPECT_EQ(snapshot.shards[core::find_shard(next->model, "arena")].state.rung, 3);
  EXPECT_EQ(snapshot.shards[core::find_shard(next->model, "other")].state.rung, 0);
  EXPECT_LT(room(0).rules[ES_IN].keep_q16[ES_LANE_snapshot], ES_KEEP_ALL) << "lobby, as before";
  EXPECT_EQ(room(1).rules[ES_IN].keep_q16[ES_LANE_snapshot], ES_KEEP_ALL) << "the cellar";
}

TEST_F(SetupTest, LevelClocksRunOn) {
  const std::string leveled =
      "[[room]]\nname = \"lobby\"\nshard = \"arena\"\nlevel_in = { standard = { tokens_per_s = "
      "100 } }\n" +
      kLobby.substr(kLobby.find("[[endpoint]]"));
  const auto first = next_of(file_of(kArena, leveled));
  sender_.send(SetupChange{first.get()});
  tick(60);
  const es_level before = room(0).rules[ES_IN].level[0];
  const auto second = next_of(file_of(kOther + kArena, kCellar + leveled));
  sender_.send(SetupChange{second.get()});
  tick();
  const es_level after = room(0).rules[ES_IN].level[0];
  EXPECT_NE(before.burst, 0u);
  EXPECT_EQ(core::level_now(after, now_ns_ / 4'000'000),
            core::level_now(before, now_ns_ / 4'000'000));
}

TEST_F(SetupTest, AShardThatIsGoneTakesItsRowsAlong) {
  const auto both = next_of(file_of(kArena + kOther, kLobby + kCellar));
  sender_.send(SetupChange{both.get()});
  tick();
  EXPECT_NE(room(1).generation, 0u);
  const auto one = next_of(file_of(kOther, kCellar));
  sender_.send(SetupChange{one.get()});
  tick();
  EXPECT_EQ(room(0).generation, 0u);
  EXPECT_EQ(room(1).generation, control_->generation);
  // A report for what is gone is refused by name, and one that is under way hurts nobody.
  sender_.send(ServerThins{3, true});
  sender_.send(RoomWeight{3, 1});
  tick();
}

TEST_F(SetupTest, ARoomHeldByHandStaysHeld) {
  say(SetRequest{"room", "lobby", 3, 60});
  tick();
  const auto next = next_of(file_of(kOther + kArena, kCellar + kLobby));
  sender_.send(SetupChange{next.get()});
  tick();
  const int lobby = core::find_room(next->model, "lobby");
  EXPECT_TRUE(box_->latest().rooms[lobby].holds());
  EXPECT_EQ(box_->latest().rooms[lobby].rung, 3);
  EXPECT_FALSE(box_->latest().rooms[1 - lobby].holds());
}

TEST_F(SetupTest, TicksFollowTheFile) {
  const auto next = next_of(
      "[host]\ntick_hz = 20\nrooms_max = 4\nendpoints_max = 4\nclasses_max = "
      "4\nconnections_max = 64\n" +
      kArena + kLobby);
  sender_.send(SetupChange{next.get()});
  tick();
  EXPECT_EQ(ticker_->tick_hz(), 20u);
  EXPECT_EQ(control_->tick_rate_hz, 20u);
}

}  // namespace
}  // namespace edgeshed::daemon
