// Sizes of the maps. The names and value types repeat maps/maps.bpf.h, which user space cannot
// include; tests/bpf compares them with the object.
#include "userspace/core/geometry.h"

#include "maps/counters.h"
#include "maps/events.h"
#include "maps/slot_table.h"

namespace edgeshed::core {
namespace {

constexpr uint64_t kPageBytes = 4096;

uint64_t rounded_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

MapMemory array(const char* name, uint64_t entries, uint64_t value_bytes) {
  const uint64_t padded = rounded_up(value_bytes, 8);
  return {name, entries, value_bytes, rounded_up(entries * padded, kPageBytes)};
}

}  // namespace

struct es_geometry derive_geometry(const Host& host, uint32_t cpus, uint32_t hz) {
  constexpr uint64_t kUsableSlotsPer100Buckets = ES_BUCKET_SLOTS * ES_BUCKET_FILL_PERCENT;
  struct es_geometry geometry = {};
  geometry.endpoints = host.endpoints_max + 1;
  geometry.rooms = host.rooms_max;
  geometry.classes = host.classes_max + 1;
  geometry.connections = host.connections_max;
  geometry.stream_blocks = host.streams_max;
  geometry.buckets =
      static_cast<__u32>((uint64_t{host.connections_max} * 100 + kUsableSlotsPer100Buckets - 1) /
                         kUsableSlotsPer100Buckets);
  geometry.cpus = cpus;
  geometry.hz = hz;
  return geometry;
}

std::vector<MapMemory> map_memory(const struct es_geometry& geometry) {
  const uint64_t cpus = geometry.cpus;
  return {
      array("es_control", 1, sizeof(es_control)),
      array("es_ports", 1, sizeof(es_ports_page)),
      array("es_plan_ep", 2ull * geometry.endpoints, sizeof(es_plan_endpoint)),
      array("es_plan_room", 2ull * geometry.rooms, sizeof(es_plan_room)),
      array("es_plan_class", 2ull * geometry.classes, sizeof(es_plan_class)),
      array("es_buckets", geometry.buckets + 1ull, sizeof(es_bucket)),
      array("es_conns", geometry.connections, sizeof(es_connection)),
      array("es_conns_in", geometry.connections, sizeof(es_flow_state)),
      array("es_conns_out", geometry.connections, sizeof(es_flow_state)),
      array("es_streams", geometry.stream_blocks + 1ull, sizeof(es_stream_block)),
      array("es_count_ep", cpus * geometry.endpoints, sizeof(es_endpoint_counters)),
      array("es_count_room", cpus * geometry.rooms, sizeof(es_room_counters)),
      array("es_frags", ES_FRAGMENT_SLOTS, sizeof(__u64)),
      array("es_rej_prefix", ES_REJECT_PREFIX_SLOTS, sizeof(__u64)),
      {"es_events", ES_EVENT_RING_BYTES, 1, ES_EVENT_RING_BYTES},
  };
}

uint64_t memory_bytes(const struct es_geometry& geometry) {
  uint64_t sum = 0;
  for (const MapMemory& map : map_memory(geometry)) sum += map.bytes;
  return sum;
}

}  // namespace edgeshed::core
