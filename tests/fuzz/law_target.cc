// Bytes as a life of one shard: a configuration, and what a tick samples, again and again. Feeds
// them to ShardLaw::step and fill_plan_rows, with every number within what the daemon lets through;
// the invariants of law_invariants.h must hold after each step.

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/fuzz/law_invariants.h"
#include "tests/fuzz/target.h"

namespace edgeshed::test {
namespace {

using namespace core;

/// As session/report_reader.h has it.
constexpr double kTickMsMax = 600'000;

/// Reads values of bytes; 0 once they are used up.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  bool done() const { return at_ >= bytes_.size(); }
  uint8_t byte() { return done() ? 0 : bytes_[at_++]; }
  double between(double low, double high) { return low + (high - low) * byte() / 255; }
  /// 0, or `least` to `most` in steps of one factor.
  double scaled(double least, double most) {
    const uint8_t step = byte();
    return step == 0 ? 0 : least * std::pow(most / least, (step - 1) / 254.0);
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

LadderTable read_ladder(Reader& reader) {
  LadderTable table = default_ladder_table();
  for (uint8_t rung = 1; rung < kRungs; ++rung) {
    LadderEffects& effects = table[rung];
    if (rung > 1) effects = table[rung - 1];
    effects.refuse_joins = rung >= kRungRefuseJoins;
    for (LaneEffect& lane : effects.lane) {
      const uint8_t what = reader.byte();
      if ((what & 1) != 0) lane.keep[ES_IN] *= (what >> 4) / 15.0;
      if ((what & 2) != 0) lane.keep[ES_OUT] *= (what >> 4) / 15.0;
      if ((what & 12) == 12) lane.paused = true;
      if ((what & 12) == 8) lane.min_interval_ms = std::max(lane.min_interval_ms, 50.0);
    }
    for (double& threshold : effects.threshold) {
      threshold = std::max(threshold, static_cast<double>(reader.byte()));
    }
  }
  return table;
}

/// Within what [control], [cost], [degree] and [fair_share] allow.
LawConfig read_config(Reader& reader) {
  LawConfig config;
  const uint8_t own = reader.byte();
  if ((own & 1) != 0) {
    for (double& cost_us : config.cost.lane_us) cost_us = reader.scaled(0.1, 1e6);
  }
  if ((own & 2) != 0) config.cost.base_share = reader.between(0, 0.8);
  if ((own & 4) != 0) {
    config.control.hold_s = reader.between(0.05, 60);
    config.control.confirm_s = reader.between(0, 10);
    config.control.hold_factor_max = reader.between(1, 64);
    config.control.best_effort_ramp_per_s = reader.between(0.01, 10);
    config.control.standard_ramp_per_s = reader.between(0.01, 10);
    config.control.report_timeout_s = reader.between(0.1, 60);
  }
  if ((own & 8) != 0) {
    config.degree.budget_share = reader.between(0.1, 1);
    config.degree.backlog_span_ms = reader.between(1, 10000);
    config.degree.missing_signal_share = reader.between(0, 0.5);
    config.degree.large_cut = reader.between(0.01, 1);
  }
  if ((own & 16) != 0) {
    config.fair_share.follow_s = reader.between(0.02, 10);
    config.fair_share.thinning_slack = reader.between(1, 10);
    config.fair_share.gap_share_max = reader.between(0.01, 0.5);
    config.fair_share.gap_ms_max = reader.between(50, 60000);
  }
  if ((own & 32) != 0) {
    config.cost.scale_min = reader.between(0.001, 0.999);
    config.cost.scale_max = reader.between(1, 1000);
    config.cost.scale_gain_up = reader.between(0.01, 1);
    config.cost.window_s = reader.between(0.05, 10);
    config.cost.rate_tau_s = reader.between(0.01, 10);
    config.tick_watch.tolerance = reader.between(1, 10);
    config.tick_watch.factor_max = reader.between(1, 100);
  }
  if ((own & 64) != 0) config.ladder = read_ladder(reader);
  return config;
}

Model model_of(const LawConfig& config, uint16_t lane_tiers) {
  Model model;
  model.law = config;
  model.shards.resize(1);
  model.shards[0].name = "shard";
  model.rooms.resize(2);
  model.rooms[0].name = "open";
  model.rooms[1].name = "levelled";
  model.rooms[1].level[ES_IN][kTierStandard].tokens_per_s = 60;
  model.endpoints.resize(1);
  Endpoint& endpoint = model.endpoints[0];
  endpoint.name = "game";
  endpoint.number = 1;
  endpoint.port = 7777;
  endpoint.mode = Mode::enforce;
  endpoint.lane_tiers = lane_tiers;
  endpoint.rooms = {0, 1};
  return model;
}

/// One shard and its plan, from tick to tick.
class Life {
 public:
  explicit Life(Reader& reader)
      : reader_(reader), law_(read_config(reader)), memory_(law_.begin()) {
    sample_.signals.frame_budget_ms = 33.3;
    sample_.signals.room_capacity = 10;
    sample_.lane_tiers = default_lane_tiers();
    if ((reader.byte() & 1) != 0) {
      for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
        sample_.lane_tiers = with_lane_tier(sample_.lane_tiers, lane, reader.byte() % ES_TIERS);
      }
    }
    model_ = model_of(law_.config(), sample_.lane_tiers);
  }

  std::string tick() {
    const uint8_t what = reader_.byte();
    pass_time((what & 1) != 0);
    send((what & 2) != 0);
    sample_.done = {};
    if ((what & 4) != 0) work();
    if ((what & 8) != 0) say();
    if ((what & 16) != 0) change_world();
    if ((what & 32) != 0) operate();
    if ((what & 192) == 192) wait();
    law_.step(memory_, sample_, now_ns_);
    std::string fault = law_fault(law_, memory_, sample_);
    return fault.empty() ? publish() : fault;
  }

 private:
  void pass_time(bool odd) {
    if (!odd) {
      now_ns_ += 16'666'667;
      return;
    }
    const auto step_ns = static_cast<uint64_t>(reader_.scaled(1, 1e12));
    // Forward, but for some.
    now_ns_ = step_ns % 8 == 7 ? now_ns_ - std::min(now_ns_ - 1, step_ns) : now_ns_ + step_ns;
  }

  void send(bool others) {
    if (others) {
      const uint8_t lane = reader_.byte() % ES_LANES;
      per_tick_[lane] = static_cast<uint64_t>(reader_.scaled(1, 1e7));
      passing_ = reader_.between(0, 1);
    }
    for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
      sample_.arrived[lane] += per_tick_[lane];
      sample_.passed[lane] +=
          static_cast<uint64_t>(static_cast<double>(per_tick_[lane]) * passing_);
    }
  }

