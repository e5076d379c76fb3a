#include "userspace/daemon/daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json/value_from.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "userspace/daemon/allow_list.h"
#include "userspace/daemon/audit_log.h"
#include "userspace/daemon/configuration.h"
#include "userspace/daemon/connections.h"
#include "userspace/daemon/control_server.h"
#include "userspace/daemon/event_ring.h"
#include "userspace/daemon/instance_lock.h"
#include "userspace/daemon/interface_watch.h"
#include "userspace/daemon/ports.h"
#include "userspace/daemon/service.h"
#include "userspace/daemon/session_desk.h"
#include "userspace/daemon/setup.h"
#include "userspace/daemon/signal_sampler.h"
#include "userspace/daemon/tick_thread.h"
#include "userspace/daemon/ticker.h"
#include "userspace/kernel/error.h"
#include "userspace/kernel/grace.h"
#include "userspace/kernel/jiffies_clock.h"
#include "userspace/kernel/map_set.h"
#include "userspace/kernel/pins.h"
#include "userspace/session/session_server.h"

namespace edgeshed::daemon {
namespace asio = boost::asio;
namespace {

constexpr auto kUpkeepInterval = std::chrono::milliseconds(100);

/// At most 20 samples of the host's signals a second; each some ms later than the one before was.
constexpr auto kSignalInterval = std::chrono::milliseconds(50);
constexpr int kSignalIntervalSpreadMs = 16;

std::string session_socket(const DaemonOptions& options) {
  if (!options.session_socket.empty()) return options.session_socket;
  return std::filesystem::path(options.socket).parent_path() / "session.sock";
}

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
  Daemon(const DaemonOptions& options, Loaded loaded, kernel::MapSet maps)
      : options_(options),
        live_(std::move(loaded.live)),
        setup_(std::make_unique<Setup>(std::move(loaded.model))),
        maps_(std::move(maps)),
        clock_(maps_.geometry().hz),
        events_(maps_.events_fd()),
        snapshots_(Ticker::empty_snapshot(setup_->model)),
        ticker_(*setup_, ticker_edges()),
        allowed_(options_.socket + ".allow"),
        audit_(audit_path(setup_->model)),
        connections_(setup_->model, table_memory(maps_), maps_.streams(), kernel::make_grace()),
        sessions_(session_edges()),
        service_(service_edges()),
        signals_(setup_->model, sessions_, signal_box_) {}

  int run() {
    adopt();
    start_ticks();
    return serve();
  }

 private:
  TickerEdges ticker_edges() {
    TickerEdges edges;
    edges.plan = plan_memory(maps_);
    edges.counters = {maps_.endpoint_counters(), maps_.room_counters(), &maps_.geometry()};
    edges.jiffies = [this] { return clock_.now(); };
    edges.events = &events_;
    edges.refusals = &refusals_;
    edges.commands = &commands_;
    edges.changes = &changes_;
    edges.snapshots = &snapshots_;
    edges.signals = &signal_box_;
    return edges;
  }

  SessionDeskEdges session_edges() {
    SessionDeskEdges edges;
    edges.model = &setup_->model;
    edges.room_rows = maps_.geometry().rooms;
    edges.connections = &connections_;
    edges.commands = &sender_;
    edges.snapshots = &snapshots_;
    edges.refusals = &refusals_;
    edges.now_ns = monotonic_ns;
    edges.jiffies = [this] { return clock_.now(); };
    edges.hz = maps_.geometry().hz;
    return edges;
  }

  [[nodiscard]] std::string audit_path(const core::Model& model) const {
    return options_.audit_log.empty() ? model.host.audit_log : options_.audit_log;
  }

  ServiceEdges service_edges() {
    ServiceEdges edges;
    edges.model = &setup_->model;
    edges.connections = &connections_;
    edges.commands = &sender_;
    edges.changes = &changes_;
    edges.snapshots = &snapshots_;
    edges.allowed = &allowed_;
    edges.audit = &audit_;
    edges.sessions = &sessions_;
    edges.now_ns = monotonic_ns;
    edges.interfaces = [this] {
      return interfaces_ == nullptr ? boost::json::array() : interfaces_->to_json();
    };
    edges.reload = [this](boost::json::object& more) { return reload(more); };
    return edges;
  }

