// What a host's facts mean for an attach. Pure: any host can be given. Must not read anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "userspace/doctor/facts.h"

namespace edgeshed::doctor {

/// kWarn: it works, and something is lost. kFail: attach or the daemon would fail. kSkipped: the
/// caller may not look.
enum class Level { kOk, kWarn, kFail, kSkipped };

/// "ok", "warn", "fail" or "skipped".
std::string_view level_name(Level level);

/// Of command and advice exactly one is there, and none under kOk.
struct Finding {
  std::string check;
  std::string device;  ///< empty: the host
  Level level = Level::kOk;
  std::string found;    ///< one line
  std::string command;  ///< that ends it, right as typed by who asked
  std::string advice;   ///< one line: where no command can, what to do
};

/// All checks of the host, then those of each device, in a fixed order. A device that does not
/// exist, and the loopback device, have only the check "device".
std::vector<Finding> judge(const Facts& facts);

/// kExitFailure: something fails; else kExitEnvironment: something was skipped; else kExitOk.
int exit_code_of(const std::vector<Finding>& findings);

}  // namespace edgeshed::doctor
