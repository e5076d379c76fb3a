// edgeshed detach: takes the programs off and, with the last interface, removes the pins.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/client.h"
#include "tools/cli/commands.h"
#include "userspace/kernel/attach.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::cli {
namespace {

int run_detach(const std::string& dev, const Globals& globals) {
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
  if (!kernel::pins_exist(globals.pin_dir)) return kExitOk;
  kernel::remove_pins(globals.pin_dir);
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
