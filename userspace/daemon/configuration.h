// The configuration's file as a model that fits the maps and what runs now. Reads; changes nothing.
#ifndef EDGESHED_USERSPACE_DAEMON_CONFIGURATION_H_
#define EDGESHED_USERSPACE_DAEMON_CONFIGURATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "userspace/core/model.h"
#include "userspace/core/numbering.h"
#include "userspace/kernel/map_set.h"

namespace edgeshed::daemon {

/// Loads `path`. Names that the live plan knows keep their numbers, shards those of `running`
/// (null: nothing runs yet). Throws Error, one line: the file is wrong, or asks for more than the
/// attached maps hold.
struct Loaded {
  core::Model model;
  core::Numbering live;  // what the numbers of the live plan mean; empty: there is no plan
};
Loaded load_configuration(const std::string& path, const kernel::MapSet& maps,
                          const core::Model* running);

/// User ids of [session] users. Throws Error: a name that this host does not know.
std::vector<std::uint32_t> session_user_ids(const core::Model& model);

/// What differs, for the log and the answer of a reload: names added and removed, by kind.
struct ConfigurationDifference {
  std::vector<std::string> added;  // "room lobby", "endpoint game", ...
  std::vector<std::string> removed;
};
ConfigurationDifference difference_of(const core::Model& from, const core::Model& to);

}  // namespace edgeshed::daemon

#endif
