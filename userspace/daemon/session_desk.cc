#include "userspace/daemon/session_desk.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "userspace/core/codes.h"
#include "userspace/core/placement.h"
#include "userspace/core/shard_ladder.h"

namespace edgeshed::daemon {
namespace json = boost::json;
using core::Code;
using session::Refused;
using session::SessionId;

namespace {

constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;

/// Boards of sessions that are over, waiting for a tick: more is a server that flaps.
constexpr std::size_t kRetiredMax = 64;
/// Rows that any session may ask for: a small table is no reason to refuse a library's default.
constexpr std::size_t kRowsAlways = 4096;

es_key key_of(const es_session_connect& peer, std::uint8_t endpoint) {
  es_key key{};
  std::memcpy(&key.addr_hi, peer.addr, sizeof(key.addr_hi));
  std::memcpy(&key.addr_lo, peer.addr + sizeof(key.addr_hi), sizeof(key.addr_lo));
  key.port = static_cast<__u16>(peer.port << 8 | peer.port >> 8);
  key.endpoint = endpoint;
  return key;
}

/// A session whose shard a reload took away goes on being answered.
Refused gone() {
  return {Code::register_shard_unknown, "the configuration has no such shard any more"};
}

/// What `players` of a room may send of critical, as a share of the shard's time: by the class that
/// promises most, at the mean of the configured costs.
double critical_ratio(const core::Model& model, std::uint32_t players) {
  double most_per_s = 0;
  for (const core::ContractClass& contract : model.classes) {
    most_per_s = std::max(most_per_s, contract.rate[ES_IN][ES_TIER_critical].packets_per_s);
  }
  const double cost_us =
      *std::max_element(model.cost.lane_us.begin(), model.cost.lane_us.end()) == 0
          ? 0
          : core::lane_cost_us(model.cost, ES_LANE_event);
  return core::contracted_critical_ratio(players, most_per_s, cost_us);
}

bool has_room(const core::Endpoint& endpoint, std::uint16_t room) {
  return std::find(endpoint.rooms.begin(), endpoint.rooms.end(), room) != endpoint.rooms.end();
}

/// The endpoint of that name, or the only one that has the room; 0: none, or several.
std::uint8_t endpoint_for(const core::Model& model, std::string_view name, std::uint16_t room) {
  if (!name.empty()) {
    const std::uint8_t number = core::find_endpoint(model, name);
    return number != 0 && has_room(model.endpoints[number - 1], room) ? number : 0;
  }
  std::uint8_t found = 0;
  for (const core::Endpoint& endpoint : model.endpoints) {
    if (!core::exists(endpoint) || !has_room(endpoint, room)) continue;
    if (found != 0) return 0;
    found = endpoint.number;
  }
  return found;
}

}  // namespace

SessionDesk::SessionDesk(const SessionDeskEdges& edges) : edges_(edges), watch_(edges.room_rows) {
  edges_.connections->session_lives = [this](std::uint32_t id) { return lives(id); };
}

SessionDesk::~SessionDesk() { edges_.connections->session_lives = nullptr; }

SessionDesk::Open* SessionDesk::find(SessionId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

std::variant<session::Grant, Refused> SessionDesk::open(SessionId id,
                                                        const session::ServerIdentity& who,
                                                        const es_session_hello& hello,
                                                        session::SessionOutput& output) {
  const int shard = core::find_shard(*edges_.model, hello.shard);
  if (shard < 0) {
    return Refused{Code::register_shard_unknown,
                   fmt::format("no [[shard]] has the name \"{}\"", hello.shard)};
  }
  const auto taken = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& one) {
    return one.second.shard == static_cast<std::uint32_t>(shard);
  });
  if (taken != sessions_.end()) {
    return Refused{Code::register_shard_taken,
                   fmt::format("process {} has a session on shard \"{}\"", taken->second.who.pid,
                               hello.shard)};
  }
  if (retired_.size() >= kRetiredMax) {
    return Refused{Code::register_shard_taken,
                   "sessions come and go faster than they are put away"};
  }
  const std::size_t most =
      std::clamp<std::size_t>(edges_.connections->capacity(), kRowsAlways, ES_SESSION_ROWS_MAX);
  if (hello.rows == 0 || hello.rows > most) {
    return Refused{
        Code::register_rows_over_limit,
        fmt::format("{} peers; allowed: 1 to {} ([host] connections_max)", hello.rows, most)};
  }
  Open session;
  session.shard = static_cast<std::uint32_t>(shard);
  session.server = hello.server;
  session.who = who;
  session.thins = (hello.flags & ES_SESSION_HONOURS_MAY_SEND) != 0;
  session.boards = std::make_unique<session::Boards>(hello.rows, edges_.room_rows);
  session.output = &output;
  session.peers.resize(hello.rows);
  const SessionBoards boards{session.boards->report(), session.boards->plan()};
  edges_.commands->send(SessionChange{session.shard, boards});
  const session::Grant grant{hello.rows, edges_.room_rows,
                             edges_.model->shards[session.shard].frame_budget_ms,
                             session.boards->report_fd(), session.boards->plan_fd()};
  spdlog::info("shard {}: session {} of \"{}\" (process {}, user {}), {} peers at most, {}",
               hello.shard, id, session.server, who.pid, who.uid, hello.rows,
               session.thins ? "asks before it sends" : "sends unasked");
  sessions_.emplace(id, std::move(session));
  return grant;
}

