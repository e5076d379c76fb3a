// The writer of the slot table: see slot_table.h.
//
// Why a slot that a key moved away from may be used again at once, while one whose key was removed
// waits: every reader that could still be at the old slot began after the copy was published, so
// when the slot turns out to hold something else (the slot's tag bits, then the full key), it goes
// on and finds the copy, or has passed it already.
#include "userspace/kernel/slot_table.h"

#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

namespace edgeshed::kernel {
namespace {

/// Buckets that the search for a free slot looks at. Two full buckets reach 2 + 12 + 72 + ... of
/// them; at 90 % about every third has room, so 512 are only used up when the table is really full.
constexpr std::size_t kSearchBucketsMax = 512;

std::uint64_t load(const __u64& word) { return __atomic_load_n(&word, __ATOMIC_RELAXED); }

bool same_key(const es_key& a, const es_key& b) {
  return a.addr_hi == b.addr_hi && a.addr_lo == b.addr_lo && a.port == b.port &&
         a.endpoint == b.endpoint;
}

std::uint8_t tag_of(std::uint64_t tags, std::uint32_t slot) {
  return static_cast<std::uint8_t>(tags >> (8 * slot));
}

std::uint8_t quartile_of(std::uint64_t tags, std::uint32_t slot) {
  return (tags >> (48 + 2 * slot)) & 3;
}

std::uint8_t quartile(std::uint8_t priority) { return priority >> 6; }

/// Bijective mix (the finalizer of splitmix64): spreads what differs in few bits.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// A fresh direction: no debts, never seen, and thinning that starts at a phase of its own, so that
/// connections that joined together do not pass in the same tick for ever.
es_flow_state fresh_state(std::uint64_t phases) {
  es_flow_state state{};
  for (es_thin& thin : state.thin) {
    thin.error_q16 = static_cast<__u16>(phases);
    phases >>= 16;
  }
  return state;
}

struct SearchStep {
  std::uint32_t bucket;
  std::uint16_t parent;  ///< index of the step that it was reached from
  std::uint16_t slot;    ///< the slot of the parent whose key may also live here
};

constexpr std::uint16_t kNoParent = 0xffff;

bool on_path(std::span<const SearchStep> steps, std::size_t from, std::uint32_t bucket) {
  for (std::size_t i = from; i != kNoParent; i = steps[i].parent) {
    if (steps[i].bucket == bucket) return true;
  }
  return false;
}

}  // namespace

SlotTable::SlotTable(const SlotTableMemory& memory, Grace grace)
    : memory_(memory),
      grace_(std::move(grace)),
      state_(memory.connections.size(), RecordState::kFree),
      vacated_(memory.buckets.size(), 0) {
  assert(memory_.buckets.size() >= 2 && memory_.stash_used != nullptr);
  assert(memory_.connections.size() == memory_.connections_in.size());
  assert(memory_.connections.size() == memory_.connections_out.size());
  assert(memory_.connections.size() <= ES_CONNECTIONS_MAX);
  free_.reserve(state_.size());
  for (std::size_t i = state_.size(); i-- > 0;) free_.push_back(static_cast<std::uint32_t>(i));
}

SlotTable::Adopted SlotTable::adopt() {
  // A former daemon may have died between a store and the grace that had to follow it.
  wait_grace();
  state_.assign(state_.size(), RecordState::kFree);
  vacated_.assign(vacated_.size(), 0);
  vacated_at_.clear();
  pending_.clear();
  free_.clear();
  live_ = 0;
  Adopted adopted;
  for (std::uint32_t bucket = 0; bucket < memory_.buckets.size(); ++bucket) {
    for (std::uint32_t slot = 0; slot < ES_BUCKET_SLOTS; ++slot) {
      const Position at{bucket, slot};
      if (tag_of(load(memory_.buckets[bucket].tags), slot) == 0 || adopt_slot(at)) continue;
      clear(at);
      ++adopted.repaired;
    }
  }
  publish_stash_used(0);
  for (std::size_t i = state_.size(); i-- > 0;) {
    if (state_[i] == RecordState::kFree) free_.push_back(static_cast<std::uint32_t>(i));
  }
  adopted.connections = live_;
  return adopted;
}

/// False: the slot contradicts its record, or is the second copy of a move that was interrupted.
bool SlotTable::adopt_slot(Position at) {
  const std::uint32_t record = record_at(at);
  if (record >= state_.size() || state_[record] != RecordState::kFree) return false;
  const es_key& key = memory_.connections[record].key;
  const es_place place = place_of(key);
  const bool belongs =
      at.bucket == place.bucket[0] || at.bucket == place.bucket[1] || at.bucket == stash_bucket();
  if (!belongs || !holds(at, key, place)) return false;
  state_[record] = RecordState::kLive;
  ++live_;
  // The daemon may have died between the two stores of a policy.
  store_tags(at, place.tag, quartile(memory_.connections[record].policy.priority));
  return true;
}

std::optional<std::uint32_t> SlotTable::insert(const es_key& key, const es_policy& policy,
                                               std::uint32_t phase, std::uint32_t stream_block) {
  if (const auto known = find(key)) {
    set_policy(*known, policy);
    return known;
  }
  if (free_.empty() && !pending_.empty()) reclaim();
  if (free_.empty()) return std::nullopt;
  const es_place place = place_of(key);
  std::optional<Position> at = slot_for(place);
  if (!at && !pending_.empty()) {
    reclaim();
    at = slot_for(place);
  }
  if (!at) return std::nullopt;
  const std::uint32_t record = free_.back();
  free_.pop_back();
  fill_record(record, key, policy, phase, stream_block);
  if (at->bucket == stash_bucket()) publish_stash_used(1);
  publish(*at, record | place.slot_tag, place.tag, quartile(policy.priority));
  state_[record] = RecordState::kLive;
  ++live_;
  return record;
}

bool SlotTable::remove(const es_key& key) {
  std::optional<std::uint32_t> record;
  for_each_position(key, place_of(key), [&](Position at) {
    record = record_at(at);
    clear(at);
    vacated_[at.bucket] |= static_cast<std::uint8_t>(1u << at.slot);
    vacated_at_.push_back(at);
  });
  if (!record) return false;
  state_[*record] = RecordState::kPending;
  pending_.push_back(*record);
  --live_;
  return true;
}

std::size_t SlotTable::reclaim() {
  const std::size_t freed = pending_.size();
  if (freed != 0) {
    wait_grace();
    for (const Position at : vacated_at_) vacated_[at.bucket] = 0;
    vacated_at_.clear();
    for (const std::uint32_t record : pending_) {
      state_[record] = RecordState::kFree;
      free_.push_back(record);
    }
    pending_.clear();
  }
  rehome_stash();
  return freed;
}

std::optional<std::uint32_t> SlotTable::find(const es_key& key) const {
  std::optional<std::uint32_t> record;
  for_each_position(key, place_of(key), [&](Position at) { record = record_at(at); });
  return record;
}

void SlotTable::set_policy(std::uint32_t record, const es_policy& policy) {
  assert(is_live(record));
  es_connection& connection = memory_.connections[record];
  using Word = std::uint64_t __attribute__((may_alias));
  __atomic_store_n(reinterpret_cast<Word*>(&connection.policy),
                   std::bit_cast<std::uint64_t>(policy), __ATOMIC_RELEASE);
  const es_place place = place_of(connection.key);
  for_each_position(connection.key, place,
                    [&](Position at) { store_tags(at, place.tag, quartile(policy.priority)); });
}

void SlotTable::set_stream_block(std::uint32_t record, std::uint32_t block) {
  assert(is_live(record));
  std::atomic_ref<__u32>(memory_.connections[record].key.stream_block)
      .store(block, std::memory_order_release);
}

bool SlotTable::is_live(std::uint32_t record) const {
  return record < state_.size() && state_[record] == RecordState::kLive;
}

std::vector<std::uint32_t> SlotTable::live_records() const {
  std::vector<std::uint32_t> records;
  records.reserve(live_);
  for (std::uint32_t i = 0; i < state_.size(); ++i) {
    if (state_[i] == RecordState::kLive) records.push_back(i);
  }
  return records;
}

std::uint32_t SlotTable::stash_used() const {
  return __atomic_load_n(memory_.stash_used, __ATOMIC_RELAXED);
}

es_place SlotTable::place_of(const es_key& key) const {
  const std::uint64_t hash =
      es_key_hash(key.addr_hi, key.addr_lo, es_port_endpoint(key.port, key.endpoint),
                  memory_.seed[0], memory_.seed[1]);
  return es_place_of(hash, stash_bucket());
}

std::uint32_t SlotTable::stash_bucket() const {
  return static_cast<std::uint32_t>(memory_.buckets.size() - 1);
}

std::uint32_t SlotTable::record_at(Position at) const {
  return memory_.buckets[at.bucket].slot[at.slot] & ES_RECORD_MASK;
}

bool SlotTable::holds(Position at, const es_key& key, const es_place& place) const {
  const es_bucket& bucket = memory_.buckets[at.bucket];
  if (tag_of(load(bucket.tags), at.slot) != place.tag) return false;
  if ((bucket.slot[at.slot] & ~ES_RECORD_MASK) != place.slot_tag) return false;
  const std::uint32_t record = record_at(at);
  return record < memory_.connections.size() && same_key(memory_.connections[record].key, key);
}

/// Visits every slot that holds the key: one, or two while a move is unfinished.
template <typename Visit>
void SlotTable::for_each_position(const es_key& key, const es_place& place, Visit visit) const {
  const std::array<std::uint32_t, 3> buckets = {place.bucket[0], place.bucket[1], stash_bucket()};
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (i == 1 && buckets[1] == buckets[0]) continue;
    for (std::uint32_t slot = 0; slot < ES_BUCKET_SLOTS; ++slot) {
      const Position at{buckets[i], slot};
      if (holds(at, key, place)) visit(at);
    }
  }
}

