#include "userspace/daemon/status_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "maps/lanes.h"
#include "userspace/core/codes.h"
#include "userspace/core/names.h"
#include "userspace/core/room_ladder.h"
#include "userspace/core/shard_ladder.h"
#include "userspace/core/time_units.h"

namespace edgeshed::daemon {
namespace json = boost::json;
namespace {

/// Three decimals: what follows is noise, and long for a reader.
double rounded(double value) { return std::round(value * 1000) / 1000; }

/// {name: {value, pressure, unit, source, missing, lost}} of every signal.
json::object signals_json(const core::ShardSignals& signals) {
  json::object all;
  for (std::uint8_t i = 0; i < core::kPressureSignals; ++i) {
    const auto signal = static_cast<core::PressureSignal>(i);
    const bool missing = (signals.missing & core::signal_bit(signal)) != 0;
    const double value = missing ? 0 : core::value_of(signal, signals);
    all[core::pressure_signal_name(signal)] = {
        {"value", rounded(value)},
        {"pressure", rounded(core::pressure_of(signal, value))},
        {"unit", core::pressure_signal_unit(signal)},
        {"source", core::signal_source_name(core::source_of(signal))},
        {"missing", missing},
        {"lost", (signals.lost & core::signal_bit(signal)) != 0}};
  }
  return all;
}

json::object by_cause(const core::CauseCounts& counts) {
  json::object object;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) object[core::cause_name(static_cast<core::Cause>(i))] = counts[i];
  }
  return object;
}

json::object by_cause(const core::CauseCounts& by_hand, const RoomCauseCounts& by_itself) {
  json::object object = by_cause(by_hand);
  for (std::size_t i = 0; i < by_itself.size(); ++i) {
    if (by_itself[i] == 0) continue;
    const auto cause = static_cast<core::RoomCause>(i);
    object[cause == core::RoomCause::none ? "released" : core::room_cause_name(cause)] =
        by_itself[i];
  }
  return object;
}

/// When a rung by hand ends, into what is said of its shard or room.
void add_end(json::object& object, std::uint64_t until_ns, std::uint64_t now_ns) {
  const std::uint64_t left_s = (until_ns - std::min(until_ns, now_ns)) / core::kNsPerS + 1;
  object["seconds_left"] = left_s;
  object["released_by"] = fmt::format("the override's end in {} s", left_s);
}

json::object shard_json(const core::Shard& shard, const ShardView& view, std::uint64_t now_ns) {
  const core::ShardState& state = view.state;
  const std::uint64_t since_ns = now_ns - std::min(now_ns, state.since_ns);
  json::object object{{"name", shard.name},
                      {"rung", state.rung},
                      {"code", core::code_info(state.code()).name},
                      {"tick_ratio", rounded(core::actuating_ratio(view.signals).value)},
                      {"ring", rounded(view.signals.ring_occupancy)},
                      {"rooms", view.signals.room_count},
                      {"pressure", rounded(state.pressure)},
                      {"pressed_by", core::pressure_signal_name(state.pressed_by)},
                      {"why", core::cause_name(state.cause)},
                      {"why_text", core::cause_text(state.cause)},
                      {"released_by", core::to_text(state.release)},
                      {"since_ms", since_ns / core::kNsPerMs},
                      {"report", core::report_state_name(state.report)},
                      {"changes", state.changes},
                      {"changes_by_cause", by_cause(state.changes_by_cause)},
                      {"placement", state.refuse_joins() ? "closed" : "open"},
                      {"overridden", state.overridden},
                      {"offered_cost_ratio", rounded(view.signals.offered_cost_ratio)},
                      {"keep_standard", rounded(view.degree.keep_standard)},
                      {"keep_best_effort", rounded(core::least_keep(state.effects))},
                      {"signals", signals_json(view.signals)},
                      {"session", view.reported_by_session},
                      {"reports", view.reports},
                      {"reports_refused", view.reports_refused}};
  if (view.refusal != core::Code::count) {
    object["last_refusal"] = core::code_info(view.refusal).name;
  }
  if (state.overridden && state.override_until_ns > now_ns) {
    add_end(object, state.override_until_ns, now_ns);
  }
  return object;
}

json::object endpoint_json(const core::Endpoint& endpoint, const EndpointView& view) {
  return {
      {"number", endpoint.number},
      {"name", endpoint.name},
      {"address", endpoint.any_address ? "any" : core::address_text(endpoint.address)},
      {"port", endpoint.port},
      {"protocol", core::protocol_name(endpoint.protocol)},
      {"mode", view.shadow ? "shadow" : "enforce"},
      {"packets_per_s",
       {{"in", rounded(view.packets_per_s[ES_IN])}, {"out", rounded(view.packets_per_s[ES_OUT])}}}};
}

std::string row_name(std::uint8_t row) {
  if (row < ES_LANES) return core::lane_name(row);
  return row == ES_ROW_DEMOTED ? "demoted" : "unclassified";
}

}  // namespace

