// One tick of the control loop: sample, detect, climb, allocate, publish, report.
//
// Runs on the tick thread. Must not allocate, block, log or call the kernel in tick(), and does no
// work per connection: everything is sized in the Setup.
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
#include "userspace/daemon/setup.h"
#include "userspace/daemon/signal_sample.h"
#include "userspace/daemon/snapshot.h"
#include "userspace/kernel/plan_writer.h"

namespace edgeshed::daemon {

/// Rejects that the whole host may send, per second. The answer to a flood must stay small beside
/// the flood: 5,000 of at most 100 B are 4 Mbit/s.
inline constexpr std::uint64_t kRejectsPerSecond = 5'000;

/// What a ticker works on. Everything outlives it. Of the control page it writes lines one and two
/// except two words of line one: `bypass`, which is the CLI's, and `stash_used`, which is the slot
/// table's on the service thread. The words are separate stores, so no writer undoes another's.
struct TickerEdges {
  kernel::PlanMemory plan;
  CounterMemory counters;
  std::function<std::uint64_t()> jiffies;
  EventRing* events = nullptr;       // may be null: no events
  RefusalQueue* refusals = nullptr;  // may be null: nobody is told
  CommandQueue* commands = nullptr;
  ChangeQueue* changes = nullptr;
  SnapshotBox* snapshots = nullptr;
  SignalBox* signals = nullptr;  // may be null: what it would say is missing
};

/// What the loop around the ticks knows, for the snapshot.
struct LoopFigures {
  std::uint64_t ticks_skipped = 0;
  std::uint64_t late_max_ns = 0;
  std::uint64_t duration_max_ns = 0;
  Percentiles late;  // of the last PercentileWindow::kTicks ticks
  Percentiles duration;
};

class Ticker {
 public:
  /// Goes on from the plan in the maps. `setup` outlives its use, and its model fits the maps
  /// (core::keep_numbers saw to it).
  Ticker(Setup& setup, const TickerEdges& edges);

  /// Ticks per second that the configuration asks for.
  [[nodiscard]] std::uint32_t tick_hz() const { return timing_.tick_hz; }

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
  void apply(const RoomRungOverride& order);
  void apply(const SessionChange& change);
  void apply(const RoomsOpened& opened);
  void apply(const ServerThins& thins);
  void apply(const ExemptCount& exempt);
  void apply(const ThrottledCount& throttled);
  void apply(const RoomWeight& weight);
  void apply(const SetupChange& change);
  void sample_endpoint(std::size_t index);
  void sample_demand();
  void read_board(std::size_t index);
  static void read_told(const ShardReport& report, core::ShardSignals& signals);
  void detect_shard(std::size_t index);
  void watch_fuse(ShardSlot& work) const;
  void tell(const ShardChange& entry);
  void hold_room(std::size_t room, const core::RoomOverride& next);
  [[nodiscard]] core::RoomInForce in_force(std::size_t room) const;
  void publish_board(std::size_t index);

  Setup* setup_;
  core::Mode host_mode_ = core::Mode::unset;
  TickerEdges edges_;
  kernel::PlanWriter writer_;
  core::PlanRows rows_;
  core::PlanTiming timing_;

  std::uint64_t now_ns_ = 0;
  std::uint64_t tick_count_ = 0;
  std::uint64_t changes_unlogged_ = 0;
  core::CauseCounts room_changes_ = {};
  std::uint64_t rate_from_ns_ = 0;
  bool rate_due_ = false;

  EventTail events_;
};

}  // namespace edgeshed::daemon

#endif
