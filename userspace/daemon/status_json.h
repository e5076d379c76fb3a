// Snapshots as JSON: the daemon's half of `edgeshed status` and `edgeshed dump events`.
// Reads only what it is given.
#ifndef EDGESHED_USERSPACE_DAEMON_STATUS_JSON_H_
#define EDGESHED_USERSPACE_DAEMON_STATUS_JSON_H_

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>

#include "maps/control.h"
#include "maps/events.h"
#include "userspace/core/model.h"
#include "userspace/daemon/room_rungs.h"
#include "userspace/daemon/snapshot.h"

namespace edgeshed::daemon {

/// What the service thread counts.
struct ServiceFigures {
  std::uint64_t reports = 0;
  std::uint64_t reports_refused = 0;  // impossible values, unknown shards
  std::uint64_t messages_malformed = 0;
  std::uint64_t commands_lost = 0;  // the queue to the tick thread was full
  std::uint64_t audit_lost = 0;     // orders that the audit log's file did not take
  std::size_t connections = 0;
  std::size_t connections_max = 0;
};

/// {"daemon":{...},"shards":[...],"endpoints":[...]}, with the names of the snapshot's own model.
/// `room_changes`: of rooms by themselves; those by hand are in the snapshot.
/// Of shards and endpoints those with index `first` to `end` - 1.
[[nodiscard]] boost::json::object status_json(const Snapshot& snapshot,
                                              const ServiceFigures& figures,
                                              const RoomCauseCounts& room_changes,
                                              std::uint64_t now_ns, std::size_t first,
                                              std::size_t end);

/// One room: where it stands, its rung and pressure, why, since when, what releases it. Empty if
/// the snapshot's model has no such room.
[[nodiscard]] boost::json::object room_json(const Snapshot& snapshot, std::uint16_t number,
                                            const RoomFacts& facts, const core::RoomRung& place,
                                            std::uint64_t now_ns);

/// One sampled shed. Names are numbers here: the reader has the names.
[[nodiscard]] boost::json::object event_json(const es_event& event);

/// The kept events, oldest first.
[[nodiscard]] boost::json::array events_json(const EventTail& tail);

}  // namespace edgeshed::daemon

#endif
