// The control law of one shard, whole: from what was sampled in a tick to what is in force until
// the next one. The daemon and the simulator both call it, once per shard and tick, and nothing
// else decides. Pure: no clock, no allocation in step().
//
//   demand   what arrives, and what it costs         demand.h
//   rung     what may be shed, in a fixed order      shard_controller.h
//   degree   how much of it                          degree.h
//   effects  on which lanes                          degree_effects.h
//   levels   by whom                                 fair_share.h
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "userspace/core/degree_effects.h"
#include "userspace/core/law_config.h"
#include "userspace/core/passed_history.h"
#include "userspace/core/retry_after.h"
#include "userspace/core/shard_controller.h"

namespace edgeshed::core {

/// What a tick sampled of one shard.
struct ShardSample {
  /// All but offered_cost_ratio, which the law computes; it adds to `missing` and `lost` what a
  /// silent server no longer says.
  ShardSignals signals;

  /// Messages towards the shard, ever: after contract drops and before what a plan sheds; and those
  /// of them that passed.
  LaneCounts arrived = {};
  LaneCounts passed = {};

  /// A report that came since the last tick: when it was written, and the time ever worked up to
  /// then; `passed` is the law's to find. reported_ns 0: none came.
  ShardWork done;

  double weights = 0;                     ///< sum over its connections
  double best_effort_contract_per_s = 0;  ///< largest_contract() of what comes in
  uint16_t lane_tiers = 0;                ///< what a lane means to it, as es_lane_tier() reads it
  bool has_session =
      false;  ///< a server that should report, so that its silence is a missing signal
};

/// All that the law remembers of one shard, and what it decided. Value type, no pointers.
struct ShardMemory {
  ShardSignals signals;  ///< of the last step, offered_cost_ratio included
  RoomDemand rates;
  std::array<double, kThinLanes> paused_at = {};  ///< messages/s of each before it was paused
  PassedHistory passed;
  CostState cost;
  TickWatch tick_watch;
  double passed_us = 0;       ///< of all that ever passed, at the costs of lanes alone
  double passed_work_ms = 0;  ///< each message at what it was taken to cost when it passed
  ShardDemand demand;
  ShardState state;  ///< rung and ramp; its effects bound what the degree may shed
  DegreeState degree;
  std::array<FairLevel, kSheddableTiers> level;  ///< of what comes in; index tier - 1

  double kept_best_effort = 1;  ///< by what is in force
  uint64_t cut_ns = 0;          ///< when it fell last by more than large_cut; 0: never

  LadderEffects effects;  ///< in force
  RetryAfter retry;       ///< what a refused client is told
};

class ShardLaw {
 public:
  /// Throws std::invalid_argument that names the constant which is out of range.
  explicit ShardLaw(const LawConfig& config);

  /// What a shard begins with.
  ShardMemory begin() const;

  /// One tick. `now_ns` is not 0 and never decreases (a smaller value counts as no time passed).
  /// Returns the change of the rung, if there was one.
  std::optional<RungChange> step(ShardMemory& memory, const ShardSample& sample,
                                 uint64_t now_ns) const;

  const LawConfig& config() const { return config_; }

 private:
  void watch_tick(ShardMemory& memory, const ShardSample& sample, uint64_t now_ns) const;
  void judge_demand(ShardMemory& memory, const ShardSample& sample, uint64_t now_ns) const;
  void keep_degree(ShardMemory& memory, const ShardSample& sample, double max_gap_ms,
                   uint64_t now_ns) const;
  void apply_degree(ShardMemory& memory, const ShardSample& sample, double max_gap_ms) const;
  void judge_scarcity(ShardMemory& memory, double kept) const;
  void share(ShardMemory& memory, const ShardSample& sample, double kept, uint64_t now_ns) const;
  void spread_gaps(ShardMemory& memory, const ShardSample& sample, uint64_t now_ns) const;

  LawConfig config_;
  ShardController controller_;
};

}  // namespace edgeshed::core
