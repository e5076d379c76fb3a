// The session socket: accepts game servers, checks who they are, feeds their messages to a Session.
// A server that floods is read more slowly; one that breaks the protocol ends its own session.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "userspace/session/seqpacket_listener.h"
#include "userspace/session/session.h"

namespace edgeshed::session {

struct SessionServerFigures {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;    // by their user
  std::uint64_t malformed = 0;  // sessions ended for what they sent
  std::uint64_t throttled = 0;  // pauses in reading, of those that flood
};

class SessionServer {
 public:
  /// Game servers at a time.
  static constexpr std::size_t kServersMax = 256;
  /// Messages of one session that are read per 10 ms: 25,600 a second, a whole shard's players
  /// registered in less than one.
  static constexpr std::uint32_t kMessagesPerPeriod = 256;
  static constexpr int kPeriodMs = 10;
  /// Users that may open no session and are about to hear so, at a time.
  static constexpr std::size_t kStrangersMax = 8;

  /// `users`: user ids that may open sessions, besides root and our own. The socket's mode lets
  /// everybody connect, and a stranger is told why it is refused.
  /// Throws boost::system::system_error.
  SessionServer(boost::asio::io_context& context, const std::string& path, SessionHost& host,
                std::vector<std::uint32_t> users);

  void set_users(std::vector<std::uint32_t> users) { users_ = std::move(users); }
  [[nodiscard]] const SessionServerFigures& figures() const { return figures_; }

 private:
  class Peer;
  void accepted(SeqpacketSocket socket, PeerTicket ticket);
  [[nodiscard]] bool may(std::uint32_t uid) const;
  void log_refusal(const std::string& text);

  boost::asio::io_context& context_;
  SessionHost& host_;
  std::vector<std::uint32_t> users_;
  SessionServerFigures figures_;
  SessionId next_id_ = 2;
  std::shared_ptr<std::size_t> strangers_ = std::make_shared<std::size_t>(0);
  std::chrono::steady_clock::time_point refusal_logged_{};
  SeqpacketListener listener_;
};

}  // namespace edgeshed::session
