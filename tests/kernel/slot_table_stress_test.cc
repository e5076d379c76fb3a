// Readers beside the writer: a key that is present is found at every moment, whatever moves.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "tests/kernel/slot_table_fixture.h"
#include "userspace/kernel/slot_table.h"

namespace edgeshed::kernel::test {
namespace {

constexpr int kReaders = 2;
constexpr std::uint64_t kLookUpsMin = 10'000;
constexpr std::uint64_t kMovesMin = 100;

/// A grace period as RCU gives it: waits until every reader that was inside has left once.
class Epochs {
 public:
  void enter(int reader) {
    count_[reader].value.fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void leave(int reader) { count_[reader].value.fetch_add(1, std::memory_order_release); }

  void wait() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    for (const Counter& counter : count_) {
      const std::uint64_t at = counter.value.load(std::memory_order_seq_cst);
      if (at % 2 == 0) continue;
      while (counter.value.load(std::memory_order_acquire) == at) std::this_thread::yield();
    }
  }

 private:
  struct alignas(64) Counter {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<Counter, kReaders> count_;
};

/// `permanent` keys stay in; others come and go at the limit of what fits, so that the writer moves
/// keys all the time.
class Stress {
 public:
  Stress(std::uint32_t buckets, std::uint32_t connections, std::uint32_t permanent,
         std::uint64_t seed)
      : memory_(buckets, connections, seed),
        table_(memory_.spans(), [this] { epochs_.wait(); }),
        permanent_(permanent),
        random_(seed) {
    for (std::uint32_t i = 0; i < permanent; ++i) {
      const auto record = table_.insert(key_of(i), policy_of(static_cast<std::uint8_t>(i)));
      if (record) records_.push_back(*record);
    }
  }

  /// At least `duration`; longer on a busy machine, until something was really tried.
  void run(std::chrono::milliseconds duration) {
    ASSERT_EQ(records_.size(), permanent_);
    std::vector<std::thread> readers;
    for (int i = 0; i < kReaders; ++i) readers.emplace_back([this, i] { read(i); });
    const auto begin = std::chrono::steady_clock::now();
    const auto elapsed = [&] { return std::chrono::steady_clock::now() - begin; };
    const auto tried = [&] { return looked_up_ > kLookUpsMin && table_.moves() > kMovesMin; };
    while (elapsed() < duration || (!tried() && elapsed() < std::chrono::seconds(30))) churn();
    stop_ = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(missed_.load(), 0u) << "of " << looked_up_ << " look-ups, " << table_.moves()
                                  << " moves";
    EXPECT_EQ(wrong_.load(), 0u);
    EXPECT_GT(looked_up_.load(), kLookUpsMin);
    EXPECT_GT(table_.moves(), kMovesMin) << "the writer was never forced to move anything";
  }

  std::uint64_t stash_seen() const { return stash_seen_; }

 private:
  void read(int reader) {
    std::uint64_t state = static_cast<std::uint64_t>(reader) + 1;
    while (!stop_.load(std::memory_order_relaxed)) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      const auto number = static_cast<std::uint32_t>((state >> 33) % permanent_);
      epochs_.enter(reader);
      // One in eight looks up slowly, as a packet that is interrupted between two loads.
      const bool slow = (state >> 20) % 8 == 0;
      const auto hit = probe(memory_, key_of(number), [slow] {
        if (slow) std::this_thread::yield();
      });
      if (!hit) {
        missed_.fetch_add(1);
      } else if (hit->record != records_[number]) {
        wrong_.fetch_add(1);
      }
      epochs_.leave(reader);
      looked_up_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  void churn() {
    for (int i = 0; i < 64; ++i) {
      const std::uint32_t number = permanent_ + static_cast<std::uint32_t>(random_() % 4096);
      if (coming_and_going_.size() > 4 && random_() % 2 == 0) {
        const std::size_t victim = random_() % coming_and_going_.size();
        table_.remove(key_of(coming_and_going_[victim]));
        coming_and_going_[victim] = coming_and_going_.back();
        coming_and_going_.pop_back();
      } else if (!table_.find(key_of(number)) && table_.insert(key_of(number), policy_of(0))) {
        coming_and_going_.push_back(number);
      }
      if (random_() % 16 == 0) table_.reclaim();
      stash_seen_ += table_.stash_used() != 0;
      if (random_() % 8 == 0) {
        const auto known = static_cast<std::uint32_t>(random_() % permanent_);
        table_.set_policy(records_[known], policy_of(static_cast<std::uint8_t>(random_())));
      }
    }
  }

  Epochs epochs_;
  TableMemory memory_;
  SlotTable table_;
  std::uint32_t permanent_;
  std::vector<std::uint32_t> records_;
  std::mt19937_64 random_;
  std::vector<std::uint32_t> coming_and_going_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> looked_up_{0}, missed_{0}, wrong_{0};
  std::uint64_t stash_seen_ = 0;
};

TEST(SlotTableStress, PresentKeysAreAlwaysFoundWhileOthersMove) {
  Stress stress(50, 300, 200, 21);  // 300 slots, churning to the last one
  stress.run(std::chrono::milliseconds(700));
}

TEST(SlotTableStress, PresentKeysAreAlwaysFoundThroughTheStash) {
  Stress stress(6, 60, 26, 4);
  stress.run(std::chrono::milliseconds(700));
  EXPECT_GT(stress.stash_seen(), 0u);
}

}  // namespace
}  // namespace edgeshed::kernel::test