  /// Takes over what a former daemon left in the maps.
  void adopt() {
    connections_.exempt_changed = [this](std::uint8_t endpoint, std::uint32_t count) {
      sender_.send(ExemptCount{endpoint, count});
    };
    const auto adopted = connections_.adopt(live_);
    connections_.allow(allowed_);
    if (adopted.awaited != 0) sessions_.await_former();
    spdlog::info(
        "{}: plan generation {}, {} connections adopted ({} await their session), {} "
        "repaired, {} dropped",
        options_.pin_dir, maps_.control().generation, adopted.kept, adopted.awaited,
        adopted.repaired, adopted.dropped);
    if (maps_.control().bypass != 0) {
      spdlog::warn("bypass is on: everything passes; edgeshed bypass off ends it");
    }
  }

  /// The first plan, then the ports that it is for.
  void start_ticks() {
    Ports ports(setup_->model, maps_.ports());
    ports.clear_changed();
    tick_thread_.emplace(ticker_, TickThreadOptions{maps_.events_fd(), options_.fifo});
    ports.publish();
  }

  /// Messages, signals and upkeep until a signal ends it.
  int serve() {
    asio::io_context context(1);
    ControlServer control(context, options_.socket,
                          [this](std::string_view message, const Caller& caller) {
                            return service_.handle(message, caller);
                          });
    session::SessionServer sessions(context, session_socket(options_), sessions_,
                                    session_user_ids(setup_->model));
    session_server_ = &sessions;
    InterfaceWatch interfaces(context, options_.pin_dir, maps_.control(), setup_->model.interfaces);
    interfaces_ = &interfaces;
    asio::signal_set stop(context, SIGTERM, SIGINT);
    stop.async_wait([&](const boost::system::error_code& error, int number) {
      if (error) return;
      spdlog::info(
          "signal {}: stopping; programs and maps stay attached, tier shedding opens in "
          "about a second, contracts stay",
          number);
      context.stop();
    });
    asio::signal_set hangup(context, SIGHUP);
    wait_for_hangup(hangup);
    asio::steady_timer timer(context);
    int exit_code = kExitOk;
    schedule_upkeep(timer, context, exit_code);
    asio::steady_timer signal_timer(context);
    schedule_signals(signal_timer);
    const core::Model& model = setup_->model;
    spdlog::info(
        "ready: plan generation {} is out, {} endpoints, {} shards, {} connections, {} Hz; "
        "control socket {}, session socket {}",
        maps_.control().generation, model.endpoints.size(), model.shards.size(),
        connections_.size(), model.host.tick_hz, options_.socket, session_socket(options_));
    context.run();
    session_server_ = nullptr;
    interfaces_ = nullptr;
    return exit_code;
  }

  void wait_for_hangup(asio::signal_set& hangup) {
    hangup.async_wait([this, &hangup](const boost::system::error_code& error, int) {
      if (error) return;
      boost::json::object ignored;
      audit_.write({}, ReloadRequest{}, reload(ignored));  // the log says what came of it
      wait_for_hangup(hangup);
    });
  }

  /// The file anew, as one plan or not at all. Empty, or the line that says what is wrong.
  std::string reload(boost::json::object& more) {
    try {
      Loaded loaded = load_configuration(options_.config, maps_, &setup_->model);
      const std::vector<std::uint32_t> users = session_user_ids(loaded.model);
      const std::string fault = change_to(std::move(loaded), more);
      if (!fault.empty()) throw Error(fault);
      if (session_server_ != nullptr) session_server_->set_users(users);
      return {};
    } catch (const std::exception& error) {
      spdlog::error("reload refused, nothing changed: {}", error.what());
      return error.what();
    }
  }

