// The passes from TOML to the model, in the order in which they need each other. Private to
// userspace/config. Each pass reads one kind of table and appends to the model.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "userspace/config/toml_section.h"
#include "userspace/core/model.h"

namespace edgeshed::config {

/// What every pass works on. `root` is the whole file.
struct Build {
  const Section& root;
  uint32_t hz;
  core::Model& model;
};

void read_host(Build& build);
void read_session(Build& build);
void read_interfaces(Build& build);
void read_control(Build& build);
void read_ladder(Build& build);
void read_slow_consumer(Build& build);
void read_room_state(Build& build);
void read_placement(Build& build);
void read_cost(Build& build);
void read_degree(Build& build);
void read_fair_share(Build& build);
void read_shards(Build& build);
void read_rooms(Build& build);
void read_classes(Build& build);
void read_endpoints(Build& build);
void link_same_ports(Build& build);
void read_connections(Build& build);

/// Names of the lists in maps/lanes.h, index = number.
std::span<const std::string> lane_names();
std::span<const std::string> tier_names();
std::span<const std::string> protocol_names();

/// [host] and [[endpoint]] mode; unset when the key is missing.
core::Mode read_mode(const Section& section);

/// The name of a table: required, 1 to 63 of A-Z a-z 0-9 _ . - (it becomes a metrics label).
std::string read_name(const Section& section);

/// burst_s, limited by ES_BURST_JIFFIES_MAX at the build's HZ.
double read_burst_s(const Section& section, double fallback, uint32_t hz);

/// Fails when a table more than `limit` follows; `setting` is the key of [host] that raises it.
void check_capacity(const Section& section, size_t number, size_t limit, const char* setting,
                    size_t setting_max);

/// "name" of each item, for messages.
template <typename Items>
std::string names_of(const Items& items) {
  std::vector<std::string> names;
  for (const auto& item : items) {
    if (!item.name.empty()) names.push_back(item.name);
  }
  return list_text(names);
}

/// Fails when an item of that name exists.
template <typename Items>
void check_new_name(const Section& section, const Items& items, const std::string& name) {
  for (const auto& item : items) {
    if (item.name == name) {
      section.fail("name", "\"" + name + "\" is used twice; give each " + section.label() +
                               " a name of its own");
    }
  }
}

}  // namespace edgeshed::config
