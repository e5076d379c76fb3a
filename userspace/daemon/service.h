// The service thread's work: what each message on the control socket does, and the upkeep between
// messages. Everything that may wait, log or allocate happens here, so that ticks need not.
#ifndef EDGESHED_USERSPACE_DAEMON_SERVICE_H_
#define EDGESHED_USERSPACE_DAEMON_SERVICE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "userspace/core/model.h"
#include "userspace/daemon/allow_list.h"
#include "userspace/daemon/audit_log.h"
#include "userspace/daemon/command_sender.h"
#include "userspace/daemon/connections.h"
#include "userspace/daemon/control_server.h"
#include "userspace/daemon/protocol.h"
#include "userspace/daemon/room_rungs.h"
#include "userspace/daemon/session_desk.h"
#include "userspace/daemon/snapshot.h"
#include "userspace/daemon/status_json.h"

namespace edgeshed::daemon {

/// Everything outlives the service.
struct ServiceEdges {
  const core::Model* model = nullptr;  // that runs; a reload says use()
  Connections* connections = nullptr;
  CommandSender* commands = nullptr;
  ChangeQueue* changes = nullptr;
  SnapshotBox* snapshots = nullptr;
  AllowList* allowed = nullptr;
  AuditLog* audit = nullptr;
  SessionDesk* sessions = nullptr;
  std::function<std::uint64_t()> now_ns;  // CLOCK_MONOTONIC
  /// The watched interfaces, for status.
  std::function<boost::json::array()> interfaces;
  /// Applies the configuration's file anew. Empty, or one line; fills what changed.
  std::function<std::string(boost::json::object&)> reload;
};

class Service {
 public:
  explicit Service(const ServiceEdges& edges) : edges_(edges) {}

  /// Acts on one message of `caller`, and puts orders on record. Never throws for what a message
  /// says.
  [[nodiscard]] Answer handle(std::string_view message, const Caller& caller = {});

  /// Logs rung changes, keeps the slot table tidy, ends what has expired. Call it every 100 ms or
  /// so.
  void upkeep();

  /// Logs rung changes, and tells the servers of their shards.
  void log_changes();

  /// A reload: `next` runs from now on.
  void use(const core::Model& next);

  [[nodiscard]] const ServiceFigures& figures() const { return figures_; }

 private:
  // Each returns what is wrong in one line, or nothing and fills `more` of the answer.
  using More = boost::json::object;
  std::string act(const ReportRequest& request, More& more);
  std::string act(const ConnectRequest& request, More& more);
  std::string act(const DisconnectRequest& request, More& more);
  std::string act(const SetRequest& request, More& more);
  std::string act(const DrainRequest& request, More& more);
  std::string act(const BypassRequest& request, More& more);
  std::string act(const AllowRequest& request, More& more);
  std::string act(const ReloadRequest& request, More& more);
  std::string act(const StatusRequest& request, More& more);
  std::string act(const EventsRequest& request, More& more);
  std::string act(const NamesRequest& request, More& more);
  std::string act(const RoomsRequest& request, More& more);
  std::string act(const PlaceRequest& request, More& more);

  std::string find_shard(const std::string& name, std::uint32_t& shard) const;
  std::string find_room(const std::string& name, std::uint16_t& room) const;
  std::string send(const Command& command);
  Answer refuse(const Refusal& refusal);
  [[nodiscard]] RoomFacts facts_of(std::uint16_t room) const;
  void watch_rooms();

  ServiceEdges edges_;
  ServiceFigures figures_;
  RoomRungs rungs_;
};

}  // namespace edgeshed::daemon

#endif
