// From the packet path's counters to what arrived at each shard and what passed, per lane. Reads
// rows of maps/counters.h and adds; what the numbers mean is core/demand.h's. Tick thread: no
// allocation, no syscall, no work per connection.
#ifndef EDGESHED_USERSPACE_DAEMON_DEMAND_SAMPLER_H_
#define EDGESHED_USERSPACE_DAEMON_DEMAND_SAMPLER_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "maps/control.h"
#include "maps/counters.h"
#include "userspace/core/model.h"

namespace edgeshed::daemon {

using LaneCounts = std::array<std::uint64_t, ES_LANES>;

/// Messages towards the shard, ever, as far as this process has looked.
struct ShardArrivals {
  LaneCounts arrived{};  // after contract drops, before what the plan sheds
  LaneCounts passed{};   // of those
  // Private to the sampler: counters at the last look.
  LaneCounts rooms_before{};
  std::array<std::uint64_t, ES_TIERS> judged_before{};
  std::array<std::uint64_t, ES_TIERS> admitted_before{};
  bool looked = false;
};

/// Where an endpoint's class-decided packets belong: shares of its rooms' shards.
struct EndpointShare {
  std::uint8_t endpoint = 0;  // number
  std::uint32_t shard = 0;
  double share = 1;
};

/// Class-decided packets of an endpoint at the last look.
struct EndpointArrivals {
  LaneCounts passed_before{};
  LaneCounts dropped_before{};
  bool looked = false;
};

struct CounterMemory {
  std::span<const es_endpoint_counters> endpoints;  // cpu * geometry.endpoints + number
  std::span<const es_room_counters> rooms;          // cpu * geometry.rooms + number
  const es_geometry* geometry = nullptr;
};

/// Adds what a shard's rooms decided by the table since the last look.
void sample_rooms(const CounterMemory& counters, std::span<const std::uint16_t> rooms,
                  std::uint16_t lane_tiers, ShardArrivals& arrivals);

/// What an endpoint decided by lane alone since the last look: passed and dropped per lane.
struct ClassDecided {
  LaneCounts passed{};
  LaneCounts dropped{};
};
ClassDecided sample_class_decided(const CounterMemory& counters, std::uint8_t number,
                                  EndpointArrivals& before);

/// Adds a share of what an endpoint decided to a shard.
void add_share(const ClassDecided& decided, double share, ShardArrivals& arrivals);

/// The shares of every endpoint of a model.
std::vector<EndpointShare> endpoint_shares(const core::Model& model);

}  // namespace edgeshed::daemon

#endif
