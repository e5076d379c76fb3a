// [host], [control], [[ladder]], [[shard]], [[room]] and [[class]].
#include <algorithm>
#include <cctype>
#include <cstdio>

#include "userspace/config/builder.h"

namespace edgeshed::config {
namespace {

constexpr size_t kNameMax = 63;
constexpr double kBytesPerSMax = 1e9;   // 8 Gbit/s; above it byte costs lose their precision
constexpr double kBytesPerSMin = 1000;  // a full packet must fit into the longest burst
constexpr double kPacketsPerSMax = 1e6;
// A level clock then runs for 127 days without its daemon before 64 bits are spent (HZ 250).
constexpr double kTokensPerSMax = 1e5;

core::ContractRate read_rate(const Section& section, uint32_t hz) {
  core::ContractRate rate;
  // 0 is written by people who mean "no limit"; anything between it and the least is a mistake.
  const auto limit = [&](const char* key, double low, double high) {
    const double value = section.number(key, 0, 0, high);
    return value == 0 ? 0 : section.number(key, 0, low, high);
  };
  rate.packets_per_s = limit("packets_per_s", 1, kPacketsPerSMax);
  rate.bytes_per_s = limit("bytes_per_s", kBytesPerSMin, kBytesPerSMax);
  rate.burst_s = read_burst_s(section, rate.burst_s, hz);
  return rate;
}

/// Rates per tier of [[class]] or of its in/out sub-table, into one direction.
void read_rates(const Section& section, uint32_t hz, core::ContractRate (&rates)[ES_TIERS]) {
  for (uint8_t tier = 0; tier < ES_TIERS; ++tier) {
    const toml::table* table = section.child(core::tier_name(tier));
    if (table == nullptr) continue;
    const Section limits(section.path(), *table, section.label() + " " + core::tier_name(tier),
                         {"packets_per_s", "bytes_per_s", "burst_s"});
    rates[tier] = read_rate(limits, hz);
  }
}

void read_levels(const Section& room, const char* key, uint32_t hz,
                 core::LevelRate (&levels)[core::kSheddableTiers]) {
  const toml::table* table = room.child(key);
  if (table == nullptr) return;
  const Section section(room.path(), *table, room.label() + " " + key, {"standard", "best_effort"});
  for (uint8_t tier = ES_TIER_standard; tier < ES_TIERS; ++tier) {
    const toml::table* level = section.child(core::tier_name(tier));
    if (level == nullptr) continue;
    const Section values(room.path(), *level, section.label() + " " + core::tier_name(tier),
                         {"tokens_per_s", "burst_s"});
    values.require("tokens_per_s", "packets per second of a connection of weight 1");
    core::LevelRate& rate = levels[tier - 1];
    rate.tokens_per_s = values.number("tokens_per_s", 0, 1, kTokensPerSMax);
    rate.burst_s = read_burst_s(values, rate.burst_s, hz);
  }
}

void read_lane_effect(const Section& rung, uint32_t lane, core::LaneEffect& effect) {
  const char* name = core::lane_name(static_cast<uint8_t>(lane));
  const toml::table* table = rung.child(name);
  if (table == nullptr) return;
  const Section section(
      rung.path(), *table, rung.label() + " " + name,
      {"keep", "keep_in", "keep_out", "min_interval_ms", "paused", "lower_effort"});
  const double both = section.number("keep", -1, 0, 1);
  if (both >= 0) effect.keep = {both, both};
  effect.keep[ES_IN] = section.number("keep_in", effect.keep[ES_IN], 0, 1);
  effect.keep[ES_OUT] = section.number("keep_out", effect.keep[ES_OUT], 0, 1);
  effect.min_interval_ms = section.number("min_interval_ms", effect.min_interval_ms, 0, 60000);
  effect.paused = section.boolean("paused", effect.paused);
  effect.lower_effort = section.boolean("lower_effort", effect.lower_effort);
}

}  // namespace

core::Mode read_mode(const Section& section) {
  static const std::string kModes[] = {"shadow", "enforce"};
  constexpr uint8_t kMissing = 255;
  switch (section.choice("mode", kMissing, kModes)) {
    case 0:
      return core::Mode::shadow;
    case 1:
      return core::Mode::enforce;
    default:
      return core::Mode::unset;
  }
}

std::string read_name(const Section& section) {
  section.require("name", "other tables and the metrics refer to it");
  const std::string name = section.text("name", "");
  const bool legal = !name.empty() && name.size() <= kNameMax &&
                     std::all_of(name.begin(), name.end(), [](unsigned char c) {
                       return c < 128 && (std::isalnum(c) || c == '_' || c == '.' || c == '-');
                     });
  if (!legal) {
    section.fail("name", "\"" + name + "\" is no name; allowed: 1 to 63 of A-Z a-z 0-9 _ . -");
  }
  return name;
}

double read_burst_s(const Section& section, double fallback, uint32_t hz) {
  const double limit_s = static_cast<double>(ES_BURST_JIFFIES_MAX) / hz;
  const double burst_s = section.number("burst_s", fallback, 0, 3600);
  if (burst_s <= limit_s) return burst_s;
  char text[160];
  std::snprintf(text, sizeof text, "%g s are more than a debt can hold; allowed: 0 to %g at HZ %u",
                burst_s, limit_s, hz);
  section.fail("burst_s", text);
}

void check_capacity(const Section& section, size_t number, size_t limit, const char* setting,
                    size_t setting_max) {
  if (number <= limit) return;
  section.fail("is number " + std::to_string(number) + ", and " + setting + " is " +
               std::to_string(limit) + "; raise " + setting + " in [host] (at most " +
               std::to_string(setting_max) + ") or remove one");
}

void read_host(Build& build) {
  const toml::table* table = build.root.child("host");
  if (table == nullptr) return;
  const Section section(build.root.path(), *table, "[host]",
                        {"connections_max", "endpoints_max", "rooms_max", "classes_max",
                         "streams_max", "stream_hint_ratio", "tick_hz", "mode", "audit_log"});
  core::Host& host = build.model.host;
  const auto count = [&](const char* key, uint32_t& value, int64_t low, int64_t high) {
    value = static_cast<uint32_t>(section.integer(key, value, low, high));
  };
  count("connections_max", host.connections_max, 1, ES_CONNECTIONS_MAX);
  count("endpoints_max", host.endpoints_max, 1, ES_ENDPOINTS_MAX - 1);
  count("rooms_max", host.rooms_max, 1, core::kRoomsMax);
  count("classes_max", host.classes_max, 1, ES_CLASSES_MAX - 1);
  count("streams_max", host.streams_max, 0, ES_CONNECTIONS_MAX);
  host.stream_hint_ratio = section.number("stream_hint_ratio", host.stream_hint_ratio, 0, 1);
  count("tick_hz", host.tick_hz, 10, 250);
  host.mode = read_mode(section);
  host.audit_log = section.text("audit_log", "");
  if (section.has("audit_log") && !host.audit_log.starts_with('/')) {
    section.fail("audit_log", "\"" + host.audit_log + "\" is no absolute path; allowed: " +
                                  "/var/log/edgeshed/audit.jsonl, or no audit_log at all");
  }
}

void read_session(Build& build) {
  const toml::table* table = build.root.child("session");
  if (table == nullptr) return;
  const Section section(build.root.path(), *table, "[session]", {"users"});
  build.model.session.users = section.texts("users");
  for (const std::string& user : build.model.session.users) {
    if (user.empty()) section.fail("users", "has an empty name; name users, or give their numbers");
  }
}

void read_interfaces(Build& build) {
  constexpr size_t kDevMax = 15;  // IFNAMSIZ without its end
  static const std::string kFaces[] = {"clients", "servers"};
  for (const toml::table* table : build.root.children("interface")) {
    const Section section(build.root.path(), *table, "[[interface]]", {"dev", "faces", "generic"});
    core::Interface interface;
    section.require("dev", "name of a network interface, such as \"eth0\"");
    interface.dev = section.text("dev", "");
    if (interface.dev.empty() || interface.dev.size() > kDevMax || interface.dev == "lo") {
      section.fail("dev", "\"" + interface.dev +
                              "\" cannot be attached to; allowed: 1 to 15 characters, not lo");
    }
    for (const core::Interface& other : build.model.interfaces) {
      if (other.dev == interface.dev) {
        section.fail("dev", "\"" + interface.dev + "\" is named twice; remove one");
      }
    }
    interface.faces_servers = section.choice("faces", 0, kFaces) == 1;
    interface.generic = section.boolean("generic", false);
    build.model.interfaces.push_back(std::move(interface));
  }
}

void read_control(Build& build) {
  const toml::table* table = build.root.child("control");
  if (table == nullptr) return;
  const Section section(build.root.path(), *table, "[control]",
                        {"exit_ratio", "hold_s", "next_hold_s", "confirm_s", "reentry_window_s",
                         "hold_factor_max", "best_effort_ramp_per_s", "standard_ramp_per_s",
                         "report_timeout_s", "ce_pressure_low", "ce_pressure_high"});
  core::ControlConfig& control = build.model.law.control;
  const auto read = [&](const char* key, double& value) {
    value = section.number(key, value, 0, 600);
    // Fields are checked in their order, so only this one's own range can be wrong here.
    const std::string fault = core::check_control_config(control);
    const std::string prefix = std::string(key) + " ";
    if (fault.starts_with(prefix + "must be ")) section.fail(key, fault.substr(prefix.size()));
  };
  read("exit_ratio", control.exit_ratio);
  read("hold_s", control.hold_s);
  read("next_hold_s", control.next_hold_s);
  read("confirm_s", control.confirm_s);
  read("reentry_window_s", control.reentry_window_s);
  read("hold_factor_max", control.hold_factor_max);
  read("best_effort_ramp_per_s", control.best_effort_ramp_per_s);
  read("standard_ramp_per_s", control.standard_ramp_per_s);
  read("report_timeout_s", control.report_timeout_s);
  read("ce_pressure_low", control.ce_pressure_low);
  read("ce_pressure_high", control.ce_pressure_high);
  const std::string fault = core::check_control_config(control);
  if (!fault.empty()) section.fail(fault);
}

void read_ladder(Build& build) {
  const toml::table* first = nullptr;
  bool seen[core::kRungs] = {};
  for (const toml::table* table : build.root.children("ladder")) {
    if (first == nullptr) first = table;
    const Section section(build.root.path(), *table, "[[ladder]]",
                          {"rung", "snapshot", "stream", "voice", "cosmetic", "standard_below",
                           "best_effort_below", "max_gap_ms", "ce_share"});
    section.require("rung", "the step that the table changes, 1 to 5");
    const auto rung = section.integer("rung", 0, 1, core::kRungMax);
    if (seen[rung]) section.fail("rung", std::to_string(rung) + " is used twice; merge the tables");
    seen[rung] = true;
    core::LadderEffects& effects = build.model.law.ladder[rung];
    for (uint32_t i = 0; i < core::kThinLanes; ++i) {
      read_lane_effect(section, core::kFirstThinLane + i, effects.lane[i]);
    }
    effects.threshold[core::kTierStandard] = static_cast<double>(section.integer(
        "standard_below", static_cast<int64_t>(effects.threshold[core::kTierStandard]), 0, 255));
    effects.threshold[core::kTierBestEffort] = static_cast<double>(
        section.integer("best_effort_below",
                        static_cast<int64_t>(effects.threshold[core::kTierBestEffort]), 0, 255));
    effects.max_gap_ms = section.number("max_gap_ms", effects.max_gap_ms, 0, 60000);
    effects.ce_share = section.number("ce_share", effects.ce_share, 0, 1);
  }
  if (first == nullptr) return;
  const std::string fault = core::check_ladder_table(build.model.law.ladder);
  if (fault.empty()) return;
  fail_at(build.root.path(), first->source(),
          "[[ladder]]: " + fault + "; change that rung or the one below it");
}

void read_shards(Build& build) {
  for (const toml::table* table : build.root.children("shard")) {
    const Section section(build.root.path(), *table, "[[shard]]",
                          {"name", "frame_budget_ms", "room_capacity"});
    core::Shard shard;
    shard.name = read_name(section);
    check_new_name(section, build.model.shards, shard.name);
    shard.frame_budget_ms = section.number("frame_budget_ms", shard.frame_budget_ms, 1, 1000);
    shard.room_capacity = static_cast<uint32_t>(
        section.integer("room_capacity", shard.room_capacity, 1, core::kRoomsMax));
    build.model.shards.push_back(std::move(shard));
  }
}

void read_rooms(Build& build) {
  core::Model& model = build.model;
  std::vector<uint32_t> rooms_of(model.shards.size());
  for (const toml::table* table : build.root.children("room")) {
    const Section section(
        build.root.path(), *table, "[[room]]",
        {"name", "shard", "stream_cap", "stream_samples_per_s", "stream_bytes_per_s",
         "player_bytes_per_s", "room_bytes_per_s", "close_streams", "level_in", "level_out"});
    check_capacity(section, model.rooms.size() + 1, model.host.rooms_max, "rooms_max",
                   core::kRoomsMax);
    core::Room room;
    room.name = read_name(section);
    check_new_name(section, model.rooms, room.name);
    section.require("shard", "the [[shard]] that runs the room");
    const std::string shard_name = section.text("shard", "");
    const int shard = core::find_shard(model, shard_name);
    if (shard < 0) {
      section.fail("shard",
                   "\"" + shard_name + "\" is no [[shard]]; defined: " + names_of(model.shards));
    }
    room.shard = static_cast<uint32_t>(shard);
    const uint32_t capacity = model.shards[room.shard].room_capacity;
    if (++rooms_of[room.shard] > capacity) {
      section.fail("shard", "\"" + shard_name + "\" has room_capacity " + std::to_string(capacity) +
                                ", and this is room number " +
                                std::to_string(rooms_of[room.shard]) +
                                "; raise room_capacity or use another shard");
    }
    room.stream_cap = static_cast<uint8_t>(section.integer("stream_cap", 0, 0, ES_STREAM_SLOTS));
    room.closes_streams = section.boolean("close_streams", false);
    const auto limit = [&](const char* key, int64_t high) {
      return section.integer(key, 0, 0, high);
    };
    room.stream_samples_per_s = static_cast<uint32_t>(limit("stream_samples_per_s", 1000000));
    room.stream_bytes_per_s = static_cast<uint32_t>(limit("stream_bytes_per_s", 1000000000));
    room.player_bytes_per_s = static_cast<uint32_t>(limit("player_bytes_per_s", 1000000000));
    room.room_bytes_per_s = static_cast<uint64_t>(limit("room_bytes_per_s", 100000000000));
    read_levels(section, "level_in", build.hz, room.level[ES_IN]);
    read_levels(section, "level_out", build.hz, room.level[ES_OUT]);
    model.rooms.push_back(std::move(room));
  }
}

void read_classes(Build& build) {
  core::Model& model = build.model;
  for (const toml::table* table : build.root.children("class")) {
    const Section section(build.root.path(), *table, "[[class]]",
                          {"name", "tier_cap", "critical", "standard", "best_effort", "in", "out"});
    check_capacity(section, model.classes.size(), model.host.classes_max, "classes_max",
                   ES_CLASSES_MAX - 1);
    core::ContractClass contract;
    contract.name = read_name(section);
    check_new_name(section, model.classes, contract.name);
    contract.tier_cap = section.choice("tier_cap", ES_TIER_critical, tier_names());
    const char* const kDirectionKeys[ES_DIRECTIONS] = {"in", "out"};
    for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
      read_rates(section, build.hz, contract.rate[direction]);
      const toml::table* own = section.child(kDirectionKeys[direction]);
      if (own == nullptr) continue;
      const Section rates(section.path(), *own, section.label() + " " + kDirectionKeys[direction],
                          {"critical", "standard", "best_effort"});
      read_rates(rates, build.hz, contract.rate[direction]);
    }
    model.classes.push_back(std::move(contract));
  }
}

}  // namespace edgeshed::config
