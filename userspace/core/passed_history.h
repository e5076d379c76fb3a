// What had passed at a moment of the last half second: a report says what a server had done when it
// was written, and is read a tick or more later. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "userspace/core/demand.h"

namespace edgeshed::core {

class PassedHistory {
 public:
  /// Times that are remembered: half a second at 60 Hz.
  static constexpr std::size_t kEntries = 32;

  /// `now_ns` is not 0. A time or a count that goes back begins anew.
  void note(uint64_t now_ns, const LaneCounts& passed) {
    if (count_ != 0 && goes_back(newest(), now_ns, passed)) count_ = 0;
    entry_[next_] = {now_ns, passed};
    next_ = (next_ + 1) % kEntries;
    if (count_ < kEntries) ++count_;
  }

  /// Between the two notes around `at_ns`, by time; before the oldest or after the newest, that
  /// one. There is at least one note.
  LaneCounts at(uint64_t at_ns) const {
    for (std::size_t back = 1; back < count_; ++back) {
      const Entry& later = entry_[index(back)];
      const Entry& earlier = entry_[index(back + 1)];
      if (at_ns >= later.at_ns) return later.passed;
      if (at_ns >= earlier.at_ns) return between(earlier, later, at_ns);
    }
    return entry_[index(count_)].passed;
  }

 private:
  struct Entry {
    uint64_t at_ns = 0;
    LaneCounts passed = {};
  };

  const Entry& newest() const { return entry_[index(1)]; }
  /// Of the note that is `back` from the end; 1 is the newest.
  std::size_t index(std::size_t back) const { return (next_ + kEntries - back) % kEntries; }

  static bool goes_back(const Entry& last, uint64_t now_ns, const LaneCounts& passed) {
    if (now_ns < last.at_ns) return true;
    for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
      if (passed[lane] < last.passed[lane]) return true;
    }
    return false;
  }

  static LaneCounts between(const Entry& earlier, const Entry& later, uint64_t at_ns) {
    const double share = static_cast<double>(at_ns - earlier.at_ns) /
                         static_cast<double>(later.at_ns - earlier.at_ns);
    LaneCounts passed = earlier.passed;
    for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
      const auto more = static_cast<double>(later.passed[lane] - earlier.passed[lane]);
      passed[lane] += static_cast<uint64_t>(more * share);
    }
    return passed;
  }

  std::array<Entry, kEntries> entry_ = {};
  std::size_t next_ = 0;
  std::size_t count_ = 0;
};

}  // namespace edgeshed::core
