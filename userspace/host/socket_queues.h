// What waits in UDP sockets, by NETLINK_SOCK_DIAG (man 7 sock_diag): of the network namespace in
// which the reader was made. A server in another one, behind a veth, is not seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "userspace/core/address.h"
#include "userspace/kernel/fd.h"

namespace edgeshed::host {

/// One UDP socket.
struct SocketQueue {
  core::Address local;      ///< as core::Address has it; all zero: any address
  std::uint16_t port = 0;   ///< local, host order
  std::uint32_t bytes = 0;  ///< kernel memory of what waits (truesize, not payload)
};

enum class DiagPart : std::uint8_t {
  more,    ///< another part of the answer follows
  done,    ///< that was all
  failed,  ///< the kernel refused, or this is no answer of its
};

/// One datagram of an answer to request `sequence`: calls `each` for every socket in it.
DiagPart parse_diag(std::span<const std::byte> datagram, std::uint32_t sequence,
                    const std::function<void(const SocketQueue&)>& each);

class SocketQueues {
 public:
  /// Calls `each` for every UDP socket, of both families, that is bound to `port`; 0: to any. False
  /// if the kernel does not say (no privilege, no udp_diag module): what was called for is not all
  /// then. Never waits longer than about 100 ms. The kernel walks its table of UDP sockets once a
  /// family: 16,384 entries take 40 us, with 1,000 sockets 70 us for one port and 250 us for any.
  bool read(std::uint16_t port, const std::function<void(const SocketQueue&)>& each);

 private:
  bool open();
  bool ask(std::uint8_t family, std::uint16_t port);
  bool take(const std::function<void(const SocketQueue&)>& each);

  kernel::Fd fd_;
  std::uint32_t sequence_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace edgeshed::host
