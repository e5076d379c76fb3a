// Names to numbers, stable: see numbering.h.
#include "userspace/core/numbering.h"

#include <algorithm>
#include <map>
#include <utility>

namespace edgeshed::core {
namespace {

constexpr uint64_t kHashMask = (uint64_t{1} << 56) - 1;

/// From the number an item has in the file to the number it gets.
using Moves = std::vector<uint32_t>;

/// What of one kind is numbered: `first` is 1 where number 0 is not a name.
struct Kind {
  const char* plural;
  uint32_t first;
  uint32_t numbers;  // of the maps, number 0 included
};

std::string hash_clash(const char* plural, const std::string& name) {
  return std::string(plural) + ": the name \"" + name +
         "\" cannot be told from another one (their hashes are equal); rename it";
}

/// Numbers for `names` (index: position in the file). Empty string, or what is wrong.
std::string assign(const std::vector<std::string>& names, std::span<const uint64_t> live,
                   const Kind& kind, Moves& moves) {
  std::map<uint64_t, uint32_t> number_of;
  std::vector<bool> used(kind.numbers);
  for (uint32_t number = kind.first; number < live.size() && number < kind.numbers; ++number) {
    if (live[number] != 0) number_of.emplace(live[number], number);
  }
  moves.assign(names.size(), 0);
  std::vector<uint32_t> fresh;
  std::map<uint64_t, bool> seen;
  for (uint32_t i = 0; i < names.size(); ++i) {
    const uint64_t hash = name_hash(names[i]);
    if (!seen.emplace(hash, true).second) return hash_clash(kind.plural, names[i]);
    const auto known = number_of.find(hash);
    if (known == number_of.end()) {
      fresh.push_back(i);
    } else {
      moves[i] = known->second;
      used[known->second] = true;
    }
  }
  const auto is_live = [&](uint32_t number) { return number < live.size() && live[number] != 0; };
  uint32_t never = kind.first;  // numbers that nobody has had
  uint32_t freed = kind.first;  // and those of names that are gone
  for (const uint32_t i : fresh) {
    while (never < kind.numbers && (used[never] || is_live(never))) ++never;
    while (freed < kind.numbers && used[freed]) ++freed;
    const uint32_t next = never < kind.numbers ? never : freed;
    if (next >= kind.numbers) {
      return "the configuration has more " + std::string(kind.plural) +
             " than the attached maps hold (" + std::to_string(kind.numbers - kind.first) +
             "); raise " + kind.plural + "_max in [host], then edgeshed detach and edgeshed attach";
    }
    moves[i] = next;
    used[next] = true;
  }
  return "";
}

template <typename Item>
std::vector<std::string> names_from(const std::vector<Item>& items, uint32_t first) {
  std::vector<std::string> names;
  for (size_t i = first; i < items.size(); ++i) names.push_back(items[i].name);
  return names;
}

/// `items` at their new numbers; index number - base. What nobody has is a hole.
template <typename Item>
std::vector<Item> placed(std::vector<Item> items, const Moves& moves, uint32_t base) {
  uint32_t size = 0;
  for (const uint32_t number : moves) size = std::max(size, number + 1 - base);
  std::vector<Item> result(size);
  for (size_t i = 0; i < moves.size(); ++i) result[moves[i] - base] = std::move(items[i]);
  return result;
}

void renumber_rooms(Model& model, const Moves& moves) {
  model.rooms = placed(std::move(model.rooms), moves, 0);
  for (Endpoint& endpoint : model.endpoints) {
    for (uint16_t& room : endpoint.rooms) room = static_cast<uint16_t>(moves[room]);
    endpoint.stranger_room = static_cast<uint16_t>(moves[endpoint.stranger_room]);
  }
  for (Connection& connection : model.connections) {
    connection.policy.room = static_cast<__u16>(moves[connection.policy.room]);
  }
}

void renumber_classes(Model& model, const Moves& moves) {
  // Class 0 is no class: it stays where it is, and moves[i] is about class i + 1.
  std::vector<ContractClass> named(std::make_move_iterator(model.classes.begin() + 1),
                                   std::make_move_iterator(model.classes.end()));
  named = placed(std::move(named), moves, 1);
  model.classes.resize(1);
  for (ContractClass& contract : named) model.classes.push_back(std::move(contract));
  for (Connection& connection : model.connections) {
    const uint8_t before = connection.policy.contract_class;
    if (before != 0) connection.policy.contract_class = static_cast<__u8>(moves[before - 1]);
  }
}

void renumber_endpoints(Model& model, const Moves& moves) {
  for (Endpoint& endpoint : model.endpoints) {
    if (endpoint.next_same_port == 0) continue;
    endpoint.next_same_port = static_cast<uint8_t>(moves[endpoint.next_same_port - 1]);
  }
  model.endpoints = placed(std::move(model.endpoints), moves, 1);
  for (size_t i = 0; i < model.endpoints.size(); ++i) {
    if (exists(model.endpoints[i])) model.endpoints[i].number = static_cast<uint8_t>(i + 1);
  }
  for (Connection& connection : model.connections) {
    connection.key.endpoint = static_cast<__u8>(moves[connection.key.endpoint - 1]);
  }
}

}  // namespace

uint64_t name_hash(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ hash >> 56) & kHashMask;
  return hash == 0 ? 1 : hash;
}

