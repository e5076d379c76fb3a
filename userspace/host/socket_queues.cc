#include "userspace/host/socket_queues.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cstring>

namespace edgeshed::host {
namespace {

/// More than the largest part of an answer (16 KiB since Linux 4.4).
constexpr std::size_t kBufferBytes = 32 * 1024;

struct Request {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

/// The words of an address as core::Address has them; "any" of either family is all zero.
core::Address address_of(std::uint8_t family, const __be32 (&words)[4]) {
  std::uint32_t in_order[4] = {0, 0, htonl(0xffff), words[0]};
  if (family == AF_INET6) std::memcpy(in_order, words, sizeof in_order);
  const bool any = words[0] == 0 && (family == AF_INET || (words[1] | words[2] | words[3]) == 0);
  core::Address address;
  if (any) return address;
  std::memcpy(&address.hi, in_order, sizeof address.hi);
  std::memcpy(&address.lo, in_order + 2, sizeof address.lo);
  return address;
}

SocketQueue queue_of(const inet_diag_msg& message) {
  return {address_of(message.idiag_family, message.id.idiag_src), ntohs(message.id.idiag_sport),
          message.idiag_rqueue};
}

}  // namespace

DiagPart parse_diag(std::span<const std::byte> datagram, std::uint32_t sequence,
                    const std::function<void(const SocketQueue&)>& each) {
  while (datagram.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header;
    std::memcpy(&header, datagram.data(), sizeof header);
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > datagram.size()) {
      return DiagPart::failed;
    }
    const bool ours = header.nlmsg_seq == sequence;  // not of a request that was given up
    if (ours && header.nlmsg_type == NLMSG_DONE) return DiagPart::done;
    if (ours && header.nlmsg_type == NLMSG_ERROR) return DiagPart::failed;
    if (ours && header.nlmsg_type == SOCK_DIAG_BY_FAMILY) {
      inet_diag_msg message;
      if (header.nlmsg_len < sizeof header + sizeof message) return DiagPart::failed;
      std::memcpy(&message, datagram.data() + sizeof header, sizeof message);
      each(queue_of(message));
    }
    const std::size_t step = NLMSG_ALIGN(header.nlmsg_len);
    datagram = datagram.subspan(std::min(step, datagram.size()));
  }
  return datagram.empty() ? DiagPart::more : DiagPart::failed;
}

bool SocketQueues::open() {
  if (fd_) return true;
  fd_ = kernel::Fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd_) return false;
  const timeval patience{0, 100'000};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  buffer_.resize(kBufferBytes);
  return true;
}

bool SocketQueues::ask(std::uint8_t family, std::uint16_t port) {
  Request request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.header.nlmsg_seq = ++sequence_;
  request.body.sdiag_family = family;
  request.body.sdiag_protocol = IPPROTO_UDP;
  request.body.idiag_states = ~0u;
  request.body.id.idiag_sport = htons(port);
  return ::send(fd_.get(), &request, sizeof request, 0) == sizeof request;
}

bool SocketQueues::take(const std::function<void(const SocketQueue&)>& each) {
  for (;;) {
    const ssize_t got = ::recv(fd_.get(), buffer_.data(), buffer_.size(), 0);
    if (got <= 0) return false;
    const auto datagram = std::span(buffer_).first(static_cast<std::size_t>(got));
    const DiagPart part = parse_diag(datagram, sequence_, each);
    if (part != DiagPart::more) return part == DiagPart::done;
  }
}

bool SocketQueues::read(std::uint16_t port, const std::function<void(const SocketQueue&)>& each) {
  if (!open()) return false;
  for (const std::uint8_t family : {AF_INET, AF_INET6}) {
    if (ask(family, port) && take(each)) continue;
    fd_ = {};  // what is left of the answer goes with it
    return false;
  }
  return true;
}

}  // namespace edgeshed::host
