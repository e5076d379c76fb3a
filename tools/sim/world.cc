#include "tools/sim/world.h"

#include <cmath>
#include <memory>
#include <optional>

#include "tools/sim/control_plane.h"
#include "tools/sim/packet_path.h"
#include "tools/sim/traffic.h"

namespace edgeshed::sim {
namespace {

class World : Ends {
 public:
  World(const Scenario& scenario, Policy policy, std::uint64_t seed)
      : scenario_(scenario),
        random_(seed + 1),
        traffic_(scenario, seed),
        model_(model_of(scenario)),
        recorder_(scenario, policy, traffic_) {
    if (policy == Policy::edgeshed) {
      path_.emplace(model_, traffic_.players(), seed);
      control_.emplace(scenario, model_, *path_, traffic_.players() / scenario.shards);
    }
    for (std::uint32_t shard = 0; shard < scenario.shards; ++shard) {
      servers_.emplace_back(scenario, policy, seed + shard);
    }
  }

  Run play() {
    // The millisecond: control first, so that a plan meets the packets after it.
    for (double now_ms = 0; now_ms < scenario_.seconds * 1000; ++now_ms) {
      decide(now_ms);
      for (const Message& message : traffic_.send(now_ms)) send(message);
      for (std::uint32_t shard = 0; shard < servers_.size(); ++shard) {
        servers_[shard].run(now_ms + 1, *this);
      }
      for (const Tick& tick : servers_[0].ticks()) {
        if (tick.begin_ms > last_tick_ms_) recorder_.tick(tick);
      }
      if (!servers_[0].ticks().empty()) last_tick_ms_ = servers_[0].ticks().back().begin_ms;
    }
    if (control_) recorder_.control_tick_max_ms = control_->tick_ms_real_max();
    return {recorder_.figures(), recorder_.series()};
  }

 private:
  void decide(double now_ms) {
    if (control_) control_->run(now_ms, servers_);
    if (now_ms < next_sample_ms_) return;
    const double interval_s = 1.0 / scenario_.control_hz;
    next_sample_ms_ += interval_s * 1000;
    recorder_.decided(now_ms, control_ ? &control_->shard(0) : nullptr, interval_s);
  }

  void send(const Message& message) {
    recorder_.sent(message);
    const std::uint32_t shard = traffic_.shard_of(message.player);
    if (path_) {
      const PacketPath::Fate fate = path_->decide(message.player, message.lane, message.sent_ms);
      control_->count(shard, message.lane, fate);
      if (!fate.passes) {
        recorder_.shed(message, message.tier == ES_TIER_critical && !fate.demoted);
        recorder_.ended(message, End::shed, message.sent_ms, 0);
        servers_[shard].spend(kDropMs);
        const double told_ms = control_->told_ms(shard, random_.unit());
        traffic_.refused(message, message.sent_ms, told_ms);
        return;
      }
    }
    servers_[shard].receive(message, *this);
  }

  void end(const Message& message, End end, double done_ms, double cost_us) override {
    recorder_.ended(message, end, done_ms, cost_us);
    if (end == End::shed) traffic_.refused(message, done_ms, 0);
    if (end == End::late || end == End::queue_full) traffic_.unanswered(message, done_ms);
  }

  static constexpr double kDropMs = 0.0002;

  const Scenario& scenario_;
  Random random_;
  Traffic traffic_;
  core::Model model_;
  std::optional<PacketPath> path_;
  std::optional<ControlPlane> control_;
  std::vector<Server> servers_;
  Recorder recorder_;
  double next_sample_ms_ = 0;
  double last_tick_ms_ = -1;
};

}  // namespace

Run run(const Scenario& scenario, Policy policy, std::uint64_t seed) {
  return std::make_unique<World>(scenario, policy, seed)->play();
}

double quota_error(std::uint64_t seed) {
  constexpr double kHighPerS = 200;
  constexpr double kSeconds = 30;
  Scenario scenario;
  scenario.name = "quota";
  scenario.game.lanes = {{ES_LANE_command, 1e5, 1}};  // a contract that is never met
  scenario.costs_given = false;
  const core::Model model = model_of(scenario);
  PacketPath path(model, 1, seed);
  Random random(seed);
  std::vector<core::ShardState> states(1);
  std::vector<core::TierLevels> levels(1);
  double granted = 0;
  double passed = 0;
  double next_ms = 0;
  double sent_ms = 0;
  bool high = false;
  for (double now_ms = 0; now_ms < kSeconds * 1000; ++now_ms) {
    if (now_ms >= next_ms) {
      next_ms += 1000.0 / 60;
      high = !high;
      levels[0][core::kTierStandard] = high ? kHighPerS : kHighPerS / 2;
      path.publish(states, levels, 60, now_ms);
    }
    // By the jiffies that the level runs on: every fourth millisecond at HZ 250.
    if (std::fmod(now_ms, 4) == 3) granted += levels[0][core::kTierStandard] * 0.004;
    for (; sent_ms < now_ms + 1; sent_ms += random.between(0.25, 0.75)) {
      passed += path.decide(0, ES_LANE_command, sent_ms).passes ? 1 : 0;
    }
  }
  return std::abs(passed - granted) / granted;
}

}  // namespace edgeshed::sim
