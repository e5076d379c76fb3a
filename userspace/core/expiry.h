// How long a plan holds without the next one: the dead-man switch of the control law (B9). What the
// packet path does with a plan that has expired is bpf/decide.h's.
#pragma once

#include <algorithm>
#include <cstdint>

namespace edgeshed::core {

/// A plan is valid for at least this long: a daemon that is paused for a moment (a page fault, a
/// debugger's touch, 9 ticks at 60 Hz) sheds on.
inline constexpr uint64_t kPlanValidMsMin = 150;
/// And for at least this many ticks.
inline constexpr uint64_t kPlanValidTicks = 5;

/// max(150 ms, 5 intervals) in jiffies, rounded up.
inline uint64_t plan_valid_jiffies(uint32_t tick_hz, uint32_t hz) {
  const uint64_t ticks_ms = (kPlanValidTicks * 1000 + tick_hz - 1) / tick_hz;
  return (std::max(kPlanValidMsMin, ticks_ms) * hz + 999) / 1000;
}

}  // namespace edgeshed::core
