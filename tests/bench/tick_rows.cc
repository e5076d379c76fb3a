// Reading and publishing, by loads and stores and by batches of syscalls: see tick_rows.h.
#include "tests/bench/tick_rows.h"

#include <bpf/bpf.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/case_set.h"
#include "tests/bench/scenarios.h"
#include "tests/bench/test_run.h"
#include "tests/bench/world.h"
#include "userspace/kernel/counters_reader.h"
#include "userspace/kernel/fd.h"
#include "userspace/kernel/plan_writer.h"

namespace edgeshed::bench {
namespace {

constexpr std::uint32_t kConnections = 100'000;
constexpr std::uint32_t kRooms = 1'000;

/// The daemon's way: counters of every room, the state of every connection, a policy word for each,
/// and a whole plan.
class MappedTick {
 public:
  MappedTick() : world_(Table::kSlots, kConnections), reader_(world_.maps()) {}

  void run() {
    for (std::uint32_t room = 0; room < world_.rooms(); ++room) {
      es_room_counters sum;
      reader_.read_room(room, sum);
      packets_ += sum.arrivals[ES_IN][ES_LANE_snapshot];
    }
    ++priority_;
    for (const es_flow_state& state : world_.maps().connections_in()) {
      debts_ += state.level[0] + state.level[1] + state.seen_jiffies;
    }
    for (es_connection& connection : world_.maps().connections()) {
      es_policy policy = connection.policy;
      policy.priority = priority_;
      __u64 word;
      static_assert(sizeof(word) == sizeof(policy));
      __builtin_memcpy(&word, &policy, sizeof(word));
      __atomic_store(reinterpret_cast<__u64*>(&connection.policy), &word, __ATOMIC_RELAXED);
    }
    world_.enter(plan_);
  }

  /// Keeps what was read from being optimised away.
  std::uint64_t digest() const { return packets_ + debts_; }

 private:
  World world_;
  kernel::CountersReader reader_;
  Scenario plan_ = open_plan(ES_PROTOCOL_dscp);
  std::uint64_t packets_ = 0;
  std::uint64_t debts_ = 0;
  std::uint8_t priority_ = 0;
};

/// A connection as a HASH would hold it for the daemon to read: in one piece.
struct HashConnection {
  es_connection connection;
  es_flow_state state;
};

/// A kernel HASH read and written by batches.
template <typename Key, typename Value>
class BatchedHash {
 public:
  explicit BatchedHash(std::vector<Key> keys)
      : fd_(bpf_map_create(BPF_MAP_TYPE_HASH, "bench_batch", sizeof(Key), sizeof(Value),
                           static_cast<__u32>(keys.size()), nullptr)),
        keys_(std::move(keys)),
        keys_read_(2 * keys_.size()),
        values_(2 * keys_.size()) {
    if (!fd_) throw std::runtime_error("cannot make a HASH");
    update();
  }

  void update() {
    auto count = static_cast<__u32>(keys_.size());
    if (bpf_map_update_batch(fd_.get(), keys_.data(), values_.data(), &count, nullptr) != 0) {
      throw std::runtime_error("cannot write a batch");
    }
  }
  void lookup() {
    std::uint64_t next = 0;
    auto count = static_cast<__u32>(keys_read_.size());
    // ENOENT is the end of the table.
    const int err = bpf_map_lookup_batch(fd_.get(), nullptr, &next, keys_read_.data(),
                                         values_.data(), &count, nullptr);
    if ((err != 0 && err != -ENOENT) || count != keys_.size()) {
      throw std::runtime_error("cannot read a batch");
    }
  }

 private:
  kernel::Fd fd_;
  std::vector<Key> keys_;
  std::vector<Key> keys_read_;
  std::vector<Value> values_;
};

template <typename Key, typename Make>
std::vector<Key> keys_by(std::uint32_t count, Make make) {
  std::vector<Key> keys(count);
  for (std::uint32_t i = 0; i < count; ++i) keys[i] = make(i);
  return keys;
}

class HashTick {
 public:
  HashTick()
      : counters_(keys_by<std::uint32_t>(kRooms, [](std::uint32_t i) { return i; })),
        plans_(keys_by<std::uint32_t>(kRooms, [](std::uint32_t i) { return i; })),
        connections_(keys_by<es_key>(kConnections, key_of)) {}

  void run() {
    counters_.lookup();
    connections_.lookup();
    connections_.update();
    plans_.update();
  }

 private:
  BatchedHash<std::uint32_t, es_room_counters> counters_;
  BatchedHash<std::uint32_t, es_plan_room> plans_;
  BatchedHash<es_key, HashConnection> connections_;
};

template <typename Tick>
double tick_ns(Tick& tick) {
  const std::uint64_t start_ns = thread_cpu_ns();
  tick.run();
  return static_cast<double>(thread_cpu_ns() - start_ns);
}

}  // namespace

std::vector<Row> tick_rows(const RunOptions& options) {
  constexpr double kBudgetNs = 1e6;
  const std::string name = "tick, 1 k rooms and 100 k connections, mmap";
  MappedTick mapped;
  HashTick hash;
  std::vector<double> mapped_ns, hash_ns;
  for (unsigned round = 0; round < options.rounds(); ++round) {
    mapped_ns.push_back(tick_ns(mapped));
    hash_ns.push_back(tick_ns(hash));
  }
  if (mapped.digest() == std::numeric_limits<std::uint64_t>::max()) return {};
  const Cost own = cost_of(mapped_ns), peer = cost_of(hash_ns);
  std::vector<Row> rows = {
      compare(name, "HASH batches", own.median, peer.median, Goal{Goal::Side::kAtLeast, 50}),
      compare(name, "1 ms", own.median, kBudgetNs, Goal{Goal::Side::kAtMost, 1})};
  rows[0].ratio_quartile = peer.quartile / own.quartile;
  rows[1].ratio_quartile = own.quartile / kBudgetNs;
  return rows;
}

}  // namespace edgeshed::bench
