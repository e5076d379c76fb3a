// What every subcommand shares: the global options, the exit codes, and how a failure is told.
#ifndef EDGESHED_TOOLS_CLI_CLI_H_
#define EDGESHED_TOOLS_CLI_CLI_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "userspace/core/model.h"

namespace CLI {
class App;
}

namespace edgeshed::cli {

/// Exit codes, the same for every subcommand. 1 to 4 mean what the kernel folder's errors mean; a
/// wrong configuration is kUsage here (load_config).
enum Exit : int {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,            // usage or configuration
  kRefusedByOthers = 3,  // somebody else's program, pins or daemon is in the way
  kNoPrivilege = 4,
};

/// Options before or after the subcommand's name.
struct Globals {
  std::string pin_dir = "/sys/fs/bpf/edgeshed";
  std::string socket = "/run/edgeshed/control.sock";
};

/// What a subcommand's setup function needs. Each sets `run` from its callback.
struct Context {
  Globals globals;
  std::function<int()> run;  // returns an Exit
};

/// Prints "edgeshed: <line>" to standard error and returns `code`.
int fail(Exit code, std::string_view line);

/// config::load, with kUsage as the exit code of its Error. hz: jiffies per second to check bursts
/// against; 0: the strictest.
core::Model load_config(const std::string& path, std::uint32_t hz = 0);

/// Adds a subcommand with examples below its options in --help.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& examples);

}  // namespace edgeshed::cli

#endif
