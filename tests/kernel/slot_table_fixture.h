// A slot table in plain memory and a reader of it, written from maps/slot_table.h alone: it must
// not share code with the writer, nor with bpf/slots.h, which have tests against each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "maps/limits.h"
#include "maps/slot_table.h"
#include "userspace/kernel/slot_table.h"

namespace edgeshed::kernel::test {

inline es_key key_of(std::uint32_t number) {
  es_key key{};
  key.addr_hi = 0;
  key.addr_lo = 0xffff0000ull | (static_cast<std::uint64_t>(number * 2654435761u) << 32);
  key.port = static_cast<__u16>(number);
  key.endpoint = static_cast<__u8>(1 + number % 3);
  key.stream_block = 0;
  return key;
}

inline bool same_key(const es_key& a, const es_key& b) {
  return a.addr_hi == b.addr_hi && a.addr_lo == b.addr_lo && a.port == b.port &&
         a.endpoint == b.endpoint;
}

inline es_policy policy_of(std::uint8_t priority, std::uint16_t room = 1) {
  es_policy policy{};
  policy.room = room;
  policy.priority = priority;
  policy.weight_inverse_q8 = 256;
  return policy;
}

struct TableMemory {
  TableMemory(std::uint32_t buckets, std::uint32_t connections_count, std::uint64_t seed)
      : bucket(buckets + 1),
        connections(connections_count),
        in(connections_count),
        out(connections_count) {
    seeds[0] = seed * 0x9e3779b97f4a7c15ull + 1;
    seeds[1] = seed ^ 0x5851f42d4c957f2dull;
  }

  SlotTableMemory spans() {
    return {.buckets = bucket,
            .connections = connections,
            .connections_in = in,
            .connections_out = out,
            .stash_used = &stash_used,
            .seed = {seeds[0], seeds[1]}};
  }

  es_place place(const es_key& key) const {
    return es_place_of(es_key_hash(key.addr_hi, key.addr_lo,
                                   es_port_endpoint(key.port, key.endpoint), seeds[0], seeds[1]),
                       static_cast<__u32>(bucket.size() - 1));
  }

  std::vector<es_bucket> bucket;
  std::vector<es_connection> connections;
  std::vector<es_flow_state> in;
  std::vector<es_flow_state> out;
  std::uint32_t stash_used = 0;
  std::uint64_t seeds[2];
};

struct Hit {
  std::uint32_t record;
  std::uint8_t quartile;
};

/// One bucket, byte by byte.
inline std::optional<Hit> probe_bucket(const TableMemory& memory, std::uint32_t number,
                                       const es_key& key, const es_place& place) {
  const es_bucket& bucket = memory.bucket[number];
  const std::uint64_t tags = __atomic_load_n(&bucket.tags, __ATOMIC_ACQUIRE);
  for (unsigned i = 0; i < ES_BUCKET_SLOTS; ++i) {
    if (((tags >> (8 * i)) & 0xff) != place.tag) continue;
    const std::uint32_t slot = __atomic_load_n(&bucket.slot[i], __ATOMIC_ACQUIRE);
    if ((slot >> ES_RECORD_BITS) != (place.slot_tag >> ES_RECORD_BITS)) continue;
    const std::uint32_t record = slot & ES_RECORD_MASK;
    if (record >= memory.connections.size()) continue;
    if (!same_key(memory.connections[record].key, key)) continue;
    return Hit{record, static_cast<std::uint8_t>((tags >> (48 + 2 * i)) & 3)};
  }
  return std::nullopt;
}

/// As the packet path: the stash count first, two buckets, then the stash if it is in use. `pause`
/// runs between them: a slow reader meets more of what the writer does.
template <typename Pause>
std::optional<Hit> probe(const TableMemory& memory, const es_key& key, Pause pause) {
  const std::uint32_t stash = __atomic_load_n(&memory.stash_used, __ATOMIC_ACQUIRE);
  const es_place place = memory.place(key);
  for (const std::uint32_t number : place.bucket) {
    pause();
    if (const auto hit = probe_bucket(memory, number, key, place)) return hit;
  }
  pause();
  if (stash == 0) return std::nullopt;
  return probe_bucket(memory, static_cast<std::uint32_t>(memory.bucket.size() - 1), key, place);
}

inline std::optional<Hit> probe(const TableMemory& memory, const es_key& key) {
  return probe(memory, key, [] {});
}

}  // namespace edgeshed::kernel::test
