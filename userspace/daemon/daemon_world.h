// The daemon's pieces over plain memory: ticks, connections, messages, without a kernel. For tests.
#ifndef EDGESHED_USERSPACE_DAEMON_DAEMON_WORLD_H_
#define EDGESHED_USERSPACE_DAEMON_DAEMON_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "userspace/config/config.h"
#include "userspace/core/geometry.h"
#include "userspace/daemon/connections.h"
#include "userspace/daemon/service.h"
#include "userspace/daemon/session_desk.h"
#include "userspace/daemon/ticker.h"

namespace edgeshed::daemon {

class DaemonWorld {
 public:
  explicit DaemonWorld(const std::string& config) : model_(config::parse(config, "test.toml")) {
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
    service_.reset();
    sessions_.reset();
    box_ = std::make_unique<SnapshotBox>(Ticker::empty_snapshot(model_));
    TickerEdges edges;
    edges.plan = {control_.get(), endpoints_, rooms_, classes_};
    edges.counters = {counters_, room_counters_, &control_->geometry};
    edges.jiffies = [this] { return now_ns_ / 4'000'000; };
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
                         box_.get(), &refusals_, [this] { return now_ns_; }});
    ServiceEdges service;
    service.model = &setup_->model;
    service.connections = connections_.get();
    service.commands = &sender_;
    service.changes = &changes_;
    service.snapshots = box_.get();
    service.allowed = &allowed_;
    service.audit = &audit_;
    service.sessions = sessions_.get();
    service.now_ns = [this] { return now_ns_; };
    service_ = std::make_unique<Service>(service);
  }

  void tick(int ticks = 1) {
    for (int i = 0; i < ticks; ++i) {
      now_ns_ += 16'666'667;
      ticker_->tick(now_ns_, false, {});
    }
  }

  std::string say(const Request& request) { return service_->handle(to_message(request)).text; }
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
  AllowList allowed_{""};
  AuditLog audit_{""};
  std::unique_ptr<Connections> connections_;
  std::unique_ptr<SessionDesk> sessions_;
  std::unique_ptr<Service> service_;
  Connections::Adopted adopted_;
  std::uint64_t now_ns_ = 1'000'000'000;
};

}  // namespace edgeshed::daemon

#endif
