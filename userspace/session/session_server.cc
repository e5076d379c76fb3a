// Sockets of game servers: see session_server.h.
#include "userspace/session/session_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstring>
#include <utility>

namespace edgeshed::session {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kMessageBytesMax = 512;  // of wire.h's structs, the largest has 264
static_assert(sizeof(es_session_connect) < kMessageBytesMax);
constexpr std::size_t kFdsMax = 2;

/// One message without waiting. False: the peer does not read, or is gone.
bool send_now(int socket, std::span<const std::byte> message, std::initializer_list<int> fds) {
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kFdsMax * sizeof(int))> control{};
  if (fds.size() != 0) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds.begin(), fds.size() * sizeof(int));
  }
  return sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

}  // namespace

/// One game server. Keeps itself alive through its pending callback.
class SessionServer::Peer : public std::enable_shared_from_this<Peer>, public SessionOutput {
 public:
  Peer(SessionServer& server, SeqpacketSocket socket, PeerTicket ticket, SessionId id,
       const ServerIdentity& who)
      : server_(server),
        socket_(std::move(socket)),
        ticket_(std::move(ticket)),
        pause_(server.context_),
        who_(who),
        session_(id, who, server.host_, *this) {}

  void receive() {
    socket_.async_receive(asio::buffer(buffer_), flags_,
                          [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                            if (error || bytes == 0) return;  // the last reference closes it
                            self->received(bytes);
                          });
  }

  bool send(std::span<const std::byte> message, std::initializer_list<int> fds) override {
    return send_now(socket_.native_handle(), message, fds);
  }

 private:
  void received(std::size_t bytes) {
    const std::string over = session_.handle(std::as_bytes(std::span(buffer_).first(bytes)));
    if (!over.empty()) {
      ++server_.figures_.malformed;
      spdlog::warn("session of process {} (user {}) ended: {}", who_.pid, who_.uid, over);
      return;
    }
    if (within_rate()) {
      receive();
    } else {
      rest();
    }
  }

  bool within_rate() {
    const auto now = std::chrono::steady_clock::now();
    if (now - period_began_ >= std::chrono::milliseconds(kPeriodMs)) {
      period_began_ = now;
      in_period_ = 0;
    }
    return ++in_period_ < kMessagesPerPeriod;
  }

  /// The rest of the period: the server's socket fills up, and then the server waits.
  void rest() {
    ++server_.figures_.throttled;
    pause_.expires_at(period_began_ + std::chrono::milliseconds(kPeriodMs));
    pause_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->receive();
    });
  }

  SessionServer& server_;
  SeqpacketSocket socket_;
  PeerTicket ticket_;
  asio::steady_timer pause_;
  ServerIdentity who_;
  std::array<char, kMessageBytesMax> buffer_{};
  asio::socket_base::message_flags flags_ = 0;
  std::chrono::steady_clock::time_point period_began_{};
  std::uint32_t in_period_ = 0;
  Session session_;  // last: it tells the host that it ended while the rest still stands
};

SessionServer::SessionServer(asio::io_context& context, const std::string& path, SessionHost& host,
                             std::vector<std::uint32_t> users)
    : context_(context),
      host_(host),
      users_(std::move(users)),
      listener_(context, path, 0666, kServersMax,
                [this](SeqpacketSocket socket, PeerTicket ticket) {
                  accepted(std::move(socket), std::move(ticket));
                }) {}

bool SessionServer::may(std::uint32_t uid) const {
  return uid == 0 || uid == geteuid() ||
         std::find(users_.begin(), users_.end(), uid) != users_.end();
}

void SessionServer::accepted(SeqpacketSocket socket, PeerTicket ticket) {
  const auto peer = peer_credentials(socket.native_handle());
  if (!peer || !may(peer->uid)) {
    ++figures_.refused;
    const Refused refused{core::Code::register_user_not_allowed,
                          fmt::format("user {} may not open sessions; name it in [session] users",
                                      peer ? peer->uid : ~0u)};
    es_session_welcome answer{};
    answer.head = {ES_SESSION_welcome, static_cast<std::uint16_t>(sizeof(answer)), 0};
    answer.refused = to_wire(refused);
    send_now(socket.native_handle(), std::as_bytes(std::span(&answer, 1)), {});
    spdlog::warn("session refused: {}", refused.text);
    return;
  }
  ++figures_.accepted;
  const ServerIdentity who{static_cast<std::uint32_t>(peer->pid), peer->uid};
  std::make_shared<Peer>(*this, std::move(socket), std::move(ticket), next_id_++, who)->receive();
}

}  // namespace edgeshed::session
