// The slot table's writer against a model, one thread.
#include "userspace/kernel/slot_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "tests/kernel/slot_table_fixture.h"

namespace edgeshed::kernel::test {
namespace {

constexpr auto kNoReaders = [] {};

std::uint32_t buckets_at_fill(std::uint32_t connections) {
  return (connections * 100 + ES_BUCKET_SLOTS * ES_BUCKET_FILL_PERCENT - 1) /
         (ES_BUCKET_SLOTS * ES_BUCKET_FILL_PERCENT);
}

TEST(SlotTable, FindsWhatWasInsertedAndNothingElse) {
  TableMemory memory(8, 16, 1);
  SlotTable table(memory.spans(), kNoReaders);
  const auto record = table.insert(key_of(7), policy_of(200, 3), 0, 5);
  ASSERT_TRUE(record);
  EXPECT_EQ(table.find(key_of(7)), record);
  EXPECT_FALSE(table.find(key_of(8)));
  const auto hit = probe(memory, key_of(7));
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->record, *record);
  EXPECT_EQ(hit->quartile, 200 >> 6);
  EXPECT_EQ(memory.connections[*record].policy.room, 3);
  EXPECT_EQ(memory.connections[*record].key.stream_block, 5u);
  EXPECT_EQ(table.size(), 1u);
}

TEST(SlotTable, SecondInsertKeepsRecordAndStateAndSetsPolicy) {
  TableMemory memory(8, 16, 1);
  SlotTable table(memory.spans(), kNoReaders);
  const auto record = table.insert(key_of(7), policy_of(10));
  memory.in[*record].seen_jiffies = 99;
  EXPECT_EQ(table.insert(key_of(7), policy_of(255)), record);
  EXPECT_EQ(memory.in[*record].seen_jiffies, 99u);
  EXPECT_EQ(memory.connections[*record].policy.priority, 255);
  EXPECT_EQ(probe(memory, key_of(7))->quartile, 3);
  EXPECT_EQ(table.size(), 1u);
}

TEST(SlotTable, FreshStateHasNoDebtAndSpreadPhases) {
  constexpr std::uint32_t kConnections = 1000;
  TableMemory memory(buckets_at_fill(kConnections), kConnections, 3);
  SlotTable table(memory.spans(), kNoReaders);
  std::set<std::uint16_t> phases;
  double sum = 0;
  for (std::uint32_t i = 0; i < kConnections; ++i) {
    const auto record = table.insert(key_of(i), policy_of(0));
    ASSERT_TRUE(record);
    const es_flow_state& in = memory.in[*record];
    const es_flow_state& out = memory.out[*record];
    EXPECT_EQ(in.contract[0] | in.level[0] | in.seen_jiffies | out.contract[2] | out.level[1], 0u);
    phases.insert(in.thin[0].error_q16);
    sum += in.thin[0].error_q16;
    EXPECT_FALSE(std::memcmp(in.thin, out.thin, sizeof(in.thin)) == 0);
  }
  EXPECT_GT(phases.size(), kConnections * 9 / 10);
  EXPECT_NEAR(sum / kConnections, 32768, 2000);
}

TEST(SlotTable, RemovedIsNotFoundAndItsRecordWaitsForTheGrace) {
  TableMemory memory(8, 2, 1);
  int graces = 0;
  SlotTable table(memory.spans(), [&] { ++graces; });
  const auto first = table.insert(key_of(1), policy_of(0));
  ASSERT_TRUE(table.remove(key_of(1)));
  EXPECT_FALSE(table.remove(key_of(1)));
  EXPECT_FALSE(probe(memory, key_of(1)));
  EXPECT_EQ(graces, 0);
  EXPECT_NE(table.insert(key_of(2), policy_of(0)), first);
  EXPECT_EQ(graces, 0);
  EXPECT_EQ(table.insert(key_of(3), policy_of(0)), first) << "no other record: it waits by itself";
  EXPECT_EQ(graces, 1);
  EXPECT_FALSE(table.insert(key_of(4), policy_of(0))) << "full";
  EXPECT_EQ(table.size(), 2u);
}

TEST(SlotTable, ASlotWhoseKeyWasRemovedWaitsForTheGraceToo) {
  TableMemory memory(1, 12, 1);
  SlotTable table(memory.spans(), kNoReaders);
  for (std::uint32_t i = 0; i < ES_BUCKET_SLOTS; ++i) {
    ASSERT_TRUE(table.insert(key_of(i), policy_of(0)));
  }
  const es_bucket before = memory.bucket[0];
  ASSERT_TRUE(table.remove(key_of(2)));
  ASSERT_TRUE(table.insert(key_of(100), policy_of(0)));
  EXPECT_EQ(std::memcmp(memory.bucket[0].slot, before.slot, sizeof(before.slot)), 0);
  EXPECT_EQ(table.stash_used(), 1u) << "the only other place";
  table.reclaim();
  EXPECT_EQ(table.stash_used(), 0u);
  EXPECT_TRUE(probe(memory, key_of(100)));
}

TEST(SlotTable, ManyRemovalsCostOneGrace) {
  TableMemory memory(40, 200, 1);
  int graces = 0;
  SlotTable table(memory.spans(), [&] { ++graces; });
  for (std::uint32_t i = 0; i < 120; ++i) ASSERT_TRUE(table.insert(key_of(i), policy_of(0)));
  const int before = graces;
  for (std::uint32_t i = 0; i < 120; ++i) ASSERT_TRUE(table.remove(key_of(i)));
  EXPECT_EQ(table.reclaim(), 120u);
  EXPECT_EQ(graces, before + 1);
  EXPECT_EQ(table.reclaim(), 0u);
  EXPECT_EQ(graces, before + 1) << "nothing to wait for";
}

TEST(SlotTable, FillsToNinetyPercentWithAnySeed) {
  constexpr std::uint32_t kConnections = 4096;
  std::uint64_t moves = 0;
  std::uint32_t stash_worst = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    TableMemory memory(buckets_at_fill(kConnections), kConnections, seed);
    SlotTable table(memory.spans(), kNoReaders);
    for (std::uint32_t i = 0; i < kConnections; ++i) {
      ASSERT_TRUE(table.insert(key_of(i), policy_of(0))) << "seed " << seed << ", key " << i;
    }
    for (std::uint32_t i = 0; i < kConnections; ++i) ASSERT_TRUE(probe(memory, key_of(i)));
    moves += table.moves();
    stash_worst = std::max(stash_worst, table.stash_used());
  }
  RecordProperty("moves_per_1000_inserts", static_cast<int>(moves * 1000 / (100 * kConnections)));
  EXPECT_LT(moves, 100 * kConnections / 20) << "a move waits a grace: they must stay rare";
  EXPECT_EQ(stash_worst, 0u) << "at 90 % the search finds room";
}

