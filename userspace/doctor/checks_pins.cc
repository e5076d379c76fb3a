// bpffs, and what an earlier attach left.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "userspace/core/pin_dir.h"
#include "userspace/doctor/checks.h"

namespace edgeshed::doctor {
namespace {

using core::shell_word;

/// The folder that the pins are made in does not exist.
Remedy make_parent(const std::string& parent) {
  constexpr std::string_view kBpffs = "/sys/fs/bpf";
  const std::string mount = "mount -t bpf bpf " + shell_word(parent);
  if (parent == kBpffs) return by_commands({"mount -t sysfs sysfs /sys", mount});
  const std::string make = "mkdir -p " + shell_word(parent);
  if (parent.starts_with(std::string(kBpffs) + "/")) return by_command(make);
  return by_commands({make, mount});
}

Verdict check_bpffs(const Facts& facts) {
  const PinFacts& pins = facts.pins;
  if (pins.parent_error == ENOENT) {
    return fail(fmt::format("{} does not exist, and the pins belong into it", pins.parent),
                make_parent(pins.parent));
  }
  if (pins.parent_error == EACCES || pins.parent_error == EPERM) {
    return skipped(facts, fmt::format("{} may not be looked at", pins.parent));
  }
  if (pins.parent_error != 0) {
    return fail(fmt::format("{}: {}", pins.parent, std::strerror(pins.parent_error)),
                by_hand(fmt::format("no command makes a folder of that path: give --pin-dir one "
                                    "in a BPF file system; without it, it is {}",
                                    core::kDefaultPinDir)));
  }
  if (!pins.on_bpffs) {
    return fail(fmt::format("no BPF file system on {}", pins.parent),
                by_command("mount -t bpf bpf " + shell_word(pins.parent)));
  }
  if (!pins.write.tried) {
    return skipped(facts,
                   fmt::format("mounted on {}; whether it can be written needs root", pins.mount));
  }
  if (pins.write.error == EROFS) {
    return fail(fmt::format("{} is mounted read-only", pins.parent),
                by_command("mount -o remount,rw " + shell_word(pins.mount)));
  }
  if (pins.write.error != 0) {
    return fail(fmt::format("no folder can be made in {}: {}", pins.parent,
                            std::strerror(pins.write.error)),
                by_hand(fmt::format("what denies it is outside of the file system, a limit or a "
                                    "security module: see dmesg, or run it outside of the "
                                    "container; {} has to take a new folder",
                                    pins.parent)));
  }
  return ok(fmt::format("mounted, and {} can be written", pins.parent));
}

Verdict check_pins(const Facts& facts) {
  const PinFacts& pins = facts.pins;
  if (!pins.readable) {
    return skipped(facts, fmt::format("{} may not be looked at", pins.dir));
  }
  if (!pins.fault.empty()) {
    return fail(pins.fault, by_command(core::command_at(pins.dir, "detach")));
  }
  if (!pins.stale.empty()) {
    std::string remove = "rm -r";
    for (const std::string& folder : pins.stale) remove += " " + shell_word(folder);
    return warn(fmt::format("left by an attach or an upgrade that was killed: {}",
                            fmt::join(pins.stale, ", ")),
                by_command(std::move(remove)));
  }
  return ok(pins.there ? fmt::format("{}: of this version", pins.dir)
                       : fmt::format("{}: none yet", pins.dir));
}

/// Without a configuration an attach cannot be gone on with, only taken back.
Remedy attach_or_detach(const Facts& facts) {
  if (!facts.config_has_devices) return by_command(core::command_at(facts.pins.dir, "detach"));
  return by_command(
      core::command_at(facts.pins.dir, "attach --config " + shell_word(facts.config)));
}

/// The same, of the devices on which it was not finished.
Remedy attach_or_detach(const Facts& facts, const std::vector<AttachedFacts>& halves) {
  std::vector<std::string> commands;
  for (const AttachedFacts& one : halves) {
    const std::string dev = " --dev " + shell_word(one.dev);
    const std::string words = facts.config.empty()
                                  ? "detach" + dev
                                  : "attach --config " + shell_word(facts.config) + dev +
                                        (one.faces_servers ? " --faces servers" : "");
    commands.push_back(core::command_at(facts.pins.dir, words));
  }
  return by_commands(std::move(commands));
}

std::string joined(const std::vector<AttachedFacts>& devices,
                   std::string (*text_of)(const AttachedFacts&)) {
  std::vector<std::string> texts;
  for (const AttachedFacts& one : devices) texts.push_back(text_of(one));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string with_mode(const AttachedFacts& one) {
  return fmt::format("{} ({})", one.dev, one.mode);
}
std::string name_of(const AttachedFacts& one) { return one.dev; }
std::string half_of(const AttachedFacts& one) {
  return one.dev + (one.xdp ? " has XDP and no TC filter" : " has TC and no XDP program");
}

Verdict check_attached(const Facts& facts) {
  const PinFacts& pins = facts.pins;
  if (!pins.attached_known) {
    return skipped(facts, "whose programs are on the devices may not be looked at");
  }
  std::vector<AttachedFacts> halves, old;
  for (const AttachedFacts& one : pins.attached) {
    if (one.xdp != one.tc) {
      halves.push_back(one);
    } else if (!one.of_pins) {
      old.push_back(one);
    }
  }
  if (!pins.there && !pins.attached.empty()) {
    return fail(
        "attached without pins, so no daemon can reach it: " + joined(pins.attached, with_mode),
        by_command(core::command_at(pins.dir, "detach")));
  }
  if (pins.there && pins.attached.empty()) {
    return warn(
        "pins, but nothing attached in this network namespace: an attach that was not "
        "finished; or one of another namespace, then leave them as they are",
        attach_or_detach(facts));
  }
  if (!halves.empty()) {
    return warn("an attach that was not finished: " + joined(halves, half_of),
                attach_or_detach(facts, halves));
  }
  if (!old.empty()) {
    return warn("an upgrade that was not finished: other programs than the pinned ones on " +
                    joined(old, name_of),
                by_command(core::command_at(pins.dir, "upgrade")));
  }
  return ok(pins.attached.empty() ? "nothing of EdgeShed is attached"
                                  : joined(pins.attached, with_mode));
}

constexpr std::array<HostCheck, 3> kPinChecks = {{
    {"bpffs", check_bpffs},
    {"pins", check_pins},
    {"attached", check_attached},
}};

}  // namespace

std::span<const HostCheck> pin_checks() { return kPinChecks; }

}  // namespace edgeshed::doctor
