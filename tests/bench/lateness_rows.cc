// Lateness of ticks: see lateness_rows.h. Both wait for the same kind of absolute deadlines, by
// turns of one second, so that what disturbs one disturbs the other.
#include "tests/bench/lateness_rows.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

#include "userspace/daemon/tick_ring.h"
#include "userspace/daemon/tick_thread.h"
#include "userspace/kernel/fd.h"

namespace edgeshed::bench {
namespace {

constexpr std::uint32_t kTickHz = 60;
constexpr std::uint64_t kPeriodNs = 1'000'000'000 / kTickHz;

class TimerfdWait {
 public:
  TimerfdWait() : fd_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
    if (!fd_) throw std::runtime_error("cannot make a timerfd");
  }
  void until(std::uint64_t deadline_ns) {
    itimerspec spec{};
    spec.it_value.tv_sec = static_cast<time_t>(deadline_ns / 1'000'000'000);
    spec.it_value.tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000);
    std::uint64_t expirations = 0;
    if (timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr) != 0 ||
        read(fd_.get(), &expirations, sizeof(expirations)) != sizeof(expirations)) {
      throw std::runtime_error("the timerfd failed");
    }
  }

 private:
  kernel::Fd fd_;
};

class RingWait {
 public:
  RingWait() : ring_(open()) {}
  void until(std::uint64_t deadline_ns) {
    if (ring_->wait_until(deadline_ns) != 0) throw std::runtime_error("the ring failed");
  }

 private:
  static std::unique_ptr<daemon::TickRing> open() {
    auto opened = daemon::TickRing::open(-1);
    if (auto* error = std::get_if<std::string>(&opened)) throw std::runtime_error(*error);
    return std::move(std::get<std::unique_ptr<daemon::TickRing>>(opened));
  }
  std::unique_ptr<daemon::TickRing> ring_;
};

/// One second of ticks; how late each began.
template <typename Wait>
void second_of_ticks(Wait& wait, std::vector<double>& late_ns) {
  std::uint64_t due_ns = daemon::monotonic_ns() + kPeriodNs;
  for (std::uint32_t i = 0; i < kTickHz; ++i, due_ns += kPeriodNs) {
    wait.until(due_ns);
    late_ns.push_back(static_cast<double>(daemon::monotonic_ns() - due_ns));
  }
}

double at_share(std::vector<double> values, double share) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

std::vector<Row> lateness_rows(const RunOptions& options) {
  RingWait ring;
  TimerfdWait timerfd;
  std::vector<double> ring_ns, timerfd_ns;
  for (int second = 0; second < (options.quick ? 3 : 10); ++second) {
    second_of_ticks(ring, ring_ns);
    second_of_ticks(timerfd, timerfd_ns);
  }
  const Goal no_later{Goal::Side::kAtMost, 1.25};
  return {compare("tick lateness at 60 Hz, io_uring, median", "timerfd", at_share(ring_ns, 0.5),
                  at_share(timerfd_ns, 0.5), no_later),
          compare("tick lateness at 60 Hz, io_uring, p99", "timerfd", at_share(ring_ns, 0.99),
                  at_share(timerfd_ns, 0.99), std::nullopt)};
}

}  // namespace edgeshed::bench
