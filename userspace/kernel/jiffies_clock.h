// jiffies64 in user space, without a syscall per reading: for a plan's expiry and for the t0 of its
// levels. Must not be used to measure time: CLOCK_MONOTONIC does that.
#pragma once

#include <cstdint>

#include "userspace/kernel/fd.h"

namespace edgeshed::kernel {

/// jiffies64 and CLOCK_MONOTONIC_COARSE, read by the kernel in one go.
struct JiffiesSample {
  std::uint64_t jiffies;
  std::uint64_t coarse_ns;
};

/// Reads pairs by running a program of eleven instructions. Needs CAP_BPF and CAP_NET_ADMIN.
class JiffiesProbe {
 public:
  /// Throws Error: the kernel refused the program.
  JiffiesProbe();
  /// One syscall. Throws Error: the run was refused.
  JiffiesSample sample() const;

 private:
  Fd program_;
};

/// Jiffies per second of this kernel (100, 250, 300 or 1000): two samples 50 ms apart, up to 1 s on
/// a host that stalls. Neither sysconf(_SC_CLK_TCK), which is USER_HZ, nor a config file, which
/// containers lack, says it. Throws Error: the probe was refused, or the measured rate is none of
/// the four.
std::uint32_t measure_hz();

/// Jiffies from CLOCK_MONOTONIC_COARSE and one sample. Both advance at the same timer ticks and the
/// kernel derives both from CLOCK_MONOTONIC, so there is no drift to correct; a reading is at most
/// one jiffy off (a tick that was handled late moves the coarse clock by its delay, below one
/// jiffy). Recalibrate after a suspend, which stops both clocks but need not stop them together.
class JiffiesClock {
 public:
  /// `hz` from es_geometry. Throws Error as JiffiesProbe.
  explicit JiffiesClock(std::uint32_t hz);

  /// About 10 ns, vDSO only.
  std::uint64_t now() const;
  /// Takes a new sample and returns by how many jiffies now() was ahead (+) or behind (-).
  std::int64_t recalibrate();
  std::uint32_t hz() const { return hz_; }

  /// The same for a sample and a coarse clock given by hand (tests).
  static std::uint64_t at(const JiffiesSample& sample, std::uint64_t coarse_ns, std::uint32_t hz);

 private:
  JiffiesSample settled_sample() const;

  JiffiesProbe probe_;
  std::uint32_t hz_;
  JiffiesSample sample_;
};

}  // namespace edgeshed::kernel
