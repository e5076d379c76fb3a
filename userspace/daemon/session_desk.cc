#include "userspace/daemon/session_desk.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "maps/reasons.h"
#include "userspace/core/codes.h"
#include "userspace/core/codes_text.h"
#include "userspace/core/time_units.h"

namespace edgeshed::daemon {
namespace json = boost::json;
using core::Code;
using session::Refused;
using session::SessionId;

namespace {

/// Boards of sessions that are over, waiting for a tick: more is a server that flaps.
constexpr std::size_t kRetiredMax = 64;
/// Rows that any session may ask for: a small table is no reason to refuse a library's default.
constexpr std::size_t kRowsAlways = 4096;

/// A server's own words, as far as they can be shown: JSON and terminals take no others.
std::string printable(std::string_view text) {
  std::string shown(text);
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

es_session_event event_of(es_session_event_kind kind, std::uint32_t room, std::uint32_t value) {
  es_session_event event{};
  event.kind = kind;
  event.row = ES_SESSION_NONE;
  event.room = room;
  event.value = value;
  return event;
}

/// What the author of a stream is told, with the stream's own time to retry; all else was refused
/// by load, until the ramp says so. Of what passed only hints are told.
Code told_code(const es_event& event) {
  if (event.verdict < ES_VERDICT_drop) return Code::stream_near_limit;
  switch (event.reason) {
    case ES_REASON_stream_rate:
      return Code::stream_rate;
    case ES_REASON_stream_bytes:
      return Code::stream_bytes;
    case ES_REASON_player_bytes:
      return Code::player_bytes;
    case ES_REASON_room_bytes:
      return Code::room_bytes;
    case ES_REASON_stream_cap:
      return Code::stream_cap;
    case ES_REASON_stream_closed:
      return Code::stream_closed;
    default:
      return Code::room_reject_commands;
  }
}

/// A message of a session that a reload has just ended.
Refused gone() {
  return {Code::register_shard_unknown, "the configuration has changed; register again"};
}

es_key key_of(const es_session_connect& peer, std::uint8_t endpoint) {
  es_key key{};
  std::memcpy(&key.addr_hi, peer.addr, sizeof(key.addr_hi));
  std::memcpy(&key.addr_lo, peer.addr + sizeof(key.addr_hi), sizeof(key.addr_lo));
  key.port = static_cast<__u16>(peer.port << 8 | peer.port >> 8);
  key.endpoint = endpoint;
  return key;
}

bool same(const es_key& a, const es_key& b) {
  return a.addr_hi == b.addr_hi && a.addr_lo == b.addr_lo && a.port == b.port &&
         a.endpoint == b.endpoint;
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
  const std::string name = printable(hello.shard);
  const int shard = core::find_shard(*edges_.model, hello.shard);
  if (shard < 0) {
    return Refused{Code::register_shard_unknown,
                   fmt::format("no [[shard]] has the name \"{}\"", name)};
  }
  const auto taken = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& one) {
    return one.second.shard == static_cast<std::uint32_t>(shard);
  });
  if (taken != sessions_.end()) {
    return Refused{
        Code::register_shard_taken,
        fmt::format("process {} has a session on shard \"{}\"", taken->second.who.pid, name)};
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
  session.server = printable(hello.server);
  session.who = who;
  session.thins = (hello.flags & ES_SESSION_HONOURS_MAY_SEND) != 0;
  session.boards = std::make_unique<session::Boards>(hello.rows, edges_.room_rows);
  session.output = &output;
  session.peers.resize(hello.rows);
  edges_.commands->send(
      SessionChange{session.shard, {session.boards->report(), session.boards->plan()}});
  const session::Grant grant{hello.rows, edges_.room_rows,
                             edges_.model->shards[session.shard].frame_budget_ms,
                             session.boards->report_fd(), session.boards->plan_fd()};
  spdlog::info("shard {}: session {} of \"{}\" (process {}, user {}), {} peers at most, {}", name,
               id, session.server, who.pid, who.uid, hello.rows,
               session.thins ? "asks before it sends" : "sends unasked");
  sessions_.emplace(id, std::move(session));
  return grant;
}

void SessionDesk::welcomed(SessionId id) {
  Open* const open = find(id);
  if (open == nullptr) return;
  open->boards->close_descriptors();
  tell_draining(*open);
}

std::variant<std::uint32_t, Refused> SessionDesk::room_open(SessionId id, std::string_view name,
                                                            std::uint32_t players) {
  Open* const session = find(id);
  if (session == nullptr) return gone();
  Open& open = *session;
  const int found = core::find_room(*edges_.model, name);
  if (found < 0) {
    return Refused{Code::placement_room_unknown,
                   fmt::format("no [[room]] is named \"{}\"", printable(name))};
  }
  const auto room = static_cast<std::uint16_t>(found);
  if (edges_.model->rooms[room].shard != open.shard) {
    return Refused{Code::placement_room_of_another_shard,
                   fmt::format("room \"{}\" is of shard \"{}\"", name,
                               edges_.model->shards[edges_.model->rooms[room].shard].name)};
  }
  if (places_.is_of(room, id)) return std::uint32_t{room};  // asked twice
  // A room that ran a moment ago goes on: its players are here already.
  if (!places_.may_return(room, players)) {
    if (auto refused = judge_placement(room, players)) return *refused;
  }
  places_.place(room, id, players);
  room_changed(open, room, true);
  return std::uint32_t{room};
}

void SessionDesk::room_changed(const Open& open, std::uint16_t room, bool is_open) {
  __atomic_store_n(&open.boards->plan()->room[room].open, static_cast<std::uint8_t>(is_open),
                   __ATOMIC_RELAXED);
  if (open.thins) rooms_to_tell_.insert(room);
  shards_to_tell_.insert(open.shard);
}

void SessionDesk::room_close(SessionId id, std::uint32_t number) {
  const auto room = static_cast<std::uint16_t>(number);
  if (number >= edges_.room_rows || !places_.is_of(room, id)) return;
  places_.release(room);
  room_changed(*find(id), room, false);
}

std::optional<Refused> SessionDesk::judge_placement(std::uint16_t room,
                                                    std::uint32_t players) const {
  return places_.judge(*edges_.model, room, players, edges_.connections->size(),
                       edges_.snapshots->latest());
}

std::optional<Refused> SessionDesk::check_peer(SessionId id, const Open& open,
                                               const es_session_connect& peer, es_key& key,
                                               es_policy& policy) const {
  const core::Model& model = *edges_.model;
  if (peer.row >= open.peers.size()) {
    return Refused{Code::register_rows_over_limit,
                   fmt::format("row {}; allowed: 0 to {}", peer.row, open.peers.size() - 1)};
  }
  const auto room = static_cast<std::uint16_t>(peer.room);
  if (peer.room >= edges_.room_rows || !places_.is_of(room, id)) {
    return Refused{Code::register_room_unknown, fmt::format("room {} is not open", peer.room)};
  }
  const std::uint8_t endpoint = endpoint_for(model, peer.endpoint, room);
  if (endpoint == 0) {
    return Refused{Code::register_endpoint_unknown,
                   fmt::format("room \"{}\" has no endpoint \"{}\", or has several; name one",
                               model.rooms[room].name, printable(peer.endpoint))};
  }
  policy.room = room;
  if (peer.contract_class[0] != 0) {
    const int contract = core::find_class(model, peer.contract_class);
    if (contract < 0) {
      return Refused{Code::register_class_unknown, fmt::format("no [[class]] has the name \"{}\"",
                                                               printable(peer.contract_class))};
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
  auto refused = check_peer(id, open, peer, key, policy);
  const bool again = !refused && open.peers[peer.row].used && same(open.peers[peer.row].key, key);
  // One shard's players are no reason for the others to find the table full.
  const std::uint32_t most = edges_.model->placement.shard_players_max;
  if (!refused && !again && open.connections >= most) {
    refused = Refused{Code::register_rows_over_limit,
                      fmt::format("the session has {} connections; [placement] shard_players_max "
                                  "allows no more",
                                  most)};
  }
  if (!refused) {
    if (!again) disconnect(id, peer.row);  // the row moves on to somebody else
    if (const auto code = edges_.connections->register_for(id, peer.row, key, policy)) {
      refused = Refused{*code, core::remote_text(key)};
    }
  }
  if (refused) {
    ++open.refused;
    return refused;
  }
  ++open.registrations;
  if (!again) {
    open.peers[peer.row] = {key, peer.player, policy.room, true, {}};
    ++open.connections;
  }
  open.peers[peer.row].room = policy.room;
  open.peers[peer.row].player = peer.player;
  return std::nullopt;
}

void SessionDesk::disconnect(SessionId id, std::uint32_t row) {
  Open* const open = find(id);
  if (open == nullptr || row >= open->peers.size() || !open->peers[row].used) return;
  edges_.connections->unregister(id, row, open->peers[row].key);
  open->peers[row] = {};
  --open->connections;
}

void SessionDesk::set_stream(SessionId id, const es_session_stream& stream) {
  Open* const open = find(id);
  if (open == nullptr) return;  // a reload has ended it, and told it so
  es_session_event event = event_of(ES_SESSION_EVENT_refused, ES_SESSION_NONE, stream.stream);
  event.row = stream.row;
  std::string error = fmt::format("row {} is no connection", stream.row);
  if (stream.row < open->peers.size() && open->peers[stream.row].used) {
    const Peer& peer = open->peers[stream.row];
    event.player = peer.player;
    event.room = peer.room;
    error =
        edges_.connections->set_stream(id, stream.row, peer.key,
                                       {stream.stream, stream.closed != 0,
                                        static_cast<std::uint32_t>(edges_.jiffies()), edges_.hz});
  }
  if (!error.empty()) tell(*open, event, Code::stream_unmanaged, std::move(error));
}

void SessionDesk::ended(SessionId id) {
  Open* const open = find(id);
  if (open == nullptr) return;  // a reload has ended it
  spdlog::warn(
      "shard {}: session {} ended; its {} connections stay for {} s, its report counts no "
      "more",
      edges_.model->shards[open->shard].name, id, open->connections, kOrphanSeconds);
  const std::vector<std::uint16_t> rooms = places_.rooms_of(id);
  for (const std::uint16_t room : rooms) room_changed(*open, room, false);
  places_.orphan(id);
  if (open->connections != 0 || !rooms.empty()) {
    orphans_.push_back({id, edges_.now_ns() + kOrphanSeconds * core::kNsPerS});
  }
  edges_.commands->send(SessionChange{open->shard, {}});
  retired_.push_back({std::move(open->boards), 0});
  sessions_.erase(id);
}

void SessionDesk::await_former() {
  constexpr SessionId kFormer = Connections::kFormerSession;
  for (const std::uint16_t room : edges_.connections->rooms_of(kFormer)) {
    places_.orphan_room(kFormer, room);
  }
  orphans_.push_back({kFormer, edges_.now_ns() + kOrphanSeconds * core::kNsPerS});
}

void SessionDesk::expire_orphans(std::uint64_t now_ns) {
  std::vector<SessionId> due;
  std::erase_if(orphans_, [&](const Orphans& one) {
    if (one.until_ns > now_ns) return false;
    due.push_back(one.session);
    places_.forget(one.session);
    return true;
  });
  if (due.empty()) return;
  const std::size_t removed = edges_.connections->remove_sessions(due);
  if (removed != 0) spdlog::warn("{} connections of sessions that are gone: removed", removed);
}

void SessionDesk::tell(Open& open, es_session_event event, Code code, std::string text) {
  event.code = session::to_wire({code, std::move(text)});
  session::send_event(*open.output, event);
}

void SessionDesk::rung_changed(const ShardChange& change) {
  // A change of the first ticks after a reload comes before the sessions are told of the next
  // model; numbers stay with names.
  const auto& now = edges_.model->shards;
  const auto& then = change.model->shards;
  if (change.shard >= now.size() || now[change.shard].name != then[change.shard].name) return;
  const bool of_room = change.room >= 0;
  const auto room = of_room ? static_cast<std::uint32_t>(change.room) : ES_SESSION_NONE;
  for (auto& [id, open] : sessions_) {
    if (open.shard != change.shard) continue;
    if (of_room && !places_.is_of(static_cast<std::uint16_t>(room), id)) continue;
    tell(open, event_of(ES_SESSION_EVENT_rung, room, change.change.to),
         core::rung_code(change.change.to), core::cause_text(change.change.cause));
    if (!of_room) tell_draining(open);
  }
}

void SessionDesk::room_rungs_changed(const std::vector<RoomRungChange>& changes) {
  for (auto& [id, open] : sessions_) {
    std::vector<const RoomRungChange*> own;
    for (const RoomRungChange& one : changes) {
      if (places_.is_of(one.room, id)) own.push_back(&one);
    }
    if (own.empty()) continue;
    // Most changes are their shard's: a server of a thousand rooms would hear of nothing else.
    const core::RoomDegradation& first = own.front()->now;
    const bool all = own.size() == places_.rooms_of(id).size() &&
                     std::all_of(own.begin(), own.end(), [&](const RoomRungChange* one) {
                       return one->now.rung == first.rung && one->now.cause == first.cause;
                     });
    for (const RoomRungChange* one : own) {
      tell(open,
           event_of(ES_SESSION_EVENT_room_rung, all ? ES_SESSION_NONE : one->room, one->now.rung),
           one->now.code(), core::room_cause_text(one->now.cause));
      if (all) break;
    }
  }
}

std::uint8_t SessionDesk::rung_of(std::uint32_t shard) const {
  const Snapshot& snapshot = edges_.snapshots->latest();
  return snapshot.model == edges_.model ? snapshot.shards[shard].state.rung : 0;
}

void SessionDesk::tell_draining(Open& open) {
  if (!places_.drains(edges_.model->shards[open.shard].name)) return;
  tell(open, event_of(ES_SESSION_EVENT_rung, ES_SESSION_NONE, rung_of(open.shard)),
       Code::shard_draining, "an operator has closed placement; rooms that are open go on");
}

bool SessionDesk::drain(std::uint32_t shard, bool on) {
  const std::string& name = edges_.model->shards[shard].name;
  if (!places_.drain(name, on)) return false;
  spdlog::info("shard {}: {}", name, on ? "drains: takes no new rooms" : "takes rooms again");
  const std::uint8_t rung = rung_of(shard);
  for (auto& [id, open] : sessions_) {
    if (open.shard != shard) continue;
    tell_draining(open);
    if (on) continue;
    tell(open, event_of(ES_SESSION_EVENT_rung, ES_SESSION_NONE, rung), core::rung_code(rung),
         "an operator has opened placement again");
  }
  return true;
}

void SessionDesk::upkeep() {
  const Snapshot& snapshot = edges_.snapshots->latest();
  ticks_seen_ = snapshot.tick_count;
  expire_orphans(edges_.now_ns());
  tell_ticks();
  // The tick thread may be at the boards until it has taken the command, one tick after it got it.
  const bool told = edges_.commands->flush();
  std::erase_if(retired_, [&](Retired& one) {
    if (told && one.ticks == 0) one.ticks = ticks_seen_ + 2;
    return one.ticks != 0 && one.ticks <= ticks_seen_;
  });
  watch_peers();
  tell_refused_reports(snapshot);
  tell_refused_messages(snapshot);
}

void SessionDesk::tell_ticks() {
  for (const std::uint16_t room : rooms_to_tell_) {
    const bool thins = std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& one) {
      return one.second.thins && places_.is_of(room, one.first);
    });
    edges_.commands->send(ServerThins{room, thins});
  }
  for (const std::uint32_t shard : shards_to_tell_) {
    edges_.commands->send(RoomsOpened{shard, places_.open_on(*edges_.model, shard)});
  }
  rooms_to_tell_.clear();
  shards_to_tell_.clear();
}

void SessionDesk::tell_refused_reports(const Snapshot& snapshot) {
  if (snapshot.model != edges_.model) return;  // its numbers mean another configuration
  for (auto& [id, open] : sessions_) {
    const ShardView& view = snapshot.shards[open.shard];
    if (view.reports_refused == open.reports_refused || view.refusal == Code::count) continue;
    open.reports_refused = view.reports_refused;
    tell(open, event_of(ES_SESSION_EVENT_refused, ES_SESSION_NONE, 0), view.refusal);
  }
}

void SessionDesk::tell_refused_messages(const Snapshot& snapshot) {
  es_event event;
  // As many as the queue holds: what comes meanwhile waits for the next time.
  for (std::size_t i = 0; i < RefusalQueue::capacity(); ++i) {
    if (edges_.refusals == nullptr || !edges_.refusals->try_pop(event)) return;
    if (snapshot.model == edges_.model) tell_refused_message(event, snapshot);
  }
}

void SessionDesk::tell_refused_message(const es_event& event, const Snapshot& snapshot) {
  const Code code = told_code(event);
  const bool hint = code == Code::stream_near_limit;
  // Nor is a stream that somebody has closed a sign that its room sends too much.
  if (code != Code::room_reject_commands && code != Code::stream_closed && !hint) {
    watch_.note_governor(event.room, edges_.now_ns());
  }
  const Connections::Owner owner = edges_.connections->owner_of(event.remote);
  Open* const open = find(owner.session);
  if (open == nullptr || owner.row >= open->peers.size() || !open->peers[owner.row].used) return;
  const Peer& peer = open->peers[owner.row];
  const core::RetryAfter& retry = snapshot.shards[open->shard].retry;
  const double draw = std::uniform_real_distribution<>(0, 1)(chance_);
  es_session_event told = event_of(
      hint ? ES_SESSION_EVENT_stream_hint : ES_SESSION_EVENT_message_refused, peer.room, 0);
  told.row = owner.row;
  told.player = peer.player;
  if (code == Code::room_reject_commands) {
    told.code = session::to_wire({code, {}});
    told.code.retry_after_ms =
        static_cast<std::uint32_t>(1000 * (retry.least_s + draw * retry.spread_s));
  } else {
    told.code = session::to_wire({code, core::hint_text(core::code_info(code).hint)});
    told.value = event.stream;
  }
  session::send_event(*open->output, told);
}

bool SessionDesk::survives(SessionId id, const Open& open, const core::Model& next) const {
  const core::Model& former = *edges_.model;
  if (open.shard >= next.shards.size() ||
      next.shards[open.shard].name != former.shards[open.shard].name) {
    return false;
  }
  const std::vector<std::uint16_t> rooms = places_.rooms_of(id);
  return std::all_of(rooms.begin(), rooms.end(), [&](std::uint16_t room) {
    return room < next.rooms.size() && next.rooms[room].name == former.rooms[room].name &&
           next.rooms[room].shard == open.shard;
  });
}

void SessionDesk::use(const core::Model& next) {
  std::vector<SessionId> over;
  for (const auto& [id, open] : sessions_) {
    if (!survives(id, open, next)) over.push_back(id);
  }
  for (const SessionId id : over) {
    session::SessionOutput& output = *find(id)->output;
    ended(id);
    output.end();
  }
  const core::Model& former = *edges_.model;
  places_.keep_orphans([&](std::uint16_t room) {
    return room < next.rooms.size() && next.rooms[room].name == former.rooms[room].name;
  });
  watch_ = RoomWatch(edges_.room_rows);
  acks_ = {};
  edges_.model = &next;
}

void SessionDesk::watch_peers() {
  const std::uint64_t now_ns = edges_.now_ns();
  acks_.look(*edges_.connections, *edges_.model, {edges_.jiffies(), edges_.hz}, now_ns);
  watch_.begin();
  acks_.each_unowned([this](std::uint16_t room, std::uint32_t lag) {
    watch_.add(room, {lag, core::SlowConsumer::ok, 0}, *edges_.model);
  });
  for (auto& [id, open] : sessions_) {
    for (std::uint32_t row = 0; row < open.peers.size(); ++row) {
      if (open.peers[row].used) watch_peer(id, open, row, now_ns);
    }
  }
  watch_.end(*edges_.model,
             [this](std::uint16_t room, const core::RoomState& state) { tell_room(room, state); });
}

void SessionDesk::watch_peer(SessionId id, Open& open, std::uint32_t row, std::uint64_t now_ns) {
  Peer& peer = open.peers[row];
  const core::SlowConsumer before = peer.watched.stage;
  const auto seen = watch(peer.watched, open.boards->report()->connection[row],
                          acks_.lag_of(id, row), now_ns, *edges_.model);
  watch_.add(peer.room, seen, *edges_.model);
  if (peer.watched.stage == before) return;
  if (peer.watched.stage >= core::SlowConsumer::throttle) {
    edges_.connections->throttle(id, row, peer.key);
  }
  es_session_event event = event_of(ES_SESSION_EVENT_slow_consumer, peer.room,
                                    static_cast<std::uint32_t>(peer.watched.stage));
  event.row = row;
  event.player = peer.player;
  tell(open, event, core::slow_consumer_code(peer.watched.stage));
}

void SessionDesk::tell_room(std::uint16_t room, const core::RoomState& state) {
  for (auto& [id, open] : sessions_) {
    if (!places_.is_of(room, id)) continue;
    __atomic_store_n(&open.boards->plan()->room[room].state,
                     static_cast<std::uint8_t>(state.pressure), __ATOMIC_RELAXED);
    tell(open,
         event_of(ES_SESSION_EVENT_room_state, room, static_cast<std::uint32_t>(state.pressure)),
         core::room_pressure_code(state.pressure));
  }
}

void SessionDesk::each_server(
    const std::function<void(SessionId, std::uint32_t, std::uint32_t)>& each) const {
  for (const auto& [id, open] : sessions_) each(id, open.shard, open.who.pid);
}

json::array SessionDesk::to_json(std::size_t first, std::size_t end) const {
  json::array list;
  for (const auto& [id, open] : sessions_) {
    if (open.shard < first || open.shard >= end) continue;
    list.push_back(json::object{{"session", id},
                                {"shard", edges_.model->shards[open.shard].name},
                                {"server", open.server},
                                {"pid", open.who.pid},
                                {"user", open.who.uid},
                                {"asks_before_it_sends", open.thins},
                                {"rooms", places_.rooms_of(id).size()},
                                {"connections", open.connections},
                                {"registrations", open.registrations},
                                {"refused", open.refused},
                                {"reports_refused", open.reports_refused}});
  }
  return list;
}

}  // namespace edgeshed::daemon
