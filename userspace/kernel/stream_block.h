// Closes and opens a player's state streams from user space, beside the packet path, which claims
// and moves the same slots by CAS (bpf/govern.h). Must not know connections.
#pragma once

#include <cstdint>

#include "maps/connection.h"

namespace edgeshed::kernel {

/// What a change of a stream came to.
enum class StreamChange : std::uint8_t {
  done,     ///< it is as wanted, now or before
  no_slot,  ///< to be closed, and all slots hold streams that play
};

struct StreamOrder {
  std::uint16_t stream = 0;
  bool closed = false;
  std::uint32_t jiffies = 0;  ///< the kernel's clock now, low 32 bits
  std::uint32_t hz = 1;       ///< jiffies per second
};

/// Closes or opens one stream of a block, which is remembered from now on. A stream without a slot
/// takes one to be closed, as its own next sample would: of the first `usable` a free one, or one
/// whose stream is forgotten.
StreamChange set_stream(es_stream_block& block, const StreamOrder& order, std::uint32_t usable);

}  // namespace edgeshed::kernel
