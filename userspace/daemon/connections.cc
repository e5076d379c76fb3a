#include "userspace/daemon/connections.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace edgeshed::daemon {
namespace {

std::string names_of(const std::vector<core::Endpoint>& endpoints) {
  std::string names;
  for (const core::Endpoint& endpoint : endpoints) {
    if (names.size() > 200) return names + ", ...";
    names += (names.empty() ? "" : ", ") + endpoint.name;
  }
  return names;
}

}  // namespace

Connections::Connections(const core::Model& model, const kernel::SlotTableMemory& memory,
                         std::span<es_stream_block> streams, kernel::Grace grace)
    : model_(model),
      records_(memory.connections),
      streams_(streams),
      table_(memory, std::move(grace)) {}

Connections::Adopted Connections::adopt() {
  const auto found = table_.adopt();
  Adopted adopted;
  adopted.repaired = found.repaired;
  std::vector<bool> used(streams_.size(), false);
  for (const std::uint32_t record : table_.live_records()) {
    if (is_of_model(records_[record])) {
      ++adopted.kept;
      // Who is exempt stands in the configuration alone, and may have changed.
      es_policy policy = records_[record].policy;
      policy.flags &= static_cast<__u16>(~ES_CONN_EXEMPT);
      table_.set_policy(record, policy);
      adopt_stream_block(record, used);
    } else {
      ++adopted.dropped;
      table_.remove(es_key(records_[record].key));
    }
  }
  // Dropped connections' blocks may still be written by a packet that is being decided.
  table_.reclaim();
  for (std::size_t block = used.size(); block-- > 1;) {
    if (!used[block]) free_blocks_.push_back(static_cast<std::uint32_t>(block));
  }
  for (const core::Connection& connection : model_.connections) {
    const std::string error = insert(connection.key, connection.policy);
    if (!error.empty()) spdlog::warn("{}: {}", core::remote_text(connection.key), error);
  }
  return adopted;
}

void Connections::adopt_stream_block(std::uint32_t record, std::vector<bool>& used) {
  const std::uint32_t block = records_[record].key.stream_block;
  if (block == 0) return;
  if (block < used.size() && !used[block]) {
    used[block] = true;
  } else {
    table_.set_stream_block(record, 0);  // out of range, or another connection's
  }
}

bool Connections::is_of_model(const es_connection& record) const {
  const std::uint8_t number = record.key.endpoint;
  if (number == 0 || number > model_.endpoints.size()) return false;
  const auto& rooms = model_.endpoints[number - 1].rooms;
  return std::find(rooms.begin(), rooms.end(), record.policy.room) != rooms.end() &&
         record.policy.contract_class < model_.classes.size();
}

std::string Connections::read_key(const std::string& remote, const std::string& endpoint,
                                  es_key& key) const {
  key = {};
  if (!core::parse_remote(remote, key)) {
    return fmt::format(
        "remote \"{}\" is not an address and port; allowed: 203.0.113.7:40000 or "
        "[2001:db8::7]:40000",
        remote);
  }
  key.endpoint = core::find_endpoint(model_, endpoint);
  if (key.endpoint == 0) {
    return fmt::format("unknown endpoint \"{}\"; configured: {}", endpoint,
                       names_of(model_.endpoints));
  }
  return {};
}

std::string Connections::read_policy(const ConnectRequest& request, const core::Endpoint& endpoint,
                                     es_policy& policy) const {
  policy = {};
  policy.room = endpoint.rooms.front();
  if (request.room.empty()) {
    if (endpoint.rooms.size() > 1) {
      return fmt::format("endpoint {} has {} rooms; say which", endpoint.name,
                         endpoint.rooms.size());
    }
  } else {
    const int room = core::find_room(model_, request.room);
    const auto& rooms = endpoint.rooms;
    if (room < 0 || std::find(rooms.begin(), rooms.end(), room) == rooms.end()) {
      return fmt::format("endpoint {} has no room \"{}\"", endpoint.name, request.room);
    }
    policy.room = static_cast<std::uint16_t>(room);
  }
  if (!request.contract_class.empty()) {
    const int contract = core::find_class(model_, request.contract_class);
    if (contract < 0) return fmt::format("unknown class \"{}\"", request.contract_class);
    policy.contract_class = static_cast<std::uint8_t>(contract);
  }
  policy.priority = static_cast<std::uint8_t>(request.priority.value_or(kDefaultPriority));
  policy.weight_inverse_q8 = core::weight_inverse_q8(request.weight.value_or(1));
  return {};
}

std::string Connections::connect(const ConnectRequest& request) {
  es_key key;
  es_policy policy;
  std::string error = read_key(request.remote, request.endpoint, key);
  if (error.empty()) error = read_policy(request, model_.endpoints[key.endpoint - 1], policy);
  if (!error.empty()) return error;
  // What else is known of a connection (exempt) stays.
  if (const auto record = table_.find(key)) policy.flags = records_[*record].policy.flags;
  return insert(key, policy);
}

std::string Connections::insert(const es_key& key, const es_policy& policy) {
  // The block comes before the record: a packet that finds the record may use it at once.
  const auto known = table_.find(key);
  const std::uint32_t block = known ? 0 : take_stream_block(policy.room);
  const auto record = table_.insert(key, policy, 0, block);
  if (!record) {
    if (block != 0) free_blocks_.push_back(block);
    return fmt::format(
        "the table is full with {} of {} connections; raise [host] connections_max, "
        "then edgeshed detach and edgeshed attach",
        table_.size(), table_.capacity());
  }
  if (known && records_[*record].key.stream_block == 0) {
    table_.set_stream_block(*record, take_stream_block(policy.room));
  }
  return {};
}

std::string Connections::disconnect(const DisconnectRequest& request) {
  es_key key;
  std::string error = read_key(request.remote, request.endpoint, key);
  if (!error.empty()) return error;
  const auto record = table_.find(key);
  const std::uint32_t block = record ? records_[*record].key.stream_block : 0;
  if (!table_.remove(key)) {
    return fmt::format("{} is no connection of endpoint {}", request.remote, request.endpoint);
  }
  if (block != 0) pending_blocks_.push_back(block);
  return {};
}

void Connections::upkeep() {
  table_.reclaim();
  // reclaim() waited a grace for all removals so far, so nobody holds these blocks any more.
  if (table_.pending() != 0) return;
  free_blocks_.insert(free_blocks_.end(), pending_blocks_.begin(), pending_blocks_.end());
  pending_blocks_.clear();
}

bool Connections::wants_streams(std::uint16_t room) const {
  const core::Room& rules = model_.rooms[room];
  return rules.stream_cap != 0 || rules.stream_samples_per_s != 0 ||
         rules.stream_bytes_per_s != 0 || rules.player_bytes_per_s != 0 ||
         rules.room_bytes_per_s != 0;
}

std::uint32_t Connections::take_stream_block(std::uint16_t room) {
  if (free_blocks_.empty() || !wants_streams(room)) return 0;
  const std::uint32_t block = free_blocks_.back();
  free_blocks_.pop_back();
  streams_[block] = es_stream_block{};
  return block;
}

}  // namespace edgeshed::daemon
