#include "tools/cli/client.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace edgeshed::cli {
namespace {

constexpr timeval kAnswerTimeout{5, 0};

/// Closes its descriptor.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Reply failed(ExitCode code, std::string error, bool running = true) {
  Reply reply;
  reply.code = code;
  reply.error = std::move(error);
  reply.running = running;
  return reply;
}

Reply not_connected(const std::string& socket, int error) {
  if (error == EACCES || error == EPERM) {
    return failed(kExitEnvironment,
                  fmt::format("{}: permission denied; run as root, or as a member of the "
                              "daemon's group",
                              socket));
  }
  const bool nobody = error == ENOENT || error == ECONNREFUSED;
  return failed(
      kExitFailure,
      nobody ? fmt::format("no daemon listens on {}; start edgeshedd, or give --socket", socket)
             : fmt::format("{}: {}", socket, std::strerror(error)),
      !nobody);
}

Reply read_answer(std::string_view text) {
  boost::system::error_code error;
  boost::json::value value = boost::json::parse(text, error);
  if (error || !value.is_object()) return failed(kExitFailure, "the daemon's answer is not JSON");
  Reply reply;
  reply.answer = std::move(value.get_object());
  const auto* ok = reply.answer.if_contains("ok");
  if (ok != nullptr && ok->is_bool() && ok->get_bool()) return reply;
  const auto* line = reply.answer.if_contains("error");
  reply.code = kExitFailure;
  reply.error = line != nullptr && line->is_string() ? std::string(line->get_string())
                                                     : "the daemon refused without a reason";
  return reply;
}

}  // namespace

Reply ask_daemon(const std::string& socket, const daemon::Request& request) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof(address.sun_path)) {
    return failed(kExitUsage, fmt::format("--socket has {} bytes; allowed: 1 to {}", socket.size(),
                                          sizeof(address.sun_path) - 1));
  }
  socket.copy(address.sun_path, socket.size());
  const Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return failed(kExitFailure, fmt::format("socket: {}", std::strerror(errno)));
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTimeout, sizeof(kAnswerTimeout));
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kAnswerTimeout, sizeof(kAnswerTimeout));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return not_connected(socket, errno);
  }
  const std::string message = daemon::to_message(request);
  if (send(fd.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0) {
    return failed(kExitFailure, fmt::format("{}: send: {}", socket, std::strerror(errno)));
  }
  std::vector<char> buffer(daemon::kMessageBytesMax);
  const ssize_t bytes = recv(fd.get(), buffer.data(), buffer.size(), 0);
  if (bytes < 0) {
    const bool late = errno == EAGAIN || errno == EWOULDBLOCK;
    return failed(kExitFailure, fmt::format("{}: {}", socket,
                                            late ? "no answer within 5 s" : std::strerror(errno)));
  }
  if (bytes == 0)
    return failed(kExitFailure, fmt::format("{}: the daemon closed the connection", socket));
  return read_answer(std::string_view(buffer.data(), static_cast<std::size_t>(bytes)));
}

}  // namespace edgeshed::cli