TEST(SlotTable, ConsecutiveAddressesOfOneSubnetFill) {
  constexpr std::uint32_t kConnections = 20000;
  TableMemory memory(buckets_at_fill(kConnections), kConnections, 11);
  SlotTable table(memory.spans(), kNoReaders);
  for (std::uint32_t i = 0; i < kConnections; ++i) {
    es_key key{};
    key.addr_lo = 0xffff0000ull | (std::uint64_t{10 | ((i & 0xff) << 24)} << 32);
    key.port = static_cast<__u16>(i >> 8);
    key.endpoint = 1;
    ASSERT_TRUE(table.insert(key, policy_of(0))) << i;
  }
  EXPECT_EQ(table.stash_used(), 0u);
}

TEST(SlotTable, StashTakesTheOverflowAndEmptiesAgain) {
  // More records than slots, so that the stash must be used and then even it is full.
  TableMemory memory(2, 40, 5);
  std::vector<std::uint64_t> stash_at_grace;
  SlotTable table(memory.spans(), [&] { stash_at_grace.push_back(memory.bucket[2].tags); });
  std::vector<std::uint32_t> present;
  std::uint32_t next = 0;
  while (table.insert(key_of(next), policy_of(64))) present.push_back(next++);
  EXPECT_EQ(table.stash_used(), ES_BUCKET_SLOTS);
  EXPECT_EQ(memory.stash_used, ES_BUCKET_SLOTS);
  EXPECT_EQ(present.size(), 3 * ES_BUCKET_SLOTS);
  for (const std::uint32_t i : present) ASSERT_TRUE(probe(memory, key_of(i))) << i;
  for (std::size_t i = 0; i < 2 * ES_BUCKET_SLOTS; ++i) table.remove(key_of(present[i]));
  stash_at_grace.clear();
  table.reclaim();
  EXPECT_EQ(table.stash_used(), 0u);
  ASSERT_EQ(stash_at_grace.size(), 2u) << "one for the removed, one for those that move";
  EXPECT_EQ(stash_at_grace[1], stash_at_grace[0]) << "readers past the buckets still find them";
  for (std::size_t i = 2 * ES_BUCKET_SLOTS; i < present.size(); ++i) {
    ASSERT_TRUE(probe(memory, key_of(present[i])));
    EXPECT_EQ(probe(memory, key_of(present[i]))->quartile, 1) << "moves keep the quartile";
  }
}

