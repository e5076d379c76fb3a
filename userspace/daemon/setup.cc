#include "userspace/daemon/setup.h"

#include <algorithm>
#include <utility>

namespace edgeshed::daemon {
namespace {

std::uint8_t best_effort_lanes_of(const core::Model& model, std::uint16_t room) {
  std::uint8_t lanes = 0xff;
  for (const core::Endpoint& endpoint : model.endpoints) {
    const auto& rooms = endpoint.rooms;
    if (std::find(rooms.begin(), rooms.end(), room) == rooms.end()) continue;
    for (std::uint8_t lane = 0; lane < ES_LANES; ++lane) {
      if (es_lane_tier(endpoint.lane_tiers, lane) == ES_TIER_best_effort) continue;
      lanes &= static_cast<std::uint8_t>(~(1u << lane));
    }
  }
  return lanes;
}

}  // namespace

Setup::Setup(core::Model configured)
    : model(std::move(configured)),
      law(model.law),
      shards(model.shards.size()),
      endpoints(model.endpoints.size()),
      rate_from(model.endpoints.size()),
      exempt(model.endpoints.size()),
      throttled(model.endpoints.size()),
      server_thins(model.rooms.size()),
      best_effort_lanes(model.rooms.size()),
      endpoint_shares(daemon::endpoint_shares(model)),
      endpoint_arrivals(model.endpoints.size()),
      room_weight(model.rooms.size()),
      room_overrides(model.rooms.size()),
      states(model.shards.size()),
      retries(model.shards.size()),
      levels(model.shards.size()) {
  for (auto& from : rate_from) from.fill(kNeverSeen);
  const double contract_per_s = core::largest_contract(model, ES_IN, ES_TIER_best_effort);
  for (ShardSlot& shard : shards) {
    shard.law = law.begin();
    shard.sample.best_effort_contract_per_s = contract_per_s;
    shard.sample.lane_tiers = core::default_lane_tiers();
  }
  // The first endpoint of a shard wins: from the last one on.
  for (auto share = endpoint_shares.rbegin(); share != endpoint_shares.rend(); ++share) {
    shards[share->shard].sample.lane_tiers = model.endpoints[share->endpoint - 1].lane_tiers;
  }
  for (std::size_t room = 0; room < model.rooms.size(); ++room) {
    if (!core::exists(model.rooms[room])) continue;
    const auto number = static_cast<std::uint16_t>(room);
    shards[model.rooms[room].shard].rooms.push_back(number);
    best_effort_lanes[room] = best_effort_lanes_of(model, number);
  }
}

void Setup::take_over(const Setup& former) {
  // Numbers stay with names (core/numbering.h), so equal numbers with equal names go on.
  for (std::size_t i = 0; i < std::min(shards.size(), former.shards.size()); ++i) {
    if (model.shards[i].name != former.model.shards[i].name) continue;
    shards[i].told = former.shards[i].told;
    shards[i].boards = former.shards[i].boards;
    shards[i].rooms_opened = former.shards[i].rooms_opened;
    shards[i].board_reader = former.shards[i].board_reader;
    shards[i].fuse = former.shards[i].fuse;
    const core::CostState given = shards[i].law.cost;
    shards[i].law = former.shards[i].law;
    // What was learned stays, what is given is given anew.
    if (!(model.law.cost == former.model.law.cost)) shards[i].law.cost = given;
    shards[i].arrivals = former.shards[i].arrivals;
    shards[i].arrivals.looked = false;  // other rooms may count for it now
  }
  for (std::size_t i = 0; i < std::min(endpoints.size(), former.endpoints.size()); ++i) {
    if (model.endpoints[i].name != former.model.endpoints[i].name) continue;
    endpoints[i] = former.endpoints[i];
    rate_from[i] = former.rate_from[i];
    exempt[i] = former.exempt[i];
    throttled[i] = former.throttled[i];
    endpoint_arrivals[i] = former.endpoint_arrivals[i];
  }
  for (std::size_t i = 0; i < std::min(server_thins.size(), former.server_thins.size()); ++i) {
    if (model.rooms[i].name == former.model.rooms[i].name) {
      server_thins[i] = former.server_thins[i];
      room_weight[i] = former.room_weight[i];
      room_overrides[i] = former.room_overrides[i];
    }
  }
}

}  // namespace edgeshed::daemon
