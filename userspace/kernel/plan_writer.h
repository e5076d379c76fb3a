// Publishes a plan whole: fills the spare copy, then flips one word (maps/plan.h). Pure memory: no
// allocation, no syscall, so the tick thread may call it. Must not decide what a plan says.
#pragma once

#include <cstdint>
#include <span>

#include "maps/control.h"
#include "maps/plan.h"
#include "userspace/kernel/map_set.h"

namespace edgeshed::kernel {

/// What one tick publishes. Row i is endpoint, room or class i; the writer sets their `generation`.
/// Rows beyond the spans are published as absent (generation 0).
struct Plan {
  std::span<const es_plan_endpoint> endpoints;
  std::span<const es_plan_room> rooms;
  std::span<const es_plan_class> classes;
  std::uint64_t valid_until_jiffies = 0;  ///< the dead-man switch
  std::uint32_t stream_hint_q8 = 0;       ///< es_control
  std::uint32_t rejects_per_cpu = 0;
  /// Rows whose own `generation` is 0 are holes, and published as absent too.
  bool holes = false;
};

/// The memory that plans go to: both copies of every row, copy 0 first.
struct PlanMemory {
  es_control* control = nullptr;
  std::span<es_plan_endpoint> endpoints;
  std::span<es_plan_room> rooms;
  std::span<es_plan_class> classes;
};

/// The generation after `generation`: never 0, and always of the other copy (so it skips two
/// numbers when it wraps).
constexpr std::uint32_t next_generation(std::uint32_t generation) {
  const std::uint32_t next = generation + 1;
  return next == 0 ? 2 : next;
}

class PlanWriter {
 public:
  /// Goes on from the generation that the control page names. `maps` must be read-write and
  /// outlive the writer.
  explicit PlanWriter(const MapSet& maps);
  explicit PlanWriter(const PlanMemory& memory);

  /// Publishes and writes the heartbeat. `now_ns`: CLOCK_MONOTONIC. Spans longer than the maps are
  /// a bug (assert). Returns the new generation.
  std::uint32_t publish(const Plan& plan, std::uint64_t now_ns);

  /// Prolongs the live plan without a new one, and writes the heartbeat.
  void extend(std::uint64_t valid_until_jiffies, std::uint64_t now_ns);

  /// Who beats, and how often. Written at once; call it when the daemon starts.
  void identify(std::uint32_t daemon_pid, std::uint32_t tick_rate_hz);

  std::uint32_t generation() const { return generation_; }

 private:
  void beat(std::uint64_t now_ns);

  PlanMemory memory_;
  std::uint32_t generation_;
};

}  // namespace edgeshed::kernel
