// One tick of the control loop: sample, detect, climb, allocate, publish, report.
//
// Runs on the tick thread. Must not allocate, block, log or call the kernel in tick(), and does no
// work per connection: everything is sized in the constructor.
#ifndef EDGESHED_USERSPACE_DAEMON_TICKER_H_
#define EDGESHED_USERSPACE_DAEMON_TICKER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "maps/control.h"
#include "maps/counters.h"
#include "userspace/core/model.h"
#include "userspace/core/plan_rows.h"
#include "userspace/core/shard_controller.h"
#include "userspace/daemon/command.h"
#include "userspace/daemon/event_ring.h"
#include "userspace/daemon/snapshot.h"
#include "userspace/kernel/plan_writer.h"

namespace edgeshed::daemon {

/// Rejects that the whole host may send, per second. The answer to a flood must stay small beside
/// the flood: 5,000 of at most 100 B are 4 Mbit/s.
inline constexpr std::uint64_t kRejectsPerSecond = 5'000;

/// How long a plan is valid without the next one, in jiffies: max(150 ms, 5 intervals), rounded up.
[[nodiscard]] std::uint64_t dead_man_jiffies(std::uint32_t tick_hz, std::uint32_t hz);

/// What a ticker works on. Everything outlives it. Of the control page it writes lines one and two
/// except two words of line one: `bypass`, which is the CLI's, and `stash_used`, which is the slot
/// table's on the service thread. The words are separate stores, so no writer undoes another's.
struct TickerEdges {
  kernel::PlanMemory plan;
  std::span<const es_endpoint_counters> endpoint_counters;  // cpu * geometry.endpoints + number
  std::function<std::uint64_t()> jiffies;
  EventRing* events = nullptr;  // may be null: no events
  CommandQueue* commands = nullptr;
  ChangeQueue* changes = nullptr;
  SnapshotBox* snapshots = nullptr;
};

/// What the loop around the ticks knows, for the snapshot.
struct LoopFigures {
  std::uint64_t ticks_skipped = 0;
  std::uint64_t late_max_ns = 0;
  std::uint64_t duration_max_ns = 0;
};

class Ticker {
 public:
  /// Throws Error: the model does not fit the maps; std::invalid_argument: a control config that
  /// config::load would have refused.
  Ticker(const core::Model& model, const TickerEdges& edges);

  /// One tick. now_ns: CLOCK_MONOTONIC. events_ready: the event ring has something.
  void tick(std::uint64_t now_ns, bool events_ready, const LoopFigures& figures);

  /// The snapshot that every copy of the box starts from.
  [[nodiscard]] static Snapshot empty_snapshot(const core::Model& model);

 private:
  void sample(bool events_ready);
  void detect();
  void climb();
  void allocate();
  void publish();
  void report(const LoopFigures& figures);

  void apply(const ShardReport& report);
  void apply(const RungOverride& override);
  void sample_endpoint(std::size_t index);

  core::Model model_;
  core::Mode configured_mode_;
  TickerEdges edges_;
  core::ShardController controller_;
  kernel::PlanWriter writer_;
  core::PlanRows rows_;
  core::PlanTiming timing_;

  std::uint64_t now_ns_ = 0;
  std::uint64_t tick_count_ = 0;
  std::uint64_t changes_unlogged_ = 0;
  std::uint64_t rate_from_ns_ = 0;
  bool rate_due_ = false;

  std::vector<ShardReport> last_report_;  // at_ns 0: never
  std::vector<core::ShardSignals> signals_;
  std::vector<core::ShardState> states_;
  std::vector<EndpointView> endpoints_;
  std::vector<std::array<std::uint64_t, ES_DIRECTIONS>> rate_from_;
  EventTail events_;
};

}  // namespace edgeshed::daemon

#endif
