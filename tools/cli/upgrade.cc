// edgeshed upgrade: this build's programs in the place of those that are attached, on the same
// maps.
#include "userspace/kernel/upgrade.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>

#include "tools/cli/attach_plan.h"
#include "tools/cli/cli.h"
#include "tools/cli/commands.h"
#include "tools/cli/confirm_state.h"
#include "userspace/kernel/object.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::cli {
namespace {

/// For an attach or a rollback that is under way.
constexpr std::uint32_t kUpgradeLockTimeoutMs = 15'000;

int run_upgrade(bool again, const Globals& globals) {
  const kernel::Fd lock = lock_confirm(globals.socket, kUpgradeLockTimeoutMs);
  require_none_waits(globals.socket);
  if (!kernel::pins_exist(globals.pin_dir)) {
    throw Error(
        fmt::format("not attached: no pins in {}; edgeshed attach comes first", globals.pin_dir));
  }
  const auto done = kernel::upgrade_programs(kernel::default_object_path(), globals.pin_dir, again);
  if (!done) {
    fmt::print("the programs are this build's already, left alone\n");
    return kExitOk;
  }
  for (const kernel::Attachment& one : *done) fmt::print("{}\n", describe(one));
  fmt::print("{}: the programs are this build's; counters and connections go on\n",
             globals.pin_dir);
  return kExitOk;
}

}  // namespace

void add_upgrade(CLI::App& app, Context& context) {
  auto again = std::make_shared<bool>(false);
  CLI::App* command = add_command(
      app, "upgrade", "This build's packet path in the place of the one that is attached",
      "  sudo edgeshed upgrade\n"
      "In place, on the same maps: no packet passes without a program, counters and connections\n"
      "go on, edgeshedd need not stop. Back again: the same, of the other build. Maps of another\n"
      "schema are refused, and nothing is changed. Some drivers reset their link for every\n"
      "program that comes. `edgeshed status` says when there is something to do.\n");
  command->add_flag("--again", *again, "Even if the programs are this build's already");
  command->callback([again, &context] {
    context.run = [again, &context] { return run_upgrade(*again, context.globals); };
  });
}

}  // namespace edgeshed::cli
