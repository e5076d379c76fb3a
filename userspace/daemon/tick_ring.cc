#include "userspace/daemon/tick_ring.h"

#include <fmt/format.h>
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "userspace/core/time_units.h"

namespace edgeshed::daemon {
namespace {

constexpr unsigned kRingEntries = 8;
constexpr std::uint64_t kTimeoutTag = 1;
constexpr std::uint64_t kPollTag = 2;
constexpr char kDisabledSetting[] = "/proc/sys/kernel/io_uring_disabled";

int init_ring(io_uring& ring, unsigned flags) {
  io_uring_params params{};
  params.flags = flags;
  return -io_uring_queue_init_params(kRingEntries, &ring, &params);
}

}  // namespace

std::string io_uring_denied_line(int error, const std::string& disabled) {
  const std::string what = fmt::format("io_uring is not available ({})", std::strerror(error));
  if (error == ENOSYS) {
    return what +
           ": the kernel has none, or seccomp hides it; run on kernel 6.1 or later, and in a "
           "container allow io_uring_setup, io_uring_enter and io_uring_register";
  }
  if (error == EPERM && !disabled.empty() && disabled[0] != '0') {
    return what + fmt::format(
                      ": sysctl kernel.io_uring_disabled is {}; set it to 0 (sysctl -w "
                      "kernel.io_uring_disabled=0){}",
                      disabled.substr(0, 1),
                      disabled[0] == '1' ? ", or give the daemon CAP_SYS_ADMIN" : "");
  }
  if (error == EPERM || error == EACCES) {
    return what +
           ": seccomp or a security module denies it; allow io_uring_setup, io_uring_enter "
           "and io_uring_register to edgeshedd";
  }
  if (error == ENOMEM) {
    return what + ": locked memory is used up; raise it (LimitMEMLOCK= in the unit, ulimit -l)";
  }
  return what + "; see io_uring_setup(2)";
}

std::string io_uring_denied_here(int error) {
  std::string disabled;
  std::ifstream(kDisabledSetting) >> disabled;
  return io_uring_denied_line(error, disabled);
}

std::variant<std::unique_ptr<TickRing>, std::string> TickRing::open(int event_fd) {
  std::unique_ptr<TickRing> ring(new TickRing);
  ring->event_fd_ = event_fd;
  int error = init_ring(ring->ring_, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
  if (error == EINVAL) error = init_ring(ring->ring_, 0);  // kernels before 6.1
  if (error != 0) {
    ring->ring_.ring_fd = -1;
    return io_uring_denied_here(error);
  }
  ring->arm_poll();
  return ring;
}

TickRing::~TickRing() {
  if (ring_.ring_fd >= 0) io_uring_queue_exit(&ring_);
}

void TickRing::arm_poll() {
  if (event_fd_ < 0) return;
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  io_uring_prep_poll_add(sqe, event_fd_, POLLIN);
  io_uring_sqe_set_data64(sqe, kPollTag);
}

int TickRing::wait_until(std::uint64_t deadline_ns) {
  __kernel_timespec deadline{};
  deadline.tv_sec = static_cast<std::int64_t>(deadline_ns / core::kNsPerS);
  deadline.tv_nsec = static_cast<long long>(deadline_ns % core::kNsPerS);
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  io_uring_prep_timeout(sqe, &deadline, 0, IORING_TIMEOUT_ABS);
  io_uring_sqe_set_data64(sqe, kTimeoutTag);
  int error = 0;
  for (bool due = false; !due;) {
    const int submitted = io_uring_submit_and_wait(&ring_, 1);
    if (submitted < 0 && submitted != -EINTR) return -submitted;
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
      if (cqe->user_data == kTimeoutTag) {
        due = true;
        if (cqe->res != -ETIME) error = cqe->res < 0 ? -cqe->res : EIO;
      }
      // A poll that failed is not armed again: ticks go on without events.
      if (cqe->user_data == kPollTag && cqe->res > 0) events_ready_ = true;
      io_uring_cqe_seen(&ring_, cqe);
    }
  }
  return error;
}

bool TickRing::take_events_ready() {
  if (!events_ready_) return false;
  events_ready_ = false;
  arm_poll();  // submitted with the next timeout; one-shot, so events wake a tick once at the most
  return true;
}

}  // namespace edgeshed::daemon
