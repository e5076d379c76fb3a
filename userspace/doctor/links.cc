#include "userspace/doctor/links.h"

#include <linux/bpf.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <bpf/bpf.h>

#include <array>
#include <cerrno>

#include "userspace/kernel/fd.h"
#include "userspace/kernel/library_log.h"

namespace edgeshed::doctor {
namespace {

// Of linux/netdev.h and linux/bpf.h of later kernels than the headers of Debian 12.
constexpr int kNetdevDevGet = 1;
constexpr int kNetdevIfindex = 1;
constexpr int kNetdevXdpFeatures = 3;
constexpr auto kTcxEgress = static_cast<bpf_attach_type>(47);

Link link_of(const nlmsghdr* header) {
  const auto* message = static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(header));
  Link link;
  link.index = message->ifi_index;
  link.flags = message->ifi_flags;
  for_each_attribute(header, sizeof(*message), [&](const nlattr* one) {
    switch (mnl_attr_get_type(one)) {
      case IFLA_IFNAME:
        link.name = mnl_attr_get_str(one);
        break;
      case IFLA_MTU:
        link.mtu = mnl_attr_get_u32(one);
        break;
      case IFLA_MASTER:
        link.master = static_cast<int>(mnl_attr_get_u32(one));
        break;
      case IFLA_LINK:
        link.link = static_cast<int>(mnl_attr_get_u32(one));
        break;
      case IFLA_LINK_NETNSID:
        link.link_netns = static_cast<int>(mnl_attr_get_u32(one));
        break;
      case IFLA_LINKINFO:
        for_each_nested(one, [&](const nlattr* inner) {
          if (mnl_attr_get_type(inner) == IFLA_INFO_KIND) link.kind = mnl_attr_get_str(inner);
        });
        break;
      default:
        break;
    }
  });
  return link;
}

/// Only filters themselves: a dump names each classifier once more, without a handle.
void take_filter(const nlmsghdr* header, std::vector<TcFilterFacts>& filters) {
  const auto* message = static_cast<const tcmsg*>(mnl_nlmsg_get_payload(header));
  if (message->tcm_handle == 0) return;
  TcFilterFacts filter;
  filter.priority = TC_H_MAJ(message->tcm_info) >> 16;
  filter.handle = message->tcm_handle;
  for_each_attribute(header, sizeof(*message), [&](const nlattr* one) {
    if (mnl_attr_get_type(one) == TCA_KIND) filter.kind = mnl_attr_get_str(one);
    if (mnl_attr_get_type(one) != TCA_OPTIONS || filter.kind != "bpf") return;
    for_each_nested(one, [&](const nlattr* inner) {
      if (mnl_attr_get_type(inner) == TCA_BPF_NAME) filter.name = mnl_attr_get_str(inner);
    });
  });
  filters.push_back(std::move(filter));
}

/// 0: the kernel has no such family.
std::uint16_t family_id(Netlink& generic, const char* name) {
  NetlinkRequest request(GENL_ID_CTRL, 0);
  auto* message = static_cast<genlmsghdr*>(request.extra(sizeof(genlmsghdr)));
  message->cmd = CTRL_CMD_GETFAMILY;
  message->version = 1;
  mnl_attr_put_strz(request.header(), CTRL_ATTR_FAMILY_NAME, name);
  std::uint16_t id = 0;
  generic.ask(request, [&](const nlmsghdr* header) {
    for_each_attribute(header, sizeof(genlmsghdr), [&](const nlattr* one) {
      if (mnl_attr_get_type(one) == CTRL_ATTR_FAMILY_ID) id = mnl_attr_get_u16(one);
    });
  });
  return id;
}

}  // namespace

std::vector<Link> list_links(Netlink& route) {
  NetlinkRequest request(RTM_GETLINK, NLM_F_DUMP);
  static_cast<ifinfomsg*>(request.extra(sizeof(ifinfomsg)))->ifi_family = AF_UNSPEC;
  std::vector<Link> links;
  route.ask(request, [&](const nlmsghdr* header) { links.push_back(link_of(header)); });
  return links;
}

