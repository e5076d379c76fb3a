// edgeshed bypass: passes everything at once, or no longer. One word of the pinned control page, so
// it needs no daemon and outlives one.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"
#include "userspace/kernel/map_set.h"

namespace edgeshed::cli {
namespace {

int run_bypass(bool on, const Globals& globals) {
  const auto maps = kernel::MapSet::from_pins(globals.pin_dir, kernel::Access::kReadWrite);
  __atomic_store_n(&maps.control().bypass, on ? 1u : 0u, __ATOMIC_RELAXED);
  fmt::print("bypass is {}: {}\n", on ? "on" : "off",
             on ? "everything passes, counted as bypass" : "the plan decides");
  std::fflush(stdout);
  // It is done. A daemon that runs puts it on record; one that does not has no say in it.
  const Reply noted = ask_daemon(globals.socket, daemon::BypassRequest{on});
  if (noted.code != kExitOk && noted.running) {
    fail(kExitOk, fmt::format("not in the audit log: {}", noted.error));
  }
  return kExitOk;
}

}  // namespace

void add_bypass(CLI::App& app, Context& context) {
  auto state = std::make_shared<std::string>();
  CLI::App* command =
      add_command(app, "bypass", "Pass everything at once, with or without a daemon",
                  "  edgeshed bypass on\n  edgeshed bypass off\n"
                  "A daemon that runs puts it on record, once it is done.\n");
  command->add_option("state", *state, "on or off")
      ->required()
      ->check(CLI::IsMember({"on", "off"}));
  command->callback([state, &context] {
    context.run = [state, &context] { return run_bypass(*state == "on", context.globals); };
  });
}

}  // namespace edgeshed::cli
