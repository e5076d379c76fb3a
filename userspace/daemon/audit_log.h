// What people ordered: one JSON line each, appended to a file, so that a night's rungs by hand can
// be told from the ladder's. Service thread only; must not know what an order does.
#ifndef EDGESHED_USERSPACE_DAEMON_AUDIT_LOG_H_
#define EDGESHED_USERSPACE_DAEMON_AUDIT_LOG_H_

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "userspace/daemon/protocol.h"

namespace edgeshed::daemon {

/// SO_PEERCRED of whoever ordered it; empty: a signal, or the kernel would not say.
using Caller = std::optional<ucred>;

class AuditLog {
 public:
  /// `path`: the file, made with mode 0640, and its folder with it; empty: the normal log.
  explicit AuditLog(std::string path) { use(std::move(path)); }

  /// Another file from now on.
  void use(std::string path);

  /// Appends {"time":"2026-01-31T12:00:00Z","uid":0,"pid":1234,"command":"set","arguments":{...},
  /// "result":"ok"}; `error`: one line, empty for ok. Never fails: what the file does not take goes
  /// to the normal log, with one warning until the file works again.
  void write(const Caller& caller, const Request& order, std::string_view error);

  /// Lines that the file did not take.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  std::string path_;
  std::uint64_t lost_ = 0;
  bool failing_ = false;
};

/// Whether a request is a person's order that changes something. Reports, and the connections that
/// scripts add and remove by the thousand, are not.
[[nodiscard]] bool is_order(const Request& request);

}  // namespace edgeshed::daemon

#endif
