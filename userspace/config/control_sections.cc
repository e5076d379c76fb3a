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

void read_cost(Build& build) {
  const toml::table* table = build.root.child("cost");
  if (table == nullptr) return;
  const Section section(
      build.root.path(), *table, "[cost]",
      {"control_us", "join_us", "command_us", "event_us", "snapshot_us", "stream_us", "voice_us",
       "cosmetic_us", "base_share", "rate_tau_s", "rate_jump_sigma", "rate_slow_max",
       "scale_gain_up", "scale_gain_down", "scale_min", "scale_max", "window_s", "tick_tolerance",
       "tick_factor_max"});
  core::CostConfig& config = build.model.law.cost;
  const auto read = [&](const std::string& key, double& value, double low, double high) {
    value = section.number(key, value, low, high);
  };
  for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
    read(core::lane_name(lane) + std::string("_us"), config.lane_us[lane], 0, 1e6);
  }
  read("base_share", config.base_share, 0, 0.8);
  read("rate_tau_s", config.rate_tau_s, 0.01, 10);
  read("rate_jump_sigma", config.rate_jump_sigma, 1, 100);
  read("rate_slow_max", config.rate_slow_max, 1, 100);
  read("scale_gain_up", config.scale_gain_up, 0.01, 1);
  read("scale_gain_down", config.scale_gain_down, 0.01, 1);
  read("scale_min", config.scale_min, 0.001, 1);
  read("scale_max", config.scale_max, 1, 1000);
  read("window_s", config.window_s, 0.05, 10);
  read("tick_tolerance", build.model.law.tick_watch.tolerance, 1, 10);
  read("tick_factor_max", build.model.law.tick_watch.factor_max, 1, 100);
  fail_on(section, core::check_cost_config(config));
}

void read_degree(Build& build) {
  const toml::table* table = build.root.child("degree");
  if (table == nullptr) return;
  const Section section(
      build.root.path(), *table, "[degree]",
      {"budget_share", "backlog_span_ms", "missing_signal_share", "feedback_per_s", "large_cut"});
  core::DegreeConfig& config = build.model.law.degree;
  const auto read = [&](const char* key, double& value, double low, double high) {
    value = section.number(key, value, low, high);
  };
  read("budget_share", config.budget_share, 0.1, 1);
  read("backlog_span_ms", config.backlog_span_ms, 1, 10000);
  read("missing_signal_share", config.missing_signal_share, 0, 0.5);
  read("feedback_per_s", config.feedback_per_s, 0.01, 100);
  read("large_cut", config.large_cut, 0.01, 1);
}

void read_fair_share(Build& build) {
  const toml::table* table = build.root.child("fair_share");
  if (table == nullptr) return;
  const Section section(build.root.path(), *table, "[fair_share]",
                        {"follow_s", "thinning_slack", "gap_share_max", "gap_ms_max"});
  core::FairShareConfig& config = build.model.law.fair_share;
  const auto read = [&](const char* key, double& value, double low, double high) {
    value = section.number(key, value, low, high);
  };
  read("follow_s", config.follow_s, 0.02, 10);
  read("thinning_slack", config.thinning_slack, 1, 10);
  read("gap_share_max", config.gap_share_max, 0.01, 0.5);
  read("gap_ms_max", config.gap_ms_max, 50, 60000);
}

}  // namespace edgeshed::config