std::variant<std::uint32_t, Refused> SessionDesk::room_open(SessionId id, std::string_view name,
                                                            std::uint32_t players) {
  Open* const session = find(id);
  if (session == nullptr) return gone();
  Open& open = *session;
  const int found = core::find_room(*edges_.model, name);
  if (found < 0) {
    return Refused{Code::placement_room_unknown, fmt::format("no [[room]] is named \"{}\"", name)};
  }
  const auto room = static_cast<std::uint16_t>(found);
  if (edges_.model->rooms[room].shard != open.shard) {
    return Refused{Code::placement_room_of_another_shard,
                   fmt::format("room \"{}\" is of shard \"{}\"", name,
                               edges_.model->shards[edges_.model->rooms[room].shard].name)};
  }
  const auto placed = placed_.find(room);
  if (placed != placed_.end() && placed->second.session == id) return std::uint32_t{room};
  // A room that ran a moment ago goes on: its players are here already.
  if (!is_orphaned(room)) {
    if (auto refused = judge_placement(room, players)) return *refused;
  }
  placed_[room] = {id, players};
  open.boards->plan()->room[room].open = 1;
  if (open.thins) edges_.commands->send(ServerThins{room, true});
  return std::uint32_t{room};
}

void SessionDesk::release_room(Open& open, std::uint16_t room) {
  placed_.erase(room);
  open.boards->plan()->room[room].open = 0;
  if (open.thins) edges_.commands->send(ServerThins{room, false});
}

bool SessionDesk::is_orphaned(std::uint16_t room) const {
  return std::any_of(orphans_.begin(), orphans_.end(), [room](const Orphans& one) {
    return std::find(one.rooms.begin(), one.rooms.end(), room) != one.rooms.end();
  });
}

void SessionDesk::welcomed(SessionId id) {
  if (Open* const open = find(id)) open->boards->close_descriptors();
}

void SessionDesk::room_close(SessionId id, std::uint32_t room) {
  if (room >= edges_.room_rows) return;
  const auto placed = placed_.find(static_cast<std::uint16_t>(room));
  if (placed == placed_.end() || placed->second.session != id) return;
  release_room(*find(id), static_cast<std::uint16_t>(room));
}

std::optional<Refused> SessionDesk::check_peer(const Open& open, const es_session_connect& peer,
                                               es_key& key, es_policy& policy) const {
  const core::Model& model = *edges_.model;
  if (peer.row >= open.peers.size()) {
    return Refused{Code::register_rows_over_limit,
                   fmt::format("row {}; allowed: 0 to {}", peer.row, open.peers.size() - 1)};
  }
  if (peer.room >= model.rooms.size() || !core::exists(model.rooms[peer.room]) ||
      model.rooms[peer.room].shard != open.shard) {
    return Refused{Code::register_room_unknown, fmt::format("room {} is not open", peer.room)};
  }
  const auto room = static_cast<std::uint16_t>(peer.room);
  const std::uint8_t endpoint = endpoint_for(model, peer.endpoint, room);
  if (endpoint == 0) {
    return Refused{Code::register_endpoint_unknown,
                   fmt::format("room \"{}\" has no endpoint \"{}\", or has several; name one",
                               model.rooms[room].name, peer.endpoint)};
  }
  policy.room = room;
  if (peer.contract_class[0] != 0) {
    const int contract = core::find_class(model, peer.contract_class);
    if (contract < 0) {
      return Refused{Code::register_class_unknown,
                     fmt::format("no [[class]] has the name \"{}\"", peer.contract_class)};
    }
    policy.contract_class = static_cast<__u8>(contract);
  }
  policy.priority = peer.priority;
  // An impossible weight is no reason to leave a player unprotected: it counts as 1.
  const bool sound = std::isfinite(peer.weight) && peer.weight > 0;
  policy.weight_inverse_q8 =
      core::weight_inverse_q8(sound ? std::clamp<double>(peer.weight, kWeightMin, kWeightMax) : 1);
  key = key_of(peer, endpoint);
  return std::nullopt;
}