std::uint8_t SlotTable::taken(std::uint32_t bucket) const {
  const std::uint64_t tags = load(memory_.buckets[bucket].tags);
  std::uint8_t bits = vacated_[bucket];
  for (std::uint32_t slot = 0; slot < ES_BUCKET_SLOTS; ++slot) {
    if (tag_of(tags, slot) != 0) bits |= static_cast<std::uint8_t>(1u << slot);
  }
  return bits;
}

std::optional<SlotTable::Position> SlotTable::free_slot(std::uint32_t bucket) const {
  const unsigned slot = static_cast<unsigned>(std::countr_one(taken(bucket)));
  if (slot >= ES_BUCKET_SLOTS) return std::nullopt;
  return Position{bucket, slot};
}

/// The emptier bucket, else a slot that a move frees, else the stash.
std::optional<SlotTable::Position> SlotTable::slot_for(const es_place& place) {
  const int first = std::popcount(taken(place.bucket[0]));
  const int second = std::popcount(taken(place.bucket[1]));
  if (const auto at = free_slot(place.bucket[second < first ? 1 : 0])) return at;
  if (const auto at = make_room(place)) return at;
  return free_slot(stash_bucket());
}

/// Breadth-first search for the shortest chain of keys that can each move to their other bucket, so
/// that the last of them finds a free slot; then moves them, last one first. Returns the slot that
/// became free in one of the two buckets of `place`.
std::optional<SlotTable::Position> SlotTable::make_room(const es_place& place) {
  std::array<SearchStep, kSearchBucketsMax> steps;
  std::size_t count = 0;
  steps[count++] = {place.bucket[0], kNoParent, 0};
  if (place.bucket[1] != place.bucket[0]) steps[count++] = {place.bucket[1], kNoParent, 0};
  for (std::size_t current = 0; current < count; ++current) {
    for (std::uint16_t slot = 0; slot < ES_BUCKET_SLOTS; ++slot) {
      const Position at{steps[current].bucket, slot};
      if (tag_of(load(memory_.buckets[at.bucket].tags), slot) == 0) continue;  // vacated
      const es_place other = place_of(memory_.connections[record_at(at)].key);
      const std::uint32_t next = other.bucket[other.bucket[0] == at.bucket ? 1 : 0];
      // Its slots are searched already: going back would only use up the steps.
      if (on_path({steps.data(), count}, current, next)) continue;
      if (auto hole = free_slot(next)) {
        Position from = at;
        for (std::size_t step = current;; step = steps[step].parent) {
          move(from, *hole);
          hole = from;
          if (steps[step].parent == kNoParent) return hole;
          from = {steps[steps[step].parent].bucket, steps[step].slot};
        }
      }
      if (count < steps.size()) {
        steps[count++] = {next, static_cast<std::uint16_t>(current), slot};
      }
    }
  }
  return std::nullopt;
}

