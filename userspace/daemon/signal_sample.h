// Signals that only system calls can read: sampled on the service thread (signal_sampler.h), used
// by ticks, which make none.
#ifndef EDGESHED_USERSPACE_DAEMON_SIGNAL_SAMPLE_H_
#define EDGESHED_USERSPACE_DAEMON_SIGNAL_SAMPLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "userspace/core/model.h"
#include "userspace/core/pressure.h"
#include "userspace/core/shard_law.h"
#include "userspace/daemon/triple_buffer.h"

namespace edgeshed::daemon {

/// Signals that a host has or has not. One of these that was there and is not any more is lost.
inline constexpr std::uint16_t kHostSignals =
    core::signal_bit(core::PressureSignal::receive_queue) |
    core::signal_bit(core::PressureSignal::softnet_drops) |
    core::signal_bit(core::PressureSignal::time_squeeze) |
    core::signal_bit(core::PressureSignal::psi_cpu);
/// What servers say on their boards of single connections: not there without a session.
inline constexpr std::uint16_t kRoomSignals = core::signal_bit(core::PressureSignal::ack_lag) |
                                              core::signal_bit(core::PressureSignal::rejects);
inline constexpr std::uint16_t kSampledSignals = kHostSignals | kRoomSignals;

/// Of one shard.
struct ShardOutside {
  double queued_bytes = 0;        // kernel memory that stands in its sockets
  double psi_cpu_some = 0;        // 0 to 1, of its server's cgroup or of the host
  std::uint32_t ack_lag_p95 = 0;  // of its worst room, in updates
  double rejected_share = 0;      // of its connections, 0 to 1
  // Bits as in core::ShardSignals.
  std::uint16_t missing = kSampledSignals;
  std::uint16_t lost = 0;
};

struct SignalSample {
  const core::Model* model = nullptr;  // whose shards
  std::uint64_t at_ns = 0;             // CLOCK_MONOTONIC; 0: never
  double softnet_drops = 0;            // of the host, per control tick
  double time_squeezes = 0;            // the same
  std::vector<ShardOutside> shards;    // index as in Model::shards
};

using SignalBox = TripleBuffer<SignalSample>;

/// A sample that is older is none: 7 to 10 of them are due in that time.
inline constexpr std::uint64_t kSampleAgeMaxNs = 500'000'000;

/// What a sample says of a shard, into `signals`, whose frame budget is set. `missing` and `lost`
/// are written anew. What a message costs is as `law` has learned it: unknown, what waits in a
/// socket is missing.
void take(const SignalSample& sample, const core::Model& model, std::size_t shard,
          const core::ShardMemory& law, std::uint64_t now_ns, core::ShardSignals& signals);

}  // namespace edgeshed::daemon

#endif
