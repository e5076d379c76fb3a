#include "userspace/daemon/protocol.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "maps/limits.h"

namespace edgeshed::daemon {
namespace json = boost::json;
namespace {

// Names and addresses: longer than any that a configuration allows, short enough for one log line.
constexpr std::size_t kTextBytesMax = 128;

/// Reads the members of one message. The first problem is kept, later ones are not looked for.
class Members {
 public:
  explicit Members(const json::object& object) : object_(object) {}

  [[nodiscard]] std::string text(std::string_view name, bool required) {
    const json::value* value = find(name, required);
    if (value == nullptr) return {};
    if (!value->is_string() || value->get_string().size() > kTextBytesMax) {
      malformed(fmt::format("{} must be a string of at most {} bytes", name, kTextBytesMax));
      return {};
    }
    return std::string(value->get_string());
  }

  [[nodiscard]] std::optional<double> number(std::string_view name, bool required, double low,
                                             double high) {
    const json::value* value = find(name, required);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) {
      malformed(fmt::format("{} must be a number", name));
      return std::nullopt;
    }
    const double number = value->to_number<double>();
    if (!std::isfinite(number) || number < low || number > high) {
      impossible(fmt::format("{} is {}; allowed: {} to {}", name, number, low, high));
      return std::nullopt;
    }
    return number;
  }

  [[nodiscard]] std::optional<std::uint32_t> whole(std::string_view name, bool required,
                                                   std::uint32_t high) {
    const std::optional<double> value = number(name, required, 0, high);
    if (!value) return std::nullopt;
    if (*value != std::floor(*value)) {
      impossible(fmt::format("{} is {}; allowed: a whole number, 0 to {}", name, *value, high));
      return std::nullopt;
    }
    return static_cast<std::uint32_t>(*value);
  }

  [[nodiscard]] bool flag(std::string_view name) {
    const json::value* value = find(name, true);
    if (value == nullptr) return false;
    if (!value->is_bool()) malformed(fmt::format("{} must be true or false", name));
    return value->is_bool() && value->get_bool();
  }

  /// A misspelt optional member would otherwise be ignored without a word.
  void only(std::initializer_list<std::string_view> names) {
    for (const auto& member : object_) {
      bool known = member.key() == "command";
      for (const std::string_view name : names) known = known || member.key() == name;
      if (!known) malformed(fmt::format("unknown member {}", shortened(member.key())));
    }
  }

  [[nodiscard]] const std::optional<Refusal>& refusal() const { return refusal_; }

  static std::string shortened(std::string_view text) {
    return fmt::format("\"{}\"", text.substr(0, 40));
  }

 private:
  const json::value* find(std::string_view name, bool required) {
    const json::value* value = object_.if_contains(name);
    if (value == nullptr && required) malformed(fmt::format("{} is missing", name));
    return value;
  }

  void malformed(std::string error) {
    if (!refusal_) refusal_ = Refusal{true, std::move(error)};
  }
  void impossible(std::string error) {
    if (!refusal_) refusal_ = Refusal{false, std::move(error)};
  }

