// Entry of the configuration: the file as a table of passes.
#include "userspace/config/config.h"

#include <fstream>
#include <string>

#include "userspace/config/builder.h"

namespace edgeshed::config {
namespace {

toml::table parse_text(std::string_view text, const std::string& path) {
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    fail_at(path, error.source(), "not valid TOML: " + std::string(error.description()));
  }
}

}  // namespace

core::Model parse(std::string_view text, const std::string& path, uint32_t hz) {
  const toml::table table = parse_text(text, path);
  const Section root(path, table, "file",
                     {"host", "session", "interface", "control", "slow_consumer", "room_state",
                      "placement", "cost", "degree", "fair_share", "ladder", "shard", "room",
                      "class", "endpoint", "connection"});
  core::Model model;
  Build build = {root, hz, model};

  // Capacities and constants first: the rest is checked against them.
  read_host(build);
  read_session(build);
  read_interfaces(build);
  read_control(build);
  read_ladder(build);
  read_slow_consumer(build);
  read_room_state(build);
  read_placement(build);
  read_cost(build);
  read_degree(build);
  read_fair_share(build);

  // Then names, each after those that it refers to.
  read_shards(build);
  read_rooms(build);
  read_classes(build);
  read_endpoints(build);
  link_same_ports(build);
  read_connections(build);
  return model;
}

core::Model load(const std::string& path, uint32_t hz) {
  std::ifstream file(path);
  std::string text;
  char chunk[4096];
  while (file) {
    file.read(chunk, sizeof chunk);
    text.append(chunk, static_cast<size_t>(file.gcount()));
  }
  // Reading ends at the end of the file, or because it cannot be read (a directory opens).
  if (!file.eof() || file.bad()) {
    throw Error(path + ": cannot be read; check that the file exists and that you may read it",
                kExitUsage);
  }
  return parse(text, path, hz);
}

}  // namespace edgeshed::config
