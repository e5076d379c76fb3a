// Every level that every check of the host and of its pins can give, from facts of hosts that never
// were.
#include <linux/capability.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

#include "tests/unit/doctor_cases.h"
#include "userspace/core/error_type.h"
#include "userspace/doctor/checks.h"

namespace edgeshed::doctor {
namespace {

TEST(Doctor, AllIsWell) {
  const auto findings = judge(good_facts());
  EXPECT_EQ(findings.size(), host_checks().size() + pin_checks().size() + device_checks().size() -
                                 1);  // a card is no veth
  for (const Finding& one : findings) {
    EXPECT_EQ(one.level, Level::kOk) << one.check << ": " << one.found;
    expect_remedy(one);
  }
  EXPECT_EQ(exit_code_of(findings), kExitOk);
}

TEST(Doctor, NamesOfChecksAreTheirOwn) {
  std::set<std::string> names;
  for (const Finding& one : judge(good_facts())) {
    EXPECT_TRUE(names.insert(one.check).second) << one.check;
  }
}

TEST(Doctor, WhatIsNoRemedy) {
  const auto finding = [](const char* command, const char* advice) {
    return Finding{"x", "", Level::kWarn, "found", command, advice};
  };
  expect_remedy(finding("sudo edgeshed attach --config a.toml && ethtool -K eth0 lro off", ""));
  expect_remedy(finding("", "plug the cable in"));
  EXPECT_NONFATAL_FAILURE(expect_remedy(finding("", "")), "exactly one");
  EXPECT_NONFATAL_FAILURE(expect_remedy(finding("ip -br link", "or look")), "exactly one");
  EXPECT_NONFATAL_FAILURE(expect_remedy(finding("ethtool -L eth0 rx N", "")), "N");
  EXPECT_NONFATAL_FAILURE(expect_remedy(finding("ethtool -L <dev> rx 1", "")), "<dev>");
  EXPECT_NONFATAL_FAILURE(expect_remedy(finding("boot with psi=1", "")), "boot");
  EXPECT_NONFATAL_FAILURE(expect_remedy(finding("edgeshed detach && edgeshed attach", "")),
                          "--config");
  EXPECT_NONFATAL_FAILURE(expect_remedy(finding("edgeshed detach again", "")), "again");
}

TEST(Doctor, ExitCodes) {
  const auto code = [](std::initializer_list<Level> levels) {
    std::vector<Finding> findings;
    for (const Level level : levels) findings.push_back({"x", "", level, "", "", ""});
    return exit_code_of(findings);
  };
  EXPECT_EQ(code({}), kExitOk);
  EXPECT_EQ(code({Level::kOk, Level::kWarn}), kExitOk);
  EXPECT_EQ(code({Level::kSkipped, Level::kOk}), kExitEnvironment);
  EXPECT_EQ(code({Level::kSkipped, Level::kFail, Level::kWarn}), kExitFailure);
}

TEST(Doctor, Kernel) {
  const auto release = [](const char* text) {
    return [text](Facts& facts) { facts.host.kernel_release = text; };
  };
  expect({{"kernel", Level::kOk, "6.18.44", "", release("6.18.44-fc")},
          {"kernel", Level::kOk, "7.0", "", release("7.0-rc1")},
          {"kernel", Level::kFail, "6.0.9", "~linux-image", release("6.0.9")},
          {"kernel", Level::kFail, "5.15", "~linux-image", release("5.15.0-91-generic")},
          {"kernel", Level::kWarn, "banana", "~uname -a", release("banana")},
          {"kernel", Level::kWarn, "", "~uname -a", release("")}});
}

TEST(Doctor, BtfAndJit) {
  expect({{"btf", Level::kWarn, "vmlinux", "~CONFIG_DEBUG_INFO_BTF",
           [](Facts& facts) { facts.host.kernel_btf = false; }},
          {"jit", Level::kWarn, "interpreted", "sysctl -w net.core.bpf_jit_enable=1",
           [](Facts& facts) { facts.host.jit_enable = 0; }},
          {"jit", Level::kWarn, "log", "sysctl -w net.core.bpf_jit_enable=1",
           [](Facts& facts) { facts.host.jit_enable = 2; }},
          {"jit", Level::kWarn, "hardened", "sysctl -w net.core.bpf_jit_harden=1",
           [](Facts& facts) { facts.host.jit_harden = 2; }},
          {"jit", Level::kOk, "hardening 1", "", [](Facts& facts) { facts.host.jit_harden = 1; }},
          {"jit", Level::kOk, "on", "", [](Facts& facts) { facts.host.jit_harden.reset(); }},
          {"jit", Level::kWarn, "interpreted",
           "nsenter --net=/proc/1/ns/net sysctl -w net.core.bpf_jit_enable=1",
           [](Facts& facts) {
             facts.host.jit_enable.reset();
             facts.host.jited = false;
           }},
          {"jit", Level::kOk, "on", "",
           [](Facts& facts) {
             facts.host.jit_enable.reset();
             facts.host.jited = true;
           }},
          {"jit", Level::kSkipped, "not shown", "sudo edgeshed doctor",
           [](Facts& facts) { facts.host.jit_enable.reset(); }}});
}

TEST(Doctor, Capabilities) {
  constexpr auto bit = [](unsigned capability) { return std::uint64_t{1} << capability; };
  expect(
      {{"capabilities", Level::kOk, "all", "",
        [=](Facts& facts) { facts.host.capabilities = bit(CAP_SYS_ADMIN) | bit(CAP_NET_ADMIN); }},
       {"capabilities", Level::kWarn, "CAP_SYS_ADMIN", "~--cap-add SYS_ADMIN",
        [=](Facts& facts) {
          facts.host.capabilities = bit(CAP_BPF) | bit(CAP_PERFMON) | bit(CAP_NET_ADMIN);
        }},
       {"capabilities", Level::kFail, "CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON", "~--cap-add",
        [](Facts& facts) { facts.host.capabilities = 0; }},
       {"capabilities", Level::kFail, "missing: CAP_NET_ADMIN,", "~--cap-add",
        [=](Facts& facts) { facts.host.capabilities = bit(CAP_SYS_ADMIN); }},
       {"capabilities", Level::kSkipped, "missing: CAP_PERFMON", "sudo edgeshed doctor",
        [=](Facts& facts) {
          facts.host.root = false;
          facts.host.capabilities = bit(CAP_BPF) | bit(CAP_NET_ADMIN);
        }}});
}

TEST(Doctor, Bpf) {
  const auto error = [](int number) {
    return [number](Facts& facts) { facts.host.bpf = {true, number}; };
  };
  expect({{"bpf", Level::kOk, "unprivileged_bpf_disabled is 2", "", error(0)},
          {"bpf", Level::kFail, "not permitted", "~seccomp", error(EPERM)},
          {"bpf", Level::kFail, "not implemented", "~CONFIG_BPF_SYSCALL", error(ENOSYS)},
          {"bpf", Level::kFail, "Invalid", "~dmesg", error(EINVAL)},
          {"bpf", Level::kSkipped, "privilege", "sudo edgeshed doctor",
           [](Facts& facts) { facts.host.bpf = {}; }},
          {"freplace", Level::kOk, "share", "", [](Facts&) {}},
          {"freplace", Level::kWarn, "extends no programs", "~trampolines",
           [](Facts& facts) { facts.host.freplace = {true, EINVAL}; }},
          {"freplace", Level::kSkipped, "privilege", "sudo edgeshed doctor",
           [](Facts& facts) { facts.host.freplace = {}; }}});
}

TEST(Doctor, IoUring) {
  const auto error = [](int number, int disabled = 0, bool root = true) {
    return [=](Facts& facts) {
      facts.host.io_uring = {true, number};
      facts.host.io_uring_disabled = disabled;
      facts.host.root = root;
    };
  };
  expect(
      {{"io_uring", Level::kOk, "a ring opens", "", error(0)},
       {"io_uring", Level::kFail, "io_uring_disabled is 2", "sysctl -w kernel.io_uring_disabled=0",
        error(EPERM, 2)},
       {"io_uring", Level::kFail, "io_uring_disabled is 1", "sysctl -w kernel.io_uring_disabled=0",
        error(EPERM, 1)},
       {"io_uring", Level::kSkipped, "io_uring_disabled is 1", "sudo edgeshed doctor",
        error(EPERM, 1, false)},
       {"io_uring", Level::kFail, "not permitted", "~seccomp", error(EPERM)},
       {"io_uring", Level::kFail, "not implemented", "~io_uring_setup", error(ENOSYS)},
       {"io_uring", Level::kFail, "memory", "prlimit --pid $$ --memlock=unlimited", error(ENOMEM)},
       {"io_uring", Level::kSkipped, "not tried", "sudo edgeshed doctor",
        [](Facts& facts) { facts.host.io_uring = {}; }}});
}

TEST(Doctor, Lockdown) {
  const auto is = [](const char* text) {
    return [text](Facts& facts) { facts.host.lockdown = text; };
  };
  expect({{"lockdown", Level::kOk, "none", "", is("none")},
          {"lockdown", Level::kOk, "does not show", "", is("")},
          {"lockdown", Level::kOk, "not touched", "", is("integrity")},
          {"lockdown", Level::kWarn, "confidentiality", "~boot", is("confidentiality")}});
}

TEST(Doctor, Memory) {
  constexpr std::uint64_t kMiB = 1 << 20;
  const auto have = [](std::uint64_t host, std::optional<std::uint64_t> cgroup) {
    return [=](Facts& facts) {
      facts.host.memory.available_bytes = host;
      facts.host.memory.cgroup_left_bytes = cgroup;
      facts.host.memory.cgroup_limit_file = "/sys/fs/cgroup/game/memory.max";
    };
  };
  expect({{"memory", Level::kOk, "100.0 MiB, 200 MiB", "", have(200 * kMiB, {})},
          {"memory", Level::kWarn, "199 MiB", "~connections_max", have(199 * kMiB, {})},
          {"memory", Level::kFail, "99 MiB", "~in game.toml", have(99 * kMiB, {})},
          {"memory", Level::kFail, "by /sys/fs/cgroup/game/memory.max",
           "~more in /sys/fs/cgroup/game/memory.max", have(4096 * kMiB, 64 * kMiB)},
          {"memory", Level::kOk, "of the host", "", have(1024 * kMiB, 2048 * kMiB)},
          {"memory", Level::kOk, "--config", "",
           [](Facts& facts) { facts.host.memory.tables_bytes.reset(); }},
          {"memory", Level::kWarn, "meminfo", "mount -t proc proc /proc",
           [](Facts& facts) { facts.host.memory.available_bytes.reset(); }}});
}

TEST(Doctor, Clocks) {
  const auto source = [](const char* name, std::vector<std::string> others) {
    return [=](Facts& facts) {
      facts.host.clock.source = name;
      facts.host.clock.sources = others;
    };
  };
  expect({{"hz", Level::kWarn, "100 (measured)", "~CONFIG_HZ=250",
           [](Facts& facts) { facts.host.clock.hz = 100; }},
          {"hz", Level::kOk, "1000", "", [](Facts& facts) { facts.host.clock.hz = 1000; }},
          {"hz", Level::kFail, "137", "~idle host",
           [](Facts& facts) {
             facts.host.clock.hz.reset();
             facts.host.clock.hz_error = "137 a second is none of 100, 250, 300, 1000";
           }},
          {"hz", Level::kSkipped, "not measured", "sudo edgeshed doctor",
           [](Facts& facts) { facts.host.clock.hz.reset(); }},
          {"clocksource", Level::kOk, "kvm-clock", "", source("kvm-clock", {"kvm-clock"})},
          {"clocksource", Level::kOk, "arch_sys_counter", "", source("arch_sys_counter", {})},
          {"clocksource", Level::kWarn, "hpet",
           "sh -c 'echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource'",
           source("hpet", {"hpet", "tsc"})},
          {"clocksource", Level::kWarn, "acpi_pm", "~cannot be fixed",
           source("acpi_pm", {"acpi_pm", "hpet"})},
          {"clocksource", Level::kWarn, "/sys", "mount -t sysfs sysfs /sys", source("", {})}});
}

TEST(Doctor, PressureAndCgroups) {
  expect({{"psi", Level::kWarn, "/proc/pressure/cpu", "~psi=1",
           [](Facts& facts) { facts.host.cpu_pressure = false; }},
          {"cgroup", Level::kWarn, "beside version 1", "~cgroup_no_v1",
           [](Facts& facts) { facts.host.cgroups = CgroupLayout::kHybrid; }},
          {"cgroup", Level::kWarn, "no version 2", "~unified_cgroup_hierarchy",
           [](Facts& facts) { facts.host.cgroups = CgroupLayout::kNone; }}});
}

TEST(Doctor, Bpffs) {
  expect({{"bpffs", Level::kFail, "no BPF file system", "mount -t bpf bpf /sys/fs/bpf",
           [](Facts& facts) { facts.pins.on_bpffs = false; }},
          {"bpffs", Level::kFail, "does not exist",
           "mount -t sysfs sysfs /sys && mount -t bpf bpf /sys/fs/bpf",
           [](Facts& facts) { facts.pins.parent_error = ENOENT; }},
          {"bpffs", Level::kFail, "does not exist", "mkdir -p /sys/fs/bpf/a",
           [](Facts& facts) {
             facts.pins.parent = "/sys/fs/bpf/a";
             facts.pins.parent_error = ENOENT;
           }},
          {"bpffs", Level::kFail, "Input/output", "~--pin-dir",
           [](Facts& facts) { facts.pins.parent_error = EIO; }},
          {"bpffs", Level::kSkipped, "looked at", "sudo edgeshed doctor",
           [](Facts& facts) { facts.pins.parent_error = EACCES; }},
          {"bpffs", Level::kSkipped, "needs root", "sudo edgeshed doctor",
           [](Facts& facts) { facts.pins.write = {}; }},
          {"bpffs", Level::kFail, "read-only", "mount -o remount,rw /sys/fs/bpf",
           [](Facts& facts) { facts.pins.write = {true, EROFS}; }},
          {"bpffs", Level::kFail, "No space", "~dmesg",
           [](Facts& facts) { facts.pins.write = {true, ENOSPC}; }}});
}

TEST(Doctor, PinsAndWhatIsAttached) {
  const auto attached = [](bool there, bool xdp, bool tc, bool of_pins) {
    return [=](Facts& facts) {
      facts.pins.there = there;
      facts.pins.attached = {{"eth0", "native", false, xdp, tc, of_pins}};
    };
  };
  expect(
      {{"pins", Level::kOk, "none yet", "", [](Facts&) {}},
       {"pins", Level::kOk, "of this version", "", [](Facts& facts) { facts.pins.there = true; }},
       {"pins", Level::kFail, "schema 3", "edgeshed detach",
        [](Facts& facts) {
          facts.pins.there = true;
          facts.pins.fault = "the maps have schema 3, this program knows schema 4";
        }},
       {"pins", Level::kWarn, "killed", "rm -r /sys/fs/bpf/edgeshed_new_7",
        [](Facts& facts) { facts.pins.stale = {"/sys/fs/bpf/edgeshed_new_7"}; }},
       {"pins", Level::kSkipped, "looked at", "sudo edgeshed doctor",
        [](Facts& facts) { facts.pins.readable = false; }},
       {"attached", Level::kOk, "nothing", "", [](Facts&) {}},
       {"attached", Level::kOk, "eth0 (native)", "", attached(true, true, true, true)},
       {"attached", Level::kFail, "without pins", "edgeshed detach",
        attached(false, true, true, false)},
       {"attached", Level::kWarn, "no TC filter", "edgeshed attach --config game.toml --dev eth0",
        attached(true, true, false, false)},
       {"attached", Level::kWarn, "no XDP program", "edgeshed attach --config game.toml --dev eth0",
        attached(true, false, true, false)},
       {"attached", Level::kWarn, "other programs", "edgeshed upgrade",
        attached(true, true, true, false)},
       {"attached", Level::kWarn, "nothing attached", "edgeshed detach",
        [](Facts& facts) { facts.pins.there = true; }},
       {"attached", Level::kSkipped, "looked at", "sudo edgeshed doctor",
        [](Facts& facts) { facts.pins.attached_known = false; }}});
}

TEST(Doctor, CommandsNameThePinsThatAreNotAtTheDefault) {
  Facts facts = good_facts();
  facts.pins.dir = "/mnt/bpf/b/pins";
  facts.pins.parent = "/mnt/bpf/b";
  facts.pins.mount = "/mnt/bpf";
  const auto command = [&](const char* check) { return finding_of(facts, check).command; };
  facts.pins.write = {true, EROFS};
  EXPECT_EQ(command("bpffs"), "mount -o remount,rw /mnt/bpf");
  facts.pins.on_bpffs = false;
  EXPECT_EQ(command("bpffs"), "mount -t bpf bpf /mnt/bpf/b");
  facts.pins.parent_error = ENOENT;
  EXPECT_EQ(command("bpffs"), "mkdir -p /mnt/bpf/b && mount -t bpf bpf /mnt/bpf/b");
  facts.pins.there = true;
  EXPECT_EQ(command("attached"), "edgeshed --pin-dir /mnt/bpf/b/pins detach");
  facts.config_has_devices = true;
  EXPECT_EQ(command("attached"), "edgeshed --pin-dir /mnt/bpf/b/pins attach --config game.toml");
  facts.devices[0].master = "bond0";
  facts.devices[0].master_kind = "bond";
  EXPECT_EQ(command("placement"),
            "edgeshed --pin-dir /mnt/bpf/b/pins attach --config game.toml --dev bond0");
  facts.pins.dir = "/mnt/bpf/b b";
  EXPECT_EQ(command("attached"), "edgeshed --pin-dir '/mnt/bpf/b b' attach --config game.toml");
}

TEST(Doctor, CommandsOfWhoIsNotRoot) {
  Facts facts = good_facts();
  facts.host.root = false;
  facts.pins.dir = "/mnt/bpf/pins";
  facts.pins.readable = false;
  facts.devices[0].xdp.owner = Owner::kHidden;
  EXPECT_EQ(finding_of(facts, "pins").command, "sudo edgeshed --pin-dir /mnt/bpf/pins doctor");
  EXPECT_EQ(finding_of(facts, "xdp_owner").command,
            "sudo edgeshed --pin-dir /mnt/bpf/pins doctor --dev eth0");
  facts.pins.parent_error = ENOENT;
  facts.pins.parent = "/mnt/bpf";
  EXPECT_EQ(finding_of(facts, "bpffs").command,
            "sudo mkdir -p /mnt/bpf && sudo mount -t bpf bpf /mnt/bpf");
  facts.host.root = true;  // sudo gives root no more than it has
  EXPECT_NE(finding_of(facts, "pins").advice, "");
}

TEST(Doctor, HalvesAreFinishedOrTakenOff) {
  const auto halves = [](const char* config) {
    return [=](Facts& facts) {
      facts.config = config;
      facts.pins.there = true;
      facts.pins.attached = {{"eth0", "native", false, true, false, false},
                             {"veth1", "native", true, false, true, false}};
    };
  };
  expect({{"attached", Level::kWarn, "eth0 has XDP and no TC filter, veth1 has TC",
           "edgeshed attach --config game.toml --dev eth0 && "
           "edgeshed attach --config game.toml --dev veth1 --faces servers",
           halves("game.toml")},
          {"attached", Level::kWarn, "not finished",
           "edgeshed detach --dev eth0 && edgeshed detach --dev veth1", halves("")}});
}

}  // namespace
}  // namespace edgeshed::doctor
