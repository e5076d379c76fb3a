// edgeshed run: attach, then the daemon in the place of this process.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/attach_plan.h"
#include "tools/cli/commands.h"

namespace edgeshed::cli {
namespace {

/// The daemon that belongs to this command line: beside it (installed), else where the build put
/// it, else whatever PATH has.
std::string daemon_path() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const auto folder = self.parent_path();
    for (const auto& path : {folder / "edgeshedd", folder.parent_path() / "sbin/edgeshedd",
                             folder.parent_path().parent_path() / "userspace/daemon/edgeshedd"}) {
      if (access(path.c_str(), X_OK) == 0) return path.string();
    }
  }
  return "edgeshedd";
}

int run_daemon(const AttachPlan& plan, bool fifo, const Globals& globals) {
  attach_all(plan, globals);
  std::fflush(stdout);
  std::vector<std::string> words = {daemon_path(),   "--config", plan.config,   "--pin-dir",
                                    globals.pin_dir, "--socket", globals.socket};
  if (fifo) words.emplace_back("--fifo");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return fail(
      kExitFailure,
      fmt::format("{}: {}; attached, but no daemon runs: install edgeshedd, or {}", words[0],
                  std::strerror(errno), core::command_at(globals.pin_dir, "detach")));
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  struct Options {
    AttachPlan plan;
    bool fifo = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, "run", "Attach, and run the daemon in the foreground",
      "  edgeshed run --config /etc/edgeshed/edgeshed.toml\n"
      "  edgeshed run --config game.toml --dev eth0 --enforce\n"
      "  edgeshed run --config game.toml --dev eth0 --confirm 60s    # see edgeshed confirm\n"
      "Ctrl-C stops the daemon and leaves everything attached; edgeshed detach takes it "
      "off.\n");
  add_attach_options(*command, options->plan);
  command->add_flag("--fifo", options->fifo, "Run the tick thread SCHED_FIFO");
  command->callback([options, &context] {
    context.run = [options, &context] {
      options->plan.becomes_daemon = true;
      return run_daemon(options->plan, options->fifo, context.globals);
    };
  });
}

}  // namespace edgeshed::cli
