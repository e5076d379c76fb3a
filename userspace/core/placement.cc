// The scopes of a placement, in their order.
#include "userspace/core/placement.h"

#include <algorithm>

#include "userspace/core/time_units.h"

namespace edgeshed::core {
namespace {

std::optional<Code> check_room(RoomStanding standing) {
  switch (standing) {
    case RoomStanding::free:
      return std::nullopt;
    case RoomStanding::unknown:
      return Code::placement_room_unknown;
    case RoomStanding::placed:
      return Code::placement_room_already_placed;
    case RoomStanding::of_another_shard:
      return Code::placement_room_of_another_shard;
  }
  return Code::placement_room_unknown;
}

/// True when `more` does not fit; in 64 bits, since a request may ask for any number.
bool over(uint64_t used, uint64_t more, uint64_t limit) { return used + more > limit; }

std::optional<Code> check_host(const PlacementRequest& request, const HostUsage& host,
                               const PlacementBudget& budget) {
  if (over(host.rooms, 1, std::min(budget.config.host_rooms_max, budget.rooms_max))) {
    return Code::placement_host_rooms;
  }
  if (over(host.players, request.players, budget.config.host_players_max)) {
    return Code::placement_host_players;
  }
  if (over(host.connections, request.players, budget.connections_max)) {
    return Code::placement_host_connections;
  }
  return std::nullopt;
}

std::optional<Code> check_shard(const PlacementRequest& request, const ShardUsage& shard,
                                const PlacementConfig& config) {
  constexpr double kRounding = 1e-9;  // .2 + .2 + .2 is more than .6
  if (shard.draining) return Code::shard_draining;
  if (shard.closed) return Code::placement_closed;
  if (over(shard.rooms, 1, shard.room_capacity)) return Code::placement_shard_rooms;
  if (over(shard.players, request.players, config.shard_players_max)) {
    return Code::placement_shard_players;
  }
  if (shard.tick_ratio >= config.shard_tick_ratio_max) return Code::runtime_shard_over_budget;
  if (shard.critical_ratio + request.critical_ratio > config.critical_share_max + kRounding) {
    return Code::placement_critical_over_bound;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Code> evaluate_room_placement(const PlacementRequest& request, const HostUsage& host,
                                            const ShardUsage& shard,
                                            const PlacementBudget& budget) {
  std::optional<Code> refusal = check_room(request.standing);
  if (!refusal) refusal = check_host(request, host, budget);
  if (!refusal && request.sharded) refusal = check_shard(request, shard, budget.config);
  return refusal;
}

double contracted_critical_ratio(uint32_t players, double packets_per_s, double cost_us) {
  return players * packets_per_s * cost_us * kSPerUs;
}

}  // namespace edgeshed::core
