// Pressure stalls: for how long some task was ready and waited for a CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "userspace/host/reread_file.h"

namespace edgeshed::host {

/// `total` of the line `some`, in us (Documentation/accounting/psi.rst). Nothing without it, as on
/// a kernel with CONFIG_PSI off or started with psi=0.
std::optional<std::uint64_t> parse_psi_some_us(std::string_view text);

/// From a total of microseconds to its share of the time that passed.
class ShareOfTime {
 public:
  /// 0 to 1, since the last call; nothing at the first, after a gap in `total_us`, and without
  /// time.
  std::optional<double> step(std::optional<std::uint64_t> total_us, std::uint64_t now_ns);

 private:
  std::optional<std::uint64_t> total_us_;
  std::uint64_t at_ns_ = 0;
};

/// Not to be sampled more often than every 33 ms: what a stall adds comes in slices of the
/// scheduler, and a share of a few of them says nothing.
class CpuPressure {
 public:
  explicit CpuPressure(std::string path = "/proc/pressure/cpu") : file_(std::move(path)) {}
  std::optional<double> sample(std::uint64_t now_ns) {
    return share_.step(parse_psi_some_us(file_.read()), now_ns);
  }

 private:
  RereadFile file_;
  ShareOfTime share_;
};

}  // namespace edgeshed::host
