// The tick thread's io_uring: absolute timeouts, armed again for each tick, and a poll of the BPF
// event ring. The only thing that the tick thread ever waits in.
//
// Absolute timeouts, because periodic (multishot) ones drift: 38 ms in 4 s on kernel 6.18.
#ifndef EDGESHED_USERSPACE_DAEMON_TICK_RING_H_
#define EDGESHED_USERSPACE_DAEMON_TICK_RING_H_

#include <liburing.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

namespace edgeshed::daemon {

class TickRing {
 public:
  /// Opens the ring. Call it on the thread that will wait: the ring belongs to that thread.
  /// event_fd: descriptor to poll for reading, -1: none. On failure one line that names the
  /// setting that denied io_uring and what to do.
  [[nodiscard]] static std::variant<std::unique_ptr<TickRing>, std::string> open(int event_fd);

  ~TickRing();
  TickRing(const TickRing&) = delete;
  TickRing& operator=(const TickRing&) = delete;

  /// Sleeps until deadline_ns (CLOCK_MONOTONIC). A deadline in the past returns at once.
  /// Returns 0, or the errno of a ring that failed.
  [[nodiscard]] int wait_until(std::uint64_t deadline_ns);

  /// True if event_fd became readable since the last call; polls it anew.
  [[nodiscard]] bool take_events_ready();

 private:
  TickRing() = default;
  void arm_poll();

  io_uring ring_{};
  int event_fd_ = -1;
  bool events_ready_ = false;
};

/// Why io_uring_queue_init failed with `error` (an errno), in one line with the remedy.
/// disabled: contents of /proc/sys/kernel/io_uring_disabled, empty if it does not exist.
[[nodiscard]] std::string io_uring_denied_line(int error, const std::string& disabled);

/// io_uring_denied_line with the setting of this host.
[[nodiscard]] std::string io_uring_denied_here(int error);

}  // namespace edgeshed::daemon

#endif
