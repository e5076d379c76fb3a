#include "userspace/daemon/tick_thread.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "userspace/core/error_type.h"
#include "userspace/core/time_units.h"
#include "userspace/daemon/tick_ring.h"
#include "userspace/daemon/tick_schedule.h"

namespace edgeshed::daemon {
namespace {

// Above ordinary threads, far below the kernel's own (interrupt threads have 50).
constexpr int kFifoPriority = 10;

void ask_for_fifo() {
  sched_param param{};
  param.sched_priority = kFifoPriority;
  const int error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
  if (error != 0) {
    spdlog::warn(
        "SCHED_FIFO refused ({}): ticks run at normal priority; give CAP_SYS_NICE or "
        "LimitRTPRIO={}, or leave --fifo out",
        std::strerror(error), kFifoPriority);
  }
}

}  // namespace

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * core::kNsPerS +
         static_cast<std::uint64_t>(now.tv_nsec);
}

TickThread::TickThread(Ticker& ticker, const TickThreadOptions& options) : ticker_(ticker) {
  thread_ = std::thread([this, options] { run(options); });
  started_.wait(false);
  if (start_error_.empty()) return;
  thread_.join();
  throw Error(start_error_, kExitEnvironment);
}

TickThread::~TickThread() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

std::string TickThread::failure() const {
  const int error = ring_error_.load(std::memory_order_relaxed);
  if (error == 0) return {};
  return fmt::format("the tick thread's io_uring failed: {}; nothing is published any more",
                     std::strerror(error));
}

void TickThread::announce_start() {
  started_ = true;
  started_.notify_one();
}

void TickThread::run(TickThreadOptions options) {
  pthread_setname_np(pthread_self(), "edgeshedd-tick");
  auto opened = TickRing::open(options.event_fd);
  if (auto* error = std::get_if<std::string>(&opened)) {
    start_error_ = std::move(*error);
  } else {
    if (options.fifo) ask_for_fifo();
    loop(*std::get<std::unique_ptr<TickRing>>(opened));
  }
  // Without a first tick the constructor still waits, for the reason.
  if (!started_ && start_error_.empty()) start_error_ = failure();
  if (!started_) announce_start();
}

void TickThread::loop(TickRing& ring) {
  LoopFigures figures;
  PercentileWindow late;
  PercentileWindow duration;
  std::uint64_t skipped_before = 0;  // under a former rate
  std::uint32_t tick_hz = ticker_.tick_hz();
  TickSchedule schedule(tick_hz, monotonic_ns());
  while (!stop_.load(std::memory_order_relaxed)) {
    const std::uint64_t due_ns = schedule.due_ns();
    if (const int error = ring.wait_until(due_ns); error != 0) {
      ring_error_ = error;
      return;
    }
    const std::uint64_t now_ns = monotonic_ns();
    const std::uint64_t late_ns = now_ns - std::min(now_ns, due_ns);
    figures.late_max_ns = std::max(figures.late_max_ns, late_ns);
    late.add(late_ns);
    figures.late = late.last();
    ticker_.tick(now_ns, ring.take_events_ready(), figures);
    const std::uint64_t end_ns = monotonic_ns();
    figures.duration_max_ns = std::max(figures.duration_max_ns, end_ns - now_ns);
    duration.add(end_ns - now_ns);
    figures.duration = duration.last();
    schedule.advance(end_ns);
    figures.ticks_skipped = skipped_before + schedule.skipped();
    if (ticker_.tick_hz() != tick_hz) {  // a reload
      tick_hz = ticker_.tick_hz();
      skipped_before = figures.ticks_skipped;
      schedule = TickSchedule(tick_hz, end_ns + core::kNsPerS / tick_hz);
    }
    if (!started_.load(std::memory_order_relaxed)) announce_start();
  }
}

}  // namespace edgeshed::daemon
