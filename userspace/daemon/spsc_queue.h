// A bounded queue from one thread to one other: the service thread's commands to the tick thread.
//
// Must not block or allocate on either side: the tick thread may run SCHED_FIFO, and a lock held by
// a preempted service thread would stop the ticks.
#ifndef EDGESHED_USERSPACE_DAEMON_SPSC_QUEUE_H_
#define EDGESHED_USERSPACE_DAEMON_SPSC_QUEUE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <type_traits>

namespace edgeshed::daemon {

/// kCapacity elements at most, a power of two. T is copied by value and owns nothing.
template <typename T, std::size_t kCapacity>
class SpscQueue {
  static_assert((kCapacity & (kCapacity - 1)) == 0 && kCapacity > 0);
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  static constexpr std::size_t capacity() { return kCapacity; }

  /// Producer only. False: the queue is full and `value` was not taken.
  [[nodiscard]] bool try_push(const T& value) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == kCapacity) return false;
    slots_[tail & (kCapacity - 1)] = value;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  /// Consumer only. False: the queue is empty and `value` was not touched.
  [[nodiscard]] bool try_pop(T& value) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    value = slots_[head & (kCapacity - 1)];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

 private:
  alignas(64) std::atomic<std::size_t> head_ = 0;
  alignas(64) std::atomic<std::size_t> tail_ = 0;
  alignas(64) std::array<T, kCapacity> slots_{};
};

}  // namespace edgeshed::daemon

#endif
