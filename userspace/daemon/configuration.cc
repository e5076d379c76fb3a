#include "userspace/daemon/configuration.h"

#include <fmt/format.h>
#include <pwd.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "userspace/config/config.h"
#include "userspace/core/error_type.h"

namespace edgeshed::daemon {
namespace {

core::Numbering live_numbering(const kernel::MapSet& maps) {
  const std::uint32_t generation = __atomic_load_n(&maps.control().generation, __ATOMIC_ACQUIRE);
  if (generation == 0) return {};
  const unsigned copy = generation & 1;
  return core::numbering_of(maps.plan_endpoints(copy), maps.plan_rooms(copy),
                            maps.plan_classes(copy));
}

/// Capacities that the maps were made with: a reload cannot raise them.
void check_capacities(const std::string& path, const core::Host& host, const es_geometry& have) {
  const auto check = [&](const char* key, std::uint32_t wanted, std::uint32_t pinned) {
    if (wanted <= pinned) return;
    throw Error(fmt::format("{}: [host] {} is {}, the attached maps hold {}; edgeshed detach and "
                            "edgeshed attach make new ones, or lower it",
                            path, key, wanted, pinned),
                kExitUsage);
  };
  check("connections_max", host.connections_max, have.connections);
  check("endpoints_max", host.endpoints_max, have.endpoints - 1);
  check("rooms_max", host.rooms_max, have.rooms);
  check("classes_max", host.classes_max, have.classes - 1);
  check("streams_max", host.streams_max, have.stream_blocks);
}

template <typename Items>
void add_names(const char* kind, const Items& items, std::set<std::string>& names) {
  for (const auto& item : items) {
    if (!item.name.empty()) names.insert(fmt::format("{} {}", kind, item.name));
  }
}

std::set<std::string> names_of(const core::Model& model) {
  std::set<std::string> names;
  add_names("shard", model.shards, names);
  add_names("room", model.rooms, names);
  add_names("class", model.classes, names);
  add_names("endpoint", model.endpoints, names);
  return names;
}

}  // namespace

Loaded load_configuration(const std::string& path, const kernel::MapSet& maps,
                          const core::Model* running) {
  const es_geometry& geometry = maps.geometry();
  Loaded loaded{config::load(path, geometry.hz), live_numbering(maps)};
  check_capacities(path, loaded.model.host, geometry);
  const std::string fault = core::keep_numbers(loaded.model, loaded.live, geometry);
  if (!fault.empty()) throw Error(path + ": " + fault, kExitUsage);
  if (running != nullptr) core::keep_shard_numbers(loaded.model, *running);
  return loaded;
}

std::vector<std::uint32_t> session_user_ids(const core::Model& model) {
  std::vector<std::uint32_t> ids;
  for (const std::string& user : model.session.users) {
    std::uint32_t id = 0;
    const auto parsed = std::from_chars(user.data(), user.data() + user.size(), id);
    if (parsed.ec == std::errc() && parsed.ptr == user.data() + user.size()) {
      ids.push_back(id);
      continue;
    }
    const passwd* const entry = getpwnam(user.c_str());
    if (entry == nullptr) {
      throw Error(fmt::format("[session] users: this host has no user \"{}\"; create it, or give "
                              "its number",
                              user),
                  kExitUsage);
    }
    ids.push_back(entry->pw_uid);
  }
  return ids;
}

ConfigurationDifference difference_of(const core::Model& from, const core::Model& to) {
  const std::set<std::string> before = names_of(from);
  const std::set<std::string> after = names_of(to);
  ConfigurationDifference difference;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                      std::back_inserter(difference.added));
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                      std::back_inserter(difference.removed));
  return difference;
}

}  // namespace edgeshed::daemon
