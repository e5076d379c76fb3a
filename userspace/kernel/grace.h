// A grace period: when it returns, every packet that was being decided when it was called is done.
// Must not know what it is waited for.
#pragma once

#include <functional>

namespace edgeshed::kernel {

/// Waits for all readers that had begun. Blocks for some milliseconds: service thread only.
using Grace = std::function<void()>;

/// membarrier(MEMBARRIER_CMD_GLOBAL), which is synchronize_rcu(); packets are decided inside RCU
/// read sections. A kernel with nohz_full CPUs refuses that command: there an update of a map of
/// maps, which waits for the same, takes its place.
/// Throws Error: neither works. The Grace itself may throw Error too.
Grace make_grace();

}  // namespace edgeshed::kernel
