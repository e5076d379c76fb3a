#include "userspace/doctor/netlink.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>

#include "userspace/kernel/error.h"

namespace edgeshed::doctor {
namespace {

constexpr timeval kAnswerTimeout{2, 0};

/// Of a dump during which something changed: asked for again as often.
constexpr unsigned kAttempts = 5;

int pass_over(const nlmsghdr*, void*) { return MNL_CB_OK; }

int hand_out(const nlmsghdr* header, void* take) {
  (*static_cast<const std::function<void(const nlmsghdr*)>*>(take))(header);
  return MNL_CB_OK;
}

int hand_out_attribute(const nlattr* attribute, void* take) {
  (*static_cast<const TakeAttribute*>(take))(attribute);
  return MNL_CB_OK;
}

}  // namespace

void for_each_attribute(const nlmsghdr* header, std::size_t offset, const TakeAttribute& take) {
  mnl_attr_parse(header, static_cast<unsigned>(offset), hand_out_attribute,
                 const_cast<TakeAttribute*>(&take));
}

void for_each_nested(const nlattr* outer, const TakeAttribute& take) {
  mnl_attr_parse_nested(outer, hand_out_attribute, const_cast<TakeAttribute*>(&take));
}

NetlinkRequest::NetlinkRequest(std::uint16_t type, std::uint16_t flags)
    : header_(mnl_nlmsg_put_header(buffer_.data())) {
  header_->nlmsg_type = type;
  header_->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
}

int take_answer(const Receive& receive, unsigned sequence, unsigned port,
                std::vector<std::vector<char>>& parts) {
  std::vector<char> buffer(64 * 1024);
  for (;;) {
    const ssize_t bytes = receive(buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno;
    parts.emplace_back(buffer.begin(), buffer.begin() + bytes);
    const int state = mnl_cb_run(buffer.data(), static_cast<std::size_t>(bytes), sequence, port,
                                 pass_over, nullptr);
    if (state == MNL_CB_STOP) return 0;
    if (state < 0) return errno;
  }
}

Netlink::Netlink(int bus) : bus_(bus) { open(); }

void Netlink::open() {
  socket_.reset(mnl_socket_open2(bus_, SOCK_CLOEXEC));
  if (socket_ == nullptr || mnl_socket_bind(socket_.get(), 0, MNL_SOCKET_AUTOPID) != 0) {
    kernel::fail_errno(errno, "open a netlink socket", "");
  }
  setsockopt(mnl_socket_get_fd(socket_.get()), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTimeout,
             sizeof(kAnswerTimeout));
}

int Netlink::ask_once(nlmsghdr* header, std::vector<std::vector<char>>& parts) {
  header->nlmsg_seq = ++sequence_;
  ssize_t sent = -1;
  do {
    sent = mnl_socket_sendto(socket_.get(), header, header->nlmsg_len);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return errno;
  const auto receive = [this](std::span<char> buffer) {
    return mnl_socket_recvfrom(socket_.get(), buffer.data(), buffer.size());
  };
  return take_answer(receive, sequence_, mnl_socket_get_portid(socket_.get()), parts);
}

int Netlink::ask(NetlinkRequest& request, const std::function<void(const nlmsghdr*)>& take) {
  nlmsghdr* const header = request.header();
  // A dump ends by itself; anything else is told to say when it is done.
  if ((header->nlmsg_flags & NLM_F_DUMP) == 0) header->nlmsg_flags |= NLM_F_ACK;
  std::vector<std::vector<char>> parts;
  int error = ask_once(header, parts);
  for (unsigned attempt = 1; error == EINTR && attempt < kAttempts; ++attempt) {
    open();  // what is left of the torn dump goes with the old socket
    parts.clear();
    error = ask_once(header, parts);
  }
  if (error != 0) return error;
  auto* const context = const_cast<std::function<void(const nlmsghdr*)>*>(&take);
  for (const std::vector<char>& part : parts) {
    mnl_cb_run(part.data(), part.size(), sequence_, mnl_socket_get_portid(socket_.get()), hand_out,
               context);
  }
  return 0;
}

}  // namespace edgeshed::doctor
