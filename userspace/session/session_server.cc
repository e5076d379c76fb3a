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
#include <exception>
#include <utility>

namespace edgeshed::session {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kMessageBytesMax = 512;  // of wire.h's structs, the largest has 264
static_assert(sizeof(es_session_connect) < kMessageBytesMax);
constexpr std::size_t kFdsMax = 2;
/// Who connects and says nothing holds one of few places.
constexpr int kHelloMs = 2000;

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

  /// It counts among the refused until it is gone.
  void be_stranger(PeerTicket ticket) { stranger_.emplace(std::move(ticket)); }

  /// `refusal`: what the first message is answered with, before the session is over.
  void start(std::optional<Refused> refusal) {
    refusal_ = std::move(refusal);
    pause_.expires_after(std::chrono::milliseconds(kHelloMs));
    pause_.async_wait([weak = weak_from_this()](const error_code& error) {
      const auto self = weak.lock();
      if (!error && self && !self->greeted_) self->end();
    });
    receive();
  }

 private:
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

  void end() override {
    error_code ignored;
    socket_.close(ignored);  // NOLINT(bugprone-unused-return-value): it is over either way
  }

  void received(std::size_t bytes) {
    if (!greeted_) pause_.cancel();
    greeted_ = true;
    if (refusal_) {
      es_session_welcome answer{};
      answer.head = {ES_SESSION_welcome, static_cast<std::uint16_t>(sizeof(answer)), 0};
      answer.refused = to_wire(*refusal_);
      send(std::as_bytes(std::span(&answer, 1)), {});
      return;
    }
    const std::string over = act(std::as_bytes(std::span(buffer_).first(bytes)));
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

  /// Nothing that a server brings about may end the daemon.
  std::string act(std::span<const std::byte> message) {
    try {
      return session_.handle(message);
    } catch (const std::exception& error) {
      return error.what();
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
  std::optional<PeerTicket> stranger_;
  std::optional<Refused> refusal_;
  bool greeted_ = false;
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

void SessionServer::log_refusal(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (now - refusal_logged_ < std::chrono::seconds(1)) return;
  refusal_logged_ = now;
  spdlog::warn("session refused: {}", text);
}

void SessionServer::accepted(SeqpacketSocket socket, PeerTicket ticket) {
  const ucred peer = peer_credentials(socket.native_handle()).value_or(ucred{0, ~0u, ~0u});
  std::optional<Refused> refusal;
  if (may(peer.uid)) {
    ++figures_.accepted;
  } else {
    ++figures_.refused;
    // Strangers share a few places of their own, and one line a second of the log.
    if (*strangers_ >= kStrangersMax) return;
    refusal =
        Refused{core::Code::register_user_not_allowed,
                fmt::format("user {} may not open sessions; name it in [session] users", peer.uid)};
    log_refusal(refusal->text);
  }
  const ServerIdentity who{static_cast<std::uint32_t>(peer.pid), peer.uid};
  const auto one =
      std::make_shared<Peer>(*this, std::move(socket), std::move(ticket), next_id_++, who);
  if (refusal) one->be_stranger(PeerTicket(strangers_));
  one->start(std::move(refusal));
}

}  // namespace edgeshed::session
