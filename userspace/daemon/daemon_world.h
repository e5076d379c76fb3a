// The daemon's pieces over plain memory: ticks, connections, messages, without a kernel. For tests.
#ifndef EDGESHED_USERSPACE_DAEMON_DAEMON_WORLD_H_
#define EDGESHED_USERSPACE_DAEMON_DAEMON_WORLD_H_

#include <memory>
#include <string>

#include "userspace/config/config.h"
#include "userspace/daemon/desk_world.h"
#include "userspace/daemon/service.h"

namespace edgeshed::daemon {

class DaemonWorld : public DeskWorld {
 public:
  explicit DaemonWorld(const std::string& config) : DeskWorld(config::parse(config, "test.toml")) {
    serve();
  }

  /// A daemon that starts on the same maps.
  void start() {
    service_.reset();
    DeskWorld::start();
    serve();
  }

  std::string say(const Request& request) { return service_->handle(to_message(request)).text; }

  AllowList allowed_{""};
  AuditLog audit_{""};
  std::unique_ptr<Service> service_;

 private:
  void serve() {
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
};

}  // namespace edgeshed::daemon

#endif
