// The slow-consumer machine of one connection: how far its outbound buffer has grown. The stage is
// latched, it only rises; a connection that has caught up gets a new one by reconnecting. Must not
// know where the bytes are counted (report board, sock_diag), nor end a connection.
#pragma once

#include <cstdint>
#include <string>

#include "userspace/core/codes.h"

namespace edgeshed::core {

// stage: name, text. In the order in which they are reached.
#define EDGESHED_SLOW_CONSUMER_LIST(X)                         \
  X(ok, "keeps up")                                            \
  X(watch, "begins to fall behind; nothing is dropped")        \
  X(throttle, "low-priority frames (replication) are dropped") \
  X(evict, "is detached; the game server closes it, code 1008")

enum class SlowConsumer : uint8_t {
#define X(name, text) name,
  EDGESHED_SLOW_CONSUMER_LIST(X)
#undef X
      count,
};

const char* slow_consumer_name(SlowConsumer stage);  ///< as in JSON: "throttle"
const char* slow_consumer_text(SlowConsumer stage);  ///< one line for people

/// Buffered bytes from which a stage is reached, inclusive (>=). Provisional: a player's egress is
/// taken as 60 kB/s, which no measurement of a real game stands behind yet.
struct SlowConsumerConfig {
  /// About 1 s of a player's egress: more than any round trip holds unacknowledged.
  uint64_t watch_bytes = 64u << 10;

  /// About 4 s: what waits is no longer worth being played.
  uint64_t throttle_bytes = 256u << 10;

  /// About 17 s: the peer has gone, or will never catch up. It cannot be undone, so it is far off.
  uint64_t evict_bytes = 1u << 20;

  bool operator==(const SlowConsumerConfig&) const = default;
};

/// Empty when sound; otherwise one line that begins with the field.
std::string check_slow_consumer_config(const SlowConsumerConfig& config);

/// One observation. The highest stage that the bytes reach, and never below `stage`: from ok to
/// evict in one step if they jump that far. That evicting needs 3 s of dwell is the caller's.
SlowConsumer step(SlowConsumer stage, uint64_t buffered_bytes, const SlowConsumerConfig& config);

/// True when a frame of this connection is dropped (reason `backpressure_throttle`): under throttle
/// a low-priority one, under evict any.
constexpr bool drops_frame(SlowConsumer stage, bool low_priority) {
  return stage == SlowConsumer::evict || (stage == SlowConsumer::throttle && low_priority);
}

constexpr Code slow_consumer_code(SlowConsumer stage) {
  return code_after(Code::consumer_ok, static_cast<uint8_t>(stage));
}
static_assert(slow_consumer_code(SlowConsumer::evict) == Code::consumer_evict);

}  // namespace edgeshed::core