void set_name_hash(struct es_plan_room& row, uint64_t hash) {
  row.name_hash_low = static_cast<__u32>(hash);
  for (int i = 0; i < 3; ++i) row.name_hash_high[i] = static_cast<__u8>(hash >> (32 + 8 * i));
}

uint64_t name_hash_of(const struct es_plan_room& row) {
  uint64_t hash = row.name_hash_low;
  for (int i = 0; i < 3; ++i) hash |= uint64_t{row.name_hash_high[i]} << (32 + 8 * i);
  return hash;
}

Numbering numbering_of(std::span<const struct es_plan_endpoint> endpoints,
                       std::span<const struct es_plan_room> rooms,
                       std::span<const struct es_plan_class> classes) {
  Numbering numbering;
  for (const auto& row : endpoints) {
    numbering.endpoints.push_back(row.generation == 0 ? 0 : row.name_hash);
  }
  for (const auto& row : rooms) {
    numbering.rooms.push_back(row.generation == 0 ? 0 : name_hash_of(row));
  }
  for (const auto& row : classes) {
    numbering.classes.push_back(row.generation == 0 ? 0 : row.name_hash);
  }
  return numbering;
}

std::string keep_numbers(Model& model, const Numbering& live, const struct es_geometry& geometry) {
  Moves endpoints;
  Moves rooms;
  Moves classes;
  std::string fault = assign(names_from(model.endpoints, 0), live.endpoints,
                             {"endpoints", 1, geometry.endpoints}, endpoints);
  if (fault.empty()) {
    fault = assign(names_from(model.rooms, 0), live.rooms, {"rooms", 0, geometry.rooms}, rooms);
  }
  if (fault.empty()) {
    fault = assign(names_from(model.classes, 1), live.classes, {"classes", 1, geometry.classes},
                   classes);
  }
  if (!fault.empty()) return fault;
  renumber_rooms(model, rooms);
  renumber_classes(model, classes);
  renumber_endpoints(model, endpoints);
  return "";
}

bool refers_to_same(const struct es_connection& record, const Model& model, const Numbering& live) {
  const auto same = [](const std::vector<uint64_t>& hashes, uint32_t number, const auto& items,
                       uint32_t base) {
    if (number >= hashes.size() || hashes[number] == 0) return true;
    const uint32_t index = number - base;
    return index < items.size() && name_hash(items[index].name) == hashes[number];
  };
  const uint32_t contract = record.policy.contract_class;
  return same(live.endpoints, record.key.endpoint, model.endpoints, 1) &&
         same(live.rooms, record.policy.room, model.rooms, 0) &&
         (contract == 0 || same(live.classes, contract, model.classes, 0));
}

void keep_shard_numbers(Model& model, const Model& live) {
  std::vector<uint64_t> hashes;
  for (const Shard& shard : live.shards) {
    hashes.push_back(exists(shard) ? name_hash(shard.name) : 0);
  }
  Moves moves;
  const auto most = static_cast<uint32_t>(model.shards.size() + live.shards.size());
  // Names differ and there is room for all: only equal hashes could fail, and then nobody moves.
  if (!assign(names_from(model.shards, 0), hashes, {"shards", 0, most}, moves).empty()) return;
  model.shards = placed(std::move(model.shards), moves, 0);
  for (Room& room : model.rooms) {
    if (exists(room)) room.shard = moves[room.shard];
  }
}

}  // namespace edgeshed::core
