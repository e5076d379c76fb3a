// Accepting of local peers: see seqpacket_listener.h.
#include "userspace/session/seqpacket_listener.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/system/system_error.hpp>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

namespace edgeshed::session {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

SeqpacketProtocol::endpoint unix_endpoint(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    throw boost::system::system_error(
        asio::error::name_too_long, fmt::format("the socket's path has {} bytes, allowed: 1 to {}",
                                                path.size(), sizeof(address.sun_path) - 1));
  }
  path.copy(address.sun_path, path.size());
  return {&address, sizeof(address), 0};
}

}  // namespace

SeqpacketListener::SeqpacketListener(asio::io_context& context, std::string path, mode_t mode,
                                     std::size_t peers_max, Accepted accepted)
    : acceptor_(context),
      retry_(context),
      path_(std::move(path)),
      peers_max_(peers_max),
      accepted_(std::move(accepted)) {
  listen(mode);
  accept_next();
}

SeqpacketListener::~SeqpacketListener() { unlink(path_.c_str()); }

void SeqpacketListener::listen(mode_t mode) {
  const auto endpoint = unix_endpoint(path_);
  unlink(path_.c_str());
  acceptor_.open(SeqpacketProtocol(AF_UNIX, 0));
  // Narrow from the first moment on: between bind and chmod nobody else may connect.
  const mode_t old_mask = umask(0777 & ~mode);
  error_code error;
  acceptor_.bind(endpoint, error);  // NOLINT(bugprone-unused-return-value): it is in `error`
  umask(old_mask);
  if (error) throw boost::system::system_error(error, fmt::format("bind {}", path_));
  acceptor_.listen(16);
}

void SeqpacketListener::accept_later() {
  retry_.expires_after(std::chrono::milliseconds(100));
  retry_.async_wait([this](const error_code& aborted) {
    if (!aborted) accept_next();
  });
}

void SeqpacketListener::accept_next() {
  if (*peers_ >= peers_max_) {
    accept_later();
    return;
  }
  acceptor_.async_accept([this](const error_code& error, SeqpacketSocket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      // Out of descriptors, most likely: an immediate retry would spin.
      spdlog::warn("{}: accept: {}", path_, error.message());
      accept_later();
      return;
    }
    accepted_(std::move(socket), PeerTicket(peers_));
    accept_next();
  });
}

std::optional<ucred> peer_credentials(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return std::nullopt;
  return peer;
}

std::vector<gid_t> peer_groups(int fd) {
  std::vector<gid_t> groups(32);
  // The second time it is as long as the kernel said.
  for (int i = 0; i < 2; ++i) {
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const int failed = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
    const int error = errno;
    groups.resize(bytes / sizeof(gid_t));
    if (failed == 0) return groups;
    if (error != ERANGE) break;
  }
  return {};
}

}  // namespace edgeshed::session
