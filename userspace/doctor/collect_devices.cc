// The devices that were asked for, or the network cards.
#include <net/if.h>
#include <unistd.h>

#include <algorithm>

#include "userspace/core/error_type.h"
#include "userspace/doctor/collect.h"
#include "userspace/doctor/ethtool.h"
#include "userspace/doctor/links.h"
#include "userspace/doctor/peer.h"
#include "userspace/kernel/attach.h"
#include "userspace/kernel/link_stack.h"
#include "userspace/kernel/programs.h"
#include "userspace/kernel/tc_hook.h"
#include "userspace/kernel/xdp_hook.h"

namespace edgeshed::doctor {
namespace {

bool is_hardware(const std::string& dev) {
  return access(("/sys/class/net/" + dev + "/device").c_str(), F_OK) == 0;
}

/// In the order in which attach decides.
Owner owner_of(const kernel::XdpStanding& standing) {
  if (!standing.anything) return Owner::kNobody;
  if (!standing.other_pins.empty()) return Owner::kOtherPins;
  if (standing.our_id != 0) return Owner::kOurs;
  if (standing.hidden) return Owner::kHidden;
  return standing.dispatcher ? Owner::kDispatcher : Owner::kForeign;
}

Owner owner_of(const kernel::TcStanding& standing) {
  if (standing.program == 0) return Owner::kNobody;
  if (!standing.other_pins.empty()) return Owner::kOtherPins;
  if (standing.ours) return Owner::kOurs;
  return standing.hidden ? Owner::kHidden : Owner::kForeign;
}

XdpFacts look_at_xdp(int ifindex, const kernel::ProgramNames& names) {
  XdpFacts facts;
  try {
    const kernel::XdpStanding standing = kernel::query_xdp(ifindex, names);
    facts.owner = owner_of(standing);
    facts.generic = standing.generic;
    facts.id = standing.our_id != 0 ? standing.our_id : standing.main_id;
    facts.name = standing.name;
    facts.other_pins = standing.other_pins;
    if (standing.anything) facts.link_id = xdp_link_of(ifindex, standing.main_id);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // Gone since it was listed: nobody is on it.
  }
  return facts;
}

EgressFacts look_at_egress(Netlink& route, int ifindex, const kernel::ProgramNames& names) {
  EgressFacts facts;
  for (auto& some : {list_egress_tcx(ifindex), list_egress_filters(route, ifindex)}) {
    facts.known = facts.known && some.has_value();
    if (some) facts.filters.insert(facts.filters.end(), some->begin(), some->end());
  }
  try {
    const kernel::TcStanding standing = kernel::query_tc(ifindex, names);
    facts.owner = owner_of(standing);
    facts.other_pins = standing.other_pins;
  } catch (const Error&) {
    facts.known = false;  // the program went while it was looked at
  }
  return facts;
}

const Link* find(const std::vector<Link>& links, int index) {
  const auto found = std::find_if(links.begin(), links.end(),
                                  [index](const Link& one) { return one.index == index; });
  return found == links.end() ? nullptr : &*found;
}

class Collector {
 public:
  explicit Collector(const std::string& pin_dir)
      : route_(NETLINK_ROUTE), links_(list_links(route_)), names_(pin_dir) {}

  [[nodiscard]] std::vector<std::string> cards() const {
    std::vector<std::string> cards;
    for (const Link& link : links_) {
      if (is_hardware(link.name) || link.kind == "bond") cards.push_back(link.name);
    }
    return cards;
  }

  DeviceFacts look(const std::string& dev) {
    DeviceFacts facts;
    facts.name = dev;
    const auto link = std::find_if(links_.begin(), links_.end(),
                                   [&](const Link& one) { return one.name == dev; });
    if (link == links_.end()) return facts;
    facts.exists = true;
    facts.loopback = (link->flags & IFF_LOOPBACK) != 0;
    facts.up = (link->flags & IFF_UP) != 0;
    facts.carrier = (link->flags & IFF_RUNNING) != 0;
    facts.hardware = is_hardware(dev);
    facts.kind = link->kind;
    facts.mtu = link->mtu;
    if (const Link* master = find(links_, link->master)) {
      facts.master = master->name;
      facts.master_kind = master->kind;
    }
    kernel::LinkStack stack = kernel::link_stack(link->index);
    DriverView driver = ask_driver(dev);
    facts.driver = std::move(driver.driver);
    facts.channels = driver.channels;
    facts.lro = driver.lro;
    facts.gro_hw = driver.gro_hw;
    facts.xdp_features = xdp_features(link->index);
    facts.xdp = look_at_xdp(link->index, names_);
    if (facts.xdp.owner == Owner::kNobody) look_above(stack, facts);
    facts.egress = look_at_egress(route_, link->index, names_);
    facts.lower = std::move(stack.below);
    if (link->kind == "veth") facts.peer = look_at_peer(route_, *link);
    return facts;
  }

 private:
  void look_above(const kernel::LinkStack& stack, DeviceFacts& facts) {
    facts.above = kernel::xdp_above(stack.above, names_);
    const unsigned above = facts.above.empty() ? 0 : if_nametoindex(facts.above.c_str());
    if (above != 0) facts.above_xdp = look_at_xdp(static_cast<int>(above), names_);
  }

  Netlink route_;
  std::vector<Link> links_;
  kernel::ProgramNames names_;
};

}  // namespace

std::vector<DeviceFacts> collect_devices(const CollectOptions& options) {
  Collector collector(options.pin_dir);
  std::vector<DeviceFacts> devices;
  for (const std::string& dev : options.devices.empty() ? collector.cards() : options.devices) {
    devices.push_back(collector.look(dev));
  }
  return devices;
}

}  // namespace edgeshed::doctor
