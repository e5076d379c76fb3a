// Each line is one open, one write and one close: orders are rare, and a file that was rotated away
// is simply made anew.
#include "userspace/daemon/audit_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include "userspace/kernel/fd.h"

namespace edgeshed::daemon {
namespace json = boost::json;
namespace {

std::string line_of(const Caller& caller, const Request& order, std::string_view error) {
  json::object line;
  line["time"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  line["uid"] = caller ? json::value(caller->uid) : json::value();
  line["pid"] = caller ? json::value(caller->pid) : json::value();
  json::object arguments;
  for (const auto& member : to_object(order)) {
    json::object& to = member.key() == "command" ? line : arguments;
    to[member.key()] = member.value();
  }
  line["arguments"] = std::move(arguments);
  line["result"] = error.empty() ? "ok" : error;
  return json::serialize(line);
}

/// 0, or the errno of what went wrong.
int append(const std::string& path, const std::string& line) {
  // Non-blocking: a pipe that nobody reads must not hold up the daemon.
  const kernel::Fd file(
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640));
  if (!file) return errno;
  // One write, so that no reader sees half a line, and no other writer comes between.
  const ssize_t written = ::write(file.get(), line.data(), line.size());
  if (written < 0) return errno;
  if (written == static_cast<ssize_t>(line.size())) return 0;
  // Half a line would spoil the next one. Nobody else appends: O_APPEND says where it began.
  const off_t end = lseek(file.get(), 0, SEEK_CUR);
  if (end >= written && ftruncate(file.get(), end - written) != 0) return errno;
  return ENOSPC;
}

}  // namespace

void AuditLog::use(std::string path) {
  if (path != path_) failing_ = false;
  path_ = std::move(path);
  if (path_.empty()) return;
  std::error_code ignored;  // a folder that cannot be made shows in the first line
  std::filesystem::create_directory(std::filesystem::path(path_).parent_path(), ignored);
}

void AuditLog::write(const Caller& caller, const Request& order, std::string_view error) {
  const std::string line = line_of(caller, order, error);
  if (!path_.empty()) {
    const int fault = append(path_, line + '\n');
    if (fault == 0) {
      failing_ = false;
      return;
    }
    ++lost_;
    if (!std::exchange(failing_, true)) {
      spdlog::warn("{}: {}; orders go to this log until it can be written", path_,
                   std::strerror(fault));
    }
  }
  spdlog::info("audit: {}", line);
}

bool is_order(const Request& request) {
  return std::holds_alternative<SetRequest>(request) ||
         std::holds_alternative<DrainRequest>(request) ||
         std::holds_alternative<AllowRequest>(request) ||
         std::holds_alternative<BypassRequest>(request) ||
         std::holds_alternative<ReloadRequest>(request);
}

}  // namespace edgeshed::daemon
