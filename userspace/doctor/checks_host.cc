// The kernel and the machine: what attach and the daemon need of them.
#include <linux/capability.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "userspace/doctor/checks.h"
#include "userspace/host/text.h"

namespace edgeshed::doctor {
namespace {

constexpr std::uint64_t kFloorMajor = 6, kFloorMinor = 1;
constexpr std::uint32_t kHzWanted = 250;
constexpr const char* kOtherKernel =
    "cannot be changed at run time: boot a kernel that has it (Debian 12: apt install "
    "linux-image-amd64)";

/// Settings that only the first network namespace has.
constexpr const char* kFirstNetwork = "nsenter --net=/proc/1/ns/net ";

bool may(const HostFacts& host, unsigned capability) {
  return (host.capabilities >> capability & 1) != 0;
}

/// CAP_SYS_ADMIN is above CAP_BPF and CAP_PERFMON, and not above CAP_NET_ADMIN.
bool may_attach(const HostFacts& host) {
  const bool bpf = (may(host, CAP_BPF) && may(host, CAP_PERFMON)) || may(host, CAP_SYS_ADMIN);
  return bpf && may(host, CAP_NET_ADMIN);
}

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1024 * 1024); }

Verdict check_kernel(const Facts& facts) {
  const std::string& release = facts.host.kernel_release;
  std::string_view rest = release;
  const auto major = host::number_of(host::take_until(rest, '.'));
  const auto minor = host::number_of(rest.substr(0, rest.find_first_not_of("0123456789")));
  if (!major || !minor) {
    return warn(
        fmt::format("release \"{}\" names no version", release),
        by_hand("EdgeShed needs Linux 6.1 or newer: whether this one is, uname -a may say"));
  }
  if (*major < kFloorMajor || (*major == kFloorMajor && *minor < kFloorMinor)) {
    return fail(fmt::format("{}; EdgeShed needs 6.1 or newer", release), by_hand(kOtherKernel));
  }
  return ok(fmt::format("{} (6.1 or newer)", release));
}

Verdict check_btf(const Facts& facts) {
  if (facts.host.kernel_btf) return ok("/sys/kernel/btf/vmlinux is there");
  return warn(
      "no /sys/kernel/btf/vmlinux: EdgeShed loads without it, tools that show its maps do "
      "not",
      by_hand(fmt::format("{} (CONFIG_DEBUG_INFO_BTF)", kOtherKernel)));
}

Verdict check_jit(const Facts& facts) {
  const HostFacts& host = facts.host;
  if (!host.jit_enable && !host.jited) {
    return skipped(facts, "net.core.bpf_jit_enable is not shown here");
  }
  const std::string enable =
      std::string(host.jit_enable ? "" : kFirstNetwork) + "sysctl -w net.core.bpf_jit_enable=1";
  if (host.jited == false || host.jit_enable == 0) {
    return warn("off: every packet is interpreted, many times slower", by_command(enable));
  }
  if (host.jit_enable == 2) {
    return warn("on, and it writes every program to the kernel's log", by_command(enable));
  }
  if (host.jit_harden == 2) {
    return warn("on, hardened for root's programs too: a few percent slower",
                by_command("sysctl -w net.core.bpf_jit_harden=1"));
  }
  return ok(host.jit_harden ? fmt::format("on, hardening {}", *host.jit_harden) : "on");
}

Verdict check_capabilities(const Facts& facts) {
  const HostFacts& host = facts.host;
  if (may_attach(host)) {
    if (may(host, CAP_SYS_ADMIN)) return ok("all that attach and the daemon need");
    return warn(
        "no CAP_SYS_ADMIN: programs of others cannot be told apart by name, and XDP "
        "dispatchers cannot be joined",
        by_hand("a process cannot take it by itself: start it as root, or with "
                "CapabilityBoundingSet=CAP_SYS_ADMIN and AmbientCapabilities=CAP_SYS_ADMIN in the "
                "unit, or docker run --cap-add SYS_ADMIN"));
  }
  std::vector<std::string_view> missing;
  if (!may(host, CAP_NET_ADMIN)) missing.emplace_back("CAP_NET_ADMIN");
  if (!may(host, CAP_BPF) && !may(host, CAP_SYS_ADMIN)) missing.emplace_back("CAP_BPF");
  if (!may(host, CAP_PERFMON) && !may(host, CAP_SYS_ADMIN)) missing.emplace_back("CAP_PERFMON");
  const std::string found = fmt::format("missing: {}", fmt::join(missing, ", "));
  if (!host.root) return skipped(facts, found);
  return fail(found + ", although this is root: a container or a unit took it",
              by_hand("a process cannot take them back: start it with docker run --cap-add BPF "
                      "--cap-add NET_ADMIN --cap-add PERFMON, or name them in "
                      "CapabilityBoundingSet= of the unit"));
}