void SlotTable::move(Position from, Position to) {
  const es_bucket& bucket = memory_.buckets[from.bucket];
  const std::uint64_t tags = load(bucket.tags);
  publish(to, bucket.slot[from.slot], tag_of(tags, from.slot), quartile_of(tags, from.slot));
  wait_grace();
  clear(from);
  ++moves_;
}

void SlotTable::publish(Position at, std::uint32_t slot_word, std::uint8_t tag,
                        std::uint8_t quartile_bits) {
  std::atomic_ref<__u32>(memory_.buckets[at.bucket].slot[at.slot])
      .store(slot_word, std::memory_order_release);
  store_tags(at, tag, quartile_bits);
}

/// One store of the whole word: tag and quartile of a slot change together.
void SlotTable::store_tags(Position at, std::uint8_t tag, std::uint8_t quartile_bits) {
  __u64& word = memory_.buckets[at.bucket].tags;
  const unsigned tag_shift = 8 * at.slot;
  const unsigned quartile_shift = 48 + 2 * at.slot;
  std::uint64_t tags = load(word);
  tags &= ~((std::uint64_t{0xff} << tag_shift) | (std::uint64_t{3} << quartile_shift));
  tags |= (std::uint64_t{tag} << tag_shift) | (std::uint64_t{quartile_bits} << quartile_shift);
  std::atomic_ref<__u64>(word).store(tags, std::memory_order_release);
}

