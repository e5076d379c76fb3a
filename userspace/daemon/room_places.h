// Which rooms game servers have opened, and whether one more may be: the usage that placement
// (core/placement.h) judges by. Service thread only.
#ifndef EDGESHED_USERSPACE_DAEMON_ROOM_PLACES_H_
#define EDGESHED_USERSPACE_DAEMON_ROOM_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "userspace/core/model.h"
#include "userspace/daemon/snapshot.h"
#include "userspace/session/session.h"

namespace edgeshed::daemon {

class RoomPlaces {
 public:
  struct Placed {
    session::SessionId session = 0;
    std::uint32_t players = 0;  // expected, at most ES_CONNECTIONS_MAX
  };

  /// Whether a room could be placed now: empty, or why not. `connections`: records in the table.
  [[nodiscard]] std::optional<session::Refused> judge(const core::Model& model, std::uint16_t room,
                                                      std::uint32_t players,
                                                      std::size_t connections,
                                                      const Snapshot& snapshot) const;

  void place(std::uint16_t room, session::SessionId session, std::uint32_t players);
  void release(std::uint16_t room) { placed_.erase(room); }

  /// A shard takes no rooms but those that return (`edgeshed drain`), or takes them again. By name,
  /// so that it outlasts a reload. False: it was so already.
  bool drain(const std::string& shard, bool on);
  [[nodiscard]] bool drains(const std::string& shard) const { return draining_.contains(shard); }

  /// What a session had open, in no particular order.
  [[nodiscard]] std::vector<std::uint16_t> rooms_of(session::SessionId session) const;
  [[nodiscard]] bool is_open(std::uint16_t room) const { return placed_.contains(room); }
  [[nodiscard]] bool is_of(std::uint16_t room, session::SessionId session) const;
  /// Rooms of a shard that are open.
  [[nodiscard]] std::uint32_t open_on(const core::Model& model, std::uint32_t shard) const;

  /// The rooms of a session that is gone: until forget(), a server may open them again whatever the
  /// load, for as many players as they had, since those are here already.
  void orphan(session::SessionId session);
  /// The same for a room of a former daemon, of which only its connections are known.
  void orphan_room(session::SessionId session, std::uint16_t room);
  void forget(session::SessionId session);
  /// A reload: only rooms that `stays` says are still the same may return.
  template <typename Stays>
  void keep_orphans(Stays stays) {
    std::erase_if(orphans_, [&](const auto& one) { return !stays(one.second.first); });
  }
  [[nodiscard]] bool may_return(std::uint16_t room, std::uint32_t players) const;

 private:
  std::set<std::string> draining_;
  std::map<std::uint16_t, Placed> placed_;
  std::multimap<session::SessionId, std::pair<std::uint16_t, std::uint32_t>> orphans_;
};

}  // namespace edgeshed::daemon

#endif