std::optional<std::vector<TcFilterFacts>> list_egress_filters(Netlink& route, int ifindex) {
  NetlinkRequest request(RTM_GETTFILTER, NLM_F_DUMP);
  auto* message = static_cast<tcmsg*>(request.extra(sizeof(tcmsg)));
  message->tcm_ifindex = ifindex;
  message->tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
  std::vector<TcFilterFacts> filters;
  const int error =
      route.ask(request, [&](const nlmsghdr* header) { take_filter(header, filters); });
  if (error != 0) return std::nullopt;
  return filters;
}

std::optional<std::vector<TcFilterFacts>> list_egress_tcx(int ifindex) {
  std::array<__u32, 64> ids{};  // the kernel's own limit of programs on a device
  DECLARE_LIBBPF_OPTS(bpf_prog_query_opts, query);
  query.prog_ids = ids.data();
  query.prog_cnt = ids.size();
  const kernel::LibraryLog log;
  std::vector<TcFilterFacts> programs;
  const int error = bpf_prog_query_opts(ifindex, kTcxEgress, &query);
  if (error == -EINVAL) return programs;  // a kernel that does not know the place
  if (error != 0) return std::nullopt;
  for (__u32 i = 0; i < query.prog_cnt && i < ids.size(); ++i) {
    TcFilterFacts one;
    one.tcx = true;
    const kernel::Fd program(bpf_prog_get_fd_by_id(ids[i]));
    bpf_prog_info info{};
    __u32 bytes = sizeof(info);
    if (program && bpf_obj_get_info_by_fd(program.get(), &info, &bytes) == 0) one.name = info.name;
    programs.push_back(std::move(one));
  }
  return programs;
}

std::uint32_t xdp_link_of(int ifindex, std::uint32_t program_id) {
  const kernel::LibraryLog log;
  for (__u32 id = 0; bpf_link_get_next_id(id, &id) == 0;) {
    const kernel::Fd link(bpf_link_get_fd_by_id(id));
    bpf_link_info info{};
    __u32 bytes = sizeof(info);
    if (!link || bpf_obj_get_info_by_fd(link.get(), &info, &bytes) != 0) continue;
    // The index may be one of another network namespace; the program's id is the host's.
    if (info.type == BPF_LINK_TYPE_XDP && info.prog_id == program_id &&
        info.xdp.ifindex == static_cast<__u32>(ifindex)) {
      return id;
    }
  }
  return 0;
}

std::optional<std::uint64_t> xdp_features(int ifindex) {
  Netlink generic(NETLINK_GENERIC);
  const std::uint16_t family = family_id(generic, "netdev");
  if (family == 0) return std::nullopt;
  NetlinkRequest request(family, 0);
  auto* message = static_cast<genlmsghdr*>(request.extra(sizeof(genlmsghdr)));
  message->cmd = kNetdevDevGet;
  message->version = 1;
  mnl_attr_put_u32(request.header(), kNetdevIfindex, static_cast<std::uint32_t>(ifindex));
  std::optional<std::uint64_t> features;
  generic.ask(request, [&](const nlmsghdr* header) {
    for_each_attribute(header, sizeof(genlmsghdr), [&](const nlattr* one) {
      if (mnl_attr_get_type(one) == kNetdevXdpFeatures) features = mnl_attr_get_u64(one);
    });
  });
  return features;
}

std::optional<int> netns_id(Netlink& route, int netns_fd) {
  NetlinkRequest request(RTM_GETNSID, 0);
  request.extra(sizeof(rtgenmsg));
  mnl_attr_put_u32(request.header(), NETNSA_FD, static_cast<std::uint32_t>(netns_fd));
  std::optional<int> id;
  route.ask(request, [&](const nlmsghdr* header) {
    for_each_attribute(header, sizeof(rtgenmsg), [&](const nlattr* one) {
      if (mnl_attr_get_type(one) == NETNSA_NSID) id = static_cast<int>(mnl_attr_get_u32(one));
    });
  });
  if (id && *id < 0) return std::nullopt;
  return id;
}

}  // namespace edgeshed::doctor
