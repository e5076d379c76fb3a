// The cgroup (v2) that a game server runs in: pressure stalls and throttling of it alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "userspace/host/psi.h"
#include "userspace/host/reread_file.h"

namespace edgeshed::host {

/// Path of the unified hierarchy, from a text of /proc/PID/cgroup ("0::/game.slice"). Nothing
/// without one, for the root, which is the host, and for one outside of our own cgroup namespace.
std::optional<std::string> parse_cgroup(std::string_view text);

/// throttled_usec of a cpu.stat. Nothing without it, as where the cpu controller is off.
std::optional<std::uint64_t> parse_throttled_us(std::string_view text);

/// Folder of the cgroup of a process; empty if it has none of its own, or it cannot be read.
std::string cgroup_folder(std::uint32_t pid);

class CgroupCpu {
 public:
  /// folder: as cgroup_folder() gives it.
  explicit CgroupCpu(const std::string& folder)
      : pressure_(folder + "/cpu.pressure"), stat_(folder + "/cpu.stat") {}

  /// Share of the time in which some task of it waited for a CPU, or in which it was throttled, the
  /// larger one; nothing if neither is there. As CpuPressure, not more often than every 33 ms.
  std::optional<double> sample(std::uint64_t now_ns);

 private:
  CpuPressure pressure_;
  RereadFile stat_;
  ShareOfTime throttled_;
};

}  // namespace edgeshed::host
