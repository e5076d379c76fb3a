// What a tick leaves behind for everybody else: immutable once published (triple_buffer.h).
// Numbers only; names are the reader's, so that a tick copies no string.
#ifndef EDGESHED_USERSPACE_DAEMON_SNAPSHOT_H_
#define EDGESHED_USERSPACE_DAEMON_SNAPSHOT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "maps/events.h"
#include "maps/types.h"
#include "userspace/core/codes.h"
#include "userspace/core/degree.h"
#include "userspace/core/model.h"
#include "userspace/core/retry_after.h"
#include "userspace/core/room_override.h"
#include "userspace/core/shard_controller.h"
#include "userspace/core/signals.h"
#include "userspace/daemon/tick_figures.h"
#include "userspace/daemon/triple_buffer.h"

namespace edgeshed::daemon {

struct ShardView {
  core::ShardState state;
  core::Degree degree;       // kept now, of standard and of best-effort
  core::ShardDemand demand;  // offered, as shares of the budget
  core::RetryAfter retry;    // what a refused client is told
  bool reported_by_session = false;
  core::ShardSignals signals;
  double tick_twice_s = 0;                 // that its tick has been at twice the budget or over
  std::uint64_t reports = 0;               // of its session's board, accepted
  std::uint64_t reports_refused = 0;       // and not
  core::Code refusal = core::Code::count;  // why the last refused one was; count: none was
};

struct EndpointView {
  bool shadow = false;
  std::array<std::uint64_t, ES_DIRECTIONS> seen{};    // packets, ever
  std::array<double, ES_DIRECTIONS> packets_per_s{};  // over about the last second
};

/// The last sampled sheds, oldest first from `next` on.
inline constexpr std::size_t kEventsKept = 64;
struct EventTail {
  std::array<es_event, kEventsKept> events{};
  std::uint64_t count = 0;  // sampled events read, ever; the next one goes to count % kEventsKept
  std::uint64_t refusals_lost = 0;  // that no server could be told of: too many at once
};

struct Snapshot {
  const core::Model* model = nullptr;  // what the indexes below mean; null: no tick yet
  std::uint64_t now_ns = 0;            // CLOCK_MONOTONIC when the tick began
  std::uint64_t tick_count = 0;
  std::uint64_t ticks_skipped = 0;
  std::uint64_t late_max_ns = 0;      // latest wake-up of all ticks
  std::uint64_t duration_max_ns = 0;  // longest tick
  Percentiles late;                   // of the last PercentileWindow::kTicks ticks
  Percentiles duration;
  std::uint64_t changes_unlogged = 0;
  std::uint32_t generation = 0;
  std::vector<ShardView> shards;          // index as in Model::shards
  std::vector<EndpointView> endpoints;    // index: endpoint number - 1
  std::vector<core::RoomOverride> rooms;  // index as in Model::rooms
  core::CauseCounts room_changes = {};    // of rooms' rungs by hand, ever
  EventTail events;

  /// Sized for `model`. Allocates only if the sizes differ from what they were.
  void shape_for(const core::Model& of) {
    model = &of;
    shards.resize(of.shards.size());
    endpoints.resize(of.endpoints.size());
    rooms.resize(of.rooms.size());
  }
};

using SnapshotBox = TripleBuffer<Snapshot>;

}  // namespace edgeshed::daemon

#endif
