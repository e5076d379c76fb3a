// Devices on devices: see link_stack.h. By netlink and not by /sys/class/net, which shows the
// namespace that it was mounted in.
#include "userspace/kernel/link_stack.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "userspace/kernel/fd.h"

namespace edgeshed::kernel {
namespace {

struct Link {
  int ifindex = 0;
  int master = 0;
  int lower = 0;
  std::string name;
};

int number_of(const rtattr* attribute) {
  int value = 0;
  if (RTA_PAYLOAD(attribute) >= sizeof(value)) {
    std::memcpy(&value, RTA_DATA(attribute), sizeof(value));
  }
  return value;
}

std::string text_of(const rtattr* attribute) {
  const auto* text = static_cast<const char*>(RTA_DATA(attribute));
  return {text, strnlen(text, RTA_PAYLOAD(attribute))};
}

std::string kind_of(rtattr* info) {
  auto left = static_cast<int>(RTA_PAYLOAD(info));
  for (auto* one = static_cast<rtattr*>(RTA_DATA(info)); RTA_OK(one, left);
       one = RTA_NEXT(one, left)) {
    if (one->rta_type == IFLA_INFO_KIND) return text_of(one);
  }
  return {};
}

Link link_of(nlmsghdr* header) {
  auto* message = static_cast<ifinfomsg*>(NLMSG_DATA(header));
  Link link;
  link.ifindex = message->ifi_index;
  int lower = 0;
  bool elsewhere = false;
  std::string kind;
  auto left = static_cast<int>(IFLA_PAYLOAD(header));
  for (rtattr* one = IFLA_RTA(message); RTA_OK(one, left); one = RTA_NEXT(one, left)) {
    if (one->rta_type == IFLA_IFNAME) link.name = text_of(one);
    if (one->rta_type == IFLA_MASTER) link.master = number_of(one);
    if (one->rta_type == IFLA_LINK) lower = number_of(one);
    if (one->rta_type == IFLA_LINK_NETNSID) elsewhere = true;
    if (one->rta_type == IFLA_LINKINFO) kind = kind_of(one);
  }
  if (!elsewhere && is_on_its_link(kind)) link.lower = lower;
  return link;
}

/// All devices of the namespace; empty if the kernel did not say.
std::vector<Link> all_links() {
  const Fd netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  struct {
    nlmsghdr header;
    ifinfomsg message;
  } request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  if (!netlink || send(netlink.get(), &request, sizeof(request), 0) < 0) return {};
  std::vector<Link> links;
  alignas(nlmsghdr) std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t received =
        TEMP_FAILURE_RETRY(recv(netlink.get(), buffer.data(), buffer.size(), 0));
    if (received <= 0) return {};
    auto left = static_cast<unsigned>(received);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type == NLMSG_DONE) return links;
      if (header->nlmsg_type == NLMSG_ERROR) return {};
      if (header->nlmsg_type == RTM_NEWLINK) links.push_back(link_of(header));
    }
  }
}

}  // namespace

LinkStack link_stack(int ifindex) {
  const std::vector<Link> links = all_links();
  Link asked;
  for (const Link& link : links) {
    if (link.ifindex == ifindex) asked = link;
  }
  LinkStack stack;
  for (const Link& link : links) {
    if (link.master == ifindex || (asked.lower != 0 && link.ifindex == asked.lower)) {
      stack.below.push_back(link.name);
    }
    if (link.lower == ifindex || (asked.master != 0 && link.ifindex == asked.master)) {
      stack.above.push_back(link.name);
    }
  }
  return stack;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += text.empty() ? name : ", " + name;
  return text;
}

}  // namespace edgeshed::kernel
