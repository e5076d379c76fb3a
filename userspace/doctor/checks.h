// The tables of checks. A new check is a function and a line in one of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "userspace/doctor/facts.h"
#include "userspace/doctor/findings.h"

namespace edgeshed::doctor {

/// What ends a finding: commands, in order, each right as root types it; or, where none can,
/// advice.
struct Remedy {
  std::vector<std::string> commands;
  std::string advice;
};

inline Remedy by_command(std::string command) { return {{std::move(command)}, {}}; }
inline Remedy by_commands(std::vector<std::string> commands) { return {std::move(commands), {}}; }
inline Remedy by_hand(std::string advice) { return {{}, std::move(advice)}; }

struct Verdict {
  Level level = Level::kOk;
  std::string found;
  Remedy remedy;
};

struct HostCheck {
  std::string_view name;
  Verdict (*judge)(const Facts& facts);
};

/// Nothing: the check is not about such a device.
struct DeviceCheck {
  std::string_view name;
  std::optional<Verdict> (*judge)(const Facts& facts, const DeviceFacts& device);
};

std::span<const HostCheck> host_checks();      ///< the kernel and the machine
std::span<const HostCheck> pin_checks();       ///< bpffs and what an earlier attach left
std::span<const DeviceCheck> device_checks();  ///< the first one says whether it is there at all

inline Verdict ok(std::string found) { return {Level::kOk, std::move(found), {}}; }
inline Verdict warn(std::string found, Remedy remedy) {
  return {Level::kWarn, std::move(found), std::move(remedy)};
}
inline Verdict fail(std::string found, Remedy remedy) {
  return {Level::kFail, std::move(found), std::move(remedy)};
}
/// options: of the doctor, that root needs to see it.
Verdict skipped(const Facts& facts, std::string found, std::string_view options = {});

}  // namespace edgeshed::doctor
