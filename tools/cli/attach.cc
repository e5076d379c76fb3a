// edgeshed attach: loads the object, pins it, and puts it on an interface. In this order, so that a
// wrong configuration or a refused interface changes nothing.
#include "userspace/kernel/attach.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/attach_plan.h"
#include "tools/cli/commands.h"
#include "userspace/core/error_type.h"
#include "userspace/core/geometry.h"
#include "userspace/kernel/jiffies_clock.h"
#include "userspace/kernel/map_set.h"
#include "userspace/kernel/object.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::cli {
namespace {

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
bool ensure_pins(const AttachPlan& command, const core::Model& model, const std::string& pin_dir) {
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

/// The interfaces to attach to: the one of --dev, or all of the configuration.
std::vector<core::Interface> wanted_interfaces(const AttachPlan& command,
                                               const core::Model& model) {
  if (!command.dev.empty()) {
    return {{command.dev, command.faces == "servers", command.generic}};
  }
  if (model.interfaces.empty()) {
    throw Error("no interface to attach to: give --dev, or an [[interface]] in the configuration",
                kExitUsage);
  }
  return model.interfaces;
}

void attach_one(const core::Interface& interface, const std::string& pin_dir) {
  kernel::AttachOptions options;
  options.dev = interface.dev;
  options.pin_dir = pin_dir;
  if (interface.faces_servers) options.faces = kernel::Faces::kServers;
  if (interface.generic) options.mode = kernel::XdpRequest::kGeneric;
  fmt::print("{}\n", describe(kernel::attach(options)));
}

}  // namespace

void attach_all(const AttachPlan& command, const Globals& globals) {
  const core::Model model = load_config(command.config, kernel::measure_hz());
  const std::vector<core::Interface> interfaces = wanted_interfaces(command, model);
  const bool fresh = ensure_pins(command, model, globals.pin_dir);
  std::vector<std::string> done;
  try {
    for (const core::Interface& interface : interfaces) {
      attach_one(interface, globals.pin_dir);
      done.push_back(interface.dev);
    }
  } catch (...) {
    // Nothing half-applied: with pins of our own making, all of it goes.
    if (fresh) {
      for (const std::string& dev : done) kernel::detach(dev, globals.pin_dir);
      kernel::remove_pins(globals.pin_dir);
    }
    throw;
  }
  const auto maps = kernel::MapSet::from_pins(globals.pin_dir, kernel::Access::kRead);
  fmt::print("endpoints that say nothing: {}; nothing is shed before edgeshedd runs\n",
             maps.control().default_enforce != 0 ? "enforce" : "shadow");
}

void add_attach_options(CLI::App& command, AttachPlan& plan) {
  command.add_option("--config", plan.config, "The configuration, TOML")->required();
  CLI::Option* dev = command.add_option("--dev", plan.dev,
                                        "The interface; without it every [[interface]] of the "
                                        "configuration");
  command.add_option("--faces", plan.faces, "Who is at its other end")
      ->check(CLI::IsMember({"clients", "servers"}))
      ->capture_default_str()
      ->needs(dev);
  auto* shadow = command.add_flag("--shadow", plan.shadow,
                                  "Endpoints that say nothing decide and count, and shed nothing "
                                  "(the default)");
  command.add_flag("--enforce", plan.enforce, "Endpoints that say nothing shed")->excludes(shadow);
  command.add_flag("--generic", plan.generic, "XDP in generic mode")->needs(dev);
}

void add_attach(CLI::App& app, Context& context) {
  auto plan = std::make_shared<AttachPlan>();
  CLI::App* command =
      add_command(app, "attach", "Load, pin and attach the packet path",
                  "  edgeshed attach --config /etc/edgeshed.toml --dev eth0\n"
                  "  edgeshed attach --config /etc/edgeshed.toml --dev eth0 --enforce\n"
                  "  edgeshed attach --config /etc/edgeshed.toml --dev veth1 --faces servers\n"
                  "Again, with another --dev: one more interface on the same maps.\n");
  add_attach_options(*command, *plan);
  command->callback([plan, &context] {
    context.run = [plan, &context] {
      attach_all(*plan, context.globals);
      return kExitOk;
    };
  });
}

}  // namespace edgeshed::cli
