#include "userspace/daemon/service.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <utility>
#include <variant>

#include "userspace/core/codes.h"

namespace edgeshed::daemon {
namespace json = boost::json;

Answer Service::handle(std::string_view message) {
  const auto parsed = parse_request(message);
  if (const auto* refusal = std::get_if<Refusal>(&parsed)) return refuse(*refusal);
  json::object more;
  std::string error;
  try {
    error = std::visit([&](const auto& request) { return act(request, more); },
                       std::get<Request>(parsed));
  } catch (const std::exception& failure) {
    // A grace period that the kernel refused: the message failed, the daemon goes on.
    error = failure.what();
    spdlog::error("control socket: {}", error);
  }
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
  if (found >= 0) {
    shard = static_cast<std::uint32_t>(found);
    return {};
  }
  std::string names;
  for (const core::Shard& one : edges_.model->shards) {
    if (!core::exists(one)) continue;
    if (names.size() > 200) break;
    names += (names.empty() ? "" : ", ") + one.name;
  }
  return fmt::format("unknown shard \"{}\"; configured: {}", name, names);
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

std::string Service::act(const OverrideRequest& request, More&) {
  RungOverride override;
  if (std::string error = find_shard(request.shard, override.shard); !error.empty()) return error;
  override.rung = static_cast<std::uint8_t>(request.rung);
  if (request.for_s > 0) {
    override.until_ns = edges_.now_ns() + static_cast<std::uint64_t>(request.for_s * 1e9);
  }
  return send(override);
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
  const std::uint64_t now_ns = edges_.now_ns();
  const std::size_t end = request.first + kShardsPerAnswer;
  more = status_json(edges_.snapshots->latest(), figures_, now_ns, request.first, end);
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
  return facts;
}

std::string Service::act(const PlaceRequest& request, More& more) {
  const int room = core::find_room(*edges_.model, request.room);
  if (room < 0) return fmt::format("unknown room \"{}\"", request.room);
  const auto refused =
      edges_.sessions->judge_placement(static_cast<std::uint16_t>(room), request.players);
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
    rooms.push_back(room_json(edges_.snapshots->latest(), room, facts_of(room), edges_.now_ns()));
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
    spdlog::info("shard {}: rung {} -> {} ({}), {}; released by {} for {:.1f} s",
                 entry.model->shards[entry.shard].name, change.from, change.to,
                 core::code_info(core::rung_code(change.to)).name, core::cause_text(change.cause),
                 core::to_text(change.release), change.hold_s);
    edges_.sessions->rung_changed(entry);
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
    edges_.connections->upkeep();
  } catch (const std::exception& failure) {
    spdlog::error("slot table: {}; removed connections are not freed yet", failure.what());
  }
}

}  // namespace edgeshed::daemon
