// jiffies64 by a probe program: see jiffies_clock.h.
#include "userspace/kernel/jiffies_clock.h"

#include <linux/bpf.h>
#include <bpf/bpf.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <thread>

#include "userspace/core/time_units.h"
#include "userspace/kernel/error.h"

namespace edgeshed::kernel {
namespace {

constexpr bpf_insn instruction(int code, __u8 to, __u8 from, __s16 offset, __s32 immediate) {
  return {.code = static_cast<__u8>(code),
          .dst_reg = to,
          .src_reg = from,
          .off = offset,
          .imm = immediate};
}

constexpr bpf_insn load_u32(__u8 to, __u8 base, __s16 offset) {
  return instruction(BPF_LDX | BPF_MEM | BPF_W, to, base, offset, 0);
}

constexpr bpf_insn store_u64(__u8 base, __s16 offset, __u8 value) {
  return instruction(BPF_STX | BPF_MEM | BPF_DW, base, value, offset, 0);
}

constexpr bpf_insn call_helper(int helper) {
  return instruction(BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

/// Writes a sample over the start of the packet that it is run on. An XDP program, because a
/// syscall program, which could write its context, may not read the coarse clock.
constexpr std::array<bpf_insn, 11> kProgram = {
    load_u32(BPF_REG_6, BPF_REG_1, offsetof(xdp_md, data)),
    load_u32(BPF_REG_7, BPF_REG_1, offsetof(xdp_md, data_end)),
    instruction(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_8, BPF_REG_6, 0, 0),
    instruction(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_8, 0, 0, sizeof(JiffiesSample)),
    instruction(BPF_JMP | BPF_JGT | BPF_X, BPF_REG_8, BPF_REG_7, 4, 0),
    call_helper(BPF_FUNC_jiffies64),
    store_u64(BPF_REG_6, offsetof(JiffiesSample, jiffies), BPF_REG_0),
    call_helper(BPF_FUNC_ktime_get_coarse_ns),
    store_u64(BPF_REG_6, offsetof(JiffiesSample, coarse_ns), BPF_REG_0),
    instruction(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, XDP_PASS),
    instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
};

std::uint64_t coarse_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * core::kNsPerS +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

JiffiesProbe::JiffiesProbe() {
  const int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "es_jiffies", "Dual MIT/GPL", kProgram.data(),
                               kProgram.size(), nullptr);
  if (fd < 0) fail_errno(fd, "load the program that reads jiffies", "");
  program_ = Fd(fd);
}

JiffiesSample JiffiesProbe::sample() const {
  // 64 bytes: the kernel refuses frames without an Ethernet header.
  std::array<std::byte, 64> frame{};
  DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options);
  options.data_in = frame.data();
  options.data_size_in = frame.size();
  options.data_out = frame.data();
  options.data_size_out = frame.size();
  const int err = bpf_prog_test_run_opts(program_.get(), &options);
  if (err != 0) fail_errno(err, "run the program that reads jiffies", "");
  JiffiesSample sample;
  std::memcpy(&sample, frame.data(), sizeof(sample));
  return sample;
}

std::uint32_t measure_hz() {
  const JiffiesProbe probe;
  const JiffiesSample first = probe.sample();
  double rate = 0;
  // 50 ms are enough on an idle host. On one that stalls between the updates of the two clocks a
  // pair may be some ticks apart, which a longer measurement makes small.
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const JiffiesSample now = probe.sample();
    const double seconds = static_cast<double>(now.coarse_ns - first.coarse_ns) / core::kNsPerS;
    if (seconds <= 0) continue;
    rate = static_cast<double>(now.jiffies - first.jiffies) / seconds;
    for (const std::uint32_t hz : {100u, 250u, 300u, 1000u}) {
      if (std::abs(rate - hz) < 0.04 * hz) return hz;
    }
  }
  throw Error(fmt::format(
      "the kernel's jiffies advance at {:.0f} per second, which is none of 100, 250, 300, 1000: "
      "CONFIG_HZ of this kernel is not supported, or the host stalls; try again",
      rate));
}

JiffiesClock::JiffiesClock(std::uint32_t hz) : hz_(hz), sample_(settled_sample()) {}

JiffiesSample JiffiesClock::settled_sample() const {
  // The kernel updates jiffies just before the coarse clock: of a few pairs the one in which
  // jiffies are least ahead was not taken in between.
  JiffiesSample best = probe_.sample();
  for (int i = 0; i < 4; ++i) {
    const JiffiesSample sample = probe_.sample();
    if (at(best, sample.coarse_ns, hz_) > sample.jiffies) best = sample;
  }
  return best;
}

std::uint64_t JiffiesClock::now() const { return at(sample_, coarse_now_ns(), hz_); }

std::int64_t JiffiesClock::recalibrate() {
  const JiffiesSample fresh = settled_sample();
  const std::uint64_t believed = at(sample_, fresh.coarse_ns, hz_);
  sample_ = fresh;
  return static_cast<std::int64_t>(believed - fresh.jiffies);
}

std::uint64_t JiffiesClock::at(const JiffiesSample& sample, std::uint64_t coarse_ns,
                               std::uint32_t hz) {
  // Rounded to the nearest: the coarse clock stands a little after the tick that moved it.
  const std::int64_t jiffy_ns = static_cast<std::int64_t>(core::kNsPerS / hz);
  const std::int64_t elapsed_ns = static_cast<std::int64_t>(coarse_ns - sample.coarse_ns);
  const std::int64_t half = elapsed_ns < 0 ? -jiffy_ns / 2 : jiffy_ns / 2;
  return sample.jiffies + static_cast<std::uint64_t>((elapsed_ns + half) / jiffy_ns);
}

}  // namespace edgeshed::kernel
