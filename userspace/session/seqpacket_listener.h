// A Unix seqpacket socket that local peers connect to: bind, accept, hand over, at most so many at
// a time. Must not read from a peer: whoever gets the socket does.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <boost/asio/basic_seq_packet_socket.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace edgeshed::session {

using SeqpacketProtocol = boost::asio::generic::seq_packet_protocol;
using SeqpacketSocket = boost::asio::basic_seq_packet_socket<SeqpacketProtocol>;

/// Held by whoever has an accepted socket; counts against the listener's limit until it goes.
class PeerTicket {
 public:
  explicit PeerTicket(std::shared_ptr<std::size_t> count) : count_(std::move(count)) { ++*count_; }
  ~PeerTicket() {
    if (count_) --*count_;
  }
  PeerTicket(PeerTicket&& other) noexcept = default;
  PeerTicket& operator=(PeerTicket&&) = delete;
  PeerTicket(const PeerTicket&) = delete;
  PeerTicket& operator=(const PeerTicket&) = delete;

 private:
  std::shared_ptr<std::size_t> count_;  // shared: a peer may outlive the listener by one callback
};

class SeqpacketListener {
 public:
  using Accepted = std::function<void(SeqpacketSocket socket, PeerTicket ticket)>;

  /// Listens on `path` with `mode`, replacing a socket that a killed daemon left behind (the caller
  /// holds the instance lock). More than `peers_max` wait in the kernel's queue.
  /// Throws boost::system::system_error.
  SeqpacketListener(boost::asio::io_context& context, std::string path, mode_t mode,
                    std::size_t peers_max, Accepted accepted);

  /// Removes the socket's file.
  ~SeqpacketListener();

  SeqpacketListener(const SeqpacketListener&) = delete;
  SeqpacketListener& operator=(const SeqpacketListener&) = delete;

 private:
  void listen(mode_t mode);
  void accept_next();
  void accept_later();

  boost::asio::basic_socket_acceptor<SeqpacketProtocol> acceptor_;
  boost::asio::steady_timer retry_;
  std::string path_;
  std::size_t peers_max_;
  Accepted accepted_;
  std::shared_ptr<std::size_t> peers_ = std::make_shared<std::size_t>(0);
};

/// Who is at the other end; empty: the kernel would not say.
std::optional<ucred> peer_credentials(int fd);

/// Its supplementary groups; empty: none, or the kernel would not say.
std::vector<gid_t> peer_groups(int fd);

}  // namespace edgeshed::session
