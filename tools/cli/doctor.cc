// edgeshed doctor: what would stand in the way of an attach, before it is tried. Changes nothing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tools/cli/commands.h"
#include "tools/cli/table.h"
#include "userspace/core/geometry.h"
#include "userspace/doctor/collect.h"
#include "userspace/doctor/findings.h"
#include "userspace/kernel/object.h"

namespace edgeshed::cli {
namespace {

struct DoctorOptions {
  std::vector<std::string> devices;
  std::string config;
  bool json = false;
};

Tone tone_of(doctor::Level level) {
  switch (level) {
    case doctor::Level::kOk:
      return Tone::kGood;
    case doctor::Level::kFail:
      return Tone::kBad;
    case doctor::Level::kWarn:
    case doctor::Level::kSkipped:
      break;
  }
  return Tone::kWarn;
}

boost::json::value text_or_null(const std::string& text) {
  // Not in braces: they would make an array of it.
  return text.empty() ? boost::json::value(nullptr) : boost::json::value(boost::json::string(text));
}

void print_json(const std::vector<doctor::Finding>& findings) {
  boost::json::array rows;
  for (const doctor::Finding& one : findings) {
    rows.push_back(boost::json::object{{"check", one.check},
                                       {"device", one.device},
                                       {"level", doctor::level_name(one.level)},
                                       {"found", one.found},
                                       {"command", text_or_null(one.command)},
                                       {"advice", text_or_null(one.advice)}});
  }
  fmt::print("{}\n", boost::json::serialize(rows));
}

/// "fail     eth0 xdp_owner   what was found", and what to do about it on a line of its own.
void print_text(const std::vector<doctor::Finding>& findings) {
  std::size_t width = 0;
  const auto title = [](const doctor::Finding& one) {
    return one.device.empty() ? one.check : one.device + " " + one.check;
  };
  for (const doctor::Finding& one : findings) width = std::max(width, title(one).size());
  std::size_t levels[4] = {};
  for (const doctor::Finding& one : findings) {
    ++levels[static_cast<std::size_t>(one.level)];
    fmt::print("{}  {:<{}}  {}\n",
               toned(fmt::format("{:<7}", doctor::level_name(one.level)), tone_of(one.level)),
               title(one), width, one.found);
    if (!one.command.empty()) fmt::print("         fix: {}\n", one.command);
    if (!one.advice.empty()) fmt::print("         by hand: {}\n", one.advice);
  }
  fmt::print("{} ok, {} warn, {} fail, {} skipped\n", levels[0], levels[1], levels[2], levels[3]);
}

int run_doctor(const DoctorOptions& options, const Globals& globals) {
  doctor::CollectOptions collect;
  collect.pin_dir = globals.pin_dir;
  collect.config = options.config;
  std::set<std::string> seen;
  const auto add = [&](const std::string& dev) {
    if (seen.insert(dev).second) collect.devices.push_back(dev);
  };
  for (const std::string& dev : options.devices) add(dev);
  if (!options.config.empty()) {
    const core::Model model = load_config(options.config);
    const es_geometry geometry = core::derive_geometry(model.host, kernel::possible_cpus(), 0);
    collect.config_has_devices = !model.interfaces.empty();
    collect.tables_bytes = core::memory_bytes(geometry);
    for (const core::Interface& one : model.interfaces) add(one.dev);
  }
  const auto findings = doctor::judge(doctor::collect(collect));
  if (options.json) {
    print_json(findings);
  } else {
    print_text(findings);
  }
  return doctor::exit_code_of(findings);
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = add_command(
      app, "doctor", "What would stand in the way of an attach, and what to do about it",
      "  sudo edgeshed doctor --config /etc/edgeshed.toml\n"
      "  sudo edgeshed doctor --dev eth0 --dev eth1\n"
      "  edgeshed doctor --json | jq '.[] | select(.level != \"ok\")'\n"
      "Changes nothing. Without --dev and --config: the network cards. fix: a command that can be\n"
      "pasted; by hand: what to do where no command does.\n"
      "Exit code 0: nothing fails, 1: something does, 4: something was skipped that needs root.\n");
  command->add_option("--dev", options->devices, "An interface to look at; may be given again")
      ->allow_extra_args(false);
  command->add_option("--config", options->config,
                      "The configuration, TOML: its interfaces, and the memory of its tables");
  command->add_flag("--json", options->json,
                    "Print JSON: rows of check, device, level, found, and command or advice");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_doctor(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
