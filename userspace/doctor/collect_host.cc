// The kernel and the machine, from /proc, /sys and a few tries.
#include <linux/magic.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "userspace/core/error_type.h"
#include "userspace/doctor/collect.h"
#include "userspace/host/psi.h"
#include "userspace/host/reread_file.h"
#include "userspace/host/text.h"
#include "userspace/kernel/jiffies_clock.h"

namespace edgeshed::doctor {
namespace {

/// The whole text of a small file; empty if it cannot be read.
std::string text_of(const std::string& path) {
  host::RereadFile file(path);
  return std::string(file.read());
}

std::string line_of(const std::string& path) {
  const std::string text = text_of(path);
  return text.substr(0, text.find('\n'));
}

std::optional<int> setting(const std::string& path) {
  const auto value = host::number_of(line_of(path));
  return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
}

/// "Key:   123 kB" of /proc/meminfo and /proc/self/status, "key 123" of a cgroup's.
std::optional<std::uint64_t> value_in(std::string_view text, std::string_view key, int base = 10) {
  while (!text.empty()) {
    std::string_view line = host::take_until(text, '\n');
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t:")));
    return host::number_of(host::take_until(line, ' '), base);
  }
  return std::nullopt;
}

/// "none [integrity] confidentiality": the one in brackets.
std::string chosen_in(std::string_view text) {
  host::take_until(text, '[');
  return std::string(host::take_until(text, ']'));
}

struct CgroupVersion {
  const char* line;   // of /proc/self/cgroup, up to the path
  const char* mount;  // where it may be
  const char* limit;
  const char* used;
  const char* inactive;  // key in memory.stat: what would be given back first
};

constexpr CgroupVersion kVersions[] = {
    {"0::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
    {"0::", "/sys/fs/cgroup/unified", "memory.max", "memory.current", "inactive_file"},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file"}};

/// The tightest limit from the caller's cgroup upwards.
void add_cgroup_memory(MemoryFacts& memory) {
  const std::string of_self = text_of("/proc/self/cgroup");
  for (const CgroupVersion& version : kVersions) {
    const std::size_t at = of_self.find(version.line);
    if (at == std::string::npos) continue;
    std::string_view rest = std::string_view(of_self).substr(at + std::string(version.line).size());
    std::string path(host::take_until(rest, '\n'));
    for (;;) {
      const std::string folder = version.mount + (path == "/" ? "" : path) + "/";
      const auto limit = host::number_of(line_of(folder + version.limit));
      const auto used = host::number_of(line_of(folder + version.used));
      if (limit && used && *limit < (std::uint64_t{1} << 60)) {
        const std::uint64_t inactive =
            value_in(text_of(folder + "memory.stat"), version.inactive).value_or(0);
        const std::uint64_t taken = *used - std::min(*used, inactive);
        const std::uint64_t left = *limit - std::min(*limit, taken);
        if (!memory.cgroup_left_bytes || left < *memory.cgroup_left_bytes) {
          memory.cgroup_left_bytes = left;
          memory.cgroup_limit_file = folder + version.limit;
        }
      }
      if (path.size() <= 1) break;
      path.resize(path.rfind('/'));
    }
  }
}

MemoryFacts collect_memory(const CollectOptions& options) {
  MemoryFacts memory;
  memory.tables_bytes = options.tables_bytes;
  if (const auto kib = value_in(text_of("/proc/meminfo"), "MemAvailable:")) {
    memory.available_bytes = *kib * 1024;
  }
  add_cgroup_memory(memory);
  return memory;
}

/// Measured; else as the kernel was configured, where a file of Debian's kind says so.
void add_hz(ClockFacts& clock, const Tried& bpf, const std::string& release) {
  if (bpf.tried && bpf.error == 0) {
    try {
      clock.hz = kernel::measure_hz();
      clock.hz_source = "measured";
      return;
    } catch (const Error& error) {
      clock.hz_error = error.what();
    }
  }
  const std::string path = "/boot/config-" + release;
  if (const auto hz = value_in(text_of(path), "CONFIG_HZ=")) {
    clock.hz = static_cast<std::uint32_t>(*hz);
    clock.hz_source = path;
  }
}

ClockFacts collect_clock(const Tried& bpf, const std::string& release) {
  ClockFacts clock;
  const std::string folder = "/sys/devices/system/clocksource/clocksource0/";
  clock.source = line_of(folder + "current_clocksource");
  std::istringstream names(line_of(folder + "available_clocksource"));
  for (std::string name; names >> name;) clock.sources.push_back(name);
  add_hz(clock, bpf, release);
  return clock;
}

CgroupLayout collect_cgroups() {
  struct statfs info{};
  const auto is_v2 = [&](const char* path) {
    return statfs(path, &info) == 0 &&
           static_cast<unsigned long>(info.f_type) == CGROUP2_SUPER_MAGIC;
  };
  if (is_v2("/sys/fs/cgroup")) return CgroupLayout::kUnified;
  return is_v2("/sys/fs/cgroup/unified") ? CgroupLayout::kHybrid : CgroupLayout::kNone;
}

}  // namespace

HostFacts collect_host(const CollectOptions& options) {
  HostFacts host;
  struct utsname names{};
  if (uname(&names) == 0) host.kernel_release = names.release;
  host.kernel_btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
  host.jit_enable = setting("/proc/sys/net/core/bpf_jit_enable");
  host.jit_harden = setting("/proc/sys/net/core/bpf_jit_harden");
  host.root = geteuid() == 0;
  host.capabilities = value_in(text_of("/proc/self/status"), "CapEff:", 16).value_or(0);
  host.unprivileged_bpf_disabled = setting("/proc/sys/kernel/unprivileged_bpf_disabled");
  host.bpf = try_bpf(host.jited);
  host.freplace = try_freplace();
  host.io_uring_disabled = setting("/proc/sys/kernel/io_uring_disabled");
  host.io_uring = try_io_uring();
  host.lockdown = chosen_in(text_of("/sys/kernel/security/lockdown"));
  host.memory = collect_memory(options);
  host.clock = collect_clock(host.bpf, host.kernel_release);
  host.cpu_pressure = host::parse_psi_some_us(text_of("/proc/pressure/cpu")).has_value();
  host.cgroups = collect_cgroups();
  host.cpus = std::max(1u, std::thread::hardware_concurrency());
  host.page_bytes = static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE));
  return host;
}

}  // namespace edgeshed::doctor
