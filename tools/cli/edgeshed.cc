// edgeshed: from the command line to the exit code.
#include <CLI/CLI.hpp>
#include <exception>

#include "tools/cli/cli.h"
#include "tools/cli/command_tree.h"
#include "userspace/core/error_type.h"

namespace edgeshed::cli {
namespace {

int run(int argc, char** argv) {
  Context context;
  CLI::App app;
  add_commands(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return context.run();
}

}  // namespace
}  // namespace edgeshed::cli

int main(int argc, char** argv) {
  try {
    return edgeshed::cli::run(argc, argv);
  } catch (const edgeshed::Error& error) {
    return edgeshed::cli::fail(static_cast<edgeshed::ExitCode>(error.exit_code()), error.what());
  } catch (const std::exception& error) {
    return edgeshed::cli::fail(edgeshed::kExitFailure, error.what());
  }
}
