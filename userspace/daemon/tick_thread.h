// The tick thread: sleeps in its ring until a tick is due, runs it, sleeps again. Late is skipped
// and counted, never caught up in a burst.
//
// Must not decide anything: that is the Ticker's.
#ifndef EDGESHED_USERSPACE_DAEMON_TICK_THREAD_H_
#define EDGESHED_USERSPACE_DAEMON_TICK_THREAD_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "userspace/daemon/ticker.h"

namespace edgeshed::daemon {

class TickRing;

struct TickThreadOptions {
  int event_fd = -1;  // polled for reading; -1: none
  bool fifo = false;  // ask for SCHED_FIFO
};

class TickThread {
 public:
  /// Starts the thread and waits until its first plan is out.
  /// Throws Error: io_uring is denied (one line that names the setting).
  TickThread(Ticker& ticker, const TickThreadOptions& options);

  /// Stops within one tick. What is published stays, and expires by itself.
  ~TickThread();

  TickThread(const TickThread&) = delete;
  TickThread& operator=(const TickThread&) = delete;

  /// Empty while the thread ticks; otherwise, for good, the line that says why it ended.
  [[nodiscard]] std::string failure() const;

 private:
  void run(TickThreadOptions options);
  void loop(TickRing& ring);
  void announce_start();

  Ticker& ticker_;
  std::string start_error_;  // written before started_, read after it
  std::atomic<bool> started_ = false;
  std::atomic<bool> stop_ = false;
  std::atomic<int> ring_error_ = 0;  // errno
  std::thread thread_;
};

/// CLOCK_MONOTONIC, nanoseconds.
[[nodiscard]] std::uint64_t monotonic_ns();

}  // namespace edgeshed::daemon

#endif
