// How far players are behind, read from what the packet path noted.
#include "userspace/daemon/ack_watch.h"

#include <gtest/gtest.h>

#include "maps/lanes.h"
#include "userspace/daemon/daemon_world.h"

namespace edgeshed::daemon {
namespace {

constexpr Jiffies kNow = {1000u << ES_ACK_AT_SHIFT, 250};
constexpr auto kAt = static_cast<std::uint8_t>(1000);

TEST(SeenAckLag, IsInUpdates) {
  EXPECT_EQ(seen_ack_lag({1, 20, kAt}, ES_PROTOCOL_lane, 33.3, kNow), 20u);
  // 20 x 16 ms are 320 ms: 9.6 updates at 30/s.
  EXPECT_EQ(seen_ack_lag({1, 20, kAt}, ES_PROTOCOL_enet, 33.3, kNow), 10u);
}

TEST(SeenAckLag, IsNotKnownWithoutAFreshAcknowledgement) {
  EXPECT_FALSE(seen_ack_lag({1, 20, 0}, ES_PROTOCOL_lane, 33.3, kNow));
  EXPECT_TRUE(seen_ack_lag({1, 20, kAt - 2}, ES_PROTOCOL_lane, 33.3, kNow));
  EXPECT_FALSE(seen_ack_lag({1, 20, kAt - 4}, ES_PROTOCOL_lane, 33.3, kNow));
  EXPECT_FALSE(seen_ack_lag({1, 20, kAt + 3}, ES_PROTOCOL_lane, 33.3, kNow)) << "long ago, wrapped";
  EXPECT_TRUE(seen_ack_lag({1, 20, kAt + 1}, ES_PROTOCOL_lane, 33.3, kNow)) << "ahead by a moment";
  const Jiffies fast = {kNow.now, 1000};
  EXPECT_TRUE(seen_ack_lag({1, 20, kAt - 11}, ES_PROTOCOL_lane, 33.3, fast));
  EXPECT_FALSE(seen_ack_lag({1, 20, kAt - 12}, ES_PROTOCOL_lane, 33.3, fast));
}

class AckWatchTest : public testing::Test, public DaemonWorld {
 protected:
  AckWatchTest()
      : DaemonWorld(R"(
[host]
connections_max = 8
[[shard]]
name = "arena"
[[room]]
name = "lobby"
shard = "arena"
[[room]]
name = "attic"
shard = "arena"
[[endpoint]]
name = "game"
address = "any"
port = 7777
protocol = "lane"
rooms = ["lobby", "attic"]
)") {
    tick(60);
  }
  void acked(std::uint8_t lag) {
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (records_[i].policy.room != 0 || records_[i].key.port == 0) continue;
      const std::uint64_t jiffies = now_ns_ / 4'000'000;
      records_out_[i].acks = {1, lag, static_cast<__u8>(jiffies >> ES_ACK_AT_SHIFT | 1)};
    }
  }
};

// Rule: A1
TEST_F(AckWatchTest, PlayersOfNoServerAreSeenInTheirRoom) {
  ASSERT_EQ(connections_->connect({.remote = "10.0.0.1:4000",
                                   .endpoint = "game",
                                   .room = "lobby",
                                   .contract_class = {},
                                   .priority = {},
                                   .weight = {}}),
            "");
  acked(40);
  sessions_->upkeep();
  EXPECT_TRUE(sessions_->acks().measures(0));
  EXPECT_FALSE(sessions_->acks().measures(1));
  EXPECT_EQ(sessions_->rooms().state(0).ack_lag_p95, 40u);
  EXPECT_EQ(sessions_->rooms().state(0).connections, 1u);
  EXPECT_EQ(sessions_->rooms().state(1).connections, 0u);
  acked(0);
  sessions_->upkeep();
  EXPECT_EQ(sessions_->rooms().state(0).ack_lag_p95, 40u) << "looked at once a second";
  tick(70);
  acked(0);
  sessions_->upkeep();
  EXPECT_EQ(sessions_->rooms().state(0).ack_lag_p95, 0u);
  tick(10 * 60);
  sessions_->upkeep();
  EXPECT_FALSE(sessions_->acks().measures(0)) << "it says nothing any more";
  for (const es_flow_state& state : records_out_) EXPECT_EQ(state.acks.acked_at, 0);
}

}  // namespace
}  // namespace edgeshed::daemon
