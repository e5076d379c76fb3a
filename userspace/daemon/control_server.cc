#include "userspace/daemon/control_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "userspace/daemon/protocol.h"

namespace edgeshed::daemon {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

asio::generic::seq_packet_protocol::endpoint unix_endpoint(const std::string& path) {
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

/// Nothing if the peer may command the daemon, otherwise the line to refuse it with.
std::optional<std::string> refuse_peer(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
    return "the peer's credentials could not be read";
  }
  if (peer.uid == 0 || peer.uid == geteuid()) return std::nullopt;
  return fmt::format("user {} may not command this daemon; allowed: root and user {}", peer.uid,
                     geteuid());
}

}  // namespace

/// One connection. Keeps itself alive through its pending callback.
class ControlServer::Peer : public std::enable_shared_from_this<Peer> {
 public:
  Peer(Socket socket, Handler handler, std::shared_ptr<std::size_t> peers)
      : socket_(std::move(socket)),
        handler_(std::move(handler)),
        peers_(std::move(peers)),
        buffer_(kMessageBytesMax + 1) {
    ++*peers_;
  }
  ~Peer() { --*peers_; }

  void start() {
    if (const auto refusal = refuse_peer(socket_.native_handle())) {
      spdlog::warn("control socket: {}", *refusal);
      send({error_answer(*refusal), true});
      return;
    }
    receive();
  }

 private:
  void receive() {
    // The buffer is one byte longer than a message may be: that byte shows one that is too long.
    socket_.async_receive(asio::buffer(buffer_), flags_,
                          [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                            self->received(error, bytes);
                          });
  }

  void received(const error_code& error, std::size_t bytes) {
    if (error || bytes == 0) return;  // gone: the last reference closes the socket
    if (bytes > kMessageBytesMax) {
      send({error_answer(fmt::format("a message has at most {} bytes", kMessageBytesMax)), true});
      return;
    }
    send(handler_(std::string_view(buffer_.data(), bytes)));
  }

  void send(Answer answer) {
    if (answer.text.size() > kMessageBytesMax) {
      answer.text = error_answer(
          fmt::format("the answer is longer than {} bytes; edgeshed dump reads the maps instead",
                      kMessageBytesMax));
    }
    answer_ = std::move(answer);
    socket_.async_send(asio::buffer(answer_.text), MSG_NOSIGNAL,
                       [self = shared_from_this()](const error_code& error, std::size_t) {
                         if (!error && !self->answer_.close) self->receive();
                       });
  }

  Socket socket_;
  Handler handler_;
  std::shared_ptr<std::size_t> peers_;
  std::vector<char> buffer_;
  asio::socket_base::message_flags flags_ = 0;
  Answer answer_;
};

ControlServer::ControlServer(asio::io_context& context, const std::string& path, Handler handler)
    : acceptor_(context),
      retry_(context),
      path_(path),
      handler_(std::move(handler)),
      peers_(std::make_shared<std::size_t>(0)) {
  const auto endpoint = unix_endpoint(path_);
  unlink(path_.c_str());
  acceptor_.open(Protocol(AF_UNIX, 0));
  // Narrow from the first moment on: between bind and chmod nobody else may connect.
  const mode_t old_mask = umask(0117);
  error_code error;
  acceptor_.bind(endpoint, error);  // NOLINT(bugprone-unused-return-value): it is in `error`
  umask(old_mask);
  if (error) throw boost::system::system_error(error, fmt::format("bind {}", path_));
  acceptor_.listen(16);
  accept_next();
}

ControlServer::~ControlServer() { unlink(path_.c_str()); }

void ControlServer::accept_next() {
  if (*peers_ >= kPeersMax) {
    retry_.expires_after(std::chrono::milliseconds(100));
    retry_.async_wait([this](const error_code& error) {
      if (!error) accept_next();
    });
    return;
  }
  acceptor_.async_accept(
      [this](const error_code& error, Socket socket) { accepted(error, std::move(socket)); });
}

void ControlServer::accepted(const error_code& error, Socket socket) {
  if (error == asio::error::operation_aborted) return;
  if (error) {
    // Out of descriptors, most likely: an immediate retry would spin.
    spdlog::warn("control socket: accept: {}", error.message());
    retry_.expires_after(std::chrono::milliseconds(100));
    retry_.async_wait([this](const error_code& aborted) {
      if (!aborted) accept_next();
    });
    return;
  }
  std::make_shared<Peer>(std::move(socket), handler_, peers_)->start();
  accept_next();
}

}  // namespace edgeshed::daemon
