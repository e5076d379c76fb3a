// Which devices a device is made of, and which are made of it. Must not know XDP nor TC.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace edgeshed::kernel {

/// Kinds of devices whose IFLA_LINK is the device under them; that of a veth is its peer.
constexpr bool is_on_its_link(std::string_view kind) {
  return kind == "vlan" || kind == "macvlan" || kind == "macvtap" || kind == "ipvlan" ||
         kind == "ipvtap";
}

struct LinkStack {
  std::vector<std::string> below;  ///< ports of a bridge, cards of a bond, the card of a VLAN
  std::vector<std::string> above;  ///< the bond or bridge it belongs to, VLANs on it
};

/// Asks the kernel, in the network namespace of this process. Empty if the kernel did not say: it
/// is only needed for advice.
LinkStack link_stack(int ifindex);

/// The names, with commas.
std::string joined(const std::vector<std::string>& names);

}  // namespace edgeshed::kernel