std::optional<Refused> SessionDesk::connect(SessionId id, const es_session_connect& peer) {
  Open* const session = find(id);
  if (session == nullptr) return gone();
  Open& open = *session;
  es_key key{};
  es_policy policy{};
  auto refused = check_peer(open, peer, key, policy);
  if (!refused) {
    if (open.peers[peer.row].used) disconnect(id, peer.row);  // the row moves on to somebody else
    if (const auto code = edges_.connections->register_for(id, key, policy)) {
      refused = Refused{*code, core::remote_text(key)};
    }
  }
  if (refused) {
    ++open.refused;
    return refused;
  }
  open.peers[peer.row] = {key, peer.player, policy.room, true, {}};
  ++open.connections;
  return std::nullopt;
}

void SessionDesk::disconnect(SessionId id, std::uint32_t row) {
  Open* const open = find(id);
  if (open == nullptr || row >= open->peers.size() || !open->peers[row].used) return;
  edges_.connections->unregister(id, open->peers[row].key);
  open->peers[row] = {};
  --open->connections;
}

void SessionDesk::ended(SessionId id) {
  Open* const open = find(id);
  if (open == nullptr) return;  // its shard went with a reload
  spdlog::warn(
      "shard {}: session {} ended; its {} connections stay for {} s, its report counts no "
      "more",
      edges_.model->shards[open->shard].name, id, open->connections, kOrphanSeconds);
  std::vector<std::uint16_t> rooms;
  for (const auto& [room, placed] : placed_) {
    if (placed.session == id) rooms.push_back(room);
  }
  for (const std::uint16_t room : rooms) release_room(*open, room);
  orphans_.push_back({id, edges_.now_ns() + kOrphanSeconds * kNanosPerSecond, std::move(rooms)});
  edges_.commands->send(SessionChange{open->shard, {}});
  retired_.push_back({std::move(open->boards), 0});
  sessions_.erase(id);
}

void SessionDesk::await_former() {
  orphans_.push_back(
      {Connections::kFormerSession, edges_.now_ns() + kOrphanSeconds * kNanosPerSecond, {}});
}

void SessionDesk::tell(Open& open, es_session_event event, Code code) {
  event.code = session::to_wire({code, {}});
  session::send_event(*open.output, event);
}

void SessionDesk::rung_changed(const ShardChange& change) {
  for (auto& [id, open] : sessions_) {
    if (open.shard != change.shard) continue;
    es_session_event event{};
    event.kind = ES_SESSION_EVENT_rung;
    event.row = ES_SESSION_NONE;
    event.room = ES_SESSION_NONE;
    event.value = change.change.to;
    tell(open, event, core::rung_code(change.change.to));
  }
}

void SessionDesk::upkeep() {
  const Snapshot& snapshot = edges_.snapshots->latest();
  ticks_seen_ = snapshot.tick_count;
  const std::uint64_t now_ns = edges_.now_ns();
  std::erase_if(orphans_, [&](const Orphans& one) {
    if (one.until_ns > now_ns) return false;
    const std::size_t removed = edges_.connections->remove_session(one.session);
    if (removed != 0) spdlog::warn("{} connections of a session that is gone: removed", removed);
    return true;
  });
  // The tick thread may be at the boards until it has taken the command, one tick after it got it.
  const bool told = edges_.commands->flush();
  std::erase_if(retired_, [&](Retired& one) {
    if (told && one.ticks == 0) one.ticks = ticks_seen_ + 2;
    return one.ticks != 0 && one.ticks <= ticks_seen_;
  });
  watch_peers();
  if (snapshot.model != edges_.model) return;  // its numbers mean another configuration
  for (auto& [id, open] : sessions_) {
    const ShardView& view = snapshot.shards[open.shard];
    if (view.reports_refused == open.reports_refused || view.refusal == Code::count) continue;
    open.reports_refused = view.reports_refused;
    es_session_event event{};
    event.kind = ES_SESSION_EVENT_refused;
    event.row = ES_SESSION_NONE;
    event.room = ES_SESSION_NONE;
    tell(open, event, view.refusal);
  }
}

