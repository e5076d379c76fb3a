#include "userspace/daemon/demand_sampler.h"

#include <cmath>
#include <map>

#include "maps/plan.h"
#include "maps/reasons.h"

namespace edgeshed::daemon {
namespace {

std::uint64_t load_once(const __u64& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

/// A counter's growth; one that went back (a detach, an attach) begins anew.
std::uint64_t growth(std::uint64_t now, std::uint64_t before) {
  return now >= before ? now - before : 0;
}

struct RoomSums {
  LaneCounts arrived{};
  std::array<std::uint64_t, ES_TIERS> judged{};    // past the contract
  std::array<std::uint64_t, ES_TIERS> admitted{};  // of those
};

void add_row(const es_room_counters& row, RoomSums& sums) {
  for (std::uint32_t lane = 0; lane < ES_LANES; ++lane) {
    sums.arrived[lane] += load_once(row.arrivals[ES_IN][lane]);
  }
  for (std::uint32_t cell = 0; cell <= ES_TIERS; ++cell) {
    // Critical beyond its contract goes on as standard.
    const std::uint32_t tier = cell == ES_TIERS ? std::uint32_t{ES_TIER_standard} : cell;
    const auto& outcomes = row.cell[ES_IN][cell];
    const std::uint64_t passed =
        load_once(outcomes[ES_OUTCOME_admitted]) + load_once(outcomes[ES_OUTCOME_marked]);
    sums.admitted[tier] += passed;
    sums.judged[tier] += passed + load_once(outcomes[ES_OUTCOME_governor]) +
                         load_once(outcomes[ES_OUTCOME_ladder]) +
                         load_once(outcomes[ES_OUTCOME_fair_share]);
  }
}

}  // namespace

void sample_rooms(const CounterMemory& counters, std::span<const std::uint16_t> rooms,
                  std::uint16_t lane_tiers, ShardArrivals& arrivals) {
  RoomSums sums;
  const es_geometry& geometry = *counters.geometry;
  for (std::uint32_t cpu = 0; cpu < geometry.cpus; ++cpu) {
    const auto rows = counters.rooms.subspan(std::size_t{cpu} * geometry.rooms, geometry.rooms);
    for (const std::uint16_t room : rooms) add_row(rows[room], sums);
  }
  if (arrivals.looked) {
    for (std::uint32_t lane = 0; lane < ES_LANES; ++lane) {
      // Outcomes are counted by tier: a lane passes as much as its tier does.
      const std::uint8_t tier = es_lane_tier(lane_tiers, static_cast<std::uint8_t>(lane));
      const std::uint64_t judged = growth(sums.judged[tier], arrivals.judged_before[tier]);
      const std::uint64_t admitted = growth(sums.admitted[tier], arrivals.admitted_before[tier]);
      const std::uint64_t more = growth(sums.arrived[lane], arrivals.rooms_before[lane]);
      const double share =
          judged == 0 ? 1 : static_cast<double>(admitted) / static_cast<double>(judged);
      arrivals.arrived[lane] += more;
      arrivals.passed[lane] +=
          static_cast<std::uint64_t>(std::llround(static_cast<double>(more) * share));
    }
  }
  arrivals.rooms_before = sums.arrived;
  arrivals.judged_before = sums.judged;
  arrivals.admitted_before = sums.admitted;
  arrivals.looked = true;
}

ClassDecided sample_class_decided(const CounterMemory& counters, std::uint8_t number,
                                  EndpointArrivals& before) {
  ClassDecided now;
  const es_geometry& geometry = *counters.geometry;
  for (std::uint32_t cpu = 0; cpu < geometry.cpus; ++cpu) {
    const auto& row = counters.endpoints[std::size_t{cpu} * geometry.endpoints + number];
    for (std::uint32_t lane = 0; lane < ES_LANES; ++lane) {
      const auto& cells = row.cell[ES_IN][lane];
      now.passed[lane] += load_once(cells[ES_REASON_class_pass]);
      now.dropped[lane] +=
          load_once(cells[ES_REASON_lane_paused]) + load_once(cells[ES_REASON_slot_priority]);
    }
  }
  ClassDecided since;
  if (before.looked) {
    for (std::uint32_t lane = 0; lane < ES_LANES; ++lane) {
      since.passed[lane] = growth(now.passed[lane], before.passed_before[lane]);
      since.dropped[lane] = growth(now.dropped[lane], before.dropped_before[lane]);
    }
  }
  before = {now.passed, now.dropped, true};
  return since;
}

void add_share(const ClassDecided& decided, double share, ShardArrivals& arrivals) {
  for (std::uint32_t lane = 0; lane < ES_LANES; ++lane) {
    const auto part = [share](std::uint64_t count) {
      return static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * share));
    };
    arrivals.passed[lane] += part(decided.passed[lane]);
    arrivals.arrived[lane] += part(decided.passed[lane] + decided.dropped[lane]);
  }
}

std::vector<EndpointShare> endpoint_shares(const core::Model& model) {
  std::vector<EndpointShare> shares;
  for (const core::Endpoint& endpoint : model.endpoints) {
    if (!core::exists(endpoint)) continue;
    std::map<std::uint32_t, std::size_t> rooms_of;
    for (const std::uint16_t room : endpoint.rooms) ++rooms_of[model.rooms[room].shard];
    for (const auto& [shard, rooms] : rooms_of) {
      shares.push_back({endpoint.number, shard,
                        static_cast<double>(rooms) / static_cast<double>(endpoint.rooms.size())});
    }
  }
  return shares;
}

}  // namespace edgeshed::daemon
