// The network devices of this namespace, and who filters at their egress, as rtnetlink has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "userspace/doctor/facts.h"
#include "userspace/doctor/netlink.h"

namespace edgeshed::doctor {

struct Link {
  int index = 0;
  std::string name;
  unsigned flags = 0;             ///< IFF_*
  std::uint32_t mtu = 0;          ///< bytes
  std::string kind;               ///< "veth", "bond"; empty: a card
  int master = 0;                 ///< index; 0: none
  int link = 0;                   ///< index of the peer or of the device below; 0: none
  std::optional<int> link_netns;  ///< id of the namespace of `link`, if not this one
};

/// Empty if the kernel refuses.
std::vector<Link> list_links(Netlink& route);

/// Filters of clsact at the egress of a device, none where there is no clsact. Nothing: the kernel
/// did not say.
std::optional<std::vector<TcFilterFacts>> list_egress_filters(Netlink& route, int ifindex);

/// Programs of tcx at the egress, none before Linux 6.6. Nothing: the kernel did not say, which is
/// so without CAP_NET_ADMIN.
std::optional<std::vector<TcFilterFacts>> list_egress_tcx(int ifindex);

/// Id of the BPF link that holds an XDP program on a device; 0: none does, or the caller may not
/// look.
std::uint32_t xdp_link_of(int ifindex, std::uint32_t program_id);

/// NETDEV_XDP_ACT_* of a device; nothing before Linux 6.3.
std::optional<std::uint64_t> xdp_features(int ifindex);

/// The namespace's id as this one has it; nothing: it has none, so no device points into it.
std::optional<int> netns_id(Netlink& route, int netns_fd);

}  // namespace edgeshed::doctor
