#include "userspace/daemon/daemon.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "userspace/config/config.h"
#include "userspace/daemon/connections.h"
#include "userspace/daemon/control_server.h"
#include "userspace/daemon/event_ring.h"
#include "userspace/daemon/instance_lock.h"
#include "userspace/daemon/ports.h"
#include "userspace/daemon/service.h"
#include "userspace/daemon/tick_ring.h"
#include "userspace/daemon/tick_thread.h"
#include "userspace/daemon/ticker.h"
#include "userspace/kernel/error.h"
#include "userspace/kernel/grace.h"
#include "userspace/kernel/jiffies_clock.h"
#include "userspace/kernel/map_set.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::daemon {
namespace asio = boost::asio;
namespace {

constexpr auto kUpkeepInterval = std::chrono::milliseconds(100);

kernel::PlanMemory plan_memory(const kernel::MapSet& maps) {
  const es_geometry& geometry = maps.geometry();
  kernel::PlanMemory memory;
  memory.control = &maps.control();
  memory.endpoints = {maps.plan_endpoints(0).data(), std::size_t{2} * geometry.endpoints};
  memory.rooms = {maps.plan_rooms(0).data(), std::size_t{2} * geometry.rooms};
  memory.classes = {maps.plan_classes(0).data(), std::size_t{2} * geometry.classes};
  return memory;
}

kernel::SlotTableMemory table_memory(const kernel::MapSet& maps) {
  kernel::SlotTableMemory memory;
  memory.buckets = maps.buckets();
  memory.connections = maps.connections();
  memory.connections_in = maps.connections_in();
  memory.connections_out = maps.connections_out();
  memory.stash_used = &maps.control().stash_used;
  memory.seed[0] = maps.geometry().seed[0];
  memory.seed[1] = maps.geometry().seed[1];
  return memory;
}

/// What the two threads share, and the tick thread with it. Members are in the order in which each
/// needs the ones before it.
class Daemon {
 public:
  Daemon(const DaemonOptions& options, const core::Model& model, kernel::MapSet maps)
      : options_(options),
        model_(model),
        maps_(std::move(maps)),
        clock_(maps_.geometry().hz),
        events_(maps_.events_fd()),
        snapshots_(Ticker::empty_snapshot(model_)),
        ticker_(model_, ticker_edges()),
        connections_(model_, table_memory(maps_), maps_.streams(), kernel::make_grace()),
        service_({&model_, &connections_, &commands_, &changes_, &snapshots_, monotonic_ns}) {}

  int run() {
    adopt();
    start_ticks();
    return serve();
  }

 private:
  TickerEdges ticker_edges() {
    TickerEdges edges;
    edges.plan = plan_memory(maps_);
    edges.endpoint_counters = maps_.endpoint_counters();
    edges.jiffies = [this] { return clock_.now(); };
    edges.events = &events_;
    edges.commands = &commands_;
    edges.changes = &changes_;
    edges.snapshots = &snapshots_;
    return edges;
  }

  /// Takes over what a former daemon left in the maps.
  void adopt() {
    const auto adopted = connections_.adopt();
    spdlog::info("{}: plan generation {}, {} connections adopted, {} repaired, {} dropped",
                 options_.pin_dir, maps_.control().generation, adopted.kept, adopted.repaired,
                 adopted.dropped);
    if (maps_.control().bypass != 0) {
      spdlog::warn("bypass is on: everything passes; edgeshed bypass off ends it");
    }
  }

  /// The first plan, then the ports that it is for.
  void start_ticks() {
    Ports ports(model_, maps_.ports());
    ports.clear_changed();
    tick_thread_.emplace(ticker_,
                         TickThreadOptions{model_.host.tick_hz, maps_.events_fd(), options_.fifo});
    ports.publish();
  }

