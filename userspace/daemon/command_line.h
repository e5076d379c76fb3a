// The options of edgeshedd: what it parses, and what its page is made from.
#ifndef EDGESHED_USERSPACE_DAEMON_COMMAND_LINE_H_
#define EDGESHED_USERSPACE_DAEMON_COMMAND_LINE_H_

#include "userspace/daemon/daemon.h"

namespace CLI {
class App;
}

namespace edgeshed::daemon {

/// Makes `app` the command line of edgeshedd. `options` lives as long as `app`.
void add_daemon_options(CLI::App& app, DaemonOptions& options);

}  // namespace edgeshed::daemon

#endif