void SlotTable::clear(Position at) { store_tags(at, 0, 0); }

void SlotTable::fill_record(std::uint32_t record, const es_key& key, const es_policy& policy,
                            std::uint32_t phase, std::uint32_t stream_block) {
  const std::uint64_t hash =
      es_key_hash(key.addr_hi, key.addr_lo, es_port_endpoint(key.port, key.endpoint),
                  memory_.seed[0], memory_.seed[1]);
  const std::uint64_t phases = mix(hash + phase);
  es_connection& connection = memory_.connections[record];
  connection.key = key;
  connection.key.stream_block = stream_block;
  connection.policy = policy;
  memory_.connections_in[record] = fresh_state(phases);
  memory_.connections_out[record] = fresh_state(mix(phases + 1));
}

/// `coming`: slots of the stash that are about to be published.
void SlotTable::publish_stash_used(unsigned coming) {
  const std::uint32_t used =
      static_cast<std::uint32_t>(std::popcount(taken(stash_bucket()))) + coming;
  std::atomic_ref<std::uint32_t>(*memory_.stash_used).store(used, std::memory_order_release);
}

/// Empties the stash as far as there is room: while it is in use every miss looks into it.
void SlotTable::rehome_stash() {
  if (stash_used() == 0) return;
  std::array<Position, ES_BUCKET_SLOTS> moved;
  std::size_t count = 0;
  for (std::uint32_t slot = 0; slot < ES_BUCKET_SLOTS; ++slot) {
    const Position at{stash_bucket(), slot};
    const std::uint64_t tags = load(memory_.buckets[at.bucket].tags);
    if (tag_of(tags, slot) == 0) continue;
    const es_place place = place_of(memory_.connections[record_at(at)].key);
    auto home = free_slot(place.bucket[0]);
    if (!home) home = free_slot(place.bucket[1]);
    if (!home) continue;
    publish(*home, memory_.buckets[at.bucket].slot[slot], tag_of(tags, slot),
            quartile_of(tags, slot));
    moved[count++] = at;
  }
  if (count != 0) {
    wait_grace();
    for (std::size_t i = 0; i < count; ++i) clear(moved[i]);
    moves_ += count;
  }
  publish_stash_used(0);
}

void SlotTable::wait_grace() {
  ++graces_;
  grace_();
}

}  // namespace edgeshed::kernel
