// Packets that the kernel lost, or nearly lost, before any socket: /proc/net/softnet_stat.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "userspace/host/reread_file.h"

namespace edgeshed::host {

/// Ever, over all CPUs.
struct SoftnetCounts {
  std::uint64_t dropped = 0;        ///< packets, a CPU's backlog was full
  std::uint64_t time_squeezes = 0;  ///< times a CPU stopped with packets left
};

/// A line per CPU that is online; its columns are hexadecimal, of which the second is `dropped` and
/// the third `time_squeeze` (net/core/net-procfs.c). Nothing for a line that is none of those.
std::optional<SoftnetCounts> parse_softnet(std::string_view text);

/// What a counter grew by; 0 where it went back, as the sum does when a CPU goes offline.
constexpr std::uint64_t growth_of(std::uint64_t before, std::uint64_t now) {
  return now > before ? now - before : 0;
}

class Softnet {
 public:
  explicit Softnet(std::string path = "/proc/net/softnet_stat") : file_(std::move(path)) {}
  std::optional<SoftnetCounts> read() { return parse_softnet(file_.read()); }

 private:
  RereadFile file_;
};

}  // namespace edgeshed::host
