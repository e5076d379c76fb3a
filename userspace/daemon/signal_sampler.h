// Reads what the kernel says of the host and its sockets, and what servers say of their players,
// and leaves it for ticks. Service thread only; call it 15 to 20 times a second: pressure stalls
// read more often than every 33 ms say nothing.
#ifndef EDGESHED_USERSPACE_DAEMON_SIGNAL_SAMPLER_H_
#define EDGESHED_USERSPACE_DAEMON_SIGNAL_SAMPLER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "maps/plan.h"
#include "userspace/core/receive_queue.h"
#include "userspace/daemon/demand_sampler.h"
#include "userspace/daemon/session_desk.h"
#include "userspace/daemon/signal_sample.h"
#include "userspace/host/cgroup.h"
#include "userspace/host/psi.h"
#include "userspace/host/socket_queues.h"
#include "userspace/host/softnet.h"

namespace edgeshed::daemon {

/// Where the host says it.
struct SignalPaths {
  std::string softnet = "/proc/net/softnet_stat";
  std::string cpu_pressure = "/proc/pressure/cpu";
};

class SignalSampler {
 public:
  /// All outlive it. Sockets are those of the network namespace in which sample() is called first.
  SignalSampler(const core::Model& model, const SessionDesk& sessions, SignalBox& box,
                const SignalPaths& paths = {});

  /// One sample of everything, into the box. Never throws for what cannot be read: that is flagged.
  void sample(std::uint64_t now_ns);

  /// A reload: `next` runs from now on.
  void use(const core::Model& next);

 private:
  struct Endpoint {
    core::StandingQueue standing;
    double bytes = 0;           // of this sample
    std::uint32_t sockets = 0;  // the same
  };
  struct Shard {
    session::SessionId session = 0;         // whose server's cgroup it is; 0: none
    std::optional<host::CgroupCpu> cgroup;  // nothing: it has none of its own
    std::uint16_t seen = 0;                 // signals that were there in any sample
  };

  void sample_softnet(std::uint64_t now_ns);
  void sample_queues();
  void add_queue(const host::SocketQueue& queue);
  void sample_stalls(std::uint64_t now_ns);
  void sample_rooms();
  void find_servers();
  void flag_lost();
  void found(std::size_t shard, std::uint16_t signals);

  const core::Model* model_;
  const SessionDesk& sessions_;
  SignalBox& box_;
  host::Softnet softnet_;
  host::CpuPressure pressure_;
  host::SocketQueues sockets_;
  SignalSample next_;

  std::optional<host::SoftnetCounts> softnet_before_;
  std::vector<Endpoint> endpoints_;  // index: number - 1
  std::vector<EndpointShare> shares_;
  std::unique_ptr<es_ports_page> ports_;
  std::uint16_t only_port_ = 0;  // 0: there are several
  std::vector<Shard> shards_;
};

}  // namespace edgeshed::daemon

#endif
