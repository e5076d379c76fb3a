// Ticks, connections and sessions over plain memory, without a kernel and without sockets. For
// tests.
#ifndef EDGESHED_USERSPACE_DAEMON_DESK_WORLD_H_
#define EDGESHED_USERSPACE_DAEMON_DESK_WORLD_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "userspace/core/geometry.h"
#include "userspace/daemon/connections.h"
#include "userspace/daemon/session_desk.h"
#include "userspace/daemon/ticker.h"

namespace edgeshed::daemon {

class DeskWorld {
 public:
  explicit DeskWorld(core::Model model) : model_(std::move(model)) {
    control_ = std::make_unique<es_control>();
    control_->geometry = core::derive_geometry(model_.host, 2, 250);
    const es_geometry& g = control_->geometry;
    endpoints_.resize(2 * g.endpoints);
    rooms_.resize(2 * g.rooms);
    classes_.resize(2 * g.classes);
    counters_.resize(std::size_t{g.cpus} * g.endpoints);
    room_counters_.resize(std::size_t{g.cpus} * g.rooms);
    buckets_.resize(g.buckets + 1);
    records_.resize(g.connections);
    records_in_.resize(g.connections);
    records_out_.resize(g.connections);
    streams_.resize(g.stream_blocks + 1);
    start();
  }

  /// A daemon that starts on the same maps.
  void start() {
    // The former one goes as the daemon does: what uses something before what it uses.
    sessions_.reset();
    box_ = std::make_unique<SnapshotBox>(Ticker::empty_snapshot(model_));
    TickerEdges edges;
    edges.plan = {control_.get(), endpoints_, rooms_, classes_};
    edges.counters = {counters_, room_counters_, &control_->geometry};
    edges.jiffies = [this] { return tick_ns_ / 4'000'000; };
    edges.commands = &commands_;
    edges.changes = &changes_;
    edges.snapshots = box_.get();
    edges.signals = &signals_;
    setup_ = std::make_unique<Setup>(model_);
    ticker_ = std::make_unique<Ticker>(*setup_, edges);
    connections_ = std::make_unique<Connections>(
        model_,
        kernel::SlotTableMemory{
            buckets_, records_, records_in_, records_out_, &control_->stash_used, {1, 2}},
        streams_, [] {});
    adopted_ = connections_->adopt();
    sessions_ = std::make_unique<SessionDesk>(
        SessionDeskEdges{&setup_->model, control_->geometry.rooms, connections_.get(), &sender_,
                         box_.get(), &refusals_, [this] { return now_ns_; },
                         [this] { return now_ns_ / 4'000'000; }, control_->geometry.hz});
  }

  void tick(int ticks = 1) {
    for (int i = 0; i < ticks; ++i) {
      now_ns_ += 16'666'667;
      tick_ns_ = now_ns_;
      ticker_->tick(now_ns_, false, {});
    }
  }

  const es_plan_room& live_room() const {
    return rooms_[(control_->generation & 1) * control_->geometry.rooms];
  }
  const es_plan_endpoint& live_endpoint() const {
    return endpoints_[(control_->generation & 1) * control_->geometry.endpoints + 1];
  }

  core::Model model_;
  std::unique_ptr<es_control> control_;
  std::vector<es_plan_endpoint> endpoints_;
  std::vector<es_plan_room> rooms_;
  std::vector<es_plan_class> classes_;
  std::vector<es_endpoint_counters> counters_;
  std::vector<es_room_counters> room_counters_;
  std::vector<es_bucket> buckets_;
  std::vector<es_connection> records_;
  std::vector<es_flow_state> records_in_;
  std::vector<es_flow_state> records_out_;
  std::vector<es_stream_block> streams_;
  CommandQueue commands_;
  CommandSender sender_{commands_};
  ChangeQueue changes_;
  RefusalQueue refusals_;
  SignalBox signals_{SignalSample{}};
  std::unique_ptr<SnapshotBox> box_;
  std::unique_ptr<Setup> setup_;
  std::unique_ptr<Ticker> ticker_;
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<SessionDesk> sessions_;
  Connections::Adopted adopted_;
  std::uint64_t now_ns_ = 1'000'000'000;   // the service's
  std::uint64_t tick_ns_ = 1'000'000'000;  // the tick thread's, where there is one
};

}  // namespace edgeshed::daemon

#endif
