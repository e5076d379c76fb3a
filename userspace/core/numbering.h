// Which number a name has. The maps know endpoints, rooms and classes by number, and connections'
// records hold those numbers; so a reload or a restart with another file must give each name the
// number that it had. Plan rows carry a hash of the name for that. Pure; must not know the maps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "maps/control.h"
#include "maps/plan.h"
#include "userspace/core/model.h"

namespace edgeshed::core {

/// 56 bits of a name's hash (FNV-1a, folded); never 0. Two of 65,535 names share one with a
/// probability of 3 in 10^8; keep_numbers() refuses then.
uint64_t name_hash(std::string_view name);

/// The hash as rows hold it, and back. 0: nobody's.
void set_name_hash(struct es_plan_room& row, uint64_t hash);
uint64_t name_hash_of(const struct es_plan_room& row);

/// Hashes by number; 0: the number is free. Index 0 of endpoints and classes is not a name.
struct Numbering {
  std::vector<uint64_t> endpoints;
  std::vector<uint64_t> rooms;
  std::vector<uint64_t> classes;
};

/// The numbering of a plan's rows, those of one copy, one per number of the maps. Rows whose
/// generation is 0 are free.
Numbering numbering_of(std::span<const struct es_plan_endpoint> endpoints,
                       std::span<const struct es_plan_room> rooms,
                       std::span<const struct es_plan_class> classes);

/// Renumbers `model` in place: names of `live` keep their numbers; new names get numbers that are
/// free in `live`, and only when there are none those of names that are gone (what still refers to
/// such a number must be removed: refers_to_same()). Numbers in between that nobody has become
/// holes (exists() is false). Connections follow. Numbers stay below `geometry`. Returns an empty
/// string, or one line: what does not fit, and what to do; the model is then unusable.
std::string keep_numbers(Model& model, const Numbering& live, const struct es_geometry& geometry);

/// True if endpoint, room and class of a record mean in `model` what they meant in `live`. An empty
/// numbering knows nothing, and objects to nothing.
bool refers_to_same(const struct es_connection& record, const Model& model, const Numbering& live);

/// The same for shards, which only user space numbers: `model` follows `live`, another file's model
/// that runs now. Room::shard follows.
void keep_shard_numbers(Model& model, const Model& live);

}  // namespace edgeshed::core
