// Readings of clocks are whole nanoseconds, costs are microseconds: what they are divided by, and
// the time between two readings.
#pragma once

#include <cstdint>

namespace edgeshed::core {

inline constexpr uint64_t kNsPerS = 1'000'000'000;
inline constexpr uint64_t kNsPerMs = 1'000'000;
inline constexpr double kSPerUs = 1e-6;

/// Seconds from one reading to a later one of the same clock; 0 where it is not later.
inline double seconds_between(uint64_t earlier_ns, uint64_t later_ns) {
  return later_ns > earlier_ns ? static_cast<double>(later_ns - earlier_ns) / kNsPerS : 0;
}

}  // namespace edgeshed::core
