// [slow_consumer] and the other sections of thresholds and constants that the control path reads.
#include "userspace/config/builder.h"

namespace edgeshed::config {
namespace {

/// A fault that a check of core/ found between fields: its first word is the field, and so the key.
void fail_on(const Section& section, const std::string& fault) {
  if (fault.empty()) return;
  const size_t space = fault.find(' ');
  section.fail(fault.substr(0, space), fault.substr(space + 1));
}

}  // namespace

void read_slow_consumer(Build& build) {
  const toml::table* table = build.root.child("slow_consumer");
  if (table == nullptr) return;
  const Section section(build.root.path(), *table, "[slow_consumer]",
                        {"watch_bytes", "throttle_bytes", "evict_bytes"});
  core::SlowConsumerConfig& config = build.model.slow_consumer;
  // The report board holds 32 bits.
  const auto read = [&](const char* key, uint64_t& value) {
    value = static_cast<uint64_t>(
        section.integer(key, static_cast<int64_t>(value), 1, int64_t{UINT32_MAX}));
  };
  read("watch_bytes", config.watch_bytes);
  read("throttle_bytes", config.throttle_bytes);
  read("evict_bytes", config.evict_bytes);
  fail_on(section, core::check_slow_consumer_config(config));
}

void read_room_state(Build& build) {
  const toml::table* table = build.root.child("room_state");
  if (table == nullptr) return;
  const Section section(
      build.root.path(), *table, "[room_state]",
      {"ack_lag_watch", "ack_lag_throttling", "ack_lag_shedding", "degraded_share_watch",
       "degraded_share_throttling", "degraded_share_shedding", "rejected_share_watch",
       "rejected_share_throttling", "rejected_share_shedding", "rejects_per_s"});
  core::RoomStateConfig& config = build.model.room_state;
  for (uint32_t i = 0; i < core::kRoomThresholds; ++i) {
    const std::string name = core::room_pressure_name(static_cast<core::RoomPressure>(i + 1));
    config.ack_lag[i] =
        static_cast<uint32_t>(section.integer("ack_lag_" + name, config.ack_lag[i], 1, 1000000));
    const auto share = [&](const char* of, double& value) {
      value = section.number(of + name, value, 0, 1);
    };
    share("degraded_share_", config.degraded_share[i]);
    share("rejected_share_", config.rejected_share[i]);
  }
  config.rejects_per_s = section.number("rejects_per_s", config.rejects_per_s, 0.1, 1e6);
  fail_on(section, core::check_room_state_config(config));
}

void read_placement(Build& build) {
  const toml::table* table = build.root.child("placement");
  if (table == nullptr) return;
  const Section section(build.root.path(), *table, "[placement]",
                        {"host_rooms_max", "host_players_max", "shard_players_max",
                         "critical_share_max", "shard_tick_ratio_max"});
  core::PlacementConfig& config = build.model.placement;
  const auto count = [&](const char* key, uint32_t& value, int64_t high) {
    value = static_cast<uint32_t>(section.integer(key, value, 1, high));
  };
  count("host_rooms_max", config.host_rooms_max, core::kRoomsMax);
  count("host_players_max", config.host_players_max, ES_CONNECTIONS_MAX);
  count("shard_players_max", config.shard_players_max, ES_CONNECTIONS_MAX);
  // Above 0.9 nothing would be left for the shard's own work, and critical cannot be kept.
  config.critical_share_max =
      section.number("critical_share_max", config.critical_share_max, 0.05, 0.9);
  // At 2 the last rung has been reached: no later limit makes sense.
  config.shard_tick_ratio_max =
      section.number("shard_tick_ratio_max", config.shard_tick_ratio_max, 0.1, 2);
}

}  // namespace edgeshed::config