  /// Messages, signals and upkeep until a signal ends it.
  int serve() {
    asio::io_context context(1);
    ControlServer server(context, options_.socket,
                         [this](std::string_view message) { return service_.handle(message); });
    asio::signal_set stop(context, SIGTERM, SIGINT);
    stop.async_wait([&](const boost::system::error_code& error, int number) {
      if (error) return;
      spdlog::info(
          "signal {}: stopping; programs and maps stay attached, tier shedding opens in "
          "about a second, contracts stay",
          number);
      context.stop();
    });
    asio::signal_set reload(context, SIGHUP);
    wait_for_reload(reload);
    asio::steady_timer timer(context);
    int exit_code = kExitOk;
    schedule_upkeep(timer, context, exit_code);
    spdlog::info(
        "ready: plan generation {} is out, {} endpoints, {} shards, {} connections, {} Hz; "
        "control socket {}",
        maps_.control().generation, model_.endpoints.size(), model_.shards.size(),
        connections_.size(), model_.host.tick_hz, options_.socket);
    context.run();
    return exit_code;
  }

  void wait_for_reload(asio::signal_set& reload) {
    reload.async_wait([this, &reload](const boost::system::error_code& error, int) {
      if (error) return;
      spdlog::warn(
          "SIGHUP: reloading is not implemented yet; restart edgeshedd, which adopts "
          "everything: {} stays as it is",
          options_.config);
      wait_for_reload(reload);
    });
  }

  void schedule_upkeep(asio::steady_timer& timer, asio::io_context& context, int& exit_code) {
    timer.expires_after(kUpkeepInterval);
    timer.async_wait([&](const boost::system::error_code& error) {
      if (error) return;
      service_.upkeep();
      watch_pins();
      if (const std::string failure = tick_thread_->failure(); !failure.empty()) {
        spdlog::critical("{}", failure);
        exit_code = kExitFailure;
        context.stop();
        return;
      }
      schedule_upkeep(timer, context, exit_code);
    });
  }

  /// A daemon whose pins are gone goes on, since programs may still be attached; but nobody can
  /// find its maps any more, and that must be said.
  void watch_pins() {
    const bool there = kernel::pins_exist(options_.pin_dir);
    if (pins_there_ && !there) {
      spdlog::error(
          "{}: the pins are gone (edgeshed detach?); edgeshed attach, then restart "
          "edgeshedd",
          options_.pin_dir);
    }
    pins_there_ = there;
  }

  const DaemonOptions& options_;
  const core::Model& model_;
  kernel::MapSet maps_;
  kernel::JiffiesClock clock_;
  EventRing events_;
  CommandQueue commands_;
  ChangeQueue changes_;
  SnapshotBox snapshots_;
  Ticker ticker_;
  Connections connections_;
  Service service_;
  bool pins_there_ = true;
  std::optional<TickThread> tick_thread_;  // last: it stops before what it uses goes
};

int run(const DaemonOptions& options) {
  // One daemon per socket and per set of pins.
  const InstanceLock lock(options.socket, options.pin_dir);
  // The maps that `edgeshed attach` made.
  kernel::MapSet maps = kernel::MapSet::from_pins(options.pin_dir, kernel::Access::kReadWrite);
  // The configuration, checked against this kernel's HZ. Nothing has been written so far.
  const core::Model model = config::load(options.config, maps.geometry().hz);
  const auto daemon = std::make_unique<Daemon>(options, model, std::move(maps));
  return daemon->run();
}

}  // namespace

int run_daemon(const DaemonOptions& options) {
  try {
    return run(options);
  } catch (const Error& error) {
    spdlog::critical("{}", error.what());
    return error.exit_code();
  } catch (const boost::system::system_error& error) {
    // Asio's io_context makes a ring of its own, after the tick thread's has worked.
    spdlog::critical("{}", error.what());
    return kExitFailure;
  } catch (const std::exception& error) {
    spdlog::critical("{}", error.what());
    return kExitFailure;
  }
}

}  // namespace edgeshed::daemon
