#include "userspace/daemon/connections.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
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
    : model_(&model),
      states_out_(memory.connections_out),
      owner_(memory.connections.size()),
      records_(memory.connections),
      streams_(streams),
      table_(memory, std::move(grace)) {}

Connections::Adopted Connections::adopt(const core::Numbering& live) {
  const auto found = table_.adopt();
  Adopted adopted;
  adopted.repaired = found.repaired;
  std::vector<bool> used(streams_.size(), false);
  for (const std::uint32_t record : table_.live_records()) {
    es_policy policy = records_[record].policy;
    // What the configuration holds now is added below; the rest of what it held is gone.
    if (is_of_model(*model_, live, records_[record]) && (policy.flags & ES_CONN_OF_CONFIG) == 0) {
      ++adopted.kept;
      weigh(policy, 1);
      // Who is exempt is known anew: by the configuration, and by the allow list.
      // So is who reads too slowly: by a server's next report.
      policy.flags &= static_cast<__u16>(~(ES_CONN_EXEMPT | ES_CONN_THROTTLED));
      table_.set_policy(record, policy);
      if ((policy.flags & ES_CONN_OF_SESSION) != 0) {
        owner_[record] = {kFormerSession, 0};
        ++adopted.awaited;
      }
      adopt_stream_block(record, used);
    } else if (configured(records_[record].key) != nullptr) {
      ++adopted.kept;
      weigh(policy, 1);
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
  insert_configured();
  return adopted;
}

void Connections::insert_configured() {
  for (const core::Connection& connection : model_->connections) {
    es_policy policy = connection.policy;
    // A server that has it now knows it better.
    const auto known = table_.find(connection.key);
    const bool lives =
        known && owner_[*known].session != kNoSession && owner_[*known].session != kFormerSession;
    if (lives) policy = records_[*known].policy;
    policy.flags |= ES_CONN_OF_CONFIG;
    const std::string error = insert(connection.key, policy);
    if (!error.empty()) spdlog::warn("{}: {}", core::remote_text(connection.key), error);
  }
}

const core::Connection* Connections::configured(const es_key& key) const {
  const auto& list = model_->connections;
  const auto found = std::find_if(list.begin(), list.end(), [&](const core::Connection& one) {
    return one.key.addr_hi == key.addr_hi && one.key.addr_lo == key.addr_lo &&
           one.key.port == key.port && one.key.endpoint == key.endpoint;
  });
  return found == list.end() ? nullptr : &*found;
}

std::size_t Connections::make_room_for(const core::Model& next, const core::Numbering& live) {
  std::size_t removed = 0;
  const core::Model* const former = std::exchange(model_, &next);
  for (const std::uint32_t record : table_.live_records()) {
    const bool only_former = (records_[record].policy.flags & ES_CONN_OF_CONFIG) != 0 &&
                             configured(records_[record].key) == nullptr;
    if (is_of_model(next, live, records_[record]) && !only_former) continue;
    remove_record(record);
    ++removed;
  }
  model_ = former;  // until the next plan is out
  return removed;
}

void Connections::use(const core::Model& next) {
  // Of a number that means another endpoint now nothing was told.
  for (std::size_t i = 0; i < next.endpoints.size(); ++i) {
    const bool same =
        i < model_->endpoints.size() && model_->endpoints[i].name == next.endpoints[i].name;
    if (same) continue;
    if (i + 1 < exempt_counts_.size()) exempt_counts_[i + 1] = 0;
    if (i + 1 < throttled_counts_.size()) throttled_counts_[i + 1] = 0;
  }
  model_ = &next;
  throttled_changed_ = true;
  insert_configured();
  count_exempt();
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

bool Connections::is_of_model(const core::Model& model, const core::Numbering& live,
                              const es_connection& record) {
  const std::uint8_t number = record.key.endpoint;
  if (number == 0 || number > model.endpoints.size()) return false;
  const auto& rooms = model.endpoints[number - 1].rooms;
  return std::find(rooms.begin(), rooms.end(), record.policy.room) != rooms.end() &&
         core::class_exists(model, record.policy.contract_class) &&
         core::refers_to_same(record, model, live);
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
  key.endpoint = core::find_endpoint(*model_, endpoint);
  if (key.endpoint == 0) {
    return fmt::format("unknown endpoint \"{}\"; configured: {}", endpoint,
                       names_of(model_->endpoints));
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
    const int room = core::find_room(*model_, request.room);
    const auto& rooms = endpoint.rooms;
    if (room < 0 || std::find(rooms.begin(), rooms.end(), room) == rooms.end()) {
      return fmt::format("endpoint {} has no room \"{}\"", endpoint.name, request.room);
    }
    policy.room = static_cast<std::uint16_t>(room);
  }
  if (!request.contract_class.empty()) {
    const int contract = core::find_class(*model_, request.contract_class);
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
  if (error.empty()) error = read_policy(request, model_->endpoints[key.endpoint - 1], policy);
  if (!error.empty()) return error;
  // What else is known of a connection (exempt, whose it is) stays.
  if (const auto record = table_.find(key)) policy.flags = records_[*record].policy.flags;
  return insert(key, policy);
}

std::optional<core::Code> Connections::register_for(std::uint32_t session, std::uint32_t row,
                                                    const es_key& key, es_policy policy) {
  if (const auto known = table_.find(key)) {
    const std::uint32_t owner = owner_[*known].session;
    if (owner != session && owner != kNoSession && session_lives && session_lives(owner)) {
      return core::Code::register_other_session;
    }
    policy.flags = records_[*known].policy.flags;
    if (owner != session || owner_[*known].row != row) {
      // Another server, or another row: who reads too slowly is found out anew.
      throttled_changed_ |= (policy.flags & ES_CONN_THROTTLED) != 0;
      policy.flags &= static_cast<__u16>(~ES_CONN_THROTTLED);
    }
  }
  policy.flags |= ES_CONN_OF_SESSION;
  if (!insert(key, policy).empty()) return core::Code::register_table_full;
  owner_[*table_.find(key)] = {session, row};
  return std::nullopt;
}

bool Connections::unregister(std::uint32_t session, std::uint32_t row, const es_key& key) {
  const auto record = table_.find(key);
  if (!record || owner_[*record].session != session || owner_[*record].row != row) return false;
  let_go(*record);
  return true;
}

void Connections::let_go(std::uint32_t record) {
  const core::Connection* const known = configured(records_[record].key);
  if (known == nullptr) {
    remove_record(record);
    return;
  }
  owner_[record] = {};
  throttled_changed_ |= (records_[record].policy.flags & ES_CONN_THROTTLED) != 0;
  es_policy policy = known->policy;
  policy.flags |= ES_CONN_OF_CONFIG;
  (void)insert(known->key, policy);  // it is there: nothing can be full
}

std::size_t Connections::remove_sessions(std::span<const std::uint32_t> sessions) {
  std::size_t removed = 0;
  for (std::uint32_t record = 0; record < owner_.size(); ++record) {
    const std::uint32_t owner = owner_[record].session;
    if (owner == kNoSession) continue;
    if (std::find(sessions.begin(), sessions.end(), owner) == sessions.end()) continue;
    let_go(record);
    ++removed;
  }
  return removed;
}

void Connections::each_acked(
    const std::function<void(const Owner&, const es_connection&, es_ack_watch&)>& each) const {
  for (std::uint32_t record = 0; record < records_.size(); ++record) {
    es_ack_watch& acks = states_out_[record].acks;
    if (__atomic_load_n(&acks.acked_at, __ATOMIC_RELAXED) == 0 || !table_.is_live(record)) continue;
    each(owner_[record], records_[record], acks);
  }
}

Connections::Owner Connections::owner_of(const es_key& key) const {
  const auto record = table_.find(key);
  return record ? owner_[*record] : Owner{};
}

std::vector<std::uint16_t> Connections::rooms_of(std::uint32_t session) const {
  std::set<std::uint16_t> rooms;
  for (std::uint32_t record = 0; record < owner_.size(); ++record) {
    if (owner_[record].session == session) rooms.insert(records_[record].policy.room);
  }
  return {rooms.begin(), rooms.end()};
}

void Connections::weigh(const es_policy& policy, double sign) {
  if (policy.room >= weights_.size()) {
    weights_.resize(policy.room + std::size_t{1});
    weight_changed_.resize(weights_.size());
  }
  const double weight = 256.0 / std::max<double>(policy.weight_inverse_q8, 1);
  const double sum = weights_[policy.room] + sign * weight;
  weights_[policy.room] = sum < kWeightMin / 2 ? 0 : sum;  // not the rest of many roundings
  weight_changed_[policy.room] = true;
}

void Connections::take_weight_changes(
    const std::function<void(std::uint16_t room, double weight)>& take) {
  for (std::size_t room = 0; room < weights_.size(); ++room) {
    if (!weight_changed_[room]) continue;
    weight_changed_[room] = false;
    take(static_cast<std::uint16_t>(room), weights_[room]);
  }
}

void Connections::throttle(std::uint32_t session, std::uint32_t row, const es_key& key) {
  const auto record = table_.find(key);
  if (!record || owner_[*record].session != session || owner_[*record].row != row) return;
  es_policy policy = records_[*record].policy;
  policy.flags |= ES_CONN_THROTTLED;
  table_.set_policy(*record, policy);
  throttled_changed_ = true;
}

std::string Connections::set_stream(std::uint32_t session, std::uint32_t row, const es_key& key,
                                    const kernel::StreamOrder& order) {
  const auto record = table_.find(key);
  if (!record || owner_[*record].session != session || owner_[*record].row != row) {
    return fmt::format("{} is no connection of the session", core::remote_text(key));
  }
  const std::uint32_t block = records_[*record].key.stream_block;
  if (block == 0) {
    return fmt::format("{} has no streams: its room governs none, or [host] streams_max is used up",
                       core::remote_text(key));
  }
  const std::uint32_t cap = model_->rooms[records_[*record].policy.room].stream_cap;
  const std::uint32_t usable = cap == 0 ? ES_STREAM_SLOTS : cap;
  if (kernel::set_stream(streams_[block], order, usable) == kernel::StreamChange::no_slot) {
    return fmt::format("{} plays {} streams already, none can be closed unseen",
                       core::remote_text(key), usable);
  }
  return {};
}

void Connections::take_throttled_changes(const EndpointCount& take) {
  if (!throttled_changed_) return;
  throttled_changed_ = false;
  tell_counts([](const es_connection& one) { return (one.policy.flags & ES_CONN_THROTTLED) != 0; },
              throttled_counts_, take);
}

void Connections::tell_counts(const std::function<bool(const es_connection&)>& counts_in,
                              std::vector<std::uint32_t>& told, const EndpointCount& tell) const {
  std::vector<std::uint32_t> counts(model_->endpoints.size() + 1);
  for (const std::uint32_t record : table_.live_records()) {
    const std::uint8_t endpoint = records_[record].key.endpoint;
    if (endpoint < counts.size() && counts_in(records_[record])) ++counts[endpoint];
  }
  told.resize(counts.size());
  for (std::size_t number = 1; number < counts.size(); ++number) {
    if (counts[number] == told[number]) continue;
    told[number] = counts[number];
    if (tell) tell(static_cast<std::uint8_t>(number), counts[number]);
  }
}

void Connections::allow(const AllowList& allowed) {
  allowed_ = &allowed;
  for (const std::uint32_t record : table_.live_records()) {
    es_policy policy = records_[record].policy;
    const core::Connection* known = configured(records_[record].key);
    const bool by_config = known != nullptr && (known->policy.flags & ES_CONN_EXEMPT) != 0;
    const bool exempt = by_config || allowed.allows(records_[record].key);
    if (((policy.flags & ES_CONN_EXEMPT) != 0) == exempt) continue;
    policy.flags =
        static_cast<__u16>(exempt ? policy.flags | ES_CONN_EXEMPT : policy.flags & ~ES_CONN_EXEMPT);
    table_.set_policy(record, policy);
  }
  count_exempt();
}

void Connections::count_exempt() {
  const bool any = allowed_ != nullptr && !allowed_->entries().empty();
  tell_counts([&](const es_connection& one) { return any && allowed_->allows(one.key); },
              exempt_counts_, exempt_changed);
}

std::string Connections::insert(const es_key& key, const es_policy& policy) {
  es_policy wanted = policy;
  const bool allowed = allowed_ != nullptr && allowed_->allows(key);
  if (allowed) wanted.flags |= ES_CONN_EXEMPT;
  // The block comes before the record: a packet that finds the record may use it at once.
  const auto known = table_.find(key);
  const std::uint32_t block = known ? 0 : take_stream_block(policy.room);
  const auto before = known ? std::optional(records_[*known].policy) : std::nullopt;
  const auto record = table_.insert(key, wanted, 0, block);
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
  if (!known) owner_[*record] = {};
  if (before) weigh(*before, -1);
  weigh(wanted, 1);
  if (allowed && !known) {
    // An endpoint with exempt connections sheds nothing before the look-up: the plan must know.
    exempt_counts_.resize(model_->endpoints.size() + 1);
    const std::uint32_t count = ++exempt_counts_[key.endpoint];
    if (exempt_changed) exempt_changed(key.endpoint, count);
  }
  return {};
}

void Connections::remove_record(std::uint32_t record) {
  const es_key key = records_[record].key;
  const es_policy policy = records_[record].policy;
  if (!table_.remove(key)) return;
  weigh(policy, -1);
  owner_[record] = {};
  throttled_changed_ |= (policy.flags & ES_CONN_THROTTLED) != 0;
  if (key.stream_block != 0) pending_blocks_.push_back(key.stream_block);
}

std::string Connections::disconnect(const DisconnectRequest& request) {
  es_key key;
  std::string error = read_key(request.remote, request.endpoint, key);
  if (!error.empty()) return error;
  const auto record = table_.find(key);
  if (!record) {
    return fmt::format("{} is no connection of endpoint {}", request.remote, request.endpoint);
  }
  remove_record(*record);
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
  const core::Room& rules = model_->rooms[room];
  return rules.stream_cap != 0 || rules.closes_streams || rules.stream_samples_per_s != 0 ||
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
