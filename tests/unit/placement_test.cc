// Conformance of room placement: every scope at its edge, and that the first breached one is named.
#include "userspace/core/placement.h"

#include <gtest/gtest.h>

#include <cmath>

namespace edgeshed::core {
namespace {

/// A request that is exactly at every limit.
struct World {
  PlacementRequest request = {.players = 10, .critical_ratio = 0.2};
  HostUsage host = {.rooms = 255, .players = 4086, .connections = 4086};
  ShardUsage shard = {.rooms = 63,
                      .room_capacity = 64,
                      .players = 502,
                      .tick_ratio = std::nextafter(1.0, 0.0),
                      .critical_ratio = 0.2 + 0.2};
  PlacementBudget budget;

  std::optional<Code> place() const {
    return evaluate_room_placement(request, host, shard, budget);
  }
};

TEST(Placement, AdmitsUpToEveryLimit) {
  EXPECT_EQ(World().place(), std::nullopt);
  World world;
  world.shard.tick_ratio = 0;
  EXPECT_EQ(world.place(), std::nullopt) << "a shard that never reported";
}

TEST(Placement, EachScopeJustOverItsLimit) {
  World world;
  world.host.rooms = 256;
  EXPECT_EQ(world.place(), Code::placement_host_rooms);
  world = {};
  world.host.players = 4087;
  EXPECT_EQ(world.place(), Code::placement_host_players);
  world = {};
  world.host.connections = 4087;
  EXPECT_EQ(world.place(), Code::placement_host_connections);
  world = {};
  world.shard.closed = true;
  EXPECT_EQ(world.place(), Code::placement_closed);
  world.shard.draining = true;
  EXPECT_EQ(world.place(), Code::shard_draining) << "the operator's word before the load's";
  world.request.sharded = false;
  EXPECT_EQ(world.place(), std::nullopt);
  world = {};
  world.shard.rooms = 64;
  EXPECT_EQ(world.place(), Code::placement_shard_rooms);
  world = {};
  world.shard.players = 503;
  EXPECT_EQ(world.place(), Code::placement_shard_players);
  world = {};
  world.shard.tick_ratio = 1;
  EXPECT_EQ(world.place(), Code::runtime_shard_over_budget);
  world = {};
  world.request.critical_ratio = 0.2001;
  EXPECT_EQ(world.place(), Code::placement_critical_over_bound);
}

TEST(Placement, TheRoomItselfComesFirst) {
  World world;
  world.host.rooms = 256;
  world.request.standing = RoomStanding::unknown;
  EXPECT_EQ(world.place(), Code::placement_room_unknown);
  world.request.standing = RoomStanding::placed;
  EXPECT_EQ(world.place(), Code::placement_room_already_placed);
  world.request.standing = RoomStanding::of_another_shard;
  EXPECT_EQ(world.place(), Code::placement_room_of_another_shard);
}

// Rule: A6
TEST(Placement, TheFirstBreachedScopeIsNamed) {
  World world;
  world.host = {.rooms = 256, .players = 5000, .connections = 5000};
  world.shard = {.closed = true,
                 .rooms = 64,
                 .room_capacity = 64,
                 .players = 600,
                 .tick_ratio = 3,
                 .critical_ratio = 1};
  EXPECT_EQ(world.place(), Code::placement_host_rooms);
  world.host.rooms = 0;
  EXPECT_EQ(world.place(), Code::placement_host_players);
  world.host.players = 0;
  EXPECT_EQ(world.place(), Code::placement_host_connections);
  world.host.connections = 0;
  EXPECT_EQ(world.place(), Code::placement_closed);
  world.shard.closed = false;
  EXPECT_EQ(world.place(), Code::placement_shard_rooms);
  world.shard.rooms = 0;
  EXPECT_EQ(world.place(), Code::placement_shard_players);
  world.shard.players = 0;
  EXPECT_EQ(world.place(), Code::runtime_shard_over_budget);
  world.shard.tick_ratio = 0;
  EXPECT_EQ(world.place(), Code::placement_critical_over_bound);
  world.shard.critical_ratio = 0;
  EXPECT_EQ(world.place(), std::nullopt);
}

TEST(Placement, OnlyAShardedPlacementChecksTheShard) {
  World world;
  world.shard = {.closed = true, .rooms = 64, .tick_ratio = 3, .critical_ratio = 1};
  EXPECT_NE(world.place(), std::nullopt);
  world.request.sharded = false;
  EXPECT_EQ(world.place(), std::nullopt);
  world.host.rooms = 256;
  EXPECT_EQ(world.place(), Code::placement_host_rooms);
}

TEST(Placement, TablesBoundTheConfiguration) {
  World world;
  world.budget.rooms_max = 255;
  EXPECT_EQ(world.place(), Code::placement_host_rooms);
  world.budget.rooms_max = 1000;
  EXPECT_EQ(world.place(), std::nullopt);
  world.host.rooms = 256;
  EXPECT_EQ(world.place(), Code::placement_host_rooms);
}

TEST(Placement, AnyNumberMayBeAskedFor) {
  World world;
  world.request.players = UINT32_MAX;
  EXPECT_EQ(world.place(), Code::placement_host_players);
}

// Rule: B11
TEST(Placement, ContractedCritical) {
  EXPECT_DOUBLE_EQ(contracted_critical_ratio(100, 60, 50), 0.3);
  EXPECT_EQ(contracted_critical_ratio(100, 0, 50), 0) << "no limit promises nothing";
  EXPECT_EQ(contracted_critical_ratio(100, 60, 0), 0) << "cost is not known";
}

}  // namespace
}  // namespace edgeshed::core
