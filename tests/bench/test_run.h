// Running an XDP program on one packet many times, and what that costs. Must not know what the
// program does.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/support/bytes.h"

namespace edgeshed::bench {

/// Pins the calling thread to a CPU. Throws std::system_error.
void pin_to_cpu(unsigned cpu);

/// Runs `program_fd` on a fresh copy of `frame` `repeat` times within one syscall, the frame
/// keeping what a run changed in it, and returns the last verdict (enum xdp_action). Throws
/// std::system_error.
std::uint32_t run_program(int program_fd, const test::Bytes& frame, std::uint32_t repeat);

/// CPU time of the calling thread per packet: a run of `packets` and one of twice as many more; the
/// difference is free of what a syscall costs once, and the first warms the caches. Preemption is
/// not counted, as it would be on a clock. ns.
double ns_per_packet(int program_fd, const test::Bytes& frame, std::uint32_t packets);

/// CLOCK_THREAD_CPUTIME_ID, ns.
std::uint64_t thread_cpu_ns();

}  // namespace edgeshed::bench
