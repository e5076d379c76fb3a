#include "tools/cli/cli.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "userspace/config/config.h"

namespace edgeshed::cli {

int fail(ExitCode code, std::string_view line) {
  fmt::print(stderr, "edgeshed: {}\n", line);
  return code;
}

core::Model load_config(const std::string& path, std::uint32_t hz) {
  return config::load(path, hz == 0 ? config::kHzStrictest : hz);
}

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description,
                      const std::string& examples) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer("Examples:\n" + examples);
  command->fallthrough();  // --pin-dir and --socket may stand behind the name too
  return command;
}

}  // namespace edgeshed::cli
