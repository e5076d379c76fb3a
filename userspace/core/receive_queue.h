// What waits in a server's socket, from the kernel's bytes to the time that working it off takes
// beyond a tick's worth. Pure.
#pragma once

#include <array>
#include <cstddef>

#include "userspace/core/demand.h"

namespace edgeshed::core {

/// Kernel memory of one small message in a UDP socket. The kernel reports the truesize of what
/// waits (struct sk_buff, the data's buffer and its overhead), not bytes of payload. Measured
/// on 6.18, x86-64: payloads up to 150 B take 832 B over loopback and veth, up to 1,080 B behind
/// native XDP on veth; 200 to 600 B take 1,280, 700 B and more 2,304. A driver that gives each
/// packet a page takes about 4,400: there a queue reads as five times as long as it is, which
/// StandingQueue has to bear.
inline constexpr double kBytesPerMessage = 832;

/// The part of a queue that does not go away: the smallest of the last few samples. A server that
/// reads its socket once a tick leaves up to a tick's worth in it, and a sample may find any of
/// that; a queue that stands is there in each. Six that are 50 to 65 ms apart, none in step with
/// the one before, find a server of 15 to 60 Hz near empty.
class StandingQueue {
 public:
  /// 0 until kSamples have been taken.
  double step(double bytes);

 private:
  static constexpr std::size_t kSamples = 6;
  std::array<double, kSamples> last_ = {};
  std::size_t next_ = 0;
};

/// Mean cost of a message of what arrives, in us; of a command while nothing does.
double mean_message_us(const RoomDemand& rates, const CostState& state, const CostConfig& config);

/// Time to work off `bytes` of a socket, at `message_us` a message, beyond what a tick may find and
/// work off: `frame_budget_ms` of it. At least 0.
double receive_queue_ms(double bytes, double message_us, double frame_budget_ms);

}  // namespace edgeshed::core