Verdict check_bpf(const Facts& facts) {
  const HostFacts& host = facts.host;
  const std::string setting =
      host.unprivileged_bpf_disabled
          ? fmt::format("; kernel.unprivileged_bpf_disabled is {}, which root does not notice",
                        *host.unprivileged_bpf_disabled)
          : "";
  if (!host.bpf.tried) return skipped(facts, "loading of a program needs more privilege" + setting);
  const int error = host.bpf.error;
  if (error == 0) return ok("a program loads" + setting);
  const std::string found =
      fmt::format("a program of two instructions does not load: {}", std::strerror(error));
  if (error == ENOSYS) {
    return fail(found, by_hand(fmt::format("{} (CONFIG_BPF_SYSCALL)", kOtherKernel)));
  }
  if (error == EPERM || error == EACCES) {
    return fail(found,
                by_hand("seccomp, a user namespace or a security module denies bpf(2), which is "
                        "not to be undone from inside: run on the host, or docker run "
                        "--privileged"));
  }
  return fail(found, by_hand("no command is known to end it: what the kernel has against it may be "
                             "in its log (dmesg)"));
}

Verdict check_io_uring(const Facts& facts) {
  const HostFacts& host = facts.host;
  const int error = host.io_uring.error;
  const std::string setting =
      host.io_uring_disabled
          ? fmt::format("; kernel.io_uring_disabled is {}", *host.io_uring_disabled)
          : "";
  if (!host.io_uring.tried) return skipped(facts, "not tried" + setting);
  if (error == 0) return ok("a ring opens" + setting);
  const std::string found =
      fmt::format("no ring opens, the daemon would not start: {}{}", std::strerror(error), setting);
  if (error == ENOSYS) {
    return fail(found,
                by_hand("seccomp hides it, or CONFIG_IO_URING is off: start it where "
                        "io_uring_setup, io_uring_enter and io_uring_register are allowed, or boot "
                        "a kernel that has them"));
  }
  if (error == ENOMEM) {
    return fail(found + "; the limit is this shell's, of a unit LimitMEMLOCK=infinity lifts it",
                by_command("prlimit --pid $$ --memlock=unlimited"));
  }
  if (error == EPERM && host.io_uring_disabled.value_or(0) != 0) {
    if (*host.io_uring_disabled == 1 && !host.root) return skipped(facts, found);
    return fail(found, by_command("sysctl -w kernel.io_uring_disabled=0"));
  }
  return fail(found,
              by_hand("seccomp or a security module denies it, which is not to be undone from "
                      "inside: start it where io_uring_setup, io_uring_enter and "
                      "io_uring_register are allowed"));
}

Verdict check_lockdown(const Facts& facts) {
  const std::string& lockdown = facts.host.lockdown;
  if (lockdown.empty()) return ok("this kernel has none, or does not show it");
  if (lockdown != "confidentiality") return ok(lockdown + ": XDP and TC programs are not touched");
  return warn(
      "confidentiality: BPF may not read kernel memory; XDP and TC programs need not, "
      "tools that look at them may fail",
      by_hand("cannot be lowered at run time: boot without lockdown=confidentiality"));
}

Verdict check_memory(const Facts& facts) {
  const MemoryFacts& memory = facts.host.memory;
  if (!memory.available_bytes) {
    return warn("/proc/meminfo cannot be read", by_command("mount -t proc proc /proc"));
  }
  std::uint64_t left = *memory.available_bytes;
  std::string where = "of the host";
  if (memory.cgroup_left_bytes && *memory.cgroup_left_bytes < left) {
    left = *memory.cgroup_left_bytes;
    where = "by " + memory.cgroup_limit_file;
  }
  if (!memory.tables_bytes) {
    return ok(
        fmt::format("{:.0f} MiB free {}; --config says what its tables take", mib(left), where));
  }
  const std::string found = fmt::format("the tables take {:.1f} MiB, {:.0f} MiB are free {}",
                                        mib(*memory.tables_bytes), mib(left), where);
  const std::string more = where == "of the host"
                               ? "more memory, or a"
                               : "more in " + memory.cgroup_limit_file + ", or a";
  const Remedy remedy = by_hand(
      fmt::format("how much is yours to say: {} lower connections_max, rooms_max or endpoints_max "
                  "in {} (edgeshed check tells what each takes)",
                  more, facts.config));
  if (*memory.tables_bytes > left) return fail(found, remedy);
  if (*memory.tables_bytes > left / 2) return warn(found, remedy);
  return ok(found);
}

