// Sums over CPUs, the ledger, and aggregates by tier.
#include "userspace/kernel/counters_reader.h"

#include <gtest/gtest.h>

#include <vector>

namespace edgeshed::kernel::test {
namespace {

constexpr std::uint32_t kCpus = 3;
constexpr std::uint32_t kEndpoints = 4;
constexpr std::uint32_t kRooms = 2;

class CountersReaderTest : public testing::Test {
 protected:
  CountersReaderTest() : endpoint_rows_(kCpus * kEndpoints), room_rows_(kCpus * kRooms) {}

  es_endpoint_counters& row(std::uint32_t cpu, std::uint32_t endpoint) {
    return endpoint_rows_[cpu * kEndpoints + endpoint];
  }
  void count(std::uint32_t cpu, std::uint32_t endpoint, es_direction direction, unsigned lane,
             unsigned reason, std::uint64_t packets) {
    row(cpu, endpoint).seen[direction] += packets;
    row(cpu, endpoint).bytes[direction][lane] += 100 * packets;
    row(cpu, endpoint).cell[direction][lane][reason] += packets;
  }
  CountersReader reader() const {
    return CountersReader(endpoint_rows_, kEndpoints, room_rows_, kRooms);
  }

  std::vector<es_endpoint_counters> endpoint_rows_;
  std::vector<es_room_counters> room_rows_;
};

TEST_F(CountersReaderTest, SumsOneEndpointOverCpusOnly) {
  count(0, 1, ES_IN, ES_LANE_command, ES_REASON_admitted, 5);
  count(2, 1, ES_IN, ES_LANE_command, ES_REASON_admitted, 7);
  count(1, 2, ES_IN, ES_LANE_command, ES_REASON_admitted, 1000);
  row(0, 1).scratch.events = 99;
  row(2, 1).shadow[ES_OUT][ES_REASON_thinned] = 4;
  es_endpoint_counters sum;
  reader().read_endpoint(1, sum);
  EXPECT_EQ(sum.seen[ES_IN], 12u);
  EXPECT_EQ(sum.cell[ES_IN][ES_LANE_command][ES_REASON_admitted], 12u);
  EXPECT_EQ(sum.bytes[ES_IN][ES_LANE_command], 1200u);
  EXPECT_EQ(sum.shadow[ES_OUT][ES_REASON_thinned], 4u);
  EXPECT_EQ(sum.scratch.events, 0u);
  EXPECT_TRUE(check_ledger(sum).holds());
}

TEST_F(CountersReaderTest, SumsRooms) {
  for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
    es_room_counters& room = room_rows_[cpu * kRooms + 1];
    room.allowance_generation = 5;
    room.stream_bytes_used = 77;
    room.stream_bytes = 10;
    room.arrivals[ES_OUT][ES_LANE_snapshot] = cpu + 1;
    room.sampled[ES_OUT][ES_LANES - 1] = 1;
  }
  es_room_counters sum;
  reader().read_room(1, sum);
  EXPECT_EQ(sum.stream_bytes, 30u);
  EXPECT_EQ(sum.stream_bytes_used, 0u);
  EXPECT_EQ(sum.allowance_generation, 0u);
  EXPECT_EQ(sum.arrivals[ES_OUT][ES_LANE_snapshot], 6u);
  EXPECT_EQ(sum.sampled[ES_OUT][ES_LANES - 1], 3u);
  reader().read_room(0, sum);
  EXPECT_EQ(sum.stream_bytes, 0u);
}

TEST_F(CountersReaderTest, LedgerShowsAMissingPacketAndTooManyRejects) {
  count(0, 1, ES_IN, ES_LANE_command, ES_REASON_contract, 3);
  row(0, 1).rejected[ES_IN][ES_LANE_command] = 3;
  es_endpoint_counters sum;
  reader().read_endpoint(1, sum);
  EXPECT_TRUE(check_ledger(sum).holds());
  row(0, 1).seen[ES_IN] += 2;
  row(1, 1).rejected[ES_IN][ES_LANE_event] = 1;
  reader().read_endpoint(1, sum);
  const Ledger ledger = check_ledger(sum);
  EXPECT_EQ(ledger.missing[ES_IN], 2);
  EXPECT_EQ(ledger.missing[ES_OUT], 0);
  EXPECT_EQ(ledger.rejected_beyond_drops, 1u);
  EXPECT_FALSE(ledger.holds());
}

TEST_F(CountersReaderTest, AggregatesByTierWithDemotedAndUnclassifiedApart) {
  const std::uint16_t tiers =
      ES_TIER_standard << (2 * ES_LANE_command) | ES_TIER_best_effort << (2 * ES_LANE_snapshot);
  count(0, 1, ES_IN, ES_LANE_control, ES_REASON_admitted, 10);
  count(0, 1, ES_IN, ES_LANE_command, ES_REASON_priority, 6);
  count(1, 1, ES_IN, ES_LANE_command, ES_REASON_marked_ce, 2);
  count(0, 1, ES_IN, ES_LANE_snapshot, ES_REASON_thinned, 4);
  count(0, 1, ES_IN, ES_ROW_DEMOTED, ES_REASON_contract, 1);
  count(0, 1, ES_OUT, ES_ROW_UNCLASSIFIED, ES_REASON_frag_unknown, 8);
  row(0, 1).rejected[ES_IN][ES_LANE_command] = 5;
  row(0, 1).bytes_shed[ES_IN][ES_LANE_snapshot] = 400;
  es_endpoint_counters sum;
  reader().read_endpoint(1, sum);
  TierTotals totals;
  aggregate_tiers(sum, tiers, totals);
  EXPECT_EQ(totals.packets[ES_IN][ES_TIER_critical][ES_VERDICT_pass], 10u);
  EXPECT_EQ(totals.packets[ES_IN][ES_TIER_standard][ES_VERDICT_drop], 1u);
  EXPECT_EQ(totals.packets[ES_IN][ES_TIER_standard][ES_VERDICT_reject], 5u);
  EXPECT_EQ(totals.packets[ES_IN][ES_TIER_standard][ES_VERDICT_mark], 2u);
  EXPECT_EQ(totals.packets[ES_IN][ES_TIER_best_effort][ES_VERDICT_drop], 4u);
  EXPECT_EQ(totals.packets[ES_IN][kTierDemoted][ES_VERDICT_drop], 1u);
  EXPECT_EQ(totals.packets[ES_OUT][kTierUnclassified][ES_VERDICT_pass], 8u);
  EXPECT_EQ(totals.bytes[ES_IN][ES_TIER_best_effort], 400u);
  EXPECT_EQ(totals.bytes_shed[ES_IN][ES_TIER_best_effort], 400u);
  const auto verdicts = verdict_totals(sum, ES_IN);
  EXPECT_EQ(verdicts[ES_VERDICT_pass] + verdicts[ES_VERDICT_mark] + verdicts[ES_VERDICT_drop] +
                verdicts[ES_VERDICT_reject],
            sum.seen[ES_IN]);
}

TEST_F(CountersReaderTest, AppliedTellsWhichCpusFollowAPlan) {
  row(0, 1).scratch.generation = 0xffffffffu;
  row(1, 1).scratch.generation = 2;  // one plan later, across the wrap
  const AppliedPlan applied = reader().applied(1, 2);
  EXPECT_EQ(applied.newest, 2u);
  EXPECT_EQ(applied.cpus_on_generation, 1u);
  EXPECT_EQ(applied.cpus_behind, 1u);
  EXPECT_EQ(reader().applied(2, 2).newest, 0u);
}

}  // namespace
}  // namespace edgeshed::kernel::test
