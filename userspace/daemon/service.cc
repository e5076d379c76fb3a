#include "userspace/daemon/service.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <variant>
#include <vector>

#include "userspace/core/codes.h"

namespace edgeshed::daemon {
namespace json = boost::json;
namespace {

/// The line for a name that nobody has: it says which there are, as far as a line goes.
template <typename List>
std::string unknown(std::string_view kind, std::string_view name, const List& list) {
  std::string names;
  for (const auto& one : list) {
    if (!core::exists(one)) continue;
    if (names.size() > 200) {
      names += ", ...";
      break;
    }
    names += (names.empty() ? "" : ", ") + one.name;
  }
  return fmt::format("unknown {} \"{}\"; configured: {}", kind, name, names);
}

/// Rooms that went the same way in one look.
struct RoomsAlike {
  RoomRungChange change;  // of the first of them
  std::size_t rooms = 0;
  std::string names;
};

/// A shard's rooms go together, up to a thousand of them: a line for each way that they went.
std::vector<RoomsAlike> alike(const std::vector<RoomRungChange>& changed,
                              const core::Model& model) {
  constexpr std::size_t kNamed = 3;
  std::vector<RoomsAlike> groups;
  for (const RoomRungChange& one : changed) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const RoomsAlike& other) {
      return other.change.from == one.from && other.change.now.rung == one.now.rung &&
             other.change.now.cause == one.now.cause;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {one, 0, "room "});
    if (group->rooms > 0 && group->rooms < kNamed) group->names += ", ";
    if (group->rooms++ < kNamed) group->names += model.rooms[one.room].name;
  }
  for (RoomsAlike& group : groups) {
    if (group.rooms > kNamed) group.names += fmt::format(" and {} more", group.rooms - kNamed);
  }
  return groups;
}

}  // namespace

Answer Service::handle(std::string_view message, const Caller& caller) {
  const auto parsed = parse_request(message);
  if (const auto* refusal = std::get_if<Refusal>(&parsed)) return refuse(*refusal);
  const Request& request = std::get<Request>(parsed);
  json::object more;
  std::string error;
  try {
    error = std::visit([&](const auto& one) { return act(one, more); }, request);
  } catch (const std::exception& failure) {
    // A grace period that the kernel refused: the message failed, the daemon goes on.
    error = failure.what();
    spdlog::error("control socket: {}", error);
  }
  if (is_order(request)) edges_.audit->write(caller, request, error);
  if (!error.empty()) return {error_answer(error), false};
  return {ok_answer(std::move(more)), false};
}

Answer Service::refuse(const Refusal& refusal) {
  if (refusal.malformed) {
    ++figures_.messages_malformed;
  } else {
    ++figures_.reports_refused;
  }
  return {error_answer(refusal.error), refusal.malformed};
}

std::string Service::find_shard(const std::string& name, std::uint32_t& shard) const {
  const int found = core::find_shard(*edges_.model, name);
  if (found < 0) return unknown("shard", name, edges_.model->shards);
  shard = static_cast<std::uint32_t>(found);
  return {};
}

std::string Service::find_room(const std::string& name, std::uint16_t& room) const {
  const int found = core::find_room(*edges_.model, name);
  if (found < 0) return unknown("room", name, edges_.model->rooms);
  room = static_cast<std::uint16_t>(found);
  return {};
}

std::string Service::send(const Command& command) {
  if (edges_.commands->try_send(command)) return {};
  ++figures_.commands_lost;
  return "the daemon is busy: its queue of commands is full; send again";
}

std::string Service::act(const ReportRequest& request, More&) {
  ShardReport report;
  if (std::string error = find_shard(request.shard, report.shard); !error.empty()) {
    ++figures_.reports_refused;
    return error;
  }
  report.tick_p99_ms = request.tick_p99_ms;
  report.running_tick_age_ms = request.running_tick_age_ms;
  report.ring_occupancy = request.ring;
  report.rooms = request.rooms.value_or(kRoomsUnchanged);
  report.at_ns = edges_.now_ns();
  std::string error = send(report);
  if (error.empty()) ++figures_.reports;
  return error;
}

