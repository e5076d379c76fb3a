// edgeshed_pages FOLDER VERSION: the man pages and completions of both programs, into a folder.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tools/cli/command_tree.h"
#include "tools/pages/command.h"
#include "tools/pages/completion.h"
#include "tools/pages/man_page.h"
#include "userspace/core/error_type.h"
#include "userspace/daemon/command_line.h"

namespace edgeshed::pages {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Error(fmt::format("{}: cannot be written", path.string()));
}

Command edgeshed_command() {
  cli::Context context;
  CLI::App app;
  cli::add_commands(app, context);
  return read_command(app);
}

Command edgeshedd_command() {
  daemon::DaemonOptions options;
  CLI::App app;
  daemon::add_daemon_options(app, options);
  return read_command(app);
}

void write_pages(const std::filesystem::path& folder, const std::string& version) {
  std::filesystem::create_directories(folder);
  const Command program = edgeshed_command();
  for (const Command& sub : program.subcommands) {
    if (!sub.subcommands.empty()) {
      throw Error(
          fmt::format("edgeshed {} has subcommands of its own: completions know one level "
                      "only; teach tools/pages another",
                      sub.name));
    }
    const std::string name = program.name + "-" + sub.name;
    write(folder / (name + ".1"), man_page({name, 1, version, {"edgeshed(1)", "edgeshedd(8)"}}, sub,
                                           program.name + " " + sub.name));
  }
  write(folder / "edgeshed.1",
        man_page({"edgeshed", 1, version, {"edgeshedd(8)"}}, program, "edgeshed"));
  write(folder / "edgeshedd.8",
        man_page({"edgeshedd", 8, version, {"edgeshed(1)"}}, edgeshedd_command(), "edgeshedd"));
  write(folder / "edgeshed.bash", bash_completion(program));
  write(folder / "_edgeshed", zsh_completion(program));
}

}  // namespace
}  // namespace edgeshed::pages

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "edgeshed_pages: {} words given; write edgeshed_pages FOLDER VERSION\n",
               argc - 1);
    return edgeshed::kExitUsage;
  }
  try {
    edgeshed::pages::write_pages(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "edgeshed_pages: {}\n", error.what());
    return edgeshed::kExitFailure;
  }
}
