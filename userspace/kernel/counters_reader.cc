// Sums of counter rows: see counters_reader.h.
#include "userspace/kernel/counters_reader.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>

namespace edgeshed::kernel {
namespace {

/// Adds the u64 counters of a row from byte `first` on. Loads are relaxed and 8 bytes wide, so no
/// counter is ever seen half-written; together they are not one instant.
template <typename Row>
void add_counters(const Row& row, Row& sum, std::size_t first) {
  using Word = std::uint64_t __attribute__((may_alias));
  const auto* from =
      reinterpret_cast<const Word*>(reinterpret_cast<const std::byte*>(&row) + first);
  auto* to = reinterpret_cast<Word*>(reinterpret_cast<std::byte*>(&sum) + first);
  const std::size_t words = (sizeof(Row) - first) / sizeof(Word);
  for (std::size_t i = 0; i < words; ++i) to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

unsigned tier_row(unsigned row, std::uint16_t lane_tiers) {
  if (row == ES_ROW_DEMOTED) return kTierDemoted;
  if (row == ES_ROW_UNCLASSIFIED) return kTierUnclassified;
  const unsigned tier = es_lane_tier(lane_tiers, static_cast<__u8>(row));
  return tier < ES_TIERS ? tier : kTierUnclassified;
}

std::uint64_t drops_of(const es_endpoint_counters& sum, unsigned direction, unsigned row) {
  std::uint64_t drops = 0;
  for (unsigned reason = 0; reason < ES_REASONS; ++reason) {
    if (es_reason_verdict(reason) == ES_VERDICT_drop) drops += sum.cell[direction][row][reason];
  }
  return drops;
}

/// Verdicts of one row of cells; rejects, which are drops that were answered, are moved out.
void add_verdicts(const es_endpoint_counters& sum, unsigned direction, unsigned row,
                  std::array<std::uint64_t, ES_VERDICTS>& out) {
  std::array<std::uint64_t, ES_VERDICTS> packets{};
  for (unsigned reason = 0; reason < ES_REASON_COLUMNS; ++reason) {
    packets[es_reason_verdict(reason)] += sum.cell[direction][row][reason];
  }
  // A row read in the middle of a packet may show the reject before its drop.
  const std::uint64_t rejected =
      std::min<std::uint64_t>(sum.rejected[direction][row], packets[ES_VERDICT_drop]);
  packets[ES_VERDICT_drop] -= rejected;
  packets[ES_VERDICT_reject] += rejected;
  for (unsigned verdict = 0; verdict < ES_VERDICTS; ++verdict) out[verdict] += packets[verdict];
}

}  // namespace

CountersReader::CountersReader(const MapSet& maps)
    : CountersReader(maps.endpoint_counters(), maps.geometry().endpoints, maps.room_counters(),
                     maps.geometry().rooms) {}

CountersReader::CountersReader(std::span<const es_endpoint_counters> endpoint_rows,
                               std::uint32_t endpoints, std::span<const es_room_counters> room_rows,
                               std::uint32_t rooms)
    : endpoint_rows_(endpoint_rows), room_rows_(room_rows), endpoints_(endpoints), rooms_(rooms) {
  assert(endpoints != 0 && endpoint_rows.size() % endpoints == 0);
  assert(rooms != 0 && room_rows.size() % rooms == 0);
}

void CountersReader::read_endpoint(std::uint32_t endpoint, es_endpoint_counters& out) const {
  assert(endpoint < endpoints_);
  std::memset(&out, 0, sizeof(out));
  for (std::size_t i = endpoint; i < endpoint_rows_.size(); i += endpoints_) {
    add_counters(endpoint_rows_[i], out, offsetof(es_endpoint_counters, seen));
  }
}

void CountersReader::read_room(std::uint32_t room, es_room_counters& out) const {
  assert(room < rooms_);
  std::memset(&out, 0, sizeof(out));
  for (std::size_t i = room; i < room_rows_.size(); i += rooms_) {
    add_counters(room_rows_[i], out, offsetof(es_room_counters, stream_bytes));
  }
}

AppliedPlan CountersReader::applied(std::uint32_t endpoint, std::uint32_t generation) const {
  assert(endpoint < endpoints_);
  AppliedPlan applied;
  for (std::size_t i = endpoint; i < endpoint_rows_.size(); i += endpoints_) {
    const std::uint32_t seen =
        __atomic_load_n(&endpoint_rows_[i].scratch.generation, __ATOMIC_RELAXED);
    if (seen == 0) continue;
    // The signed difference orders generations across the wrap.
    if (applied.newest == 0 || static_cast<std::int32_t>(seen - applied.newest) > 0) {
      applied.newest = seen;
    }
    ++(seen == generation ? applied.cpus_on_generation : applied.cpus_behind);
  }
  return applied;
}

Ledger check_ledger(const es_endpoint_counters& sum) {
  Ledger ledger{};
  for (unsigned direction = 0; direction < ES_DIRECTIONS; ++direction) {
    std::uint64_t cells = 0;
    for (unsigned row = 0; row < ES_ROWS; ++row) {
      for (const std::uint64_t packets : sum.cell[direction][row]) cells += packets;
      const std::uint64_t drops = drops_of(sum, direction, row);
      const std::uint64_t rejected = sum.rejected[direction][row];
      if (rejected > drops) ledger.rejected_beyond_drops += rejected - drops;
    }
    ledger.missing[direction] = static_cast<std::int64_t>(sum.seen[direction] - cells);
  }
  return ledger;
}

void aggregate_tiers(const es_endpoint_counters& sum, std::uint16_t lane_tiers, TierTotals& out) {
  out = {};
  for (unsigned direction = 0; direction < ES_DIRECTIONS; ++direction) {
    for (unsigned row = 0; row < ES_ROWS; ++row) {
      const unsigned tier = tier_row(row, lane_tiers);
      add_verdicts(sum, direction, row, out.packets[direction][tier]);
      out.bytes[direction][tier] += sum.bytes[direction][row];
      out.bytes_shed[direction][tier] += sum.bytes_shed[direction][row];
    }
  }
}

std::array<std::uint64_t, ES_VERDICTS> verdict_totals(const es_endpoint_counters& sum,
                                                      es_direction direction) {
  std::array<std::uint64_t, ES_VERDICTS> totals{};
  for (unsigned row = 0; row < ES_ROWS; ++row) add_verdicts(sum, direction, row, totals);
  return totals;
}

}  // namespace edgeshed::kernel
