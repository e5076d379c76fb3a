// What game servers say of single connections, made into room states and slow-consumer stages: one
// pass over the report boards, a few times a second. Service thread only; the labels that come of
// it shed nothing (core/room_state.h).
#ifndef EDGESHED_USERSPACE_DAEMON_ROOM_WATCH_H_
#define EDGESHED_USERSPACE_DAEMON_ROOM_WATCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "userspace/core/model.h"
#include "userspace/core/room_state.h"
#include "userspace/core/slow_consumer.h"
#include "userspace/session/wire.h"

namespace edgeshed::daemon {

/// What is remembered of one connection between passes.
struct WatchedPeer {
  core::SlowConsumer stage = core::SlowConsumer::ok;
  core::RejectWindow rejects;
  std::uint64_t evict_since_ns = 0;  // bytes at evict without a break since; 0: they are not
};

/// What cannot be undone needs this dwell (model A3).
inline constexpr double kEvictDwellS = 3;

/// One look at a connection's row: its stage steps, and what the room should know comes back.
/// `seen_lag`: of its acknowledgements in passing, for a server that says nothing of them.
core::RoomConnection watch(WatchedPeer& peer, const es_board_connection& row,
                           std::optional<std::uint32_t> seen_lag, std::uint64_t now_ns,
                           const core::Model& model);

/// States of all rooms, by number.
class RoomWatch {
 public:
  /// `rooms`: that the maps hold.
  explicit RoomWatch(std::size_t rooms)
      : observed_(rooms), states_(rooms), at_evict_(rooms), governor_ns_(rooms) {}

  /// A pass begins: nothing has been observed.
  void begin();
  void add(std::uint16_t room, const core::RoomConnection& connection, const core::Model& model);
  /// A pass ends: `changed(room, state)` for every room whose pressure differs from before.
  void end(const core::Model& model,
           const std::function<void(std::uint16_t, const core::RoomState&)>& changed);

  [[nodiscard]] const core::RoomState& state(std::uint16_t room) const { return states_[room]; }
  [[nodiscard]] std::uint32_t at_evict(std::uint16_t room) const { return at_evict_[room]; }

  /// The packet path refused a sample of a stream, for the governor's limits. Any room number.
  void note_governor(std::uint16_t room, std::uint64_t now_ns) {
    if (room < governor_ns_.size()) governor_ns_[room] = now_ns;
  }
  /// Whether it did within the last second (it says so once a second for each connection).
  [[nodiscard]] bool governor_rejects(std::uint16_t room, std::uint64_t now_ns) const;

 private:
  std::vector<core::RoomObservation> observed_;
  std::vector<core::RoomState> states_;
  std::vector<std::uint32_t> at_evict_;
  std::vector<std::uint64_t> governor_ns_;  // 0: never
};

}  // namespace edgeshed::daemon

#endif
