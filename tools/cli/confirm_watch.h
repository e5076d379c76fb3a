// The process that takes an attach back unless it is confirmed. It has no terminal and is in no
// session, so the end of the operator's connection does not reach it.
#ifndef EDGESHED_TOOLS_CLI_CONFIRM_WATCH_H_
#define EDGESHED_TOOLS_CLI_CONFIRM_WATCH_H_

#include <string>

#include "tools/cli/confirm_state.h"

namespace edgeshed::cli {

struct ConfirmWatch {
  std::string socket;
  kernel::AttachUndo undo;
  double seconds = 0;        ///< from now on, and anew by restart_confirm_clock()
  bool stop_caller = false;  ///< the calling process becomes the daemon, and ends with the rollback
};

/// Writes the state and starts the watcher; returns when it watches. The caller holds
/// lock_confirm() until its attach is done: the watcher waits for it. SIGTERM to the watcher: rolls
/// back at once; SIGHUP and SIGINT: nothing. Throws Error: it did not start within 5 s; then there
/// is no state.
void start_confirm_watch(const ConfirmWatch& watch);

}  // namespace edgeshed::cli

#endif
