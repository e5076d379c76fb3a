// One device: whether XDP and TC can be put on it, where they should be, and who is there already.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "userspace/core/pin_dir.h"
#include "userspace/core/shell_word.h"
#include "userspace/doctor/checks.h"
#include "userspace/kernel/link_stack.h"
#include "userspace/kernel/tc_hook.h"

namespace edgeshed::doctor {
namespace {

using Found = std::optional<Verdict>;

// Bits of NETDEV_XDP_ACT_*, which the headers of Linux 6.1 lack.
constexpr std::uint64_t kXdpBasic = 1u << 0;
constexpr std::uint64_t kXdpFragments = 1u << 5;

/// Of a page of one buffer: room in front, the kernel's own data behind, Ethernet with two VLANs.
/// Drivers differ by some bytes.
constexpr std::uint32_t kBufferOverhead = 256 + 320 + 22;

using core::shell_word;
using kernel::kTcHandle;
using kernel::kTcPriority;

/// Drivers with native XDP, as ethtool names them: for kernels before 6.3, which do not say.
constexpr std::array<std::string_view, 34> kNativeDrivers = {
    "amazon-ena",    "atlantic",  "bnxt_en", "bonding",   "cpsw",  "ena",       "fsl_dpa",
    "fsl_dpaa2_eth", "fsl_enetc", "gve",     "hv_netvsc", "i40e",  "iavf",      "ice",
    "igb",           "igc",       "ixgbe",   "ixgbevf",   "mana",  "mlx4_en",   "mlx5_core",
    "mvneta",        "mvpp2",     "netsec",  "nfp",       "nicvf", "qede",      "sfc",
    "stmmac",        "st_gmac",   "tun",     "veth",      "vif",   "virtio_net"};

/// Kinds that look at packets of another device: XDP there is generic.
bool stands_on_others(const DeviceFacts& device) {
  return device.kind == "bridge" || kernel::is_on_its_link(device.kind);
}

/// Empty: neither the kernel nor the list of drivers says it.
std::optional<bool> has_native(const DeviceFacts& device) {
  if (device.xdp_features) return (*device.xdp_features & kXdpBasic) != 0;
  if (stands_on_others(device)) return false;
  const auto* end = kNativeDrivers.end();
  if (std::find(kNativeDrivers.begin(), end, device.driver) != end) return true;
  return std::nullopt;
}

Found check_device(const Facts&, const DeviceFacts& device) {
  if (!device.exists) {
    return fail("there is no such device in this network namespace",
                by_hand("no command makes it: name one that ip -br link shows"));
  }
  if (device.loopback) {
    return fail("the loopback device: attach refuses it, nothing is saved there",
                by_hand("no command makes it a card: name one that ip -br link shows"));
  }
  if (!device.up) {
    return warn("down", by_command(fmt::format("ip link set dev {} up", shell_word(device.name))));
  }
  if (!device.carrier) {
    return warn("up, without a carrier",
                by_hand("no command here does: plug the cable in, or bring the other end up"));
  }
  return ok(fmt::format("up{}{}", device.driver.empty() ? "" : ", driver " + device.driver,
                        device.kind.empty() ? "" : ", a " + device.kind));
}

/// What goes before a command, so that it runs where the other end of a veth pair is.
std::string at_peer(const PeerFacts& peer) {
  return peer.netns_file.empty() ? "" : "nsenter --net=" + shell_word(peer.netns_file) + " ";
}

/// A veth receives XDP by as many queues as its other end sends by, or has none.
Remedy even_queues(const DeviceFacts& device) {
  const PeerFacts& peer = device.peer;
  if (!peer.found || peer.tx == 0) {
    return by_hand(
        "as many receive queues as the other end, which was not found, has to send by: "
        "ethtool -L sets them");
  }
  if (peer.tx <= device.channels.rx_max) {
    return by_command(fmt::format("ethtool -L {} rx {}", shell_word(device.name), peer.tx));
  }
  return by_command(fmt::format("{}ethtool -L {} tx {}", at_peer(peer), shell_word(peer.dev),
                                device.channels.rx));
}

Found check_native(const Facts&, const DeviceFacts& device) {
  const ChannelFacts& channels = device.channels;
  const std::uint32_t half = channels.combined_max / 2;
  const bool ena = device.driver == "ena" || device.driver == "amazon-ena";
  if (ena && half > 0 && channels.rx > half) {
    return warn(
        fmt::format("ena has native XDP with at most half of its channels, {} of {} are on",
                    channels.rx, channels.combined_max),
        by_command(fmt::format("ethtool -L {} combined {}", shell_word(device.name), half)));
  }
  const auto native = has_native(device);
  if (native == true) {
    return ok(device.xdp_features ? "the driver has it"
                                  : fmt::format("the driver {} has it (this kernel does not say, "
                                                "a list of drivers does)",
                                                device.driver));
  }
  if (native == false && device.kind == "veth") {
    return warn("no native XDP: the other end sends by more queues than this one receives by",
                even_queues(device));
  }
  const Remedy generic = by_hand(
      "no command gives it to a driver: attach falls back to generic mode, which costs more a "
      "packet");
  if (native == false) return warn("no native XDP", generic);
  return warn(
      fmt::format("not known of the driver {}", device.driver.empty() ? "?" : device.driver),
      generic);
}

Found check_mtu(const Facts& facts, const DeviceFacts& device) {
  const std::uint32_t limit = facts.host.page_bytes - kBufferOverhead;
  const std::string found = fmt::format("{} bytes", device.mtu);
  if (device.mtu <= limit) return ok(found);
  if (device.xdp_features && (*device.xdp_features & kXdpFragments) != 0) {
    return ok(found + ", in fragments, which driver and EdgeShed have");
  }
  if (has_native(device) == false) return ok(found + ", which generic mode carries");
  return warn(found + fmt::format(": more than one buffer of about {}, most drivers refuse native "
                                  "XDP",
                                  limit),
              by_command(fmt::format("ip link set dev {} mtu {}", shell_word(device.name), limit)));
}

Found check_queues(const Facts& facts, const DeviceFacts& device) {
  const ChannelFacts& channels = device.channels;
  const unsigned cpus = facts.host.cpus;
  const std::uint32_t most = std::max(channels.rx_max, channels.combined_max);
  std::string found = fmt::format("{} receive on {} CPUs", channels.rx, cpus);
  if (channels.spread_over > 0 && channels.spread_over < channels.rx) {
    return warn(
        found + fmt::format(", RSS uses {} of them", channels.spread_over),
        by_command(fmt::format("ethtool -X {} equal {}", shell_word(device.name), channels.rx)));
  }
  if (!device.hardware || channels.rx == 0 || channels.rx > 1 || cpus == 1) return ok(found);
  if (most > 1) {
    return warn(found + ": one CPU takes every packet",
                by_command(fmt::format("ethtool -L {} {} {}", shell_word(device.name),
                                       channels.combined_max > 1 ? "combined" : "rx",
                                       std::min<std::uint32_t>(most, cpus))));
  }
  return warn(found + ": one CPU takes every packet",
              by_hand(fmt::format("cannot be fixed here: the device has no more; of a virtual "
                                  "machine, its host gives more (libvirt: <driver queues='{}'/>)",
                                  cpus)));
}

/// Both join packets before XDP could see them.
Found check_lro(const Facts&, const DeviceFacts& device) {
  std::vector<std::string> on, off;
  bool fixed = false;
  const auto look = [&](const char* name, const std::optional<FeatureFacts>& feature) {
    if (!feature || !feature->on) return;
    on.emplace_back(name);
    off.push_back(fmt::format("{} off", name));
    fixed = fixed || feature->fixed;
  };
  look("lro", device.lro);
  look("rx-gro-hw", device.gro_hw);
  if (on.empty()) return ok(device.lro || device.gro_hw ? "off" : "the device has none");
  const std::string found =
      fmt::format("{} on: many drivers refuse native XDP with it", fmt::join(on, ", "));
  if (!fixed) {
    return warn(found, by_command(fmt::format("ethtool -K {} {}", shell_word(device.name),
                                              fmt::join(off, " "))));
  }
  return warn(found + ", and the device does not let it be changed",
              by_hand(device.driver == "virtio_net"
                          ? "the host of this virtual machine has to: qemu with "
                            "ctrl_guest_offloads=on, or with "
                            "guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off"
                          : "no command here does: attach falls back to generic mode if the "
                            "driver refuses"));
}

/// Attaches to other devices than this one, which gives up what it has of EdgeShed.
Remedy attach_to(const Facts& facts, const DeviceFacts& device,
                 const std::vector<std::string>& others) {
  if (others.empty()) {
    return by_hand(
        "the device under it is not in this network namespace: attach to that one, "
        "there");
  }
  if (facts.config.empty()) {
    return by_hand(fmt::format("attach to {} instead; with --config given, the command is here",
                               fmt::join(others, ", ")));
  }
  std::vector<std::string> commands;
  if (device.xdp.owner == Owner::kOurs) {
    commands.push_back(core::command_at(facts.pins.dir, "detach --dev " + shell_word(device.name)));
  }
  for (const std::string& dev : others) {
    commands.push_back(core::command_at(
        facts.pins.dir,
        fmt::format("attach --config {} --dev {}", shell_word(facts.config), shell_word(dev))));
  }
  return by_commands(std::move(commands));
}

/// Only who runs the host knows which of several ports players come by.
Remedy attach_to_ports(const Facts& facts, const DeviceFacts& bridge) {
  if (bridge.lower.empty()) {
    return by_hand("it has no port yet: attach to the one that players will come by");
  }
  if (bridge.lower.size() == 1) return attach_to(facts, bridge, bridge.lower);
  return by_hand(
      fmt::format("which of its ports players come by is not to be seen: attach to "
                  "those of {}",
                  fmt::join(bridge.lower, ", ")));
}

Found check_placement(const Facts& facts, const DeviceFacts& device) {
  const std::string lower =
      device.lower.empty() ? "no device" : fmt::format("{}", fmt::join(device.lower, ", "));
  if (device.kind == "bridge") {
    return warn(fmt::format("a bridge over {}: XDP on it is generic, and late; attach to the ports "
                            "that players come by",
                            lower),
                attach_to_ports(facts, device));
  }
  if (stands_on_others(device)) {
    return warn(
        fmt::format("a {} on {}: XDP on it is generic, and late{}", device.kind, lower,
                    device.kind == "vlan" ? "; below it EdgeShed reads the tags itself" : ""),
        attach_to(facts, device, device.lower));
  }
  if (device.master_kind == "bond") {
    return warn(fmt::format("a port of {}: only its share of the packets is seen", device.master),
                attach_to(facts, device, {device.master}));
  }
  if (device.kind == "bond") return ok(fmt::format("a bond over {}: the right place", lower));
  if (device.kind == "veth") {
    return ok("the right place; --faces servers if the game server is behind it");
  }
  if (device.master_kind == "bridge") {
    return ok(fmt::format("a port of {}: the right place", device.master));
  }
  return ok("the right place");
}

/// For what only root sees of this device.
Verdict skipped_at(const Facts& facts, const DeviceFacts& device, std::string found) {
  return skipped(facts, std::move(found), "--dev " + shell_word(device.name));
}

Remedy detach_of(const std::string& pins, const std::string& dev) {
  return by_command(core::command_at(pins, "detach --dev " + shell_word(dev)));
}

std::string who_is(const XdpFacts& xdp) {
  return fmt::format("{} (id {}, {})", xdp.name.empty() ? "a program" : xdp.name, xdp.id,
                     xdp.generic ? "generic" : "native");
}

/// Takes a program off that shares with nobody. netlink does not take off what a link holds.
Remedy take_off(const std::string& dev, const XdpFacts& xdp) {
  if (xdp.link_id != 0) return by_command(fmt::format("bpftool link detach id {}", xdp.link_id));
  return by_command(fmt::format("ip link set dev {} {} off", shell_word(dev),
                                xdp.generic ? "xdpgeneric" : "xdp"));
}

/// No XDP program is on the device itself.
Verdict judge_free(const Facts& facts, const DeviceFacts& device) {
  if (device.above.empty()) return ok("free");
  const XdpFacts& above = device.above_xdp;
  const auto found = [&](std::string_view whose) {
    return fmt::format(
        "free, and under {}, which has {} XDP program; the kernel lets only one of the "
        "two have any: attach refuses",
        device.above, whose);
  };
  switch (above.owner) {
    case Owner::kOurs:
      return warn(found("EdgeShed's") + "; right as it is, unless it should be here instead",
                  detach_of(facts.pins.dir, device.above));
    case Owner::kOtherPins:
      return fail(found("another EdgeShed's"), detach_of(above.other_pins, device.above));
    case Owner::kHidden:
      return skipped_at(facts, device, found("an"));
    case Owner::kNobody:  // went while it was looked at, or came back
    case Owner::kDispatcher:
      return fail(found("an"), attach_to(facts, device, {device.above}));
    case Owner::kForeign:
      break;
  }
  return fail(found("an"), take_off(device.above, above));
}

Found check_xdp_owner(const Facts& facts, const DeviceFacts& device) {
  const XdpFacts& xdp = device.xdp;
  const std::string who = who_is(xdp);
  switch (xdp.owner) {
    case Owner::kNobody:
      return judge_free(facts, device);
    case Owner::kOurs:
      return ok(who + ", EdgeShed's");
    case Owner::kOtherPins:
      return fail(fmt::format("{}, of another EdgeShed, whose pins are in {}: attach refuses", who,
                              xdp.other_pins),
                  detach_of(xdp.other_pins, device.name));
    case Owner::kHidden:
      return skipped_at(facts, device, who + ", whose it is may not be looked up");
    case Owner::kDispatcher:
      if (facts.host.freplace.tried && facts.host.freplace.error != 0) {
        return fail(who + ", a dispatcher that cannot be joined: the kernel extends no programs",
                    by_command(fmt::format("xdp-loader unload {} --all", shell_word(device.name))));
      }
      return ok(who + ", a dispatcher: EdgeShed joins it");
    case Owner::kForeign:
      break;
  }
  return fail(who + ", which shares with nobody: attach refuses", take_off(device.name, xdp));
}

bool is_at_our_place(const TcFilterFacts& one) {
  return !one.tcx && one.priority == kTcPriority && one.handle == kTcHandle;
}

std::string text_of(const TcFilterFacts& one) {
  if (!one.name.empty()) return one.name;
  return one.kind.empty() ? "?" : one.kind;
}

/// Who is at the one place that EdgeShed takes. Nothing: nobody, or EdgeShed itself.
Found judge_our_place(const Facts& facts, const DeviceFacts& device) {
  const EgressFacts& egress = device.egress;
  const std::string place =
      fmt::format("EdgeShed's place (priority {}, handle {:#x})", kTcPriority, kTcHandle);
  if (egress.owner == Owner::kOurs) return std::nullopt;
  if (egress.owner == Owner::kOtherPins) {
    return fail(fmt::format("the filter at {} is of another EdgeShed, whose pins are in {}: attach "
                            "refuses",
                            place, egress.other_pins),
                detach_of(egress.other_pins, device.name));
  }
  if (egress.owner == Owner::kHidden) {
    return skipped_at(facts, device,
                      fmt::format("a filter is at {}; whose it is may not be looked up", place));
  }
  // A filter that is no BPF program has no owner that could be asked for.
  const auto taken = std::find_if(egress.filters.begin(), egress.filters.end(), is_at_our_place);
  if (taken == egress.filters.end() && egress.owner == Owner::kNobody) return std::nullopt;
  const std::string who = taken == egress.filters.end() ? "?" : text_of(*taken);
  return fail(fmt::format("the filter {} is at {}: attach refuses", who, place),
              by_command(fmt::format("tc filter del dev {} egress pref {}", shell_word(device.name),
                                     kTcPriority)));
}

Found check_tc_owner(const Facts& facts, const DeviceFacts& device) {
  if (auto taken = judge_our_place(facts, device)) return taken;
  std::vector<std::string> before, after;
  for (const TcFilterFacts& one : device.egress.filters) {
    if (is_at_our_place(one)) continue;
    if (one.tcx || one.priority < kTcPriority) {
      before.push_back(text_of(one) +
                       (one.tcx ? " (tcx)" : fmt::format(" (priority {})", one.priority)));
    } else {
      after.push_back(text_of(one));
    }
  }
  if (!before.empty()) {
    return warn(fmt::format("before EdgeShed's filter: {}; what they decide, it never sees",
                            fmt::join(before, ", ")),
                by_hand("whether they let packets go on is theirs to say: nothing to do if they do "
                        "(tc filter show and bpftool net show list them)"));
  }
  if (!device.egress.known) {
    return skipped_at(facts, device, "whether a program is before EdgeShed's filter was not told");
  }
  if (!after.empty())
    return ok(fmt::format("behind EdgeShed's filter: {}", fmt::join(after, ", ")));
  return ok(device.egress.owner == Owner::kOurs ? "EdgeShed's filter" : "free");
}

Found check_veth_peer(const Facts& facts, const DeviceFacts& device) {
  if (device.kind != "veth") return std::nullopt;
  const PeerFacts& peer = device.peer;
  if (!peer.found) {
    const char* const found =
        "the other end was not found: whether refusals reach it (its GRO is on, or it has "
        "an XDP program) is not known";
    if (!facts.host.root) return skipped_at(facts, device, found);
    return warn(found, by_hand("its namespace has no name and no process: turn its GRO on in there "
                               "by ethtool -K, or run doctor where it can be seen"));
  }
  if (peer.xdp) return ok(peer.dev + " has an XDP program, so it takes refusals");
  if (peer.gro == true) return ok(peer.dev + " has GRO on, so it takes refusals");
  return warn(
      peer.dev +
          " has neither GRO nor an XDP program: refusals that XDP sends back are "
          "lost",
      by_command(fmt::format("{}ethtool -K {} gro on", at_peer(peer), shell_word(peer.dev))));
}

constexpr std::array<DeviceCheck, 9> kDeviceChecks = {{
    {"device", check_device},
    {"native_xdp", check_native},
    {"mtu", check_mtu},
    {"queues", check_queues},
    {"lro", check_lro},
    {"placement", check_placement},
    {"xdp_owner", check_xdp_owner},
    {"tc_owner", check_tc_owner},
    {"veth_peer", check_veth_peer},
}};

}  // namespace

std::span<const DeviceCheck> device_checks() { return kDeviceChecks; }

}  // namespace edgeshed::doctor