  /// Another configuration in the place of what runs: what it has no place for goes first, then its
  /// plan comes as a whole, then its ports and connections.
  std::string change_to(Loaded loaded, boost::json::object& more) {
    const ConfigurationDifference difference = difference_of(setup_->model, loaded.model);
    next_ = std::make_unique<Setup>(std::move(loaded.model));
    Ports ports(next_->model, maps_.ports());
    if (!send_setup()) {
      next_.reset();
      return "the daemon is busy; send again";
    }
    // From here on the tick thread has it: there is no way back, and nothing may stop half-way.
    ports.clear_changed();
    std::size_t removed = 0;
    attempt("connections",
            [&] { removed = connections_.make_room_for(next_->model, loaded.live); });
    while (snapshots_.latest().model != &next_->model) {
      if (!tick_thread_->failure().empty()) return tick_thread_->failure();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    service_.log_changes();  // the last ones of the former shards
    ports.publish();
    attempt("connections", [&] { connections_.use(next_->model); });
    sessions_.use(next_->model);
    service_.use(next_->model);
    signals_.use(next_->model);
    audit_.use(audit_path(next_->model));
    setup_ = std::move(next_);
    if (interfaces_ != nullptr) interfaces_->use(setup_->model.interfaces);
    log_reload(difference, removed, more);
    return {};
  }

  /// Half a second for what waits before it.
  bool send_setup() {
    for (int i = 0; i < 500; ++i) {
      if (sender_.try_send(SetupChange{next_.get()})) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  template <typename Step>
  void attempt(const char* what, Step step) {
    try {
      step();
    } catch (const std::exception& error) {
      spdlog::error("reload, {}: {}; the rest of it goes on", what, error.what());
    }
  }

  void log_reload(const ConfigurationDifference& difference, std::size_t removed,
                  boost::json::object& more) {
    const std::uint32_t generation = snapshots_.latest().generation;
    spdlog::info(
        "reloaded {}: in force from plan generation {} on; added {}; removed {}, and {} "
        "connections",
        options_.config, generation, fmt::join(difference.added, ", "),
        fmt::join(difference.removed, ", "), removed);
    more["generation"] = generation;
    more["added"] = boost::json::value_from(difference.added);
    more["removed"] = boost::json::value_from(difference.removed);
    more["connections_removed"] = removed;
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

  /// Never in step with the ticks of a server, whose socket is full or empty at the same time of
  /// each.
  void schedule_signals(asio::steady_timer& timer) {
    signal_timer_step_ = (signal_timer_step_ + 7) % kSignalIntervalSpreadMs;
    timer.expires_after(kSignalInterval + std::chrono::milliseconds(signal_timer_step_));
    timer.async_wait([&](const boost::system::error_code& error) {
      if (error) return;
      signals_.sample(monotonic_ns());
      schedule_signals(timer);
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
  core::Numbering live_;          // of the plan that a former daemon left
  std::unique_ptr<Setup> setup_;  // that runs
  std::unique_ptr<Setup> next_;   // that the tick thread is about to take
  kernel::MapSet maps_;
  kernel::JiffiesClock clock_;
  EventRing events_;
  CommandQueue commands_;
  CommandSender sender_{commands_};
  ChangeQueue changes_;
  RefusalQueue refusals_;
  SnapshotBox snapshots_;
  SignalBox signal_box_{SignalSample{}};
  Ticker ticker_;
  AllowList allowed_;
  AuditLog audit_;
  Connections connections_;
  SessionDesk sessions_;
  Service service_;
  SignalSampler signals_;
  int signal_timer_step_ = 0;
  session::SessionServer* session_server_ = nullptr;  // while it serves, as the next
  InterfaceWatch* interfaces_ = nullptr;
  bool pins_there_ = true;
  std::optional<TickThread> tick_thread_;  // last: it stops before what it uses goes
};

int run(const DaemonOptions& options) {
  // One daemon per socket and per set of pins.
  const InstanceLock lock(options.socket, options.pin_dir);
  // The maps that `edgeshed attach` made.
  kernel::MapSet maps = kernel::MapSet::from_pins(options.pin_dir, kernel::Access::kReadWrite);
  // The configuration, checked against this kernel's HZ. Nothing has been written so far.
  Loaded loaded = load_configuration(options.config, maps, nullptr);
  session_user_ids(loaded.model);  // throws for a user that is not there
  const auto daemon = std::make_unique<Daemon>(options, std::move(loaded), std::move(maps));
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