json::object room_json(const Snapshot& snapshot, std::uint16_t number, const RoomFacts& facts,
                       const core::RoomRung& place, std::uint64_t now_ns) {
  const core::Model& model = *snapshot.model;
  if (number >= model.rooms.size() || !core::exists(model.rooms[number])) return {};
  const core::Room& room = model.rooms[number];
  const core::RoomDegradation& now = place.now;
  const std::uint64_t since_ns = now_ns - std::min(now_ns, place.since_ns);
  const core::RoomOverride& held = snapshot.rooms[number];
  json::object object{{"name", room.name},
                      {"number", number},
                      {"shard", model.shards[room.shard].name},
                      {"open", facts.open},
                      {"rung", now.rung},
                      {"code", core::code_info(now.code()).name},
                      {"why", core::room_cause_name(now.cause)},
                      {"why_text", core::room_cause_text(now.cause)},
                      {"released_by", now.release()},
                      {"since_ms", since_ns / core::kNsPerMs},
                      {"pressure", core::room_pressure_name(facts.state.pressure)},
                      {"ack_lag_max", facts.state.ack_lag_max},
                      {"ack_lag_p95", facts.state.ack_lag_p95},
                      {"connections_reported", facts.state.connections},
                      {"degraded", facts.state.degraded},
                      {"governor_rejects", facts.governor_rejects},
                      {"consumers_at_evict", facts.consumers_at_evict},
                      {"overridden", held.holds()}};
  if (!held.holds()) return object;
  // By hand it is a rung of the shard ladder's table, whatever the room ladder makes of it.
  object["rung"] = held.rung;
  object["code"] = core::code_info(core::rung_code(held.rung)).name;
  object["why"] = core::cause_name(core::Cause::manual);
  object["why_text"] = core::cause_text(core::Cause::manual);
  add_end(object, held.until_ns, now_ns);
  return object;
}

json::object status_json(const Snapshot& snapshot, const ServiceFigures& figures,
                         const RoomCauseCounts& room_changes, std::uint64_t now_ns,
                         std::size_t first, std::size_t end) {
  const core::Model& model = *snapshot.model;
  json::array shards;
  for (std::size_t i = first; i < std::min(end, model.shards.size()); ++i) {
    if (!core::exists(model.shards[i])) continue;
    shards.push_back(shard_json(model.shards[i], snapshot.shards[i], now_ns));
  }
  json::array endpoints;
  for (std::size_t i = first; i < std::min(end, model.endpoints.size()); ++i) {
    if (!core::exists(model.endpoints[i])) continue;
    endpoints.push_back(endpoint_json(model.endpoints[i], snapshot.endpoints[i]));
  }
  json::object daemon{{"generation", snapshot.generation},
                      {"tick_hz", model.host.tick_hz},
                      {"ticks", snapshot.tick_count},
                      {"ticks_skipped", snapshot.ticks_skipped},
                      {"late_us_max", snapshot.late_max_ns / 1000},
                      {"late_us_p50", snapshot.late.p50_ns / 1000},
                      {"late_us_p99", snapshot.late.p99_ns / 1000},
                      {"tick_us_max", snapshot.duration_max_ns / 1000},
                      {"tick_us_p50", snapshot.duration.p50_ns / 1000},
                      {"tick_us_p99", snapshot.duration.p99_ns / 1000},
                      {"events", snapshot.events.count},
                      {"refusals_lost", snapshot.events.refusals_lost},
                      {"reports", figures.reports},
                      {"reports_refused", figures.reports_refused},
                      {"messages_malformed", figures.messages_malformed},
                      {"commands_lost", figures.commands_lost},
                      {"audit_lost", figures.audit_lost},
                      {"room_changes_by_cause", by_cause(snapshot.room_changes, room_changes)},
                      {"changes_unlogged", snapshot.changes_unlogged},
                      {"connections", figures.connections},
                      {"connections_max", figures.connections_max}};
  return {{"daemon", std::move(daemon)},
          {"shards", std::move(shards)},
          {"endpoints", std::move(endpoints)}};
}

json::object event_json(const es_event& event) {
  json::object object{{"jiffies", event.jiffies},
                      {"generation", event.generation},
                      {"endpoint", event.remote.endpoint},
                      {"remote", core::remote_text(event.remote)},
                      {"direction", event.direction == ES_IN ? "in" : "out"},
                      {"lane", row_name(event.row)},
                      {"tier", core::tier_name(event.tier)},
                      {"reason", core::reason_name(event.reason)},
                      {"verdict", core::verdict_name(event.verdict)},
                      {"priority", event.priority},
                      {"ip_bytes", event.ip_bytes},
                      {"stream", event.stream},
                      {"sampled_of", event.sampled_of}};
  if (event.room != 65535) object["room"] = event.room;
  return object;
}

json::array events_json(const EventTail& tail) {
  json::array events;
  const std::uint64_t first = tail.count - std::min<std::uint64_t>(tail.count, kEventsKept);
  for (std::uint64_t i = first; i < tail.count; ++i) {
    events.push_back(event_json(tail.events[i % kEventsKept]));
  }
  return events;
}

}  // namespace edgeshed::daemon
