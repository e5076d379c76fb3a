// Requests to the kernel's netlink families, by libmnl. Must not know what the answers mean.
#pragma once

#include <libmnl/libmnl.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace edgeshed::doctor {

/// A request under construction: a header, the family's own part, attributes.
class NetlinkRequest {
 public:
  /// flags besides NLM_F_REQUEST.
  NetlinkRequest(std::uint16_t type, std::uint16_t flags);
  /// The family's own part, zeroed. Before any attribute.
  void* extra(std::size_t bytes) { return mnl_nlmsg_put_extra_header(header_, bytes); }
  nlmsghdr* header() { return header_; }

 private:
  alignas(nlmsghdr) std::array<char, 512> buffer_{};
  nlmsghdr* header_;
};

using TakeAttribute = std::function<void(const nlattr* attribute)>;

/// The attributes of a message behind `offset` bytes of the family's own part, in order. (libmnl's
/// own loops are macros for C.)
void for_each_attribute(const nlmsghdr* header, std::size_t offset, const TakeAttribute& take);
/// Those inside of one.
void for_each_nested(const nlattr* outer, const TakeAttribute& take);

/// As recv(): bytes, or -1 and errno.
using Receive = std::function<ssize_t(std::span<char> buffer)>;

/// The datagrams of one whole answer. A wait that a signal interrupts goes on. Returns 0, or the
/// errno that the kernel or the socket said; EINTR: what a dump shows changed meanwhile.
int take_answer(const Receive& receive, unsigned sequence, unsigned port,
                std::vector<std::vector<char>>& parts);

class Netlink {
 public:
  /// bus: NETLINK_ROUTE or NETLINK_GENERIC; of the network namespace of the calling thread.
  /// Throws Error: no socket.
  explicit Netlink(int bus);

  /// Sends it and hands out the messages that answer once all are there, each within 2 s; a dump
  /// that changed meanwhile is asked for again. Returns 0, or the errno that the kernel or the
  /// socket said.
  int ask(NetlinkRequest& request, const std::function<void(const nlmsghdr*)>& take);

 private:
  struct Closer {
    void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
  };
  void open();
  int ask_once(nlmsghdr* header, std::vector<std::vector<char>>& parts);

  int bus_;
  std::unique_ptr<mnl_socket, Closer> socket_;
  unsigned sequence_ = 0;
};

}  // namespace edgeshed::doctor
