// Sizes of the maps: from capacities to entries, and what they cost in memory. Arithmetic only;
// must not draw the seed (the loader does) nor ask the machine for its CPUs.
#pragma once

#include <cstdint>
#include <vector>

#include "maps/control.h"
#include "userspace/core/model.h"

namespace edgeshed::core {

/// Geometry of a host. cpus: possible CPUs; hz: jiffies per second. seed stays 0.
/// buckets = ceil(connections / 6 / 0.90).
struct es_geometry derive_geometry(const Host& host, uint32_t cpus, uint32_t hz);

/// One map: name, entries, and bytes as the kernel allocates them (values padded to 8 bytes, the
/// array rounded up to pages of 4096).
struct MapMemory {
  const char* name;
  uint64_t entries;
  uint64_t value_bytes;
  uint64_t bytes;
};

/// Every map of maps/maps.bpf.h, in its order.
std::vector<MapMemory> map_memory(const struct es_geometry& geometry);

/// Sum over map_memory(), in bytes.
uint64_t memory_bytes(const struct es_geometry& geometry);

}  // namespace edgeshed::core
