// edgeshed dump events: sampled sheds.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>
#include <string>
#include <utility>

#include "tools/cli/client.h"
#include "tools/cli/dump.h"
#include "tools/cli/table.h"
#include "userspace/daemon/event_ring.h"
#include "userspace/daemon/status_json.h"

namespace edgeshed::cli {
namespace json = boost::json;
namespace {

json::array take_from_ring(const HostView& view) {
  daemon::EventRing ring(view.maps().events_fd());
  const auto tail = std::make_unique<daemon::EventTail>();
  // The ring holds a few thousand; a bound, in case packets refill it as fast as it is read.
  for (int i = 0; i < 64 && ring.consume(*tail) != 0; ++i) {
  }
  return daemon::events_json(*tail);
}

void name(const HostView& view, json::array& events) {
  for (auto& one : events) {
    json::object& event = one.as_object();
    event["endpoint"] = view.endpoint_name(event["endpoint"].to_number<std::uint8_t>());
    if (const auto* room = event.if_contains("room")) {
      event["room"] = view.room_name(room->to_number<std::uint32_t>());
    }
  }
}

std::string text_of(const json::object& event, std::string_view member) {
  const json::value* value = event.if_contains(member);
  if (value == nullptr) return "-";
  return value->is_string() ? std::string(value->get_string()) : json::serialize(*value);
}

}  // namespace

int dump_events(const HostView& view, bool as_json, const Globals& globals) {
  Reply reply = ask_daemon(globals.socket, daemon::EventsRequest{});
  if (reply.code != kExitOk && reply.running) return fail(reply.code, reply.error);
  json::array events =
      reply.code == kExitOk ? std::move(reply.answer["events"].as_array()) : take_from_ring(view);
  name(view, events);
  if (as_json) {
    fmt::print("{}\n", json::serialize(events));
    return kExitOk;
  }
  Table table({"ENDPOINT", "REMOTE", "ROOM", "WAY", "LANE", "REASON", "VERDICT", "FOR"});
  for (const auto& one : events) {
    const json::object& event = one.as_object();
    table.add({text_of(event, "endpoint"), text_of(event, "remote"), text_of(event, "room"),
               text_of(event, "direction"), text_of(event, "lane"), text_of(event, "reason"),
               text_of(event, "verdict"), text_of(event, "sampled_of")});
  }
  table.print("no shed has been sampled");
  return kExitOk;
}

}  // namespace edgeshed::cli
