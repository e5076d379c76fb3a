#include "userspace/daemon/room_rungs.h"

#include <algorithm>

#include "maps/lanes.h"

namespace edgeshed::daemon {
namespace {

core::RoomLadderInput room_input(const ShardView& shard, const RoomFacts& facts) {
  const core::LadderEffects& effects = shard.state.effects;
  const core::LaneEffect& stream = effects.lane[ES_LANE_stream - core::kFirstThinLane];
  core::RoomLadderInput input;
  input.stream_keep = stream.paused ? 0 : std::min(stream.keep[ES_IN], stream.keep[ES_OUT]);
  input.keep_best_effort = core::least_keep(effects);
  const bool shed = effects.threshold[core::kTierStandard] > 0;
  input.keep_standard = shed ? 0 : shard.degree.keep_standard;
  input.governor_rejects = facts.governor_rejects;
  input.consumers_at_evict = facts.consumers_at_evict;
  input.tick_twice_s = shard.tick_twice_s;
  input.critical_ratio = shard.demand.tier[ES_TIER_critical] + shard.demand.base;
  return input;
}

}  // namespace

std::vector<RoomRungChange> RoomRungs::look(const Snapshot& snapshot,
                                            const std::function<RoomFacts(std::uint16_t)>& facts_of,
                                            std::uint64_t now_ns) {
  const core::Model& model = *snapshot.model;
  places_.resize(model.rooms.size());
  std::vector<RoomRungChange> changed;
  for (std::size_t i = 0; i < model.rooms.size(); ++i) {
    if (!core::exists(model.rooms[i]) || snapshot.rooms[i].holds()) continue;
    const auto room = static_cast<std::uint16_t>(i);
    const ShardView& shard = snapshot.shards[model.rooms[i].shard];
    const core::RoomDegradation found =
        core::evaluate_room_ladder(room_input(shard, facts_of(room)));
    const std::uint8_t from = places_[i].now.rung;
    if (!core::step(places_[i], found, now_ns)) continue;
    ++changes_[static_cast<std::size_t>(found.cause)];
    changed.push_back({room, from, found});
  }
  return changed;
}

void RoomRungs::use(const core::Model& former, const core::Model& next) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const bool same = i < next.rooms.size() && i < former.rooms.size() &&
                      next.rooms[i].name == former.rooms[i].name;
    if (!same) places_[i] = {};
  }
}

}  // namespace edgeshed::daemon
