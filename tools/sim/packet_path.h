// The product's packet path, on simulated packets: plan rows as the daemon publishes them, a record
// and a state per player, and bpf/decide.h.
#pragma once

#include <cstdint>
#include <vector>

#include "maps/reasons.h"
#include "tools/sim/native_path.h"
#include "tools/sim/scenario.h"
#include "userspace/core/model.h"
#include "userspace/core/plan_rows.h"
#include "userspace/core/shard_law.h"

namespace edgeshed::sim {

/// Jiffies per second of the simulated kernel: Debian's.
inline constexpr std::uint32_t kJiffiesPerS = 250;

/// The model of a scenario: its shards and rooms, and the contract of a player, which is what it
/// sends. Costs are given, with the scenario's error, or left to be learned.
core::Model model_of(const Scenario& scenario);

class PacketPath {
 public:
  /// `connections` players, spread over the rooms by `room_of(player)`.
  PacketPath(const core::Model& model, std::uint32_t connections, std::uint64_t seed);
  PacketPath(const PacketPath&) = delete;
  PacketPath& operator=(const PacketPath&) = delete;

  struct Fate {
    bool passes = true;
    bool arrived = true;  ///< within its contract: demand
    std::uint8_t reason = 0;
    std::uint8_t tier = 0;
    bool demoted = false;  ///< critical beyond its contract
  };
  Fate decide(std::uint32_t player, std::uint8_t lane, double now_ms);

  /// Publishes what the shards decided, as a tick of the daemon does.
  void publish(std::span<const core::ShardState> states, std::span<const core::TierLevels> levels,
               std::uint32_t tick_hz, double now_ms);

  std::uint32_t room_of(std::uint32_t player) const { return player % rooms_; }

 private:
  static std::uint64_t jiffies(double now_ms) {
    return 1'000'000 + static_cast<std::uint64_t>(now_ms * kJiffiesPerS / 1000);
  }

  const core::Model* model_;
  std::uint32_t rooms_;
  es_geometry geometry_;
  core::PlanRows rows_;
  es_control control_{};
  std::vector<es_plan_endpoint> endpoints_;
  std::vector<es_plan_room> plan_rooms_;
  std::vector<es_plan_class> classes_;
  std::vector<es_connection> connections_;
  std::vector<es_flow_state> states_in_;
  std::vector<es_endpoint_counters> count_endpoints_;
  std::vector<es_room_counters> count_rooms_;
  std::uint64_t ticks_ = 0;
};

}  // namespace edgeshed::sim
