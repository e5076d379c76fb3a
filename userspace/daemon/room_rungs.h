// Where every room stands on its ladder (core/room_ladder.h): looked at a few times a second, each
// change counted by its cause. Service thread only; the ladder follows the shedding and causes
// none.
#ifndef EDGESHED_USERSPACE_DAEMON_ROOM_RUNGS_H_
#define EDGESHED_USERSPACE_DAEMON_ROOM_RUNGS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "userspace/core/model.h"
#include "userspace/core/room_ladder.h"
#include "userspace/core/room_state.h"
#include "userspace/daemon/snapshot.h"

namespace edgeshed::daemon {

/// What the service thread knows of a room.
struct RoomFacts {
  bool open = false;  // a server has opened it
  core::RoomState state;
  std::uint32_t consumers_at_evict = 0;
  bool governor_rejects = false;  // a sample of a stream, within the last second
};

/// Changes of rungs, ever, by what holds the new one; `none`: nothing holds any.
using RoomCauseCounts = std::array<std::uint64_t, static_cast<std::size_t>(core::RoomCause::count)>;

/// A room went to another rung.
struct RoomRungChange {
  std::uint16_t room = 0;
  std::uint8_t from = 0;
  core::RoomDegradation now;
};

class RoomRungs {
 public:
  /// One look at the rooms of the snapshot's model; a room that is held by hand stays where it was.
  /// Returns the changes, in the order of the rooms.
  [[nodiscard]] std::vector<RoomRungChange> look(
      const Snapshot& snapshot, const std::function<RoomFacts(std::uint16_t)>& facts_of,
      std::uint64_t now_ns);

  /// A reload: rooms that have their name no more begin anew.
  void use(const core::Model& former, const core::Model& next);

  [[nodiscard]] core::RoomRung of(std::uint16_t room) const {
    return room < places_.size() ? places_[room] : core::RoomRung{};
  }
  [[nodiscard]] const RoomCauseCounts& changes() const { return changes_; }

 private:
  std::vector<core::RoomRung> places_;  // by room number
  RoomCauseCounts changes_{};
};

}  // namespace edgeshed::daemon

#endif