void SessionDesk::use(const core::Model& next) {
  const core::Model& former = *edges_.model;
  std::vector<SessionId> gone;
  for (auto& [id, open] : sessions_) {
    const bool stays = open.shard < next.shards.size() &&
                       next.shards[open.shard].name == former.shards[open.shard].name;
    if (!stays) gone.push_back(id);
  }
  for (const SessionId id : gone) {
    Open& open = *find(id);
    es_session_event event{};
    event.kind = ES_SESSION_EVENT_refused;
    event.row = ES_SESSION_NONE;
    event.room = ES_SESSION_NONE;
    tell(open, event, Code::register_shard_unknown);
    retired_.push_back({std::move(open.boards), 0});  // a Setup without the shard lets go of them
    edges_.connections->remove_session(id);
    sessions_.erase(id);
  }
  std::erase_if(placed_, [&](const auto& one) {
    const bool stays = one.first < next.rooms.size() && one.first < former.rooms.size() &&
                       next.rooms[one.first].name == former.rooms[one.first].name;
    return !stays || !sessions_.contains(one.second.session);
  });
  edges_.model = &next;
}

std::optional<Refused> SessionDesk::judge_placement(std::uint16_t room,
                                                    std::uint32_t players) const {
  const core::Model& model = *edges_.model;
  const std::uint32_t shard = model.rooms[room].shard;
  core::PlacementRequest request;
  request.players = players;
  if (placed_.contains(room)) request.standing = core::RoomStanding::placed;
  request.critical_ratio = critical_ratio(model, players);
  core::HostUsage host;
  core::ShardUsage usage;
  usage.room_capacity = model.shards[shard].room_capacity;
  for (const auto& [number, placed] : placed_) {
    ++host.rooms;
    host.players += placed.players;
    if (model.rooms[number].shard != shard) continue;
    ++usage.rooms;
    usage.players += placed.players;
    usage.critical_ratio += critical_ratio(model, placed.players);
  }
  host.connections = static_cast<std::uint32_t>(edges_.connections->size());
  const Snapshot& snapshot = edges_.snapshots->latest();
  if (snapshot.model == edges_.model) {
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
  return Refused{*code,
                 fmt::format("room \"{}\" on shard \"{}\": {} rooms and {} players there, {} "
                             "and {} on the host; tick ratio {:.2f}",
                             model.rooms[room].name, model.shards[shard].name, usage.rooms,
                             usage.players, host.rooms, host.players, usage.tick_ratio)};
}

void SessionDesk::watch_peers() {
  const std::uint64_t now_ns = edges_.now_ns();
  watch_.begin();
  for (auto& [id, open] : sessions_) {
    for (std::uint32_t row = 0; row < open.peers.size(); ++row) {
      if (open.peers[row].used) watch_peer(open, row, now_ns);
    }
  }
  watch_.end(*edges_.model,
             [this](std::uint16_t room, const core::RoomState& state) { tell_room(room, state); });
}

void SessionDesk::watch_peer(Open& open, std::uint32_t row, std::uint64_t now_ns) {
  Peer& peer = open.peers[row];
  const core::SlowConsumer before = peer.watched.stage;
  const auto seen =
      watch(peer.watched, open.boards->report()->connection[row], now_ns, *edges_.model);
  watch_.add(peer.room, seen, *edges_.model);
  if (peer.watched.stage == before) return;
  es_session_event event{};
  event.kind = ES_SESSION_EVENT_slow_consumer;
  event.row = row;
  event.room = peer.room;
  event.player = peer.player;
  event.value = static_cast<std::uint32_t>(peer.watched.stage);
  tell(open, event, core::slow_consumer_code(peer.watched.stage));
}

void SessionDesk::tell_room(std::uint16_t room, const core::RoomState& state) {
  for (auto& [id, open] : sessions_) {
    if (open.shard != edges_.model->rooms[room].shard) continue;
    __atomic_store_n(&open.boards->plan()->room[room].state,
                     static_cast<std::uint8_t>(state.pressure), __ATOMIC_RELAXED);
    es_session_event event{};
    event.kind = ES_SESSION_EVENT_room_state;
    event.row = ES_SESSION_NONE;
    event.room = room;
    event.value = static_cast<std::uint32_t>(state.pressure);
    tell(open, event, core::room_pressure_code(state.pressure));
  }
}

json::array SessionDesk::to_json() const {
  json::array list;
  for (const auto& [id, open] : sessions_) {
    const auto rooms = std::count_if(placed_.begin(), placed_.end(), [id = id](const auto& one) {
      return one.second.session == id;
    });
    list.push_back(json::object{{"session", id},
                                {"shard", edges_.model->shards[open.shard].name},
                                {"server", open.server},
                                {"pid", open.who.pid},
                                {"user", open.who.uid},
                                {"asks_before_it_sends", open.thins},
                                {"rooms", rooms},
                                {"connections", open.connections},
                                {"refused", open.refused},
                                {"reports_refused", open.reports_refused}});
  }
  return list;
}

}  // namespace edgeshed::daemon
