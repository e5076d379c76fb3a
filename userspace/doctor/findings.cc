#include "userspace/doctor/findings.h"

#include <algorithm>

#include "userspace/core/error_type.h"
#include "userspace/core/pin_dir.h"
#include "userspace/doctor/checks.h"

namespace edgeshed::doctor {
namespace {

/// One line for the caller's shell.
std::string line_of(const std::vector<std::string>& commands, bool root) {
  std::string line;
  for (const std::string& command : commands) {
    if (!line.empty()) line += " && ";
    if (!root) line += "sudo ";
    line += command;
  }
  return line;
}

Finding finding_of(const Facts& facts, std::string_view check, const std::string& device,
                   Verdict verdict) {
  return {std::string(check),
          device,
          verdict.level,
          std::move(verdict.found),
          line_of(verdict.remedy.commands, facts.host.root),
          std::move(verdict.remedy.advice)};
}

}  // namespace

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kWarn:
      return "warn";
    case Level::kFail:
      return "fail";
    case Level::kSkipped:
      return "skipped";
    case Level::kOk:
      break;
  }
  return "ok";
}

Verdict skipped(const Facts& facts, std::string found, std::string_view options) {
  if (facts.host.root) {
    return {Level::kSkipped, std::move(found),
            by_hand("this is root already, and something denies it: run it outside of the "
                    "container or the unit")};
  }
  std::string words = "doctor";
  if (!options.empty()) words.append(" ").append(options);
  return {Level::kSkipped, std::move(found), by_command(core::command_at(facts.pins.dir, words))};
}

std::vector<Finding> judge(const Facts& facts) {
  std::vector<Finding> findings;
  for (const auto checks : {host_checks(), pin_checks()}) {
    for (const HostCheck& check : checks) {
      findings.push_back(finding_of(facts, check.name, "", check.judge(facts)));
    }
  }
  for (const DeviceFacts& device : facts.devices) {
    for (const DeviceCheck& check : device_checks()) {
      if (auto verdict = check.judge(facts, device)) {
        findings.push_back(finding_of(facts, check.name, device.name, std::move(*verdict)));
      }
      if (!device.exists || device.loopback) break;
    }
  }
  return findings;
}

int exit_code_of(const std::vector<Finding>& findings) {
  const auto any = [&](Level level) {
    return std::any_of(findings.begin(), findings.end(),
                       [level](const Finding& one) { return one.level == level; });
  };
  if (any(Level::kFail)) return kExitFailure;
  return any(Level::kSkipped) ? kExitEnvironment : kExitOk;
}

}  // namespace edgeshed::doctor