std::string Service::act(const SetRequest& request, More&) {
  const auto rung = static_cast<std::uint8_t>(request.rung.value_or(0));
  const auto for_ns = static_cast<std::uint64_t>(request.for_s * 1e9);
  const std::uint64_t until_ns = request.rung ? edges_.now_ns() + for_ns : 0;
  if (request.kind == "shard") {
    RungOverride override{0, rung, until_ns};
    std::string error = find_shard(request.name, override.shard);
    return error.empty() ? send(override) : error;
  }
  if (request.kind == "room") {
    RoomRungOverride override{0, {rung, until_ns}};
    std::string error = find_room(request.name, override.room);
    return error.empty() ? send(override) : error;
  }
  return fmt::format("unknown kind \"{}\"; allowed: shard, room", request.kind);
}

std::string Service::act(const DrainRequest& request, More& more) {
  std::uint32_t shard = 0;
  if (std::string error = find_shard(request.shard, shard); !error.empty()) return error;
  more["changed"] = edges_.sessions->drain(shard, request.on);
  return {};
}

std::string Service::act(const BypassRequest& request, More&) {
  spdlog::warn("bypass is {}", request.on ? "on: everything passes" : "off: the plan decides");
  return {};
}

std::string Service::act(const ConnectRequest& request, More&) {
  return edges_.connections->connect(request);
}

std::string Service::act(const DisconnectRequest& request, More&) {
  return edges_.connections->disconnect(request);
}

std::string Service::act(const AllowRequest& request, More& more) {
  core::Address address;
  if (!core::parse_address(request.address, address)) {
    return fmt::format("\"{}\" is no address; allowed: 203.0.113.7 or 2001:db8::7",
                       request.address);
  }
  const std::uint64_t now_ns = edges_.now_ns();
  const auto until_ns = now_ns + static_cast<std::uint64_t>(request.for_s * 1e9);
  if (edges_.allowed->entries().size() >= AllowList::kAllowedMax && request.for_s > 0) {
    return fmt::format("{} addresses are allowed already; end one with edgeshed allow ADDR --end",
                       AllowList::kAllowedMax);
  }
  const bool known = edges_.allowed->set(address, until_ns, now_ns);
  if (request.for_s == 0 && !known) return request.address + " is not allowed; nothing to end";
  edges_.connections->allow(*edges_.allowed);
  spdlog::info(
      "{}: {}", core::address_text(address),
      request.for_s == 0 ? "allowed no more" : fmt::format("allowed for {:.0f} s", request.for_s));
  more["allowed"] = edges_.allowed->to_json(now_ns);
  return {};
}

std::string Service::act(const ReloadRequest&, More& more) { return edges_.reload(more); }

std::string Service::act(const StatusRequest& request, More& more) {
  figures_.connections = edges_.connections->size();
  figures_.connections_max = edges_.connections->capacity();
  figures_.audit_lost = edges_.audit->lost();
  const std::uint64_t now_ns = edges_.now_ns();
  const std::size_t end = request.first + kShardsPerAnswer;
  more = status_json(edges_.snapshots->latest(), figures_, rungs_.changes(), now_ns, request.first,
                     end);
  for (json::value& shard : more["shards"].as_array()) {
    const std::string name(shard.at("name").as_string());
    if (edges_.sessions->places().drains(name)) shard.as_object()["placement"] = "draining";
  }
  more["sessions"] = edges_.sessions->to_json(request.first, end);
  more["next"] = end;
  more["total"] = std::max(edges_.model->shards.size(), edges_.model->endpoints.size());
  if (request.first != 0) return {};
  if (edges_.interfaces) more["interfaces"] = edges_.interfaces();
  more["allowed"] = edges_.allowed->to_json(now_ns);
  return {};
}

RoomFacts Service::facts_of(std::uint16_t room) const {
  RoomFacts facts;
  facts.open = edges_.sessions->places().is_open(room);
  facts.state = edges_.sessions->rooms().state(room);
  facts.consumers_at_evict = edges_.sessions->rooms().at_evict(room);
  facts.governor_rejects = edges_.sessions->rooms().governor_rejects(room, edges_.now_ns());
  return facts;
}

std::string Service::act(const PlaceRequest& request, More& more) {
  std::uint16_t room = 0;
  if (std::string error = find_room(request.room, room); !error.empty()) return error;
  const auto refused = edges_.sessions->judge_placement(room, request.players);
  more["admitted"] = !refused;
  if (!refused) return {};
  const core::CodeInfo& info = core::code_info(refused->code);
  more["code"] = info.name;
  more["category"] = info.category;
  more["why"] = refused->text;
  more["retry_after_ms"] = info.retry_after_ms;
  more["tell_players"] = info.sentence;
  return {};
}

