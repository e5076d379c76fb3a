// The control plane of a simulated host: samples what the daemon would, calls the product's control
// law, publishes. What it can see is as bad as the scenario says.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/sim/packet_path.h"
#include "tools/sim/scenario.h"
#include "tools/sim/server.h"
#include "userspace/core/shard_law.h"

namespace edgeshed::sim {

class ControlPlane {
 public:
  /// `weights`: connections of each shard.
  ControlPlane(const Scenario& scenario, const core::Model& model, PacketPath& path,
               double weights);

  /// A packet that was decided.
  void count(std::uint32_t shard, std::uint8_t lane, const PacketPath::Fate& fate);

  /// Ticks that are due up to `now_ms`; true if there was one.
  bool run(double now_ms, const std::vector<Server>& servers);

  const core::ShardMemory& shard(std::uint32_t index) const { return memories_[index]; }
  /// What a refused client is told to wait, in ms; `draw` from 0 to 1 is its own.
  double told_ms(std::uint32_t shard, double draw) const;
  /// Longest tick so far, in real time: the one figure that is not simulated.
  double tick_ms_real_max() const { return tick_ms_real_max_; }

 private:
  void tick(double now_ms, const std::vector<Server>& servers);
  void sample(std::uint32_t shard, double now_ms, const Server& server);
  void begin();
  /// The host's clock, which the server and the control plane share.
  std::uint64_t at_ns(double at_ms) const;

  const Scenario& scenario_;
  const core::Model& model_;
  PacketPath& path_;
  double weights_;
  core::ShardLaw law_;
  std::vector<core::ShardMemory> memories_;
  std::vector<core::ShardSample> samples_;
  std::vector<std::uint64_t> reported_ns_;  // of the last report that was seen
  std::vector<core::ShardState> states_;
  std::vector<core::TierLevels> levels_;
  double next_ms_ = 0;
  bool down_ = false;
  std::uint64_t clock_ns_ = 1;
  double tick_ms_real_max_ = 0;
};

}  // namespace edgeshed::sim
