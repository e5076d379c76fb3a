// The Unix seqpacket socket that the CLI and scripts talk to: accept, check who it is, read one
// message, answer it, repeat. Runs on the service thread's io_context.
//
// Knows nothing of what messages mean: the handler does. One misbehaving peer ends its own
// connection and nothing else.
#ifndef EDGESHED_USERSPACE_DAEMON_CONTROL_SERVER_H_
#define EDGESHED_USERSPACE_DAEMON_CONTROL_SERVER_H_

#include <boost/asio/basic_seq_packet_socket.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace edgeshed::daemon {

/// What a message is answered with. `close`: the connection ends once the answer is out.
struct Answer {
  std::string text;
  bool close = false;
};

class ControlServer {
 public:
  using Handler = std::function<Answer(std::string_view message)>;

  /// Peers at a time; each has a buffer of kMessageBytesMax. More wait in the kernel's queue.
  static constexpr std::size_t kPeersMax = 64;

  /// Listens on `path`, mode 0660, replacing a socket that a killed daemon left behind (the caller
  /// holds the instance lock). Throws boost::system::system_error.
  ControlServer(boost::asio::io_context& context, const std::string& path, Handler handler);

  /// Removes the socket's file.
  ~ControlServer();

  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  using Protocol = boost::asio::generic::seq_packet_protocol;
  using Socket = boost::asio::basic_seq_packet_socket<Protocol>;
  class Peer;

  void accept_next();
  void accepted(const boost::system::error_code& error, Socket socket);

  boost::asio::basic_socket_acceptor<Protocol> acceptor_;
  boost::asio::steady_timer retry_;
  std::string path_;
  Handler handler_;
  std::shared_ptr<std::size_t> peers_;  // shared: a peer may outlive the server by one callback
};

}  // namespace edgeshed::daemon

#endif
