// The service thread's work: what each message on the control socket does, and the upkeep between
// messages. Everything that may wait, log or allocate happens here, so that ticks need not.
#ifndef EDGESHED_USERSPACE_DAEMON_SERVICE_H_
#define EDGESHED_USERSPACE_DAEMON_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "userspace/core/model.h"
#include "userspace/daemon/command.h"
#include "userspace/daemon/connections.h"
#include "userspace/daemon/control_server.h"
#include "userspace/daemon/protocol.h"
#include "userspace/daemon/snapshot.h"
#include "userspace/daemon/status_json.h"

namespace edgeshed::daemon {

/// Everything outlives the service.
struct ServiceEdges {
  const core::Model* model = nullptr;
  Connections* connections = nullptr;
  CommandQueue* commands = nullptr;
  ChangeQueue* changes = nullptr;
  SnapshotBox* snapshots = nullptr;
  std::function<std::uint64_t()> now_ns;  // CLOCK_MONOTONIC
};

class Service {
 public:
  explicit Service(const ServiceEdges& edges) : edges_(edges) {}

  /// Acts on one message. Never throws for what a message says.
  [[nodiscard]] Answer handle(std::string_view message);

  /// Logs rung changes and keeps the slot table tidy. Call it every 100 ms or so.
  void upkeep();

  [[nodiscard]] const ServiceFigures& figures() const { return figures_; }

 private:
  // Each returns what is wrong in one line, or nothing and fills `more` of the answer.
  using More = boost::json::object;
  std::string act(const ReportRequest& request, More& more);
  std::string act(const ConnectRequest& request, More& more);
  std::string act(const DisconnectRequest& request, More& more);
  std::string act(const OverrideRequest& request, More& more);
  std::string act(const StatusRequest& request, More& more);
  std::string act(const EventsRequest& request, More& more);
  std::string act(const NamesRequest& request, More& more);

  std::string find_shard(const std::string& name, std::uint32_t& shard) const;
  std::string send(const Command& command);
  Answer refuse(const Refusal& refusal);

  ServiceEdges edges_;
  ServiceFigures figures_;
};

}  // namespace edgeshed::daemon

#endif