/// What a million random operations must leave true at any time.
class ModelCheck {
 public:
  ModelCheck(std::uint32_t buckets, std::uint32_t connections, std::uint64_t seed)
      : memory_(buckets, connections, seed),
        table_(memory_.spans(), [this] { not_yet_reusable_.clear(); }),
        random_(seed),
        keys_(connections * 2) {}

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFatalFailure(); ++i) {
      step();
      if (i % 50000 == 0) check_all();
    }
    check_all();
  }

  std::size_t refused() const { return refused_; }
  const SlotTable& table() const { return table_; }

 private:
  void step() {
    const std::uint32_t number = static_cast<std::uint32_t>(random_() % keys_);
    switch (random_() % 8) {
      case 0:
      case 1:
      case 2:
        return insert(number);
      case 3:
      case 4:
        return remove(number);
      case 5:
        return set_policy(number);
      case 6:
        if (random_() % 64 == 0) table_.reclaim();
        return;
      default:
        return check_one(number);
    }
  }

  void insert(std::uint32_t number) {
    const auto priority = static_cast<std::uint8_t>(random_());
    const auto record = table_.insert(key_of(number), policy_of(priority));
    if (!record) {
      ++refused_;
      ASSERT_FALSE(model_.contains(number));
      return;
    }
    const auto known = model_.find(number);
    if (known != model_.end()) {
      ASSERT_EQ(known->second.first, *record);
    } else {
      ASSERT_FALSE(not_yet_reusable_.contains(*record)) << "reused before a grace";
      ASSERT_TRUE(records_.insert(*record).second) << "two keys, one record";
    }
    model_[number] = {*record, priority};
  }

  void remove(std::uint32_t number) {
    const auto known = model_.find(number);
    ASSERT_EQ(table_.remove(key_of(number)), known != model_.end());
    if (known == model_.end()) return;
    not_yet_reusable_.insert(known->second.first);
    records_.erase(known->second.first);
    model_.erase(known);
  }

  void set_policy(std::uint32_t number) {
    const auto known = model_.find(number);
    if (known == model_.end()) return;
    known->second.second = static_cast<std::uint8_t>(random_());
    table_.set_policy(known->second.first, policy_of(known->second.second));
  }

  void check_one(std::uint32_t number) {
    const auto known = model_.find(number);
    const auto hit = probe(memory_, key_of(number));
    ASSERT_EQ(hit.has_value(), known != model_.end()) << number;
    ASSERT_EQ(table_.find(key_of(number)).has_value(), hit.has_value());
    if (!hit) return;
    ASSERT_EQ(hit->record, known->second.first);
    ASSERT_EQ(hit->quartile, known->second.second >> 6);
    ASSERT_EQ(memory_.connections[hit->record].policy.priority, known->second.second);
  }

  void check_all() {
    ASSERT_EQ(table_.size(), model_.size());
    ASSERT_EQ(table_.live_records().size(), model_.size());
    for (std::uint32_t number = 0; number < keys_; ++number) check_one(number);
    std::size_t slots = 0;
    for (const es_bucket& bucket : memory_.bucket) {
      for (unsigned i = 0; i < ES_BUCKET_SLOTS; ++i)
        slots += ((bucket.tags >> (8 * i)) & 0xff) != 0;
    }
    ASSERT_EQ(slots, model_.size()) << "every key once, and nothing else";
  }

  TableMemory memory_;
  SlotTable table_;
  std::mt19937_64 random_;
  std::uint32_t keys_;
  std::unordered_map<std::uint32_t, std::pair<std::uint32_t, std::uint8_t>> model_;
  std::unordered_set<std::uint32_t> records_;
  std::unordered_set<std::uint32_t> not_yet_reusable_;
  std::size_t refused_ = 0;
};

