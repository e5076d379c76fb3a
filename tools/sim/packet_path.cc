#include "tools/sim/packet_path.h"

#include <algorithm>
#include <string>

#include "tools/sim/random.h"
#include "userspace/core/expiry.h"

namespace edgeshed::sim {
namespace {

constexpr std::uint8_t kEndpoint = 1;
constexpr std::uint8_t kPlayerClass = 1;
constexpr std::uint8_t kPlayerPriority = 128;
constexpr std::uint32_t kPacketBytes = 100;

core::ContractClass contract_of(const Game& game) {
  core::ContractClass contract;
  contract.name = "player";
  const std::uint16_t tiers = core::default_lane_tiers();
  for (const LaneLoad& lane : game.lanes) {
    // A tenth more than is sent: who keeps its contract has jitter all the same.
    contract.rate[ES_IN][es_lane_tier(tiers, lane.lane)].packets_per_s += 1.1 * lane.per_s;
  }
  return contract;
}

core::Endpoint endpoint_of(std::uint32_t rooms) {
  core::Endpoint endpoint;
  endpoint.number = kEndpoint;
  endpoint.name = "game";
  endpoint.any_address = true;
  endpoint.port = 7777;
  endpoint.protocol = ES_PROTOCOL_lane;
  endpoint.lane_tiers = core::default_lane_tiers();
  endpoint.mode = core::Mode::enforce;
  for (std::uint32_t room = 0; room < rooms; ++room) {
    endpoint.rooms.push_back(static_cast<std::uint16_t>(room));
  }
  return endpoint;
}

}  // namespace

core::Model model_of(const Scenario& scenario) {
  core::Model model;
  model.host.tick_hz = scenario.control_hz;
  model.host.mode = core::Mode::enforce;
  for (std::uint32_t i = 0; i < scenario.shards; ++i) {
    core::Shard shard;
    shard.name = "shard" + std::to_string(i);
    shard.frame_budget_ms = scenario.game.tick_ms;
    shard.room_capacity = scenario.rooms_per_shard + 1;
    model.shards.push_back(shard);
  }
  for (std::uint32_t i = 0; i < scenario.shards * scenario.rooms_per_shard; ++i) {
    core::Room room;
    room.name = "room" + std::to_string(i);
    room.shard = i % scenario.shards;
    model.rooms.push_back(room);
  }
  model.classes.push_back(contract_of(scenario.game));
  model.endpoints.push_back(endpoint_of(scenario.shards * scenario.rooms_per_shard));
  if (scenario.costs_given) {
    for (const LaneLoad& lane : scenario.game.lanes) {
      model.law.cost.lane_us[lane.lane] = lane.cost_us * scenario.cost_error;
    }
    model.law.cost.base_share = scenario.game.base_share;
  }
  return model;
}

PacketPath::PacketPath(const core::Model& model, std::uint32_t connections, std::uint64_t seed)
    : model_(&model),
      rooms_(static_cast<std::uint32_t>(model.rooms.size())),
      geometry_{.endpoints = 2,
                .rooms = rooms_,
                .classes = 2,
                .connections = connections,
                .stream_blocks = 0,
                .buckets = 0,
                .cpus = 1,
                .hz = kJiffiesPerS,
                .seed = {seed, ~seed}},
      rows_(geometry_),
      endpoints_(2 * std::size_t{geometry_.endpoints}),
      plan_rooms_(2 * std::size_t{rooms_}),
      classes_(2 * std::size_t{geometry_.classes}),
      connections_(connections),
      states_in_(connections),
      count_endpoints_(geometry_.endpoints),
      count_rooms_(rooms_) {
  Random random(seed);
  for (std::uint32_t i = 0; i < connections; ++i) {
    connections_[i].policy = {.room = static_cast<std::uint16_t>(room_of(i)),
                              .contract_class = kPlayerClass,
                              .priority = kPlayerPriority,
                              .flags = 0,
                              .weight_inverse_q8 = core::weight_inverse_q8(1)};
    // As kernel/slot_table.cc begins a record: everyone at a phase of its own.
    for (es_thin& thin : states_in_[i].thin) {
      thin.error_q16 = static_cast<std::uint16_t>(random.below(65536));
    }
  }
  const es_sim_memory memory = {.geometry = geometry_,
                                .control = &control_,
                                .endpoints = endpoints_.data(),
                                .rooms = plan_rooms_.data(),
                                .classes = classes_.data(),
                                .connections = connections_.data(),
                                .states_in = states_in_.data(),
                                .states_out = nullptr,
                                .count_endpoints = count_endpoints_.data(),
                                .count_rooms = count_rooms_.data()};
  es_sim_use(&memory);
}

PacketPath::Fate PacketPath::decide(std::uint32_t player, std::uint8_t lane, double now_ms) {
  control_.clock_jiffies = jiffies(now_ms);
  es_packet packet = {};
  packet.ip_bytes = kPacketBytes;
  packet.segments = 1;
  packet.direction = ES_IN;
  packet.endpoint = kEndpoint;
  packet.lane = lane;
  packet.remote.addr_lo = player;  // what its phase comes from
  es_sim_decide(&packet, player);
  return {.passes = packet.verdict != ES_VERDICT_drop,
          .arrived = packet.arrived != 0,
          .reason = packet.reason,
          .tier = packet.tier,
          .demoted = packet.row == ES_ROW_DEMOTED};
}

void PacketPath::publish(std::span<const core::ShardState> states,
                         std::span<const core::TierLevels> levels, std::uint32_t tick_hz,
                         double now_ms) {
  const core::PlanTiming timing = {.hz = kJiffiesPerS,
                                   .now_jiffies = jiffies(now_ms),
                                   .tick_hz = tick_hz,
                                   .tick = ticks_++,
                                   .cpus = 1};
  core::PlanExtras extras;
  extras.levels = levels;
  core::fill_plan_rows(*model_, states, timing, rows_.rooms, rows_, extras);
  const std::uint32_t generation = control_.generation + 1;
  const auto copy = [&](const auto& from, auto& to) {
    const std::size_t first = (generation & 1) * from.size();
    for (std::size_t i = 0; i < from.size(); ++i) {
      to[first + i] = from[i];
      if (from[i].generation != 0) to[first + i].generation = generation;
    }
  };
  copy(rows_.endpoints, endpoints_);
  copy(rows_.rooms, plan_rooms_);
  copy(rows_.classes, classes_);
  control_.valid_until_jiffies =
      timing.now_jiffies + core::plan_valid_jiffies(tick_hz, kJiffiesPerS);
  control_.generation = generation;
}

}  // namespace edgeshed::sim
