// edgeshed attach: loads the object, pins it, and puts it on an interface. In this order, so that a
// wrong configuration changes nothing; what a refused interface left half done is undone.
#include "userspace/kernel/attach.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/attach_plan.h"
#include "tools/cli/commands.h"
#include "tools/cli/confirm_state.h"
#include "tools/cli/confirm_watch.h"
#include "tools/cli/duration.h"
#include "userspace/core/error_type.h"
#include "userspace/core/geometry.h"
#include "userspace/kernel/attach_undo.h"
#include "userspace/kernel/jiffies_clock.h"
#include "userspace/kernel/map_set.h"
#include "userspace/kernel/object.h"
#include "userspace/kernel/pins.h"
#include "userspace/kernel/upgrade.h"

namespace edgeshed::cli {
namespace {

// Shorter, and nobody can confirm; longer, and nobody waits for it.
constexpr double kConfirmMinS = 5, kConfirmMaxS = 3600;

/// For an attach or a rollback that is under way.
constexpr std::uint32_t kAttachLockTimeoutMs = 15'000;

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

/// Pins that were there stay, and so do their counters and connections.
void ensure_pins(const AttachPlan& command, const core::Model& model, const std::string& pin_dir) {
  if (kernel::pins_exist(pin_dir)) {
    const auto maps = kernel::MapSet::from_pins(pin_dir, kernel::Access::kReadWrite);
    check_pins_fit(model, maps.geometry());
    // Only what was asked for: a second interface without a flag keeps the host's default. The
    // daemon looks at this word each tick.
    if (command.shadow || command.enforce) {
      __atomic_store_n(&maps.control().default_enforce, command.enforce ? 1u : 0u,
                       __ATOMIC_RELAXED);
    }
    if (!kernel::are_from(maps.control(), kernel::default_object_path())) {
      fmt::print("the pinned programs are another build's: `{}` replaces them\n",
                 core::command_at(pin_dir, "upgrade"));
    }
    return;
  }
  kernel::ObjectOptions options;
  options.geometry = core::derive_geometry(model.host, 0, 0);
  options.default_enforce = command.enforce;
  kernel::pin_object(kernel::Object::load(options), pin_dir);
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

void attach_one(const core::Interface& interface, const kernel::DeviceBefore& before,
                const std::string& pin_dir) {
  kernel::AttachOptions options;
  options.dev = interface.dev;
  options.pin_dir = pin_dir;
  if (interface.faces_servers) options.faces = kernel::Faces::kServers;
  if (interface.generic) options.mode = kernel::XdpRequest::kGeneric;
  // Some drivers reset the link for every program that comes, its own successor included.
  if (before.whole && before.faces == options.faces) {
    fmt::print("{}: attached already, left alone\n", interface.dev);
    return;
  }
  fmt::print("{}\n", describe(kernel::attach(options)));
}

/// What cannot be put back exactly is not begun.
void check_can_go_back(const kernel::AttachUndo& undo) {
  for (const kernel::DeviceBefore& one : undo.devices) {
    if (!one.attached || one.whole) continue;
    throw Error(fmt::format("{} carries an attach that was not finished, which could not be put "
                            "back: {} first, or attach without --confirm",
                            one.dev, core::command_at(undo.pin_dir.string(), "detach")),
                kExitRefused);
  }
}

void check_idle(const kernel::AttachUndo& undo) {
  if (!undo.pins_there) return;
  const auto maps = kernel::MapSet::from_pins(undo.pin_dir, kernel::Access::kRead);
  const std::size_t used = maps.registered_ports();
  if (used == 0) return;
  throw Error(fmt::format("{} ports are registered in the pinned maps, so not everything would "
                          "pass: attach without --idle, or {} first",
                          used, core::command_at(undo.pin_dir.string(), "detach")),
              kExitRefused);
}

/// Throws what `error` and the undoing say together if that fails too.
void undo_after(const kernel::AttachUndo& undo, const std::exception& error) {
  try {
    kernel::roll_back(undo);
  } catch (const std::exception& second) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    throw Error(fmt::format("{}; and it could not be undone: {}", error.what(), second.what()),
                ours != nullptr ? ours->exit_code() : kExitFailure);
  }
}

void attach_devices(const AttachPlan& command, const core::Model& model,
                    const std::vector<core::Interface>& interfaces,
                    const kernel::AttachUndo& undo) {
  ensure_pins(command, model, undo.pin_dir);
  for (std::size_t i = 0; i < interfaces.size(); ++i) {
    attach_one(interfaces[i], undo.devices[i], undo.pin_dir);
  }
}

void begin_confirm_time(const AttachPlan& command, const Globals& globals) {
  if (command.confirm_s <= 0 || restart_confirm_clock(globals.socket, command.confirm_s)) return;
  throw Error("nobody watches over it any more, as edgeshed detach came between; attach again",
              kExitRefused);
}

/// Pins, devices and the time to confirm, all or none.
void attach_or_undo(const AttachPlan& command, const core::Model& model,
                    const std::vector<core::Interface>& interfaces, const kernel::AttachUndo& undo,
                    const Globals& globals) {
  try {
    attach_devices(command, model, interfaces, undo);
    begin_confirm_time(command, globals);
  } catch (const std::exception& error) {
    undo_after(undo, error);  // if it throws, whoever watches tries again
    forget_confirm(globals.socket);
    throw;
  }
}

void say_what_stands(const AttachPlan& command, const Globals& globals) {
  const auto maps = kernel::MapSet::from_pins(globals.pin_dir, kernel::Access::kRead);
  if (command.idle) {
    fmt::print(
        "armed: everything passes, and is counted; edgeshedd puts the configuration in "
        "force without touching a device\n");
  } else {
    fmt::print("endpoints that say nothing: {}; nothing is shed before edgeshedd runs\n",
               maps.control().default_enforce != 0 ? "enforce" : "shadow");
  }
  const std::string line = confirm_line(read_confirm(globals.socket));
  if (!line.empty()) fmt::print("{}\n", line);
}

}  // namespace

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

void attach_all(const AttachPlan& command, const Globals& globals) {
  const core::Model model = load_config(command.config, kernel::measure_hz());
  const std::vector<core::Interface> interfaces = wanted_interfaces(command, model);
  std::vector<std::string> devices;
  for (const core::Interface& one : interfaces) devices.push_back(one.dev);
  const kernel::Fd lock = lock_confirm(globals.socket, kAttachLockTimeoutMs);
  require_none_waits(globals.socket);
  const kernel::AttachUndo undo = kernel::note_before_attach(globals.pin_dir, devices);
  if (command.idle) check_idle(undo);
  forget_confirm(globals.socket);  // what came of an earlier one
  if (command.confirm_s > 0) {
    check_can_go_back(undo);
    start_confirm_watch({globals.socket, undo, command.confirm_s, command.becomes_daemon});
  }
  attach_or_undo(command, model, interfaces, undo, globals);
  say_what_stands(command, globals);
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
  auto confirm = std::make_shared<std::string>();
  command
      .add_option("--confirm", *confirm,
                  "Take it all back after that time (5s to 1h) unless `edgeshed confirm`")
      ->each([&plan, confirm](const std::string& text) {
        plan.confirm_s = parse_duration_s(text, "--confirm");
        if (plan.confirm_s >= kConfirmMinS && plan.confirm_s <= kConfirmMaxS) return;
        throw Error(fmt::format("--confirm: {} is out of range; allowed: 5s to 1h", text),
                    kExitUsage);
      });
}

void add_attach(CLI::App& app, Context& context) {
  auto plan = std::make_shared<AttachPlan>();
  CLI::App* command = add_command(
      app, "attach", "Load, pin and attach the packet path",
      "  edgeshed attach --config /etc/edgeshed.toml --dev eth0\n"
      "  edgeshed attach --config /etc/edgeshed.toml --dev eth0 --enforce\n"
      "  edgeshed attach --config /etc/edgeshed.toml --dev veth1 --faces servers\n"
      "  edgeshed attach --config /etc/edgeshed.toml --dev eth0 --confirm 60s\n"
      "  edgeshed attach --config /etc/edgeshed.toml --idle       # at boot\n"
      "Again, with another --dev: one more interface on the same maps. What is attached "
      "already is\nleft alone: only the first attach can touch the link.\n");
  add_attach_options(*command, *plan);
  command
      ->add_flag(
          "--idle", plan->idle,
          "Arm only: everything passes until edgeshedd runs; refused if ports are registered")
      ->excludes("--enforce");
  command->callback([plan, &context] {
    context.run = [plan, &context] {
      attach_all(*plan, context.globals);
      return kExitOk;
    };
  });
}

}  // namespace edgeshed::cli
