// What the service thread tells the tick thread, and what it hears back besides snapshots: small
// values in bounded queues, checked and resolved to numbers before they are sent.
#ifndef EDGESHED_USERSPACE_DAEMON_COMMAND_H_
#define EDGESHED_USERSPACE_DAEMON_COMMAND_H_

#include <cstdint>
#include <variant>

#include "userspace/core/shard_controller.h"
#include "userspace/daemon/spsc_queue.h"

namespace edgeshed::daemon {

inline constexpr std::uint32_t kRoomsUnchanged = ~0u;

/// A shard's report. Times of CLOCK_MONOTONIC.
struct ShardReport {
  std::uint32_t shard = 0;  // index into Model::shards
  double tick_p99_ms = 0;
  double running_tick_age_ms = 0;
  double ring_occupancy = 0;  // 0 to 1
  std::uint32_t rooms = kRoomsUnchanged;
  std::uint64_t at_ns = 0;
};

/// A rung by hand. until_ns 0: ends it.
struct RungOverride {
  std::uint32_t shard = 0;
  std::uint8_t rung = 0;  // 0 to 5
  std::uint64_t until_ns = 0;
};

using Command = std::variant<ShardReport, RungOverride>;

/// 256 commands: at 60 Hz that is 15,000 a second, far beyond what a socket of scripts sends.
using CommandQueue = SpscQueue<Command, 256>;

/// A change of a shard's rung, for the log.
struct ShardChange {
  std::uint32_t shard = 0;
  core::RungChange change;
};

/// When it is full, changes are lost to the log and counted in the snapshot.
using ChangeQueue = SpscQueue<ShardChange, 256>;

}  // namespace edgeshed::daemon

#endif
