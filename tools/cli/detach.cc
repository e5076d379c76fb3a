// edgeshed detach: takes the programs off and, with the last interface, removes the pins.
#include <fmt/format.h>
#include <net/if.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"
#include "tools/cli/confirm_state.h"
#include "userspace/kernel/attach.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::cli {
namespace {

/// Long enough for an attach, an upgrade or a rollback that is under way; then detach goes on, as
/// it must be possible whatever hangs.
constexpr std::uint32_t kDetachWaitMs = 15'000;

/// What `attach --confirm` noted is gone from its devices, so that there is nothing to take back or
/// to keep. Of other pins, or of devices that are not in this network namespace, it is not ours.
void forget_confirm_of(const Globals& globals) {
  const ConfirmState state = read_confirm(globals.socket);
  if (state.phase == ConfirmPhase::kNone || state.undo.pin_dir != globals.pin_dir) return;
  for (const kernel::DeviceBefore& one : state.undo.devices) {
    if (if_nametoindex(one.dev.c_str()) == 0) return;
  }
  forget_confirm(globals.socket);
}

int run_detach(const std::string& dev, const Globals& globals) {
  const kernel::Fd lock = lock_confirm_if_possible(globals.socket, kDetachWaitMs);
  std::vector<std::string> devices;
  if (dev.empty()) {
    devices = kernel::detach_all(globals.pin_dir);
  } else if (kernel::detach(dev, globals.pin_dir)) {
    devices.push_back(dev);
  }
  for (const std::string& one : devices) fmt::print("{}: detached\n", one);
  if (devices.empty()) {
    fmt::print("nothing of EdgeShed is attached{}\n", dev.empty() ? "" : " to " + dev);
  }
  if (!kernel::attachments(globals.pin_dir).empty()) return kExitOk;
  forget_confirm_of(globals);
  const bool pinned = kernel::pins_exist(globals.pin_dir);
  kernel::remove_pins(globals.pin_dir);  // without any, too: a killed attach left some beside them
  if (!pinned) return kExitOk;
  fmt::print("{}: pins removed\n", globals.pin_dir);
  if (ask_daemon(globals.socket, daemon::StatusRequest{}).running) {
    fmt::print(
        "edgeshedd still runs on the removed maps; stop it, or restart it after the next "
        "attach\n");
  }
  return kExitOk;
}

}  // namespace

void add_detach(CLI::App& app, Context& context) {
  auto dev = std::make_shared<std::string>();
  CLI::App* command = add_command(app, "detach", "Take the packet path off; leaves nothing behind",
                                  "  edgeshed detach\n  edgeshed detach --dev eth0\n");
  command->add_option("--dev", *dev, "This interface only; default: all of ours");
  command->callback([dev, &context] {
    context.run = [dev, &context] { return run_detach(*dev, context.globals); };
  });
}

}  // namespace edgeshed::cli