Verdict check_hz(const Facts& facts) {
  const ClockFacts& clock = facts.host.clock;
  if (!clock.hz) {
    if (clock.hz_error.empty()) return skipped(facts, "not measured without privilege");
    return fail(clock.hz_error,
                by_hand("try again on an idle host; if it stays, boot a kernel with HZ 100, 250, "
                        "300 or 1000"));
  }
  const std::string found = fmt::format("{} ({})", *clock.hz, clock.hz_source);
  if (*clock.hz >= kHzWanted) return ok(found);
  return warn(found + fmt::format(": bursts are told in steps of {:.0f} ms", 1000.0 / *clock.hz),
              by_hand("cannot be changed at run time: boot a kernel with CONFIG_HZ=250 or more"));
}

Verdict check_clocksource(const Facts& facts) {
  // Those that are read without a system call.
  constexpr std::array<std::string_view, 4> kFast = {"tsc", "kvm-clock", "arch_sys_counter",
                                                     "hyperv_clocksource_tsc_page"};
  const ClockFacts& clock = facts.host.clock;
  const auto fast = [&](std::string_view name) {
    return std::find(kFast.begin(), kFast.end(), name) != kFast.end();
  };
  if (clock.source.empty()) {
    return warn("/sys does not say it", by_command("mount -t sysfs sysfs /sys"));
  }
  if (fast(clock.source)) return ok(clock.source);
  const std::string found = clock.source + ": every look at the clock is slow, in games too";
  const auto better = std::find_if(clock.sources.begin(), clock.sources.end(), fast);
  if (better == clock.sources.end()) {
    return warn(found, by_hand(fmt::format("cannot be fixed here: of {} none is fast; on x86 the "
                                           "kernel's log (dmesg) tells what it has against tsc",
                                           fmt::join(clock.sources, ", "))));
  }
  return warn(found, by_command(fmt::format("sh -c 'echo {} > /sys/devices/system/clocksource/"
                                            "clocksource0/current_clocksource'",
                                            *better)));
}

Verdict check_psi(const Facts& facts) {
  if (facts.host.cpu_pressure) return ok("/proc/pressure/cpu is there");
  return warn("no /proc/pressure/cpu: waiting for a CPU is not measured",
              by_hand("cannot be changed at run time: boot with psi=1 on the kernel's command "
                      "line (CONFIG_PSI)"));
}

Verdict check_cgroup(const Facts& facts) {
  const Remedy boot = by_hand(
      "cannot be changed at run time: boot with systemd.unified_cgroup_hierarchy=1 "
      "cgroup_no_v1=all on the kernel's command line");
  switch (facts.host.cgroups) {
    case CgroupLayout::kUnified:
      return ok("version 2");
    case CgroupLayout::kHybrid:
      return warn(
          "version 2 beside version 1: throttling of a game server is not seen where "
          "version 1 has the cpu controller",
          boot);
    case CgroupLayout::kNone:
      break;
  }
  return warn("no version 2: what a game server waits for is measured of the whole host only",
              boot);
}

Verdict check_freplace(const Facts& facts) {
  const Tried& freplace = facts.host.freplace;
  if (!freplace.tried) return skipped(facts, "extending a program needs more privilege");
  if (freplace.error == 0) return ok("programs of others can share the device (XDP dispatcher)");
  return warn(fmt::format("the kernel extends no programs ({}): EdgeShed is the one XDP program of "
                          "its device",
                          std::strerror(freplace.error)),
              by_hand("cannot be changed at run time: boot a kernel with BPF trampolines "
                      "(CONFIG_FTRACE, CONFIG_FUNCTION_TRACER); nothing to do if nobody else uses "
                      "XDP here"));
}

constexpr std::array<HostCheck, 13> kHostChecks = {{
    {"kernel", check_kernel},
    {"btf", check_btf},
    {"jit", check_jit},
    {"capabilities", check_capabilities},
    {"bpf", check_bpf},
    {"freplace", check_freplace},
    {"io_uring", check_io_uring},
    {"lockdown", check_lockdown},
    {"memory", check_memory},
    {"hz", check_hz},
    {"clocksource", check_clocksource},
    {"psi", check_psi},
    {"cgroup", check_cgroup},
}};

}  // namespace

std::span<const HostCheck> host_checks() { return kHostChecks; }

}  // namespace edgeshed::doctor
