// edgeshed dump: the maps, read-only, also while no daemon runs.
#include "tools/cli/dump.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "tools/cli/commands.h"

namespace edgeshed::cli {
namespace {

struct DumpOptions {
  std::string kind;
  std::string config;
  bool json = false;
};

int run_dump(const DumpOptions& options, const Globals& globals) {
  const HostView view(globals, options.config);
  if (options.kind == "events") return dump_events(view, options.json, globals);
  if (options.kind == "endpoints") dump_endpoints(view, options.json);
  if (options.kind == "rooms") dump_rooms(view, options.json);
  if (options.kind == "connections") dump_connections(view, options.json);
  if (options.kind == "streams") dump_streams(view, options.json);
  if (options.kind == "plan") dump_plan(view, options.json);
  if (options.kind == "counters") dump_counters(view, options.json);
  return kExitOk;
}

}  // namespace

void add_dump(CLI::App& app, Context& context) {
  auto options = std::make_shared<DumpOptions>();
  CLI::App* command = add_command(
      app, "dump", "Print the maps, with or without a daemon",
      "  edgeshed dump counters\n  edgeshed dump connections --json\n"
      "  edgeshed dump rooms --config /etc/edgeshed/edgeshed.toml   # no daemon, but names\n"
      "Names are in the configuration only: without a daemon and --config they are numbers (#1).\n"
      "Events: with a daemon its last 64; without one they are taken out of the ring.\n");
  command->add_option("kind", options->kind, "What")
      ->required()
      ->check(CLI::IsMember(
          {"endpoints", "rooms", "connections", "plan", "counters", "events", "streams"}));
  command->add_option("--config", options->config, "Where names come from while no daemon runs");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &context] {
    context.run = [options, &context] { return run_dump(*options, context.globals); };
  });
}

}  // namespace edgeshed::cli
