#include "userspace/daemon/control_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "userspace/daemon/protocol.h"

namespace edgeshed::daemon {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

/// The daemon's group, whose members may command it; 0: nobody. The root group gives no right:
/// there are containers that run as any user and with that group.
gid_t operators_group() { return getegid(); }

bool is_operator(const ucred& peer, int socket) {
  const gid_t ours = operators_group();
  if (ours == 0) return false;
  if (peer.gid == ours) return true;
  const std::vector<gid_t> groups = session::peer_groups(socket);
  return std::find(groups.begin(), groups.end(), ours) != groups.end();
}

/// Nothing if the peer may command the daemon, otherwise the line to refuse it with.
std::optional<std::string> refuse_peer(const Caller& peer, int socket) {
  if (!peer) return "the peer's credentials could not be read";
  if (peer->uid == 0 || peer->uid == geteuid() || is_operator(*peer, socket)) return std::nullopt;
  const gid_t group = operators_group();
  return fmt::format("user {} may not command this daemon; allowed: root, user {}{}", peer->uid,
                     geteuid(), group == 0 ? "" : fmt::format(" and members of group {}", group));
}

}  // namespace

/// One connection. Keeps itself alive through its pending callback.
class ControlServer::Peer : public std::enable_shared_from_this<Peer> {
 public:
  Peer(session::SeqpacketSocket socket, Handler handler, session::PeerTicket ticket)
      : socket_(std::move(socket)),
        handler_(std::move(handler)),
        ticket_(std::move(ticket)),
        buffer_(kMessageBytesMax + 1) {}

  void start() {
    caller_ = session::peer_credentials(socket_.native_handle());
    if (const auto refusal = refuse_peer(caller_, socket_.native_handle())) {
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
    send(handler_(std::string_view(buffer_.data(), bytes), caller_));
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

  session::SeqpacketSocket socket_;
  Handler handler_;
  session::PeerTicket ticket_;
  Caller caller_;
  std::vector<char> buffer_;
  asio::socket_base::message_flags flags_ = 0;
  Answer answer_;
};

ControlServer::ControlServer(asio::io_context& context, const std::string& path, Handler handler)
    : handler_(std::move(handler)),
      listener_(context, path, 0660, kPeersMax,
                [this](session::SeqpacketSocket socket, session::PeerTicket ticket) {
                  accepted(std::move(socket), std::move(ticket));
                }) {}

void ControlServer::accepted(session::SeqpacketSocket socket, session::PeerTicket ticket) {
  std::make_shared<Peer>(std::move(socket), handler_, std::move(ticket))->start();
}

}  // namespace edgeshed::daemon
