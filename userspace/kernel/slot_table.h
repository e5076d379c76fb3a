// The writer of the slot table (maps/slot_table.h): which record belongs to a key. Pure memory over
// spans; the grace period of the readers is injected. One thread owns a SlotTable. Must not know
// rooms, sessions or plans, and must not include libbpf.
//
// Order of the stores, which the packet path relies on:
//   insert  record, then slot, then the tag word (release)
//   remove  tag byte cleared; after a grace the record may be used again
//   move    the copy appears in the second place, grace, then the first is cleared: a reader that
//           searches a present key sees one or both, never none
//   stash   stash_used is raised before the slot appears, and lowered a grace after it went
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "maps/connection.h"
#include "maps/slot_table.h"
#include "userspace/kernel/grace.h"

namespace edgeshed::kernel {

/// The memory of a table. All spans must outlive the SlotTable.
struct SlotTableMemory {
  std::span<es_bucket> buckets;  ///< the last one is the stash bucket; at least 2
  std::span<es_connection> connections;
  std::span<es_flow_state> connections_in;   ///< as many as connections
  std::span<es_flow_state> connections_out;  ///< as many as connections
  std::uint32_t* stash_used = nullptr;       ///< es_control.stash_used
  std::uint64_t seed[2] = {0, 0};            ///< es_geometry.seed
};

class SlotTable {
 public:
  /// Takes the memory as zeroed (fresh maps); for maps that were used before call adopt() next.
  explicit SlotTable(const SlotTableMemory& memory, Grace grace = make_grace());

  /// What adopt() found.
  struct Adopted {
    std::size_t connections = 0;
    std::size_t repaired = 0;  ///< slots cleared: a second copy, or contradicting their record
  };
  /// Takes over a table that a former daemon left, whatever it was in the middle of. Waits one
  /// grace. Call it once, before anything else.
  Adopted adopt();

  /// Makes `key` known and returns its record number; if it is known already, sets its policy and
  /// returns its record (the state stays). Empty: the table is full (no record, or no slot within
  /// the bounded search). `phase` spreads thinning further than the hash of the key does.
  /// Waits one grace per key that has to be moved: rare below 80 % of the slots. Runs reclaim() by
  /// itself when only pending records are left.
  std::optional<std::uint32_t> insert(const es_key& key, const es_policy& policy,
                                      std::uint32_t phase = 0, std::uint32_t stream_block = 0);

  /// Forgets `key`: packets stop finding it at once, its record is used again after reclaim().
  /// False: not known.
  bool remove(const es_key& key);

  /// One grace for all removals since the last one, then their records are free, and keys in the
  /// stash move to a bucket that has room. Returns the number of records freed. Nothing pending
  /// and nothing in the stash: no grace.
  std::size_t reclaim();

  /// Record number of `key`. Empty: not known.
  std::optional<std::uint32_t> find(const es_key& key) const;

  /// Replaces the policy of a live record by one store, and its quartile in the tag word by
  /// another. `record` must be live.
  void set_policy(std::uint32_t record, const es_policy& policy);
  /// Sets the stream block of a live record (0: none).
  void set_stream_block(std::uint32_t record, std::uint32_t block);

  bool is_live(std::uint32_t record) const;
  /// The live record numbers, ascending. Allocates.
  std::vector<std::uint32_t> live_records() const;

  std::size_t size() const { return live_; }
  std::size_t capacity() const { return memory_.connections.size(); }
  std::size_t pending() const { return pending_.size(); }
  std::uint32_t stash_used() const;
  std::uint64_t moves() const { return moves_; }    ///< keys moved to make room, ever
  std::uint64_t graces() const { return graces_; }  ///< graces waited, ever

 private:
  enum class RecordState : std::uint8_t { kFree, kLive, kPending };
  struct Position {
    std::uint32_t bucket;
    std::uint32_t slot;
  };

  es_place place_of(const es_key& key) const;
  std::uint32_t record_at(Position at) const;
  bool holds(Position at, const es_key& key, const es_place& place) const;
  template <typename Visit>
  void for_each_position(const es_key& key, const es_place& place, Visit visit) const;
  std::uint32_t stash_bucket() const;
  /// Bit i: slot i has a key, or had one that a reader may still be at.
  std::uint8_t taken(std::uint32_t bucket) const;
  std::optional<Position> free_slot(std::uint32_t bucket) const;

  std::optional<Position> slot_for(const es_place& place);
  std::optional<Position> make_room(const es_place& place);
  void move(Position from, Position to);
  void publish(Position at, std::uint32_t slot_word, std::uint8_t tag, std::uint8_t quartile_bits);
  void store_tags(Position at, std::uint8_t tag, std::uint8_t quartile_bits);
  void clear(Position at);
  void fill_record(std::uint32_t record, const es_key& key, const es_policy& policy,
                   std::uint32_t phase, std::uint32_t stream_block);
  void publish_stash_used(unsigned coming);
  void rehome_stash();
  bool adopt_slot(Position at);
  void wait_grace();

  SlotTableMemory memory_;
  Grace grace_;
  std::vector<RecordState> state_;
  std::vector<std::uint32_t> free_;     ///< record numbers, the last one is next
  std::vector<std::uint32_t> pending_;  ///< removed, grace outstanding
  std::vector<Position> vacated_at_;    ///< the slots of pending_
  std::vector<std::uint8_t> vacated_;   ///< by bucket: bit i, slot i is in vacated_at_
  std::size_t live_ = 0;
  std::uint64_t moves_ = 0;
  std::uint64_t graces_ = 0;
};

}  // namespace edgeshed::kernel
