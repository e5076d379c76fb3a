// What every subcommand shares: the global options, the exit codes, and how a failure is told.
#ifndef EDGESHED_TOOLS_CLI_CLI_H_
#define EDGESHED_TOOLS_CLI_CLI_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "userspace/core/error_type.h"
#include "userspace/core/model.h"
#include "userspace/core/pin_dir.h"

namespace CLI {
class App;
}

namespace edgeshed::cli {

/// Options before or after the subcommand's name.
struct Globals {
  std::string pin_dir{core::kDefaultPinDir};
  std::string socket = "/run/edgeshed/control.sock";
};

/// What a subcommand's setup function needs. Each sets `run` from its callback.
struct Context {
  Globals globals;
  std::function<int()> run;  // returns an ExitCode
};

/// Prints "edgeshed: <line>" to standard error and returns `code`.
int fail(ExitCode code, std::string_view line);

/// config::load. hz: jiffies per second to check bursts against; 0: the strictest.
core::Model load_config(const std::string& path, std::uint32_t hz = 0);

/// Adds a subcommand with examples below its options in --help.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& examples);

}  // namespace edgeshed::cli

#endif