  /// A report of work: late, early, or of a counter that went back.
  void work() {
    const uint8_t how = reader_.byte();
    const auto age_ns = static_cast<uint64_t>(reader_.scaled(1e3, 1e10));
    busy_ns_ += static_cast<uint64_t>(reader_.scaled(1e3, 1e10));
    if (how == 1) busy_ns_ = 0;
    if (how == 2) sample_.passed = {};
    if (how == 3) sample_.arrived = {};
    const bool ahead = how == 4;
    sample_.done.reported_ns = ahead ? now_ns_ + age_ns : now_ns_ - std::min(now_ns_ - 1, age_ns);
    sample_.done.busy_ns = busy_ns_;
  }

  void say() {
    ShardSignals& signals = sample_.signals;
    signals.tick_p99_ms = reader_.scaled(0.01, kTickMsMax);
    signals.running_tick_age_ms = reader_.scaled(0.01, kTickMsMax);
    signals.ring_occupancy = reader_.between(0, 1);
    signals.reported_at_ns = now_ns_;
  }

  /// What waits in the socket, and what the host says.
  void wait() {
    ShardSignals& signals = sample_.signals;
    signals.receive_queue_ms = reader_.scaled(0.01, kTickMsMax);
    signals.ack_lag_p95 = reader_.scaled(0.1, 1e6);
    signals.rejected_share = reader_.between(0, 1);
    signals.softnet_drops = reader_.scaled(0.1, 1e6);
    signals.missing = reader_.byte();
    signals.lost = reader_.byte() & signals.missing;
  }

  void change_world() {
    sample_.weights = reader_.scaled(1.0 / 256, 1e8);
    sample_.signals.room_count = reader_.byte();
    sample_.signals.frame_budget_ms = reader_.scaled(0.1, 1e4);
    sample_.has_session = (reader_.byte() & 1) != 0;
  }

  void operate() {
    const uint8_t rung = reader_.byte();
    if (rung >= 128) return ShardController::clear_override(memory_.state);
    ShardController::force(memory_.state, rung % kRungs,
                           (rung & 64) != 0 ? now_ns_ + 1'000'000'000 : 0);
  }

  std::string publish() {
    ShardState state = memory_.state;
    state.effects = memory_.effects;
    const TierLevels levels = {memory_.level[0].per_s, memory_.level[1].per_s};
    PlanExtras extras;
    extras.levels = std::span(&levels, 1);
    PlanTiming timing;
    timing.now_jiffies = now_ns_ / 4'000'000;
    timing.tick = ++ticks_;
    fill_plan_rows(model_, std::span(&state, 1), timing, rows_.rooms, rows_, extras);
    return rows_fault(model_, rows_);
  }

  Reader& reader_;
  const ShardLaw law_;
  Model model_;
  ShardMemory memory_;
  ShardSample sample_;
  PlanRows rows_{2, 2, 1};
  std::array<uint64_t, ES_LANES> per_tick_ = {};
  double passing_ = 1;
  uint64_t busy_ns_ = 0;
  uint64_t now_ns_ = 1'000'000'000;
  uint64_t ticks_ = 0;
};

}  // namespace

const char* const kTargetName = "law";

std::string run_target(std::span<const uint8_t> bytes) {
  Reader reader(bytes);
  Life life(reader);
  for (int step = 0; !reader.done(); ++step) {
    const std::string fault = life.tick();
    if (!fault.empty()) return "step " + std::to_string(step) + ": " + fault;
  }
  return "";
}

}  // namespace edgeshed::test
