// The newest complete value from one thread to one other: the tick thread's snapshots for the
// service thread. Three copies, so that neither side ever waits, allocates or sees half a value.
#ifndef EDGESHED_USERSPACE_DAEMON_TRIPLE_BUFFER_H_
#define EDGESHED_USERSPACE_DAEMON_TRIPLE_BUFFER_H_

#include <array>
#include <atomic>
#include <cstdint>

namespace edgeshed::daemon {

/// One writer, one reader. A value is immutable from publish() until the reader has let go of it.
template <typename T>
class TripleBuffer {
 public:
  /// Every copy starts as `initial`, which gives each its storage before the first tick.
  explicit TripleBuffer(const T& initial) : copies_{initial, initial, initial} {}

  /// Writer only: the copy to fill. It holds an older value, not the last one published.
  [[nodiscard]] T& spare() { return copies_[spare_]; }

  /// Writer only: hands the filled copy over and takes another one as the spare.
  void publish() { spare_ = middle_.exchange(spare_ | kFresh) & kIndex; }

  /// Reader only: the newest published value; valid until the next call.
  [[nodiscard]] const T& latest() {
    if ((middle_.load(std::memory_order_relaxed) & kFresh) != 0) {
      front_ = middle_.exchange(front_) & kIndex;
    }
    return copies_[front_];
  }

 private:
  static constexpr std::uint32_t kIndex = 3;
  static constexpr std::uint32_t kFresh = 4;

  std::array<T, 3> copies_;
  std::uint32_t spare_ = 0;                // writer's
  std::atomic<std::uint32_t> middle_ = 1;  // between the two
  std::uint32_t front_ = 2;                // reader's
};

}  // namespace edgeshed::daemon

#endif