  const json::object& object_;
  std::optional<Refusal> refusal_;
};

ReportRequest read_report(Members& members) {
  members.only({"shard", "tick_p99_ms", "running_tick_age_ms", "ring", "rooms"});
  ReportRequest report;
  report.shard = members.text("shard", true);
  report.tick_p99_ms = members.number("tick_p99_ms", true, 0, kTickMsMax).value_or(0);
  report.running_tick_age_ms =
      members.number("running_tick_age_ms", false, 0, kTickMsMax).value_or(0);
  report.ring = members.number("ring", false, 0, 1).value_or(0);
  report.rooms = members.whole("rooms", false, 65536);
  return report;
}

ConnectRequest read_connect(Members& members) {
  members.only({"remote", "endpoint", "room", "class", "priority", "weight"});
  ConnectRequest connect;
  connect.remote = members.text("remote", true);
  connect.endpoint = members.text("endpoint", true);
  connect.room = members.text("room", false);
  connect.contract_class = members.text("class", false);
  connect.priority = members.whole("priority", false, 255);
  connect.weight = members.number("weight", false, kWeightMin, kWeightMax);
  return connect;
}

DisconnectRequest read_disconnect(Members& members) {
  members.only({"remote", "endpoint"});
  return {members.text("remote", true), members.text("endpoint", true)};
}

SetRequest read_set(Members& members) {
  members.only({"kind", "name", "rung", "for_s"});
  SetRequest set;
  set.kind = members.text("kind", true);
  set.name = members.text("name", true);
  set.rung = members.whole("rung", false, 5);
  const auto for_s = members.number("for_s", set.rung.has_value(), kSetSecondsMin, kSetSecondsMax);
  set.for_s = for_s.value_or(0);
  return set;
}

DrainRequest read_drain(Members& members) {
  members.only({"shard", "on"});
  return {members.text("shard", true), members.flag("on")};
}

BypassRequest read_bypass(Members& members) {
  members.only({"on"});
  return {members.flag("on")};
}

AllowRequest read_allow(Members& members) {
  members.only({"address", "for_s"});
  AllowRequest allow;
  allow.address = members.text("address", true);
  allow.for_s = members.number("for_s", true, 0, kAllowSecondsMax).value_or(0);
  return allow;
}

RoomsRequest read_rooms(Members& members) {
  members.only({"first"});
  return {members.whole("first", false, 65535).value_or(0)};
}

StatusRequest read_status(Members& members) {
  members.only({"first"});
  return {members.whole("first", false, 65535).value_or(0)};
}

PlaceRequest read_place(Members& members) {
  members.only({"room", "players"});
  PlaceRequest place;
  place.room = members.text("room", true);
  place.players = members.whole("players", false, ES_CONNECTIONS_MAX).value_or(0);
  return place;
}

NamesRequest read_names(Members& members) {
  members.only({"kind", "first"});
  NamesRequest names;
  names.kind = members.text("kind", true);
  names.first = members.whole("first", false, 65535).value_or(0);
  return names;
}

std::optional<Request> read_members(std::string_view command, Members& members) {
  if (command == "report") return read_report(members);
  if (command == "connect") return read_connect(members);
  if (command == "disconnect") return read_disconnect(members);
  if (command == "set") return read_set(members);
  if (command == "drain") return read_drain(members);
  if (command == "bypass") return read_bypass(members);
  if (command == "names") return read_names(members);
  if (command == "allow") return read_allow(members);
  if (command == "rooms") return read_rooms(members);
  if (command == "place") return read_place(members);
  if (command == "status") return read_status(members);
  if (command != "events" && command != "reload") return std::nullopt;
  members.only({});
  if (command == "reload") return ReloadRequest{};
  return EventsRequest{};
}

json::object write_members(const ReportRequest& report) {
  json::object object{{"command", "report"},
                      {"shard", report.shard},
                      {"tick_p99_ms", report.tick_p99_ms},
                      {"running_tick_age_ms", report.running_tick_age_ms},
                      {"ring", report.ring}};
  if (report.rooms) object["rooms"] = *report.rooms;
  return object;
}

json::object write_members(const ConnectRequest& connect) {
  json::object object{
      {"command", "connect"}, {"remote", connect.remote}, {"endpoint", connect.endpoint}};
  if (!connect.room.empty()) object["room"] = connect.room;
  if (!connect.contract_class.empty()) object["class"] = connect.contract_class;
  if (connect.priority) object["priority"] = *connect.priority;
  if (connect.weight) object["weight"] = *connect.weight;
  return object;
}

json::object write_members(const DisconnectRequest& disconnect) {
  return {
      {"command", "disconnect"}, {"remote", disconnect.remote}, {"endpoint", disconnect.endpoint}};
}

json::object write_members(const SetRequest& set) {
  json::object object{{"command", "set"}, {"kind", set.kind}, {"name", set.name}};
  if (!set.rung) return object;
  object["rung"] = *set.rung;
  object["for_s"] = set.for_s;
  return object;
}

json::object write_members(const DrainRequest& drain) {
  return {{"command", "drain"}, {"shard", drain.shard}, {"on", drain.on}};
}

json::object write_members(const BypassRequest& bypass) {
  return {{"command", "bypass"}, {"on", bypass.on}};
}

json::object write_members(const StatusRequest& status) {
  return {{"command", "status"}, {"first", status.first}};
}
json::object write_members(const EventsRequest&) { return {{"command", "events"}}; }
json::object write_members(const ReloadRequest&) { return {{"command", "reload"}}; }

json::object write_members(const AllowRequest& allow) {
  return {{"command", "allow"}, {"address", allow.address}, {"for_s", allow.for_s}};
}

json::object write_members(const PlaceRequest& place) {
  return {{"command", "place"}, {"room", place.room}, {"players", place.players}};
}

json::object write_members(const RoomsRequest& rooms) {
  return {{"command", "rooms"}, {"first", rooms.first}};
}

json::object write_members(const NamesRequest& names) {
  return {{"command", "names"}, {"kind", names.kind}, {"first", names.first}};
}

}  // namespace

std::variant<Request, Refusal> parse_request(std::string_view message) {
  if (message.size() > kMessageBytesMax) {
    return Refusal{true, fmt::format("a message has at most {} bytes", kMessageBytesMax)};
  }
  // A flat object is two levels deep; without a limit, nesting could exhaust the stack.
  json::parse_options options;
  options.max_depth = 4;
  boost::system::error_code error;
  const json::value value = json::parse(message, error, {}, options);
  if (error) return Refusal{true, fmt::format("not JSON: {}", error.message())};
  if (!value.is_object()) return Refusal{true, "a message is one JSON object"};
  const json::value* command = value.get_object().if_contains("command");
  if (command == nullptr || !command->is_string()) {
    return Refusal{true, "a message has a member \"command\", a string"};
  }
  Members members(value.get_object());
  std::optional<Request> request = read_members(command->get_string(), members);
  if (!request) {
    return Refusal{true, fmt::format("unknown command {}; allowed: report, connect, disconnect, "
                                     "set, drain, bypass, allow, place, reload, status, events, "
                                     "rooms, names",
                                     Members::shortened(command->get_string()))};
  }
  if (members.refusal()) return *members.refusal();
  return *std::move(request);
}

json::object to_object(const Request& request) {
  return std::visit([](const auto& one) { return write_members(one); }, request);
}

std::string to_message(const Request& request) { return json::serialize(to_object(request)); }

std::string ok_answer(json::object more) {
  json::object answer{{"ok", true}};
  for (auto& member : more) answer.insert_or_assign(member.key(), std::move(member.value()));
  return json::serialize(answer);
}

std::string error_answer(std::string_view error) {
  std::string line(error);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return json::serialize(json::object{{"ok", false}, {"error", line}});
}

}  // namespace edgeshed::daemon
