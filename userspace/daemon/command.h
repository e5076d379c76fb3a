// What the service thread tells the tick thread, and what it hears back besides snapshots: small
// values in bounded queues, checked and resolved to numbers before they are sent.
#ifndef EDGESHED_USERSPACE_DAEMON_COMMAND_H_
#define EDGESHED_USERSPACE_DAEMON_COMMAND_H_

#include <cstdint>
#include <variant>

#include "maps/events.h"
#include "userspace/core/model.h"
#include "userspace/core/room_override.h"
#include "userspace/core/shard_controller.h"
#include "userspace/daemon/spsc_queue.h"

struct es_plan_board;
struct es_report_board;

namespace edgeshed::daemon {

inline constexpr std::uint32_t kRoomsUnchanged = ~0u;

/// A shard's report. Times of CLOCK_MONOTONIC.
struct ShardReport {
  std::uint32_t shard = 0;  // index into Model::shards
  double tick_p99_ms = 0;
  double running_tick_age_ms = 0;
  double ring_occupancy = 0;  // 0 to 1
  std::uint32_t rooms = kRoomsUnchanged;
  std::uint64_t at_ns = 0;
};

/// A rung by hand. until_ns 0: ends it.
struct RungOverride {
  std::uint32_t shard = 0;
  std::uint8_t rung = 0;  // 0 to 5
  std::uint64_t until_ns = 0;
};

/// The same for one room; one that does not hold ends it.
struct RoomRungOverride {
  std::uint16_t room = 0;  // index into Model::rooms
  core::RoomOverride override;
};

/// The boards of a session, mapped; null: no session. They outlive the tick that is told to let go
/// of them by one whole tick.
struct SessionBoards {
  const es_report_board* report = nullptr;
  es_plan_board* plan = nullptr;
};

/// A game server's session begins or ends (null boards) on a shard.
struct SessionChange {
  std::uint32_t shard = 0;
  SessionBoards boards;
};

/// Rooms that the server of a shard has opened.
struct RoomsOpened {
  std::uint32_t shard = 0;
  std::uint32_t rooms = 0;
};

/// Whether the server of a room asks before it sends (core::PlanExtras::server_thins).
struct ServerThins {
  std::uint16_t room = 0;
  bool thins = false;
};

/// Connections of an endpoint that `edgeshed allow` exempts.
struct ExemptCount {
  std::uint8_t endpoint = 0;  // number, 1 and up
  std::uint32_t connections = 0;
};

/// Connections of an endpoint that are throttled as slow consumers.
struct ThrottledCount {
  std::uint8_t endpoint = 0;  // number, 1 and up
  std::uint32_t connections = 0;
};

/// Sum of the weights of a room's connections: what a fair share is a share of.
struct RoomWeight {
  std::uint16_t room = 0;
  double weight = 0;
};

class Setup;

/// Another configuration takes the place of the one that runs. `next` outlives its use.
struct SetupChange {
  Setup* next = nullptr;
};

using Command =
    std::variant<ShardReport, RungOverride, RoomRungOverride, SessionChange, RoomsOpened,
                 ServerThins, ExemptCount, ThrottledCount, RoomWeight, SetupChange>;

/// 256 commands: at 60 Hz that is 15,000 a second, far beyond what a socket of scripts sends.
using CommandQueue = SpscQueue<Command, 256>;

/// A change of a shard's rung, or of one room's by hand, for the log and the shard's server. A
/// reload empties the queue before the model goes.
struct ShardChange {
  const core::Model* model = nullptr;  // whose shard
  std::uint32_t shard = 0;
  core::RungChange change;
  int room = -1;  // index into Model::rooms; -1: the shard itself
};

/// Refusals of single connections that their servers are told of (es_event.sampled_of is 0).
using RefusalQueue = SpscQueue<es_event, 4096>;

/// When it is full, changes are lost to the log and counted in the snapshot.
using ChangeQueue = SpscQueue<ShardChange, 256>;

}  // namespace edgeshed::daemon

#endif
