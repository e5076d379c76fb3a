// The file of an attach that waits to be confirmed, beside the control socket: who watches it,
// until when, and what to put back. Must not start nor end anything (confirm_watch.h).
#ifndef EDGESHED_TOOLS_CLI_CONFIRM_STATE_H_
#define EDGESHED_TOOLS_CLI_CONFIRM_STATE_H_

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "userspace/kernel/attach_undo.h"
#include "userspace/kernel/fd.h"

namespace edgeshed::cli {

enum class ConfirmPhase {
  kNone,        ///< nothing waits, and nothing has been rolled back since the last attach
  kWaiting,     ///< is rolled back unless it is confirmed
  kRolledBack,  ///< nobody confirmed in time
  kFailed,      ///< rolling back failed; `error` says why
};

struct ConfirmState {
  ConfirmPhase phase = ConfirmPhase::kNone;
  int watcher_pid = 0;
  bool watched = false;        ///< that process lives. Read from its lock, not from its number
  std::uint64_t until_ms = 0;  ///< CLOCK_BOOTTIME; kWaiting: then it is rolled back, else: it was
  std::string error;
  kernel::AttachUndo undo;
};

/// Milliseconds of CLOCK_BOOTTIME, which also passes while the machine sleeps.
std::uint64_t boottime_ms();

/// "SOCKET.confirm".
std::string confirm_path(const std::string& socket);

/// No file, or one that is not ours: kNone; nor is one believed that somebody else than the caller
/// or root has written, as its numbers and folders are acted on. Throws Error: it cannot be opened.
ConfirmState read_confirm(const std::string& socket);

/// In one step in the place of what was there. The descriptor holds the lock that says "watched"
/// for as long as it, or a copy of it, is open. Throws Error.
kernel::Fd write_confirm(const std::string& socket, const ConfirmState& state);

/// The attach is done: from now on there are `seconds`. False: nothing waits any more. Throws
/// Error.
[[nodiscard]] bool restart_confirm_clock(const std::string& socket, double seconds);

/// until_ms of the state in an open file; nothing: it is empty, or no state.
std::optional<std::uint64_t> confirm_until_ms(int fd);

/// Confirmed, or taken off by hand: the watcher sees it and ends. No file: does nothing.
void forget_confirm(const std::string& socket);

/// Held while one of confirm, attach or the watcher looks and acts. Waits up to timeout_ms. Throws
/// Error: another one holds it for longer (kExitRefused), no permission.
kernel::Fd lock_confirm(const std::string& socket, std::uint32_t timeout_ms);

/// The same for who goes on without it. Empty: not got in time, or nobody has ever attached here.
kernel::Fd lock_confirm_if_possible(const std::string& socket, std::uint32_t timeout_ms);

/// Throws Error, kExitRefused: there is a state that read_confirm() does not believe, as a service
/// manager gives the folder of the socket to the daemon's user. Whoever watches makes it anew once
/// it is gone.
void refuse_foreign_state(const std::string& socket);

/// Somebody's attach must not be taken back under the feet of the next change.
/// Throws Error, kExitRefused: one waits to be confirmed, or it is not known:
/// refuse_foreign_state().
void require_none_waits(const std::string& socket);

/// For `status --json`: null, or state, watched, rolls_back_in_s or since_s, devices, error.
boost::json::value confirm_json(const ConfirmState& state);

/// For `status`: one line; empty: nothing to say.
std::string confirm_line(const ConfirmState& state);

}  // namespace edgeshed::cli

#endif
