// BPF_PROG_TEST_RUN and its clock: see test_run.h.
#include "tests/bench/test_run.h"

#include <bpf/bpf.h>
#include <sched.h>

#include <cerrno>
#include <ctime>
#include <system_error>

namespace edgeshed::bench {

void pin_to_cpu(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot pin a thread to a CPU");
  }
}

std::uint32_t run_program(int program_fd, const test::Bytes& frame, std::uint32_t repeat) {
  LIBBPF_OPTS(bpf_test_run_opts, options);
  options.data_in = frame.data();
  options.data_size_in = static_cast<__u32>(frame.size());
  options.repeat = static_cast<int>(repeat);
  const int err = bpf_prog_test_run_opts(program_fd, &options);
  if (err != 0) {
    throw std::system_error(-err, std::generic_category(), "cannot run a program (needs root)");
  }
  return options.retval;
}

std::uint64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

double ns_per_packet(int program_fd, const test::Bytes& frame, std::uint32_t packets) {
  const std::uint64_t start_ns = thread_cpu_ns();
  run_program(program_fd, frame, packets);
  const std::uint64_t middle_ns = thread_cpu_ns();
  run_program(program_fd, frame, 3 * packets);
  const std::uint64_t end_ns = thread_cpu_ns();
  const auto once = static_cast<double>(middle_ns - start_ns);
  const auto thrice = static_cast<double>(end_ns - middle_ns);
  return (thrice - once) / (2.0 * packets);
}

}  // namespace edgeshed::bench
