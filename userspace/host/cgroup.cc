#include "userspace/host/cgroup.h"

#include <unistd.h>

#include <algorithm>

#include "userspace/host/text.h"

namespace edgeshed::host {
namespace {

/// Where the unified hierarchy is mounted: by itself, or beside those of version 1.
const char* unified_mount() {
  for (const char* const mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    if (::access((std::string(mount) + "/cgroup.controllers").c_str(), F_OK) == 0) return mount;
  }
  return nullptr;
}

}  // namespace

std::optional<std::string> parse_cgroup(std::string_view text) {
  constexpr std::string_view kUnified = "0::";
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    if (!line.starts_with(kUnified)) continue;
    const std::string_view path = line.substr(kUnified.size());
    const bool root = path == "/" || !path.starts_with('/');
    if (root || path.find("/..") != std::string_view::npos) return std::nullopt;
    return std::string(path);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_throttled_us(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (take_until(line, ' ') == "throttled_usec") return number_of(line);
  }
  return std::nullopt;
}

std::string cgroup_folder(std::uint32_t pid) {
  const char* const mount = unified_mount();
  if (mount == nullptr) return {};
  RereadFile file("/proc/" + std::to_string(pid) + "/cgroup");
  const auto path = parse_cgroup(file.read());
  return path ? mount + *path : std::string();
}

std::optional<double> CgroupCpu::sample(std::uint64_t now_ns) {
  const auto waited = pressure_.sample(now_ns);
  const auto throttled = throttled_.step(parse_throttled_us(stat_.read()), now_ns);
  if (!waited) return throttled;
  return std::max(*waited, throttled.value_or(0));
}

}  // namespace edgeshed::host
