// What a tick knows about a shard: the input of the ladder. Plain numbers, no history.
// Must not say where a number comes from (session, passive counters, `edgeshed report`).
#pragma once

#include <cstdint>

namespace edgeshed::core {

/// Signals of one shard at one tick. 0 means "no pressure from this signal" and is what a signal
/// that is not measured stays at: it leaves the maximum, and its bit of `missing` says so.
struct ShardSignals {
  /// Bit per PressureSignal (pressure.h). `missing`: not measured now. `lost`, a part of it: was
  /// measured before, and should be still, so that less is known than was. A host without pressure
  /// stall information misses a signal and has lost none.
  uint16_t missing = 0;
  uint16_t lost = 0;

  // Reported by the game server; not used when the report is stale (reported_at_ns).
  double tick_p99_ms = 0;          ///< p99 of the tick time over the last second
  double running_tick_age_ms = 0;  ///< how long the tick that is running now has been running
  double ring_occupancy = 0;       ///< fullest queue of the server, 0 to 1 (1: full)
  uint64_t reported_at_ns = 0;     ///< time of the report, on the clock of `now_ns`; 0: never

  double ack_lag_p95 = 0;  ///< of its worst room, in server ticks, see pressing_ack_lag()
  /// Of its connections: those whose commands the game itself rejects. What the shedder rejects is
  /// none of it.
  double rejected_share = 0;

  // Known without the game server.
  double receive_queue_ms = 0;  ///< time to work off what waits in its socket beyond a tick's worth
  double softnet_drops = 0;     ///< of the host, since the last control tick
  double time_squeezes = 0;     ///< the same
  double psi_cpu_some = 0;      ///< of the host or its cgroup, 0 to 1
  double offered_cost_ratio = 0;  ///< rho: cost of what arrives / budget, before ladder drops
  double frame_budget_ms = 0;     ///< of the shard's configuration; below 1 counts as 1
  uint32_t room_count = 0;        ///< rooms that live on the shard
  uint32_t room_capacity = 0;     ///< rooms that it may hold; 0 means that it is full
};

}  // namespace edgeshed::core