TEST(SlotTable, AgreesWithAModelOverAMillionOperations) {
  ModelCheck check(buckets_at_fill(2000), 2000, 42);
  check.run(1'000'000);
  EXPECT_GT(check.table().graces(), 0u);
}

TEST(SlotTable, AgreesWithAModelWhenItIsTooSmall) {
  ModelCheck check(10, 80, 7);  // 60 slots and 6 of the stash for 80 records
  check.run(100'000);
  EXPECT_GT(check.refused(), 0u);
  EXPECT_GT(check.table().moves(), 0u);
}

TEST(SlotTable, AdoptsWhatAnotherWriterLeft) {
  constexpr std::uint32_t kConnections = 1000;
  TableMemory memory(buckets_at_fill(kConnections), kConnections, 9);
  std::unordered_map<std::uint32_t, std::uint32_t> records;
  {
    SlotTable former(memory.spans(), kNoReaders);
    for (std::uint32_t i = 0; i < 900; ++i) {
      records[i] = *former.insert(key_of(i), policy_of(static_cast<std::uint8_t>(i)));
    }
    for (std::uint32_t i = 0; i < 100; ++i) former.remove(key_of(i));
  }
  int graces = 0;
  SlotTable table(memory.spans(), [&] { ++graces; });
  const auto adopted = table.adopt();
  EXPECT_EQ(graces, 1);
  EXPECT_EQ(adopted.connections, 800u);
  EXPECT_EQ(adopted.repaired, 0u);
  for (std::uint32_t i = 0; i < 900; ++i) {
    EXPECT_EQ(table.find(key_of(i)).has_value(), i >= 100);
    if (i >= 100) {
      EXPECT_EQ(*table.find(key_of(i)), records[i]);
    }
  }
  for (std::uint32_t i = 1000; i < 1200; ++i) ASSERT_TRUE(table.insert(key_of(i), policy_of(0)));
  EXPECT_FALSE(table.insert(key_of(5000), policy_of(0))) << "all records in use";
}

TEST(SlotTable, AdoptionFinishesAnInterruptedMove) {
  TableMemory memory(40, 240, 9);  // a record for every slot: the last ones need moves
  bool die = false;
  SlotTable former(memory.spans(), [&] {
    if (die) throw std::runtime_error("killed in the middle of a move");
  });
  std::uint32_t next = 0;
  die = true;
  std::set<std::uint32_t> present;
  try {
    for (;; ++next) {
      if (!former.insert(key_of(next), policy_of(0))) break;
      present.insert(next);
    }
    FAIL() << "no move was needed";
  } catch (const std::runtime_error&) {  // NOLINT(bugprone-empty-catch): the death wanted
  }
  SlotTable table(memory.spans(), kNoReaders);
  const auto adopted = table.adopt();
  EXPECT_EQ(adopted.connections, present.size());
  EXPECT_EQ(adopted.repaired, 1u);
  for (const std::uint32_t i : present) EXPECT_TRUE(probe(memory, key_of(i)));
  EXPECT_EQ(table.adopt().repaired, 0u);
}

TEST(SlotTable, AdoptionClearsGarbage) {
  TableMemory memory(8, 16, 9);
  {
    SlotTable former(memory.spans(), kNoReaders);
    ASSERT_TRUE(former.insert(key_of(1), policy_of(0)));
  }
  memory.bucket[3].tags |= std::uint64_t{0x55} << 40;
  memory.bucket[3].slot[5] = 0xfffffu;  // a record that does not exist
  memory.bucket[8].tags |= 0x77;
  memory.bucket[8].slot[0] = 4;  // a record with another key
  memory.stash_used = 3;
  SlotTable table(memory.spans(), kNoReaders);
  const auto adopted = table.adopt();
  EXPECT_EQ(adopted.connections, 1u);
  EXPECT_EQ(adopted.repaired, 2u);
  EXPECT_EQ(memory.stash_used, 0u);
  EXPECT_TRUE(probe(memory, key_of(1)));
}

}  // namespace
}  // namespace edgeshed::kernel::test
