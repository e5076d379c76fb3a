// How long ticks take and how late they begin: medians and p99 over the last kTicks ticks. Fixed
// memory, for the tick thread.
#ifndef EDGESHED_USERSPACE_DAEMON_TICK_FIGURES_H_
#define EDGESHED_USERSPACE_DAEMON_TICK_FIGURES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace edgeshed::daemon {

struct Percentiles {
  std::uint64_t p50_ns = 0;
  std::uint64_t p99_ns = 0;
};

/// Percentiles (nearest rank) of the last whole window of values.
class PercentileWindow {
 public:
  static constexpr std::size_t kTicks = 256;  // 4 s at 60 Hz

  /// Adds a value; when the window is full its percentiles replace the last ones.
  void add(std::uint64_t value_ns) {
    values_[count_++] = value_ns;
    if (count_ < kTicks) return;
    count_ = 0;
    const auto nth = [this](std::size_t rank) {
      const auto at = values_.begin() + static_cast<std::ptrdiff_t>(rank);
      std::nth_element(values_.begin(), at, values_.end());
      return *at;
    };
    last_ = {nth(kTicks / 2 - 1), nth(kTicks * 99 / 100)};
  }
  [[nodiscard]] const Percentiles& last() const { return last_; }

 private:
  std::array<std::uint64_t, kTicks> values_{};
  std::size_t count_ = 0;
  Percentiles last_;
};

}  // namespace edgeshed::daemon

#endif
