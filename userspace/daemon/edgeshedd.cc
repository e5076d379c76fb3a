// edgeshedd: from the command line to the exit code.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "userspace/core/error_type.h"
#include "userspace/daemon/command_line.h"
#include "userspace/daemon/daemon.h"

int main(int argc, char** argv) {
  edgeshed::daemon::DaemonOptions options;
  CLI::App app;
  edgeshed::daemon::add_daemon_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : edgeshed::kExitUsage;
  }
  spdlog::set_default_logger(spdlog::stderr_color_mt("edgeshedd"));
  return edgeshed::daemon::run_daemon(options);
}
