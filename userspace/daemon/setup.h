// One configuration at work: its model and everything of a tick that has the model's shape. Made on
// the service thread, so that the tick thread allocates nothing when a reload hands it the next
// one.
#ifndef EDGESHED_USERSPACE_DAEMON_SETUP_H_
#define EDGESHED_USERSPACE_DAEMON_SETUP_H_

#include <array>
#include <cstdint>
#include <vector>

#include "userspace/core/model.h"
#include "userspace/core/plan_rows.h"
#include "userspace/core/room_ladder.h"
#include "userspace/core/shard_law.h"
#include "userspace/daemon/command.h"
#include "userspace/daemon/demand_sampler.h"
#include "userspace/daemon/snapshot.h"
#include "userspace/session/report_reader.h"

namespace edgeshed::daemon {

/// What a tick keeps of one shard.
struct ShardSlot {
  ShardReport told;                // by `edgeshed report`; at_ns 0: never
  SessionBoards boards;            // of the server's session; null: none
  std::uint32_t rooms_opened = 0;  // by it
  session::ReportReader board_reader;

  // What this tick sampled, and what the control law made of it so far.
  ShardArrivals arrivals;
  core::ShardSample sample;
  core::ShardMemory law;
  core::TickFuse fuse;
  double tick_twice_s = 0;  // as the fuse says

  std::vector<std::uint16_t> rooms;  // numbers of its rooms

  /// Whether demand is worth sampling: its cost is known, or can be learned from a session.
  [[nodiscard]] bool has_costs() const { return law.cost.known || boards.report != nullptr; }
};

/// Setup::rate_from of an endpoint that was never looked at.
inline constexpr std::uint64_t kNeverSeen = ~std::uint64_t{0};

class Setup {
 public:
  /// Throws std::invalid_argument: a control config that config::load would have refused.
  explicit Setup(core::Model model);

  /// Goes on where `former` stands: shards of the same name keep rung, ramp, reports and session;
  /// endpoints keep their rates and rooms what their server said. Allocates nothing.
  void take_over(const Setup& former);

  const core::Model model;
  const core::ShardLaw law;
  std::vector<ShardSlot> shards;        // index as in Model::shards, holes included
  std::vector<EndpointView> endpoints;  // index: endpoint number - 1
  std::vector<std::array<std::uint64_t, ES_DIRECTIONS>> rate_from;
  std::vector<std::uint32_t> exempt;       // by endpoint, see core::PlanExtras
  std::vector<std::uint32_t> throttled;    // the same
  std::vector<std::uint8_t> server_thins;  // by room, see core::PlanExtras
  /// By room: bit per lane that is best-effort at every endpoint of the room.
  std::vector<std::uint8_t> best_effort_lanes;
  std::vector<EndpointShare> endpoint_shares;
  std::vector<EndpointArrivals> endpoint_arrivals;  // by endpoint, index number - 1
  std::vector<double> room_weight;                  // by room: sum of its connections' weights
  std::vector<core::RoomOverride> room_overrides;   // by room: rungs by hand

  // Of this tick, as fill_plan_rows wants them.
  std::vector<core::ShardState> states;
  std::vector<core::RetryAfter> retries;  // by shard, see core::PlanExtras
  std::vector<core::TierLevels> levels;   // by shard, see core::PlanExtras
};

}  // namespace edgeshed::daemon

#endif
