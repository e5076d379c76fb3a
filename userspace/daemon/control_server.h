// The Unix seqpacket socket that the CLI and scripts talk to: accept, check who it is, read one
// message, answer it, repeat. Runs on the service thread's io_context.
//
// Knows nothing of what messages mean: the handler does. One misbehaving peer ends its own
// connection and nothing else.
#ifndef EDGESHED_USERSPACE_DAEMON_CONTROL_SERVER_H_
#define EDGESHED_USERSPACE_DAEMON_CONTROL_SERVER_H_

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "userspace/daemon/audit_log.h"
#include "userspace/session/seqpacket_listener.h"

namespace edgeshed::daemon {

/// What a message is answered with. `close`: the connection ends once the answer is out.
struct Answer {
  std::string text;
  bool close = false;
};

class ControlServer {
 public:
  using Handler = std::function<Answer(std::string_view message, const Caller& caller)>;

  /// Peers at a time; each has a buffer of kMessageBytesMax. More wait in the kernel's queue.
  static constexpr std::size_t kPeersMax = 64;

  /// Listens on `path`, mode 0660, replacing a socket that a killed daemon left behind (the caller
  /// holds the instance lock). Throws boost::system::system_error.
  ControlServer(boost::asio::io_context& context, const std::string& path, Handler handler);

 private:
  class Peer;
  void accepted(session::SeqpacketSocket socket, session::PeerTicket ticket);

  Handler handler_;
  session::SeqpacketListener listener_;
};

}  // namespace edgeshed::daemon

#endif
