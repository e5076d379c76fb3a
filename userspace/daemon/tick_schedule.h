// When ticks are due: start + k * period, for ever, without drift and without bursts.
//
// Pure: the caller brings the time.
#ifndef EDGESHED_USERSPACE_DAEMON_TICK_SCHEDULE_H_
#define EDGESHED_USERSPACE_DAEMON_TICK_SCHEDULE_H_

#include <cstdint>

#include "userspace/core/time_units.h"

namespace edgeshed::daemon {

class TickSchedule {
 public:
  /// tick_hz: 1 to 1000. start_ns: CLOCK_MONOTONIC; the first tick is due then.
  TickSchedule(std::uint32_t tick_hz, std::uint64_t start_ns)
      : tick_hz_(tick_hz), start_ns_(start_ns) {}

  /// Time of the next tick, CLOCK_MONOTONIC nanoseconds. Computed from the tick's number, because
  /// a rounded period would drift (60 Hz: 40 ns a second).
  [[nodiscard]] std::uint64_t due_ns() const { return due_at(next_); }

  /// Moves on after a tick that ended at now_ns. Ticks whose time has passed by then are skipped
  /// and counted: to run them late and back to back would only shed on stale numbers.
  /// Returns how many were skipped.
  std::uint64_t advance(std::uint64_t now_ns) {
    ++next_;
    if (due_at(next_) > now_ns) return 0;
    const std::uint64_t first_missed = next_;
    const std::uint64_t elapsed_ns = now_ns - start_ns_;
    next_ = elapsed_ns / core::kNsPerS * tick_hz_ +
            elapsed_ns % core::kNsPerS * tick_hz_ / core::kNsPerS;
    while (due_at(next_) <= now_ns) ++next_;  // the divisions above round down
    skipped_ += next_ - first_missed;
    return next_ - first_missed;
  }

  [[nodiscard]] std::uint64_t skipped() const { return skipped_; }

 private:
  // Whole seconds by themselves, so that no product overflows.
  [[nodiscard]] std::uint64_t due_at(std::uint64_t number) const {
    return start_ns_ + number / tick_hz_ * core::kNsPerS +
           number % tick_hz_ * core::kNsPerS / tick_hz_;
  }

  std::uint64_t tick_hz_;
  std::uint64_t start_ns_;
  std::uint64_t next_ = 0;
  std::uint64_t skipped_ = 0;
};

}  // namespace edgeshed::daemon

#endif
