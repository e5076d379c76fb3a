// The daemon's control socket, seen from a command: connect, one message, one answer.
#ifndef EDGESHED_TOOLS_CLI_CLIENT_H_
#define EDGESHED_TOOLS_CLI_CLIENT_H_

#include <boost/json/object.hpp>
#include <string>

#include "tools/cli/cli.h"
#include "userspace/daemon/protocol.h"

namespace edgeshed::cli {

/// What came of a message.
struct Reply {
  ExitCode code = kExitOk;  // kExitOk: the daemon answered ok
  std::string error;        // one line if not
  bool running = true;      // false: no daemon listens on the socket
  boost::json::object answer;
};

/// Sends `request` to the daemon at `socket` and waits up to 5 s for its answer.
[[nodiscard]] Reply ask_daemon(const std::string& socket, const daemon::Request& request);

}  // namespace edgeshed::cli

#endif
