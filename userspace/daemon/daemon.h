// edgeshedd from its options to its exit: what is opened, in which order, and who owns it.
#ifndef EDGESHED_USERSPACE_DAEMON_DAEMON_H_
#define EDGESHED_USERSPACE_DAEMON_DAEMON_H_

#include <string>

#include "userspace/core/pin_dir.h"

namespace edgeshed::daemon {

struct DaemonOptions {
  std::string config;
  std::string pin_dir{core::kDefaultPinDir};
  std::string socket = "/run/edgeshed/control.sock";
  std::string session_socket;  // empty: session.sock beside `socket`
  std::string audit_log;       // empty: [host] audit_log, or the normal log
  bool fifo = false;           // ask for SCHED_FIFO for the tick thread
};

/// Runs until SIGTERM or SIGINT, and leaves everything attached. Returns an ExitCode; every
/// failure has been logged in one line by then.
int run_daemon(const DaemonOptions& options);

}  // namespace edgeshed::daemon

#endif
