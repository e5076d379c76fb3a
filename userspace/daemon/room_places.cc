#include "userspace/daemon/room_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "maps/limits.h"
#include "userspace/core/placement.h"
#include "userspace/core/shard_ladder.h"

namespace edgeshed::daemon {
namespace {

std::uint32_t bounded(std::uint32_t players) { return std::min(players, ES_CONNECTIONS_MAX); }

/// What `players` of a room may send of critical, as a share of the shard's time: by the class that
/// promises most, at the configured cost of an event. 0: no cost is configured.
double critical_ratio(const core::Model& model, std::uint32_t players) {
  double most_per_s = 0;
  for (const core::ContractClass& contract : model.classes) {
    most_per_s = std::max(most_per_s, contract.rate[ES_IN][ES_TIER_critical].packets_per_s);
  }
  const auto& costs = model.law.cost.lane_us;
  const bool given = std::any_of(costs.begin(), costs.end(), [](double us) { return us > 0; });
  const double cost_us = given ? core::lane_cost_us(model.law.cost, ES_LANE_event) : 0;
  return core::contracted_critical_ratio(players, most_per_s, cost_us);
}

}  // namespace

std::optional<session::Refused> RoomPlaces::judge(const core::Model& model, std::uint16_t room,
                                                  std::uint32_t players, std::size_t connections,
                                                  const Snapshot& snapshot) const {
  const std::uint32_t shard = model.rooms[room].shard;
  core::PlacementRequest request;
  request.players = bounded(players);
  if (is_open(room)) request.standing = core::RoomStanding::placed;
  request.critical_ratio = critical_ratio(model, request.players);
  core::HostUsage host;
  host.connections = static_cast<std::uint32_t>(connections);
  core::ShardUsage usage;
  usage.draining = drains(model.shards[shard].name);
  usage.room_capacity = model.shards[shard].room_capacity;
  for (const auto& [number, placed] : placed_) {
    ++host.rooms;
    host.players = bounded(host.players + placed.players);
    if (model.rooms[number].shard != shard) continue;
    ++usage.rooms;
    usage.players = bounded(usage.players + placed.players);
    usage.critical_ratio += critical_ratio(model, placed.players);
  }
  if (snapshot.model == &model) {
    const ShardView& view = snapshot.shards[shard];
    usage.closed = view.state.effects.refuse_joins;
    if (view.state.report == core::ReportState::fresh) {
      usage.tick_ratio = core::tick_ratio(view.signals.tick_p99_ms, view.signals.frame_budget_ms);
    }
  }
  const core::PlacementBudget budget{model.placement, model.host.rooms_max,
                                     model.host.connections_max};
  const auto code = core::evaluate_room_placement(request, host, usage, budget);
  if (!code) return std::nullopt;
  return session::Refused{
      *code, fmt::format("room \"{}\" on shard \"{}\": {} rooms and {} players there, {} and {} on "
                         "the host; tick ratio {:.2f}",
                         model.rooms[room].name, model.shards[shard].name, usage.rooms,
                         usage.players, host.rooms, host.players, usage.tick_ratio)};
}

bool RoomPlaces::drain(const std::string& shard, bool on) {
  return on ? draining_.insert(shard).second : draining_.erase(shard) != 0;
}

void RoomPlaces::place(std::uint16_t room, session::SessionId session, std::uint32_t players) {
  placed_[room] = {session, bounded(players)};
}

std::vector<std::uint16_t> RoomPlaces::rooms_of(session::SessionId session) const {
  std::vector<std::uint16_t> rooms;
  for (const auto& [room, placed] : placed_) {
    if (placed.session == session) rooms.push_back(room);
  }
  return rooms;
}

bool RoomPlaces::is_of(std::uint16_t room, session::SessionId session) const {
  const auto placed = placed_.find(room);
  return placed != placed_.end() && placed->second.session == session;
}

std::uint32_t RoomPlaces::open_on(const core::Model& model, std::uint32_t shard) const {
  return static_cast<std::uint32_t>(
      std::count_if(placed_.begin(), placed_.end(),
                    [&](const auto& one) { return model.rooms[one.first].shard == shard; }));
}

void RoomPlaces::orphan(session::SessionId session) {
  for (const std::uint16_t room : rooms_of(session)) {
    orphans_.insert({session, {room, placed_[room].players}});
    placed_.erase(room);
  }
}

void RoomPlaces::orphan_room(session::SessionId session, std::uint16_t room) {
  orphans_.insert({session, {room, ES_CONNECTIONS_MAX}});
}

void RoomPlaces::forget(session::SessionId session) { orphans_.erase(session); }

bool RoomPlaces::may_return(std::uint16_t room, std::uint32_t players) const {
  return std::any_of(orphans_.begin(), orphans_.end(), [&](const auto& one) {
    return one.second.first == room && players <= one.second.second;
  });
}

}  // namespace edgeshed::daemon
