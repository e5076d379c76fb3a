#include "tools/sim/control_plane.h"

#include <algorithm>
#include <chrono>

#include "userspace/core/time_units.h"

namespace edgeshed::sim {
namespace {

/// A guest that was stopped and goes on: its clock is this far ahead at once.
constexpr double kAheadMs = 10'000;

std::uint64_t to_ns(double ms) { return static_cast<std::uint64_t>((ms + 1000) * core::kNsPerMs); }

}  // namespace

ControlPlane::ControlPlane(const Scenario& scenario, const core::Model& model, PacketPath& path,
                           double weights)
    : scenario_(scenario), model_(model), path_(path), weights_(weights), law_(model.law) {
  samples_.resize(model.shards.size());
  reported_ns_.resize(model.shards.size());
  states_.resize(model.shards.size());
  levels_.resize(model.shards.size());
  begin();
}

void ControlPlane::begin() {
  memories_.assign(model_.shards.size(), law_.begin());
  for (core::ShardSample& sample : samples_) {
    sample = {};
    sample.weights = weights_;
    sample.best_effort_contract_per_s = core::largest_contract(model_, ES_IN, ES_TIER_best_effort);
    sample.lane_tiers = core::default_lane_tiers();
    sample.has_session = true;
  }
}

void ControlPlane::count(std::uint32_t shard, std::uint8_t lane, const PacketPath::Fate& fate) {
  if (!fate.arrived) return;
  ++samples_[shard].arrived[lane];
  if (fate.passes) ++samples_[shard].passed[lane];
}

bool ControlPlane::run(double now_ms, const std::vector<Server>& servers) {
  if (now_ms < next_ms_) return false;
  next_ms_ += 1000.0 / scenario_.control_hz;
  if (scenario_.restart.covers(now_ms / 1000)) {
    down_ = true;
    return false;
  }
  if (down_) begin();
  down_ = false;
  const auto from = std::chrono::steady_clock::now();
  tick(now_ms, servers);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - from;
  tick_ms_real_max_ = std::max(tick_ms_real_max_, took.count());
  return true;
}

void ControlPlane::tick(double now_ms, const std::vector<Server>& servers) {
  clock_ns_ = at_ns(now_ms);
  for (std::uint32_t shard = 0; shard < memories_.size(); ++shard) {
    sample(shard, now_ms, servers[shard]);
    core::ShardMemory& memory = memories_[shard];
    law_.step(memory, samples_[shard], clock_ns_);
    states_[shard] = memory.state;
    states_[shard].effects = memory.effects;
    for (std::uint32_t tier = 0; tier < core::kSheddableTiers; ++tier) {
      levels_[shard][tier] = memory.level[tier].per_s;
    }
  }
  path_.publish(states_, levels_, scenario_.control_hz, now_ms);
}

void ControlPlane::sample(std::uint32_t shard, double now_ms, const Server& server) {
  const Lost lost = scenario_.lost_for.covers(now_ms / 1000) ? scenario_.lost : Lost::nothing;
  core::ShardSample& sample = samples_[shard];
  sample.done = {};
  core::ShardSignals& signals = sample.signals;
  signals.frame_budget_ms = scenario_.game.tick_ms;
  signals.room_capacity = model_.shards[shard].room_capacity;
  signals.room_count = scenario_.rooms_per_shard;
  if (lost == Lost::report || lost == Lost::all) {
    signals.running_tick_age_ms = 0;
    return;
  }
  const double seen_ms = now_ms - scenario_.feedback_delay_ms;
  // The age is read from memory that is shared with the server: it is never old.
  const double age_ms = server.running_age_ms(now_ms);
  const double stepped_ms =
      static_cast<double>(clock_ns_ - at_ns(now_ms - age_ms)) / core::kNsPerMs;
  signals.running_tick_age_ms = age_ms > 0 ? stepped_ms : 0;
  const Tick* report = server.reported(seen_ms);
  if (signals.running_tick_age_ms > 0) signals.reported_at_ns = clock_ns_;
  if (report == nullptr) return;
  const std::uint64_t reported_ns = at_ns(report->end_ms);
  signals.tick_p99_ms = report->p99_ms;
  if (signals.running_tick_age_ms <= 0) signals.reported_at_ns = std::min(reported_ns, clock_ns_);
  if (reported_ns_[shard] == reported_ns || lost == Lost::costs) return;
  reported_ns_[shard] = reported_ns;
  sample.done = {
      reported_ns, static_cast<std::uint64_t>(report->busy_ms_ever * core::kNsPerMs), {}};
}

std::uint64_t ControlPlane::at_ns(double at_ms) const {
  return to_ns(at_ms < scenario_.clock_step_at_s * 1000 ? at_ms : at_ms + kAheadMs);
}

double ControlPlane::told_ms(std::uint32_t shard, double draw) const {
  const core::RetryAfter& retry = memories_[shard].retry;
  return 1000 * (retry.least_s + draw * retry.spread_s);
}

}  // namespace edgeshed::sim
