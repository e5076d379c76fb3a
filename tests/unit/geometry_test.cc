// Sizes of the maps from capacities.
#include "userspace/core/geometry.h"

#include <gtest/gtest.h>

namespace edgeshed::core {
namespace {

TEST(Geometry, BucketsAreFilledToNinetyPercent) {
  Host host;
  for (const auto& [connections, buckets] : {std::pair{1u, 1u},
                                             {5u, 1u},
                                             {6u, 2u},
                                             {54u, 10u},
                                             {55u, 11u},
                                             {4096u, 759u},
                                             {1u << 20, 194181u}}) {
    host.connections_max = connections;
    EXPECT_EQ(derive_geometry(host, 2, 250).buckets, buckets) << connections;
  }
}

TEST(Geometry, RowsOfTheHostAndOfNoContractComeOnTop) {
  Host host;
  host.endpoints_max = 255;
  host.classes_max = 255;
  const es_geometry geometry = derive_geometry(host, 8, 1000);
  EXPECT_EQ(geometry.endpoints, ES_ENDPOINTS_MAX);
  EXPECT_EQ(geometry.classes, ES_CLASSES_MAX);
  EXPECT_EQ(geometry.rooms, 256u);
  EXPECT_EQ(geometry.connections, 4096u);
  EXPECT_EQ(geometry.stream_blocks, 256u);
  EXPECT_EQ(geometry.cpus, 8u);
  EXPECT_EQ(geometry.hz, 1000u);
  EXPECT_EQ(geometry.seed[0], 0u);
}

TEST(Geometry, MemoryPerMapAndInAll) {
  const es_geometry geometry = derive_geometry(Host{}, 2, 250);
  uint64_t sum = 0;
  for (const MapMemory& map : map_memory(geometry)) {
    sum += map.bytes;
    EXPECT_GE(map.bytes, map.entries * map.value_bytes) << map.name;
    EXPECT_LT(map.bytes, map.entries * map.value_bytes + 4096) << map.name;
    EXPECT_EQ(map.bytes % 4096, 0u) << map.name;
    const std::string name = map.name;
    if (name == "es_conns") {
      EXPECT_EQ(map.bytes, 4096u * 32);
    }
    if (name == "es_conns_in" || name == "es_conns_out") {
      EXPECT_EQ(map.bytes, 4096u * 64);
    }
    if (name == "es_buckets") {
      EXPECT_EQ(map.entries, 760u);
    }
    if (name == "es_streams") {
      EXPECT_EQ(map.entries, 257u);
    }
    if (name == "es_count_ep") {
      EXPECT_EQ(map.entries, 2u * 33);
    }
    if (name == "es_plan_room") {
      EXPECT_EQ(map.entries, 2u * 256);
    }
  }
  EXPECT_EQ(map_memory(geometry).size(), 15u);
  EXPECT_EQ(memory_bytes(geometry), sum);
}

}  // namespace
}  // namespace edgeshed::core
