// The sections of thresholds and constants: their defaults, what they set, and their errors.
#include <gtest/gtest.h>

#include <string>

#include "userspace/config/config.h"

namespace edgeshed::config {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse(text, "e.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), kExitUsage);
    return error.what();
  }
  return "no error";
}

TEST(ControlSections, SlowConsumer) {
  EXPECT_EQ(parse("", "t.toml").slow_consumer.watch_bytes, 65536u);
  const core::Model model =
      parse("[slow_consumer]\nwatch_bytes = 10\nthrottle_bytes = 20\nevict_bytes = 4294967295\n",
            "t.toml");
  EXPECT_EQ(model.slow_consumer.watch_bytes, 10u);
  EXPECT_EQ(model.slow_consumer.throttle_bytes, 20u);
  EXPECT_EQ(model.slow_consumer.evict_bytes, 4294967295u);
}

TEST(ControlSections, SlowConsumerErrors) {
  EXPECT_EQ(error_of("[slow_consumer]\nwatch_bytes = 0\n"),
            "e.toml:2:15: [slow_consumer]: watch_bytes: 0 is out of range; allowed: 1 to "
            "4294967295");
  EXPECT_EQ(error_of("[slow_consumer]\nthrottle_bytes = 65536\n"),
            "e.toml:2:18: [slow_consumer]: throttle_bytes: must be above watch_bytes");
  EXPECT_EQ(error_of("[slow_consumer]\nwatch_bytes = 262144\n"),
            "e.toml:1:1: [slow_consumer]: throttle_bytes: must be above watch_bytes");
  EXPECT_EQ(error_of("[slow_consumer]\nevict_bytes = 262144\n"),
            "e.toml:2:15: [slow_consumer]: evict_bytes: must be above throttle_bytes");
  EXPECT_EQ(error_of("[slow_consumer]\nclose_bytes = 1\n"),
            "e.toml:2:1: [slow_consumer]: unknown key \"close_bytes\"; allowed: watch_bytes, "
            "throttle_bytes, evict_bytes; correct its name or remove it");
}

TEST(ControlSections, RoomState) {
  EXPECT_EQ(parse("", "t.toml").room_state.ack_lag[2], 32u);
  const core::RoomStateConfig config =
      parse(
          "[room_state]\nack_lag_shedding = 60\ndegraded_share_watch = 0.05\n"
          "rejected_share_throttling = 0.4\nrejects_per_s = 1\n",
          "t.toml")
          .room_state;
  EXPECT_EQ(config.ack_lag, (std::array<uint32_t, 3>{8, 16, 60}));
  EXPECT_EQ(config.degraded_share, (std::array<double, 3>{0.05, 0.10, 0.33}));
  EXPECT_EQ(config.rejected_share, (std::array<double, 3>{0.05, 0.4, 0.5}));
  EXPECT_EQ(config.rejects_per_s, 1);
}

TEST(ControlSections, RoomStateErrors) {
  EXPECT_EQ(error_of("[room_state]\nack_lag_watch = 0\n"),
            "e.toml:2:17: [room_state]: ack_lag_watch: 0 is out of range; allowed: 1 to 1000000");
  EXPECT_EQ(error_of("[room_state]\nack_lag_watch = 16\n"),
            "e.toml:1:1: [room_state]: ack_lag_throttling: must be above ack_lag_watch");
  EXPECT_EQ(error_of("[room_state]\nrejected_share_shedding = 0.25\n"),
            "e.toml:2:27: [room_state]: rejected_share_shedding: must be above "
            "rejected_share_throttling");
  EXPECT_EQ(error_of("[room_state]\ndegraded_share_shedding = 1.5\n"),
            "e.toml:2:27: [room_state]: degraded_share_shedding: 1.5 is out of range; allowed: 0 "
            "to 1");
}

TEST(ControlSections, Placement) {
  const core::PlacementConfig defaults = parse("", "t.toml").placement;
  EXPECT_EQ(defaults.host_rooms_max, 256u);
  EXPECT_EQ(defaults.critical_share_max, 0.6);
  const core::PlacementConfig config =
      parse(
          "[placement]\nhost_rooms_max = 10\nhost_players_max = 1000\nshard_players_max = 100\n"
          "critical_share_max = 0.5\nshard_tick_ratio_max = 0.8\n",
          "t.toml")
          .placement;
  EXPECT_EQ(config.host_rooms_max, 10u);
  EXPECT_EQ(config.host_players_max, 1000u);
  EXPECT_EQ(config.shard_players_max, 100u);
  EXPECT_EQ(config.critical_share_max, 0.5);
  EXPECT_EQ(config.shard_tick_ratio_max, 0.8);
}

TEST(ControlSections, PlacementErrors) {
  EXPECT_EQ(error_of("[placement]\nhost_rooms_max = 0\n"),
            "e.toml:2:18: [placement]: host_rooms_max: 0 is out of range; allowed: 1 to 65535");
  EXPECT_EQ(error_of("[placement]\ncritical_share_max = 0.95\n"),
            "e.toml:2:22: [placement]: critical_share_max: 0.95 is out of range; allowed: 0.05 to "
            "0.9");
  EXPECT_EQ(error_of("[placement]\nshard_tick_ratio_max = 2.5\n"),
            "e.toml:2:24: [placement]: shard_tick_ratio_max: 2.5 is out of range; allowed: 0.1 to "
            "2");
}

