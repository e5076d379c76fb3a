// edgeshed attach: loads the object, pins it, and puts it on an interface. In this order, so that a
// wrong configuration or a refused interface changes nothing.
#include "userspace/kernel/attach.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "tools/cli/commands.h"
#include "userspace/core/error_type.h"
#include "userspace/core/geometry.h"
#include "userspace/kernel/jiffies_clock.h"
#include "userspace/kernel/map_set.h"
#include "userspace/kernel/object.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::cli {
namespace {

struct AttachCommand {
  std::string config;
  std::string dev;
  std::string faces = "clients";
  bool shadow = false;
  bool enforce = false;
  bool generic = false;
};

/// Another interface of the same host: the pinned maps must hold this configuration.
void check_pins_fit(const core::Model& model, const es_geometry& have) {
  const es_geometry want = core::derive_geometry(model.host, have.cpus, have.hz);
  const auto check = [](const char* key, std::uint32_t wanted, std::uint32_t pinned) {
    if (wanted <= pinned) return;
    throw Error(fmt::format("the pinned maps hold {} {}, the configuration asks for {}; edgeshed "
                            "detach first, or lower it",
                            pinned, key, wanted),
                kExitFailure);
  };
  check("endpoints", want.endpoints, have.endpoints);
  check("rooms", want.rooms, have.rooms);
  check("classes", want.classes, have.classes);
  check("connections", want.connections, have.connections);
  check("stream blocks", want.stream_blocks, have.stream_blocks);
}

/// Pins that were there stay, and so do their counters and connections. True: made anew.
bool ensure_pins(const AttachCommand& command, const core::Model& model,
                 const std::string& pin_dir) {
  if (kernel::pins_exist(pin_dir)) {
    const auto maps = kernel::MapSet::from_pins(pin_dir, kernel::Access::kReadWrite);
    check_pins_fit(model, maps.geometry());
    // Only what was asked for: a second interface without a flag keeps the host's default. The
    // daemon looks at this word each tick.
    if (command.shadow || command.enforce) {
      __atomic_store_n(&maps.control().default_enforce, command.enforce ? 1u : 0u,
                       __ATOMIC_RELAXED);
    }
    return false;
  }
  kernel::ObjectOptions options;
  options.geometry = core::derive_geometry(model.host, 0, 0);
  options.default_enforce = command.enforce;
  kernel::pin_object(kernel::Object::load(options), pin_dir);
  return true;
}

std::string describe(const kernel::Attachment& attachment) {
  std::string text = fmt::format(
      "{}: XDP {}{}", attachment.dev, kernel::xdp_state_name(attachment.xdp),
      attachment.xdp == kernel::XdpState::kDispatcher && attachment.xdp_generic ? " (generic)"
                                                                                : "");
  if (attachment.tc_program != 0) text += ", TC egress";
  text += fmt::format(", faces {}", kernel::faces_name(attachment.faces));
  if (!attachment.fallback_reason.empty()) text += "; " + attachment.fallback_reason;
  return text;
}

int run_attach(const AttachCommand& command, const Globals& globals) {
  const core::Model model = load_config(command.config, kernel::measure_hz());
  const bool fresh = ensure_pins(command, model, globals.pin_dir);
  kernel::AttachOptions options;
  options.dev = command.dev;
  options.pin_dir = globals.pin_dir;
  if (command.faces == "servers") options.faces = kernel::Faces::kServers;
  if (command.generic) options.mode = kernel::XdpRequest::kGeneric;
  try {
    fmt::print("{}\n", describe(kernel::attach(options)));
  } catch (...) {
    if (fresh) kernel::remove_pins(globals.pin_dir);
    throw;
  }
  const auto maps = kernel::MapSet::from_pins(globals.pin_dir, kernel::Access::kRead);
  fmt::print("endpoints that say nothing: {}; nothing is shed before edgeshedd runs\n",
             maps.control().default_enforce != 0 ? "enforce" : "shadow");
  return kExitOk;
}

}  // namespace

void add_attach(CLI::App& app, Context& context) {
  auto options = std::make_shared<AttachCommand>();
  CLI::App* command =
      add_command(app, "attach", "Load, pin and attach the packet path",
                  "  edgeshed attach --config /etc/edgeshed.toml --dev eth0\n"
                  "  edgeshed attach --config /etc/edgeshed.toml --dev eth0 --enforce\n"
                  "  edgeshed attach --config /etc/edgeshed.toml --dev veth1 --faces servers\n"
                  "Again, with another --dev: one more interface on the same maps.\n");
  command->add_option("--config", options->config, "The configuration, TOML")->required();
  command->add_option("--dev", options->dev, "The interface")->required();
  command->add_option("--faces", options->faces, "Who is at its other end")
      ->check(CLI::IsMember({"clients", "servers"}))
      ->capture_default_str();
  auto* shadow = command->add_flag("--shadow", options->shadow,
                                   "Endpoints that say nothing decide and count, and shed nothing "
                                   "(the default)");
  command->add_flag("--enforce", options->enforce, "Endpoints that say nothing shed")
      ->excludes(shadow);
  command->add_flag("--generic", options->generic, "XDP in generic mode");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_attach(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
