// edgeshed status: what is shed, why, and what would release it. Counters and interfaces are read
// from the kernel, also without a daemon; names, rungs and reasons are the daemon's.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <map>
#include <memory>
#include <string>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"
#include "tools/cli/confirm_state.h"
#include "tools/cli/host_view.h"
#include "tools/cli/table.h"
#include "userspace/core/pin_dir.h"
#include "userspace/kernel/attach.h"
#include "userspace/kernel/counters_reader.h"
#include "userspace/kernel/pins.h"
#include "userspace/kernel/upgrade.h"

namespace edgeshed::cli {
namespace json = boost::json;
namespace {

constexpr const char* kTierRowNames[kernel::kTierRows] = {"critical", "standard", "best_effort",
                                                          "demoted", "other"};
static_assert(kernel::kTierDemoted == 3 && kernel::kTierUnclassified == 4);

struct StatusOptions {
  bool json = false;
  bool rooms = false;  // all of them
};

/// As many rooms as fit beside the rest on a screen; of more, only those with news.
constexpr std::size_t kRoomsShown = 16;

/// Under traffic a row may be read in the middle of a packet: an inexact ledger is looked at again.
constexpr int kLedgerReads = 5;

json::array interfaces_json(const std::string& pin_dir) {
  json::array interfaces;
  for (const kernel::Attachment& one : kernel::attachments(pin_dir)) {
    interfaces.push_back(json::object{{"dev", one.dev},
                                      {"faces", kernel::faces_name(one.faces)},
                                      {"mode", kernel::xdp_state_name(one.xdp)},
                                      {"generic", one.xdp_generic},
                                      {"egress", one.tc_program != 0},
                                      {"current", one.of_pins},
                                      {"why", one.fallback_reason}});
  }
  return interfaces;
}

json::object tiers_json(const kernel::TierTotals& totals, int direction) {
  json::object tiers;
  for (unsigned row = 0; row < kernel::kTierRows; ++row) {
    const auto& packets = totals.packets[direction][row];
    const std::uint64_t passed = packets[ES_VERDICT_pass];
    const std::uint64_t marked = packets[ES_VERDICT_mark];
    const std::uint64_t dropped = packets[ES_VERDICT_drop];
    const std::uint64_t rejected = packets[ES_VERDICT_reject];
    tiers[kTierRowNames[row]] = json::object{{"seen", passed + marked + dropped + rejected},
                                             {"passed", passed},
                                             {"marked", marked},
                                             {"dropped", dropped},
                                             {"rejected", rejected}};
  }
  return tiers;
}

bool read_exact(const kernel::CountersReader& counters, std::uint8_t number,
                es_endpoint_counters& sum) {
  for (int i = 0; i < kLedgerReads; ++i) {
    counters.read_endpoint(number, sum);
    if (kernel::check_ledger(sum).holds()) return true;
  }
  return false;
}

json::array endpoints_json(const HostView& view, bool& ledger_exact) {
  const kernel::CountersReader counters(view.maps());
  auto sum = std::make_unique<es_endpoint_counters>();
  ledger_exact = read_exact(counters, 0, *sum);
  json::array endpoints;
  for (const std::uint8_t number : view.endpoints()) {
    ledger_exact = read_exact(counters, number, *sum) && ledger_exact;
    const es_plan_endpoint& row = view.endpoint(number);
    kernel::TierTotals totals{};
    kernel::aggregate_tiers(*sum, row.lane_tiers, totals);
    endpoints.push_back(json::object{{"name", view.endpoint_name(number)},
                                     {"number", number},
                                     {"port", view.port_of(number)},
                                     {"mode", mode_of(row)},
                                     {"tiers", json::object{{"in", tiers_json(totals, ES_IN)},
                                                            {"out", tiers_json(totals, ES_OUT)}}}});
  }
  return endpoints;
}

/// Shards and sessions beyond the first page, into the first answer.
void add_pages(const std::string& socket, Reply& reply) {
  const auto number = [](const json::object& answer, const char* key) {
    return answer.at(key).to_number<std::uint32_t>();
  };
  const std::uint32_t total = number(reply.answer, "total");
  for (std::uint32_t next = number(reply.answer, "next"); next < total;) {
    Reply page = ask_daemon(socket, daemon::StatusRequest{next});
    if (page.code != kExitOk || number(page.answer, "next") <= next) return;
    next = number(page.answer, "next");
    for (const char* key : {"shards", "sessions", "endpoints"}) {
      for (auto& one : page.answer[key].as_array()) {
        reply.answer[key].as_array().push_back(std::move(one));
      }
    }
  }
}

/// All rooms, by the pages in which the daemon hands them out.
json::array rooms_json(const std::string& socket) {
  json::array rooms;
  std::uint32_t next = 0;
  for (std::uint32_t total = 1; next < total;) {
    Reply reply = ask_daemon(socket, daemon::RoomsRequest{next});
    if (reply.code != kExitOk) return rooms;
    for (auto& room : reply.answer["rooms"].as_array()) rooms.push_back(std::move(room));
    total = reply.answer.at("total").to_number<std::uint32_t>();
    const auto after = reply.answer.at("next").to_number<std::uint32_t>();
    if (after <= next) return rooms;
    next = after;
  }
  return rooms;
}

/// What the daemon knows of interfaces that the kernel does not show: gone, or bare; all of them
/// where this process cannot ask the kernel. Of one that is shown and lacks a half: what to do.
void add_watched(json::array& interfaces, const json::array& watched, bool all) {
  for (const auto& one : watched) {
    if (!all && one.at("state").as_string() == "attached") continue;
    const auto shown = std::find_if(interfaces.begin(), interfaces.end(), [&](const auto& row) {
      return row.at("dev") == one.at("dev");
    });
    if (shown != interfaces.end()) {
      const bool whole = shown->at("egress").as_bool() && shown->at("mode").as_string() != "none";
      if (!whole) shown->as_object()["why"] = one.at("why");
      continue;
    }
    interfaces.push_back(json::object{{"dev", one.at("dev")},
                                      {"faces", ""},
                                      {"mode", one.at("state")},
                                      {"generic", false},
                                      {"egress", false},
                                      {"current", false},
                                      {"why", one.at("why")}});
  }
}

/// False where the pins are another's: of a host's, the daemon and root may read them. Members of
/// the daemon's group see what it tells them.
bool may_look_at(const std::string& pin_dir) {
  return access((pin_dir + "/es_control").c_str(), R_OK) == 0 || errno != EACCES;
}

json::object collect(const Globals& globals) {
  const bool maps_readable = may_look_at(globals.pin_dir);
  Reply reply = ask_daemon(globals.socket, daemon::StatusRequest{});
  if (!maps_readable && reply.code != kExitOk) throw Error(reply.error, kExitEnvironment);
  // Of a daemon that runs the maps are there, whoever sees them.
  const bool attached = maps_readable ? kernel::pins_exist(globals.pin_dir) : true;
  json::object daemon{{"running", reply.code == kExitOk}};
  json::array shards;
  json::array interfaces = interfaces_json(globals.pin_dir);
  const bool of_pins = std::all_of(interfaces.begin(), interfaces.end(),
                                   [](const auto& one) { return one.at("current").as_bool(); });
  json::object status{
      {"attached", attached}, {"maps_readable", maps_readable}, {"pin_dir", globals.pin_dir}};
  for (const char* key : {"sessions", "allowed", "rooms"}) status[key] = json::array();
  if (reply.code == kExitOk) {
    add_pages(globals.socket, reply);
    add_watched(interfaces, reply.answer["interfaces"].as_array(), !maps_readable);
    status["sessions"] = std::move(reply.answer["sessions"]);
    status["allowed"] = std::move(reply.answer["allowed"]);
    status["rooms"] = rooms_json(globals.socket);
    for (auto& member : reply.answer["daemon"].as_object()) {
      daemon[member.key()] = std::move(member.value());
    }
    shards = std::move(reply.answer["shards"].as_array());
  }
  bool ledger_exact = true;
  json::array endpoints;
  bool armed = false;
  if (attached && maps_readable) {
    const HostView view(globals);
    armed = !interfaces.empty() && view.maps().registered_ports() == 0;
    const es_control& control = view.maps().control();
    daemon["generation"] = view.generation();
    daemon["expired"] = view.expired();
    daemon["tick_hz"] = control.tick_rate_hz;
    status["bypass"] = control.bypass != 0;
    status["programs_current"] =
        of_pins && kernel::are_from(control, kernel::default_object_path());
    endpoints = endpoints_json(view, ledger_exact);
  }
  status["confirm"] = confirm_json(read_confirm(globals.socket));
  status["armed"] = armed;
  status["daemon"] = std::move(daemon);
  status["interfaces"] = std::move(interfaces);
  status["shards"] = std::move(shards);
  status["endpoints"] = std::move(endpoints);
  status["ledger_exact"] = maps_readable ? json::value(ledger_exact) : json::value();
  return status;
}

std::string text_of(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  return json::serialize(value);
}

void print_daemon(const json::object& status, const std::string& confirm) {
  if (!confirm.empty()) fmt::print("{}\n", toned(confirm, Tone::kWarn));
  if (!status.at("attached").as_bool()) {
    fmt::print("{}\n", toned("not attached: edgeshed attach comes first", Tone::kWarn));
    return;
  }
  const json::object& daemon = status.at("daemon").as_object();
  const bool running = daemon.at("running").as_bool();
  const bool maps_readable = status.at("maps_readable").as_bool();
  const bool expired = maps_readable && daemon.at("expired").as_bool();
  fmt::print("daemon {}, plan generation {}{}, {} Hz\n",
             toned(running ? "running" : "not running", running ? Tone::kGood : Tone::kBad),
             text_of(daemon.at("generation")),
             expired ? toned(" expired: tier shedding is open, contracts hold", Tone::kBad) : "",
             text_of(daemon.at("tick_hz")));
  if (status.at("armed").as_bool()) {
    fmt::print("armed: no endpoint is registered, everything passes\n");
  }
  if (!maps_readable) {
    fmt::print("{}\n", toned("not shown, as only root may read the maps: how interfaces are "
                             "attached, bypass, counters",
                             Tone::kDim));
    return;
  }
  if (status.at("bypass").as_bool()) {
    fmt::print("{}\n", toned("bypass is on: everything passes", Tone::kWarn));
  }
  if (!status.at("programs_current").as_bool()) {
    const std::string upgrade = core::command_at(text_of(status.at("pin_dir")), "upgrade");
    fmt::print("{}\n", toned(fmt::format("the programs are another build's: `{}` replaces them in "
                                         "place",
                                         upgrade),
                             Tone::kWarn));
  }
}

void print_interfaces(const json::object& status) {
  Table table({"INTERFACE", "FACES", "XDP", "EGRESS", "WHY"});
  for (const auto& one : status.at("interfaces").as_array()) {
    const json::object& row = one.as_object();
    table.add({text_of(row.at("dev")), text_of(row.at("faces")), text_of(row.at("mode")),
               row.at("egress").as_bool() ? "yes" : "no", text_of(row.at("why"))});
  }
  table.print("no interface in this network namespace");
}

void print_shards(const json::object& status) {
  Table table({"SHARD", "RUNG", "TICK RATIO", "WHY", "RELEASED BY", "SINCE S", "PLACEMENT"});
  for (const auto& one : status.at("shards").as_array()) {
    const json::object& row = one.as_object();
    const std::int64_t rung = row.at("rung").to_number<std::int64_t>();
    table.add({text_of(row.at("name")), std::to_string(rung),
               fmt::format("{:.2f}", row.at("tick_ratio").to_number<double>()),
               text_of(row.at("why")), text_of(row.at("released_by")),
               fmt::format("{:.1f}", row.at("since_ms").to_number<double>() / 1000),
               text_of(row.at("placement"))},
              rung == 0 ? Tone::kPlain : (rung < 4 ? Tone::kWarn : Tone::kBad));
  }
  table.print("no shard known: the daemon does not run");
}

/// "arena: pressed by tick (1.20); not measured: report, psi (lost)", for every shard of which some
/// signal presses or is missing.
void print_signals(const json::object& status) {
  for (const auto& one : status.at("shards").as_array()) {
    const json::object& shard = one.as_object();
    std::map<std::string, bool> missing;  // source: lost
    for (const auto& [name, signal] : shard.at("signals").as_object()) {
      if (!signal.at("missing").as_bool()) continue;
      missing[text_of(signal.at("source"))] |= signal.at("lost").as_bool();
    }
    std::string line;
    const double pressure = shard.at("pressure").to_number<double>();
    if (pressure > 0)
      line = fmt::format("pressed by {} ({:.2f})", text_of(shard.at("pressed_by")), pressure);
    for (const auto& [source, lost] : missing) {
      line += source == missing.begin()->first
                  ? (line.empty() ? "not measured: " : "; not measured: ")
                  : ", ";
      line += source + (lost ? " (lost)" : "");
    }
    if (!line.empty()) fmt::print("{}: {}\n", text_of(shard.at("name")), line);
  }
}

/// A room that an operator wants to see: not normal, held by hand, or pressed.
bool is_notable(const json::object& room) {
  return room.at("rung").to_number<int>() != 0 || room.at("overridden").as_bool() ||
         room.at("pressure").as_string() != "none";
}

void print_rooms(const json::object& status, bool all) {
  const json::array& rooms = status.at("rooms").as_array();
  if (rooms.empty()) return;
  const bool few = rooms.size() <= kRoomsShown;
  Table table({"ROOM", "SHARD", "OPEN", "RUNG", "PRESSURE", "WHY", "RELEASED BY", "SINCE S"});
  std::size_t hidden = 0;
  for (const auto& one : rooms) {
    const json::object& row = one.as_object();
    if (!all && !few && !is_notable(row)) {
      ++hidden;
      continue;
    }
    table.add({text_of(row.at("name")), text_of(row.at("shard")),
               row.at("open").as_bool() ? "yes" : "no", text_of(row.at("rung")),
               text_of(row.at("pressure")), text_of(row.at("why")), text_of(row.at("released_by")),
               fmt::format("{:.1f}", row.at("since_ms").to_number<double>() / 1000)},
              is_notable(row) ? Tone::kWarn : Tone::kPlain);
  }
  table.print("no room sheds anything");
  if (hidden != 0) fmt::print("and {} normal rooms (edgeshed status --rooms shows them)\n", hidden);
}

void print_sessions(const json::object& status) {
  const json::array& sessions = status.at("sessions").as_array();
  if (sessions.empty()) return;
  Table table({"SESSION OF SHARD", "SERVER", "PID", "ROOMS", "CONNECTIONS", "REFUSED"});
  for (const auto& one : sessions) {
    const json::object& row = one.as_object();
    table.add({text_of(row.at("shard")), text_of(row.at("server")), text_of(row.at("pid")),
               text_of(row.at("rooms")), text_of(row.at("connections")),
               text_of(row.at("refused"))});
  }
  table.print("");
  fmt::print("\n");
}

void print_endpoints(const json::object& status) {
  Table table(
      {"ENDPOINT", "MODE", "WAY", "TIER", "SEEN", "PASSED", "MARKED", "DROPPED", "REJECTED"});
  for (const auto& one : status.at("endpoints").as_array()) {
    const json::object& endpoint = one.as_object();
    for (const auto& way : endpoint.at("tiers").as_object()) {
      for (const auto& tier : way.value().as_object()) {
        const json::object& row = tier.value().as_object();
        if (row.at("seen").to_number<std::uint64_t>() == 0) continue;
        table.add({text_of(endpoint.at("name")), text_of(endpoint.at("mode")),
                   std::string(way.key()), std::string(tier.key()), text_of(row.at("seen")),
                   text_of(row.at("passed")), text_of(row.at("marked")), text_of(row.at("dropped")),
                   text_of(row.at("rejected"))});
      }
    }
  }
  if (!status.at("maps_readable").as_bool()) return;
  table.print("no packet of an endpoint has been seen");
  if (!status.at("ledger_exact").as_bool()) {
    fmt::print("{}\n", toned("the ledger was read while packets passed: not exact", Tone::kDim));
  }
}

/// Detached between the look for the pins and the look at them: then it is not attached.
json::object collect_settled(const Globals& globals) {
  try {
    return collect(globals);
  } catch (const Error&) {
    if (kernel::pins_exist(globals.pin_dir)) throw;
  }
  return collect(globals);
}

int run_status(const StatusOptions& options, const Globals& globals) {
  const json::object status = collect_settled(globals);
  if (options.json) {
    fmt::print("{}\n", json::serialize(status));
    return kExitOk;
  }
  print_daemon(status, confirm_line(read_confirm(globals.socket)));
  if (!status.at("attached").as_bool()) return kExitOk;
  fmt::print("\n");
  print_interfaces(status);
  fmt::print("\n");
  print_shards(status);
  print_signals(status);
  fmt::print("\n");
  print_rooms(status, options.rooms);
  fmt::print("\n");
  print_sessions(status);
  print_endpoints(status);
  return kExitOk;
}

}  // namespace

void add_status(CLI::App& app, Context& context) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command =
      add_command(app, "status", "What is shed, why, and what would release it",
                  "  edgeshed status\n  edgeshed status --json | jq .shards\n"
                  "seen = passed + marked + dropped + rejected; `demoted` is critical beyond its\n"
                  "contract, `other` was decided before a lane was known.\n");
  command->add_flag("--rooms", options->rooms, "List every room, also those that are normal");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_status(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
