// Sums the per-CPU counter rows (maps/counters.h) without a syscall and without allocation. Must
// not keep history nor rates: that is the detector's work.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "maps/counters.h"
#include "maps/lanes.h"
#include "maps/reasons.h"
#include "userspace/kernel/map_set.h"

namespace edgeshed::kernel {

/// Rows of an aggregate by tier: the tiers, then demoted and unclassified packets apart.
inline constexpr unsigned kTierDemoted = ES_TIERS;
inline constexpr unsigned kTierUnclassified = ES_TIERS + 1;
inline constexpr unsigned kTierRows = ES_TIERS + 2;

/// Packets and bytes of an endpoint by direction, tier row and verdict. A reject is not counted in
/// the drops too.
struct TierTotals {
  std::array<std::array<std::array<std::uint64_t, ES_VERDICTS>, kTierRows>, ES_DIRECTIONS> packets;
  std::array<std::array<std::uint64_t, kTierRows>, ES_DIRECTIONS> bytes;
  std::array<std::array<std::uint64_t, kTierRows>, ES_DIRECTIONS> bytes_shed;
};

/// Result of the ledger check of summed counters. Exact while no packet passes; under traffic a row
/// may be read in the middle of a packet, so `missing` of a few is no fault then.
struct Ledger {
  std::array<std::int64_t, ES_DIRECTIONS> missing;  ///< seen - sum of cells, packets
  std::uint64_t rejected_beyond_drops;              ///< packets, over all rows
  bool holds() const {
    return missing[ES_IN] == 0 && missing[ES_OUT] == 0 && rejected_beyond_drops == 0;
  }
};

/// What packets show about the plans that they were decided by: the newest generation over CPUs
/// (a CPU without packets is left out), and whether any CPU has decided by `generation`.
struct AppliedPlan {
  std::uint32_t newest = 0;  ///< 0: no packet was decided by any plan
  unsigned cpus_on_generation = 0;
  unsigned cpus_behind = 0;  ///< CPUs whose last packet was decided by another plan
};

class CountersReader {
 public:
  /// `maps` must outlive the reader.
  explicit CountersReader(const MapSet& maps);
  /// Rows as in maps/counters.h: index cpu * rows + number.
  CountersReader(std::span<const es_endpoint_counters> endpoint_rows, std::uint32_t endpoints,
                 std::span<const es_room_counters> room_rows, std::uint32_t rooms);

  std::uint32_t endpoints() const { return endpoints_; }
  std::uint32_t rooms() const { return rooms_; }

  /// Writes the sum over CPUs into `out`; `out.scratch` is zeroed. `endpoint` < endpoints().
  void read_endpoint(std::uint32_t endpoint, es_endpoint_counters& out) const;
  /// Writes the sum over CPUs into `out`; allowance_generation and stream_bytes_used, which belong
  /// to one CPU, are zeroed. `room` < rooms().
  void read_room(std::uint32_t room, es_room_counters& out) const;

  AppliedPlan applied(std::uint32_t endpoint, std::uint32_t generation) const;

 private:
  std::span<const es_endpoint_counters> endpoint_rows_;
  std::span<const es_room_counters> room_rows_;
  std::uint32_t endpoints_;
  std::uint32_t rooms_;
};

/// seen == sum of cells per direction, and per row rejected <= drops. `sum` is of read_endpoint().
Ledger check_ledger(const es_endpoint_counters& sum);

/// Cells by tier. `lane_tiers` is es_plan_endpoint.lane_tiers: 2 bits per lane.
void aggregate_tiers(const es_endpoint_counters& sum, std::uint16_t lane_tiers, TierTotals& out);

/// Packets of one direction by verdict over all rows; rejects are taken out of the drops.
std::array<std::uint64_t, ES_VERDICTS> verdict_totals(const es_endpoint_counters& sum,
                                                      es_direction direction);

}  // namespace edgeshed::kernel