TEST(ControlSections, Cost) {
  const core::CostConfig defaults = parse("", "t.toml").law.cost;
  for (const double cost_us : defaults.lane_us) EXPECT_EQ(cost_us, 0);
  EXPECT_EQ(defaults.rate_tau_s, 0.15);
  const core::CostConfig config =
      parse(
          "[cost]\ncontrol_us = 1\ncosmetic_us = 8.5\nbase_share = 0.25\nrate_tau_s = 0.2\n"
          "rate_jump_sigma = 5\nscale_gain_up = 1\nscale_gain_down = 0.1\nscale_min = 0.5\n"
          "scale_max = 2\nwindow_s = 1\n",
          "t.toml")
          .law.cost;
  EXPECT_EQ(config.lane_us, (std::array<double, ES_LANES>{1, 0, 0, 0, 0, 0, 0, 8.5}));
  EXPECT_EQ(config.base_share, 0.25);
  EXPECT_EQ(config.rate_tau_s, 0.2);
  EXPECT_EQ(config.rate_jump_sigma, 5);
  EXPECT_EQ(config.scale_gain_up, 1);
  EXPECT_EQ(config.scale_gain_down, 0.1);
  EXPECT_EQ(config.scale_min, 0.5);
  EXPECT_EQ(config.scale_max, 2);
  EXPECT_EQ(config.window_s, 1);
}

TEST(ControlSections, Degree) {
  EXPECT_EQ(parse("", "t.toml").law.degree.budget_share, 0.9);
  const core::DegreeConfig config =
      parse(
          "[degree]\nbudget_share = 0.8\nbacklog_span_ms = 50\nmissing_signal_share = 0.1\n"
          "large_cut = 0.2\n",
          "t.toml")
          .law.degree;
  EXPECT_EQ(config.budget_share, 0.8);
  EXPECT_EQ(config.backlog_span_ms, 50);
  EXPECT_EQ(config.missing_signal_share, 0.1);
  EXPECT_EQ(config.large_cut, 0.2);
}

TEST(ControlSections, FairShareAndTickWatch) {
  const core::LawConfig law =
      parse(
          "[fair_share]\nfollow_s = 1\nthinning_slack = 1.5\ngap_share_max = 0.1\n"
          "gap_ms_max = 500\n[cost]\ntick_tolerance = 2\ntick_factor_max = 8\nrate_slow_max = 3\n"
          "[control]\nconfirm_s = 0.5\n",
          "t.toml")
          .law;
  EXPECT_EQ(law.fair_share, (core::FairShareConfig{1, 1.5, 0.1, 500}));
  EXPECT_EQ(law.tick_watch, (core::TickWatchConfig{2, 8}));
  EXPECT_EQ(law.cost.rate_slow_max, 3);
  EXPECT_EQ(law.control.confirm_s, 0.5);
  EXPECT_EQ(error_of("[fair_share]\nthinning_slack = 0.9\n"),
            "e.toml:2:18: [fair_share]: thinning_slack: 0.9 is out of range; allowed: 1 to 10");
}

TEST(ControlSections, CostAndDegreeErrors) {
  EXPECT_EQ(error_of("[cost]\nvoice_us = -1\n"),
            "e.toml:2:12: [cost]: voice_us: -1 is out of range; allowed: 0 to 1000000");
  EXPECT_EQ(error_of("[cost]\nbase_share = 0.9\n"),
            "e.toml:2:14: [cost]: base_share: 0.9 is out of range; allowed: 0 to 0.8");
  EXPECT_EQ(error_of("[cost]\nscale_min = 1\nscale_max = 1\n"),
            "e.toml:3:13: [cost]: scale_max: must be above scale_min");
  EXPECT_EQ(error_of("[degree]\nbudget_share = 1.1\n"),
            "e.toml:2:16: [degree]: budget_share: 1.1 is out of range; allowed: 0.1 to 1");
  EXPECT_EQ(error_of("[degree]\nbudget = 1\n"),
            "e.toml:2:1: [degree]: unknown key \"budget\"; allowed: budget_share, "
            "backlog_span_ms, missing_signal_share, feedback_per_s, large_cut; correct its name or "
            "remove it");
}

TEST(ControlSections, TheExampleShowsTheDefaults) {
  const core::Model defaults;
  const core::Model example = load(EDGESHED_EXAMPLE_CONFIG);
  EXPECT_EQ(example.slow_consumer, defaults.slow_consumer);
  EXPECT_EQ(example.room_state, defaults.room_state);
  EXPECT_EQ(example.placement, defaults.placement);
  EXPECT_EQ(example.law.cost, defaults.law.cost);
  EXPECT_EQ(example.law.degree, defaults.law.degree);
  EXPECT_EQ(example.law.fair_share, defaults.law.fair_share);
  EXPECT_EQ(example.law.tick_watch, defaults.law.tick_watch);
}

}  // namespace
}  // namespace edgeshed::config
