// The port table: which ports are whose. Two steps around the first plan, so that a port whose
// endpoint number changes is nobody's in between, and never another endpoint's.
#ifndef EDGESHED_USERSPACE_DAEMON_PORTS_H_
#define EDGESHED_USERSPACE_DAEMON_PORTS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "maps/control.h"
#include "userspace/core/model.h"

namespace edgeshed::daemon {

class Ports {
 public:
  /// `live`: ES_PORTS bytes of the map; outlives this.
  Ports(const core::Model& model, std::span<std::uint8_t> live);

  /// Before the first plan: ports that meant something else pass as not ours.
  void clear_changed();

  /// After the first plan: every port of the model.
  void publish();

 private:
  std::span<std::uint8_t> live_;
  std::unique_ptr<es_ports_page> wanted_;  // 64 KiB: not for a stack
};

}  // namespace edgeshed::daemon

#endif
