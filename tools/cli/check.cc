// edgeshed check: whether a configuration is valid, and the memory that it takes. Changes nothing,
// needs no privilege.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <memory>
#include <string>
#include <thread>

#include "tools/cli/commands.h"
#include "tools/cli/table.h"
#include "userspace/core/geometry.h"
#include "userspace/core/model.h"

namespace edgeshed::cli {
namespace {

struct CheckOptions {
  std::string file;
  bool json = false;
};

void print_json(const core::Model& model, const es_geometry& geometry) {
  boost::json::array maps;
  for (const core::MapMemory& map : core::map_memory(geometry)) {
    maps.push_back(
        boost::json::object{{"map", map.name}, {"entries", map.entries}, {"bytes", map.bytes}});
  }
  fmt::print("{}\n", boost::json::serialize(
                         boost::json::object{{"ok", true},
                                             {"endpoints", model.endpoints.size()},
                                             {"rooms", model.rooms.size()},
                                             {"shards", model.shards.size()},
                                             {"classes", model.classes.size() - 1},
                                             {"connections", model.connections.size()},
                                             {"memory_bytes", core::memory_bytes(geometry)},
                                             {"maps", std::move(maps)}}));
}

int run_check(const CheckOptions& options) {
  const core::Model model = load_config(options.file);
  const unsigned cpus = std::max(1u, std::thread::hardware_concurrency());
  const es_geometry geometry = core::derive_geometry(model.host, cpus, 0);
  if (options.json) {
    print_json(model, geometry);
    return kExitOk;
  }
  fmt::print("{}: ok; {} shards, {} rooms, {} endpoints, {} classes, {} connections\n",
             options.file, model.shards.size(), model.rooms.size(), model.endpoints.size(),
             model.classes.size() - 1, model.connections.size());
  Table table({"MAP", "ENTRIES", "KIB"});
  for (const core::MapMemory& map : core::map_memory(geometry)) {
    table.add({map.name, std::to_string(map.entries), fmt::format("{:.1f}", map.bytes / 1024.0)});
  }
  table.add({"all, with the counters of " + std::to_string(cpus) + " CPUs", "-",
             fmt::format("{:.1f}", core::memory_bytes(geometry) / 1024.0)});
  table.print("");
  return kExitOk;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command =
      add_command(app, "check", "Check a configuration and print the memory it takes",
                  "  edgeshed check /etc/edgeshed.toml\n");
  command->add_option("file", options->file, "The configuration, TOML")->required();
  command->add_flag("--json", options->json, "Print JSON");
  command->callback(
      [options, &context] { context.run = [options] { return run_check(*options); }; });
}

}  // namespace edgeshed::cli