std::string Service::act(const RoomsRequest& request, More& more) {
  json::array rooms;
  const core::Model& model = *edges_.model;
  std::size_t number = request.first;
  for (; number < model.rooms.size() && rooms.size() < kRoomsPerAnswer; ++number) {
    if (!core::exists(model.rooms[number])) continue;
    const auto room = static_cast<std::uint16_t>(number);
    rooms.push_back(room_json(edges_.snapshots->latest(), room, facts_of(room), rungs_.of(room),
                              edges_.now_ns()));
  }
  more["rooms"] = std::move(rooms);
  more["next"] = number;
  more["total"] = model.rooms.size();
  return {};
}

std::string Service::act(const EventsRequest&, More& more) {
  const EventTail& tail = edges_.snapshots->latest().events;
  more["count"] = tail.count;
  more["events"] = events_json(tail);
  return {};
}

std::string Service::act(const NamesRequest& request, More& more) {
  json::array names;
  const auto add = [&](const auto& list, std::size_t first) {
    for (std::size_t i = first; i < list.size() && names.size() < kNamesPerAnswer; ++i) {
      names.emplace_back(list[i].name);
    }
    more["total"] = list.size();
  };
  if (request.kind == "endpoint") {
    add(edges_.model->endpoints, request.first);
  } else if (request.kind == "room") {
    add(edges_.model->rooms, request.first);
  } else if (request.kind == "class") {
    add(edges_.model->classes, request.first);
  } else {
    return fmt::format("unknown kind \"{}\"; allowed: endpoint, room, class", request.kind);
  }
  more["names"] = std::move(names);
  return {};
}

void Service::log_changes() {
  ShardChange entry;
  while (edges_.changes->try_pop(entry)) {
    const core::RungChange& change = entry.change;
    if (entry.room >= 0) {
      spdlog::info("room {}: rung {} -> {} ({}), {}", entry.model->rooms[entry.room].name,
                   change.from, change.to, core::code_info(core::rung_code(change.to)).name,
                   core::cause_text(change.cause));
      edges_.sessions->rung_changed(entry);
      continue;
    }
    spdlog::info("shard {}: rung {} -> {} ({}), {}; released by {} for {:.1f} s",
                 entry.model->shards[entry.shard].name, change.from, change.to,
                 core::code_info(core::rung_code(change.to)).name, core::cause_text(change.cause),
                 core::to_text(change.release), change.hold_s);
    edges_.sessions->rung_changed(entry);
  }
}

void Service::use(const core::Model& next) {
  rungs_.use(*edges_.model, next);
  edges_.model = &next;
}

void Service::watch_rooms() {
  const Snapshot& snapshot = edges_.snapshots->latest();
  if (snapshot.model != edges_.model) return;  // its numbers mean another configuration
  const auto changed =
      rungs_.look(snapshot, [this](std::uint16_t room) { return facts_of(room); }, edges_.now_ns());
  if (changed.empty()) return;
  edges_.sessions->room_rungs_changed(changed);
  for (const RoomsAlike& group : alike(changed, *edges_.model)) {
    spdlog::info("{}: rung {} -> {} ({}), {}; released by: {}", group.names, group.change.from,
                 group.change.now.rung, core::code_info(group.change.now.code()).name,
                 core::room_cause_text(group.change.now.cause), group.change.now.release());
  }
}

void Service::upkeep() {
  log_changes();
  if (edges_.allowed->expire(edges_.now_ns())) edges_.connections->allow(*edges_.allowed);
  try {
    edges_.sessions->upkeep();
    edges_.connections->take_weight_changes([this](std::uint16_t room, double weight) {
      edges_.commands->send(RoomWeight{room, weight});
    });
    edges_.connections->take_throttled_changes(
        [this](std::uint8_t endpoint, std::uint32_t connections) {
          edges_.commands->send(ThrottledCount{endpoint, connections});
        });
    edges_.connections->upkeep();
  } catch (const std::exception& failure) {
    spdlog::error("slot table: {}; removed connections are not freed yet", failure.what());
  }
  // Last, so that a room's rung and what is said of its players are of one look.
  watch_rooms();
}

}  // namespace edgeshed::daemon
