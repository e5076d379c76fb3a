// Every level that every check of a device can give.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tests/unit/doctor_cases.h"
#include "userspace/doctor/checks.h"

namespace edgeshed::doctor {
namespace {

TEST(Doctor, Device) {
  expect({of_device("device", Level::kFail, "no such device", "~ip -br link",
                    [](DeviceFacts& device) { device.exists = false; }),
          of_device("device", Level::kFail, "loopback", "~ip -br link",
                    [](DeviceFacts& device) { device.loopback = true; }),
          of_device("device", Level::kWarn, "down", "ip link set dev eth0 up",
                    [](DeviceFacts& device) { device.up = false; }),
          of_device("device", Level::kWarn, "carrier", "~cable",
                    [](DeviceFacts& device) { device.carrier = false; })});
  Facts facts = good_facts();
  facts.devices[0].loopback = true;
  EXPECT_EQ(judge(facts).size(), host_checks().size() + pin_checks().size() + 1);
  facts.devices[0].exists = false;
  EXPECT_EQ(judge(facts).size(), host_checks().size() + pin_checks().size() + 1);
}

TEST(Doctor, NativeXdp) {
  const auto features = [](std::optional<std::uint64_t> bits, const char* driver = "ixgbe",
                           const char* kind = "") {
    return [=](DeviceFacts& device) {
      device.xdp_features = bits;
      device.driver = driver;
      device.kind = kind;
    };
  };
  expect({of_device("native_xdp", Level::kOk, "the driver has it", "", features(0x3)),
          of_device("native_xdp", Level::kOk, "a list of drivers", "", features({})),
          of_device("native_xdp", Level::kWarn, "no native XDP", "~generic", features(0, "e1000")),
          of_device("native_xdp", Level::kWarn, "not known of the driver e1000", "~generic",
                    features({}, "e1000")),
          of_device("native_xdp", Level::kWarn, "no native XDP", "~generic",
                    features({}, "bridge", "bridge")),
          of_device("native_xdp", Level::kWarn, "other end", "~ethtool -L",
                    features(0, "veth", "veth")),
          of_device("native_xdp", Level::kWarn, "half", "ethtool -L eth0 combined 4",
                    [](DeviceFacts& device) {
                      device.driver = "ena";
                      device.channels.rx = 8;
                      device.channels.combined_max = 8;
                    })});
}

TEST(Doctor, QueuesOfAVethAndOfItsOtherEnd) {
  const auto queues = [](std::uint32_t sends_by, std::uint32_t rx_max) {
    return [=](DeviceFacts& device) {
      device = veth();
      device.xdp_features = 0;
      device.channels.rx_max = rx_max;
      device.peer.tx = sends_by;
      device.peer.netns_file = "/run/netns/blue";
    };
  };
  expect({of_device("native_xdp", Level::kWarn, "other end", "ethtool -L veth1 rx 4", queues(4, 4)),
          of_device("native_xdp", Level::kWarn, "other end",
                    "nsenter --net=/run/netns/blue ethtool -L veth0 tx 1", queues(4, 2))});
}

TEST(Doctor, Mtu) {
  const auto mtu = [](std::uint32_t bytes, std::optional<std::uint64_t> bits) {
    return [=](DeviceFacts& device) {
      device.mtu = bytes;
      device.xdp_features = bits;
    };
  };
  expect({of_device("mtu", Level::kOk, "1500", "", mtu(1500, 0x3)),
          of_device("mtu", Level::kOk, "3498", "", mtu(3498, 0x3)),
          of_device("mtu", Level::kWarn, "9000", "ip link set dev eth0 mtu 3498", mtu(9000, 0x3)),
          of_device("mtu", Level::kWarn, "9000", "ip link set dev eth0 mtu 3498", mtu(9000, {})),
          of_device("mtu", Level::kOk, "fragments", "", mtu(9000, 0x23)),
          of_device("mtu", Level::kOk, "generic", "", mtu(9000, 0))});
  Facts facts = good_facts();
  facts.host.page_bytes = 65536;  // arm64 with large pages
  facts.devices[0].mtu = 9000;
  facts.devices[0].xdp_features = 0x3;
  EXPECT_EQ(finding_of(facts, "mtu").level, Level::kOk);
}

TEST(Doctor, Queues) {
  const auto channels = [](ChannelFacts counts, bool hardware = true) {
    return [=](DeviceFacts& device) {
      device.channels = counts;
      device.hardware = hardware;
    };
  };
  expect(
      {of_device("queues", Level::kOk, "4 receive on 4 CPUs", "", channels({4, 4, 0, 4, 4})),
       of_device("queues", Level::kWarn, "RSS uses 2", "ethtool -X eth0 equal 4",
                 channels({4, 4, 0, 4, 2})),
       of_device("queues", Level::kWarn, "one CPU", "ethtool -L eth0 combined 4",
                 channels({1, 1, 0, 16, 1})),
       of_device("queues", Level::kWarn, "one CPU", "ethtool -L eth0 rx 2",
                 channels({1, 1, 2, 0, 0})),
       of_device("queues", Level::kWarn, "one CPU", "~cannot be fixed", channels({1, 1, 0, 1, 0})),
       of_device("queues", Level::kOk, "1 receive", "", channels({1, 1, 0, 1, 0}, false)),
       of_device("queues", Level::kOk, "0 receive", "", channels({}))});
  Facts facts = good_facts();
  facts.host.cpus = 1;
  facts.devices[0].channels = {1, 1, 0, 16, 1};
  EXPECT_EQ(finding_of(facts, "queues").level, Level::kOk);
}

TEST(Doctor, WhatJoinsPackets) {
  using Feature = std::optional<FeatureFacts>;
  const auto features = [](Feature lro, Feature gro_hw, const char* driver = "ixgbe") {
    return [=](DeviceFacts& device) {
      device.lro = lro;
      device.gro_hw = gro_hw;
      device.driver = driver;
    };
  };
  constexpr FeatureFacts kOn{true, false}, kOff{false, false}, kFixed{true, true};
  expect({of_device("lro", Level::kOk, "none", "", features({}, {})),
          of_device("lro", Level::kOk, "off", "", features(kOff, {})),
          of_device("lro", Level::kWarn, "lro on", "ethtool -K eth0 lro off", features(kOn, kOff)),
          of_device("lro", Level::kWarn, "rx-gro-hw on", "ethtool -K eth0 rx-gro-hw off",
                    features({}, kOn, "virtio_net")),
          of_device("lro", Level::kWarn, "lro, rx-gro-hw on",
                    "ethtool -K eth0 lro off rx-gro-hw off", features(kOn, kOn)),
          of_device("lro", Level::kWarn, "rx-gro-hw on", "~ctrl_guest_offloads=on",
                    features(kOff, kFixed, "virtio_net")),
          of_device("lro", Level::kWarn, "lro on", "~generic mode", features(kFixed, {}))});
}

TEST(Doctor, Placement) {
  const auto stands = [](const char* kind, std::vector<std::string> lower) {
    return [=](DeviceFacts& device) {
      device.kind = kind;
      device.lower = lower;
    };
  };
  const auto port_of = [](const char* kind) {
    return [kind](DeviceFacts& device) {
      device.master = "top0";
      device.master_kind = kind;
    };
  };
  expect({of_device("placement", Level::kWarn, "a bridge over eth1",
                    "edgeshed attach --config game.toml --dev eth1", stands("bridge", {"eth1"})),
          of_device("placement", Level::kWarn, "a bridge over eth1, eth2", "~those of eth1, eth2",
                    stands("bridge", {"eth1", "eth2"})),
          of_device("placement", Level::kWarn, "no device", "~no port yet", stands("bridge", {})),
          of_device("placement", Level::kWarn, "reads the tags",
                    "edgeshed attach --config game.toml --dev eth1", stands("vlan", {"eth1"})),
          of_device("placement", Level::kWarn, "a macvlan on eth1",
                    "edgeshed attach --config game.toml --dev eth1", stands("macvlan", {"eth1"})),
          of_device("placement", Level::kWarn, "a macvtap on eth1",
                    "edgeshed attach --config game.toml --dev eth1", stands("macvtap", {"eth1"})),
          of_device("placement", Level::kWarn, "no device", "~not in this network namespace",
                    stands("ipvlan", {})),
          of_device("placement", Level::kOk, "a bond over eth1, eth2", "",
                    stands("bond", {"eth1", "eth2"})),
          of_device("placement", Level::kWarn, "a port of top0",
                    "edgeshed attach --config game.toml --dev top0", port_of("bond")),
          of_device("placement", Level::kOk, "a port of top0", "", port_of("bridge")),
          of_device("placement", Level::kOk, "--faces servers", "", stands("veth", {}))});
}

TEST(Doctor, PlacementOfWhatIsAttachedOrWithoutConfiguration) {
  const auto vlan = [](Facts& facts) {
    facts.devices[0].kind = "vlan";
    facts.devices[0].lower = {"eth1"};
  };
  expect({{"placement", Level::kWarn, "a vlan on eth1",
           "edgeshed detach --dev eth0 && edgeshed attach --config game.toml --dev eth1",
           [=](Facts& facts) {
             vlan(facts);
             facts.devices[0].xdp.owner = Owner::kOurs;
           }},
          {"placement", Level::kWarn, "a vlan on eth1", "~attach to eth1 instead; with --config",
           [=](Facts& facts) {
             vlan(facts);
             facts.config.clear();
           }}});
}

TEST(Doctor, XdpOwner) {
  const auto owner = [](Owner whose, bool generic = false, const char* name = "somebody") {
    return [=](DeviceFacts& device) {
      device.xdp.owner = whose;
      device.xdp.generic = generic;
      device.xdp.id = 42;
      device.xdp.name = name;
    };
  };
  expect({of_device("xdp_owner", Level::kOk, "free", "", owner(Owner::kNobody)),
          of_device("xdp_owner", Level::kOk, "EdgeShed's", "", owner(Owner::kOurs)),
          of_device("xdp_owner", Level::kOk, "joins it", "", owner(Owner::kDispatcher)),
          of_device("xdp_owner", Level::kFail, "somebody (id 42, native)",
                    "ip link set dev eth0 xdp off", owner(Owner::kForeign)),
          of_device("xdp_owner", Level::kFail, "a program (id 42, generic)",
                    "ip link set dev eth0 xdpgeneric off", owner(Owner::kForeign, true, ""))});
  Facts facts = good_facts();
  owner(Owner::kDispatcher)(facts.devices[0]);
  facts.host.freplace = {true, EINVAL};
  const Finding finding = finding_of(facts, "xdp_owner");
  EXPECT_EQ(finding.level, Level::kFail);
  EXPECT_EQ(finding.command, "xdp-loader unload eth0 --all");
  expect_remedies(facts);
}

TEST(Doctor, XdpOfAnotherEdgeShedHiddenOrHeldByALink) {
  const auto xdp = [](Owner owner, const char* other_pins, std::uint32_t link_id) {
    return [=](DeviceFacts& device) {
      device.xdp = {owner, false, 42, "es_xdp", other_pins, link_id};
    };
  };
  expect({of_device("xdp_owner", Level::kFail, "pins are in /sys/fs/bpf/b",
                    "edgeshed --pin-dir /sys/fs/bpf/b detach --dev eth0",
                    xdp(Owner::kOtherPins, "/sys/fs/bpf/b", 0)),
          of_device("xdp_owner", Level::kSkipped, "may not be looked up",
                    "sudo edgeshed doctor --dev eth0", xdp(Owner::kHidden, "", 0)),
          of_device("xdp_owner", Level::kFail, "shares with nobody", "bpftool link detach id 7",
                    xdp(Owner::kForeign, "", 7))});
}

TEST(Doctor, XdpAbove) {
  const auto above = [](Owner owner, bool generic = false, std::uint32_t link_id = 0) {
    return [=](DeviceFacts& device) {
      device.above = "bond0";
      device.above_xdp = {owner, generic, 42, "xdp", "/sys/fs/bpf/b", link_id};
    };
  };
  expect(
      {of_device("xdp_owner", Level::kWarn, "under bond0, which has EdgeShed's XDP program",
                 "edgeshed detach --dev bond0", above(Owner::kOurs)),
       of_device("xdp_owner", Level::kFail, "under bond0, which has an XDP program",
                 "ip link set dev bond0 xdp off", above(Owner::kForeign)),
       of_device("xdp_owner", Level::kFail, "under bond0", "ip link set dev bond0 xdpgeneric off",
                 above(Owner::kForeign, true)),
       of_device("xdp_owner", Level::kFail, "under bond0", "bpftool link detach id 7",
                 above(Owner::kForeign, true, 7)),
       of_device("xdp_owner", Level::kFail, "under bond0, which has another EdgeShed's",
                 "edgeshed --pin-dir /sys/fs/bpf/b detach --dev bond0", above(Owner::kOtherPins)),
       of_device("xdp_owner", Level::kFail, "under bond0",
                 "edgeshed attach --config game.toml --dev bond0", above(Owner::kDispatcher)),
       of_device("xdp_owner", Level::kSkipped, "under bond0", "sudo edgeshed doctor --dev eth0",
                 above(Owner::kHidden))});
}

TEST(Doctor, TcOwner) {
  const auto egress = [](std::vector<TcFilterFacts> filters, Owner owner = Owner::kNobody,
                         bool known = true) {
    return [=](DeviceFacts& device) { device.egress = {filters, known, owner, "/sys/fs/bpf/b"}; };
  };
  const TcFilterFacts ours{false, 0xed6, 0xed6e, "bpf", "es_tc"};
  const TcFilterFacts taken{false, 0xed6, 0xed6e, "bpf", "somebody"};
  const TcFilterFacts early{false, 1, 1, "flower", ""};
  const TcFilterFacts late{false, 49152, 1, "bpf", "cilium"};
  const TcFilterFacts tcx{true, 0, 0, "", "netkit"};
  expect({of_device("tc_owner", Level::kOk, "free", "", egress({})),
          of_device("tc_owner", Level::kOk, "EdgeShed's", "", egress({ours}, Owner::kOurs)),
          of_device("tc_owner", Level::kOk, "behind EdgeShed's filter: cilium", "",
                    egress({ours, late}, Owner::kOurs)),
          of_device("tc_owner", Level::kWarn, "flower (priority 1)", "~theirs to say",
                    egress({early, ours}, Owner::kOurs)),
          of_device("tc_owner", Level::kWarn, "netkit (tcx)", "~theirs to say", egress({tcx})),
          of_device("tc_owner", Level::kFail, "somebody is at EdgeShed's place",
                    "tc filter del dev eth0 egress pref 3798", egress({taken}, Owner::kForeign)),
          of_device("tc_owner", Level::kFail, "flower is at EdgeShed's place",
                    "tc filter del dev eth0 egress pref 3798",
                    egress({{false, 0xed6, 0xed6e, "flower", ""}})),
          of_device("tc_owner", Level::kFail, "pins are in /sys/fs/bpf/b",
                    "edgeshed --pin-dir /sys/fs/bpf/b detach --dev eth0",
                    egress({ours}, Owner::kOtherPins)),
          of_device("tc_owner", Level::kSkipped, "may not be looked up",
                    "sudo edgeshed doctor --dev eth0", egress({early, ours}, Owner::kHidden))});
}

TEST(Doctor, EgressThatIsNotTold) {
  const auto untold = [](std::vector<TcFilterFacts> filters) {
    return [=](DeviceFacts& device) { device.egress = {filters, false, Owner::kNobody, ""}; };
  };
  expect({of_device("tc_owner", Level::kSkipped, "not told", "sudo edgeshed doctor --dev eth0",
                    untold({})),
          of_device("tc_owner", Level::kWarn, "flower (priority 1)", "~theirs to say",
                    untold({{false, 1, 1, "flower", ""}})),
          of_device("tc_owner", Level::kFail, "flower is at EdgeShed's place",
                    "tc filter del dev eth0 egress pref 3798",
                    untold({{false, 0xed6, 0xed6e, "flower", ""}}))});
}

TEST(Doctor, VethPeer) {
  const auto peer = [](PeerFacts facts) {
    return [=](DeviceFacts& device) {
      device = veth();
      device.peer = facts;
    };
  };
  const PeerFacts lost{true, "veth0", "", 1, false, false};
  PeerFacts named = lost, nameless = lost;
  named.netns_file = "/run/netns/blue";
  nameless.netns_file = "/proc/17/ns/net";
  expect({of_device("veth_peer", Level::kOk, "veth0 has GRO on", "", peer(veth().peer)),
          of_device("veth_peer", Level::kOk, "an XDP program", "",
                    peer({true, "veth0", "", 1, false, true})),
          of_device("veth_peer", Level::kWarn, "neither", "ethtool -K veth0 gro on", peer(lost)),
          of_device("veth_peer", Level::kWarn, "neither",
                    "nsenter --net=/run/netns/blue ethtool -K veth0 gro on", peer(named)),
          of_device("veth_peer", Level::kWarn, "neither",
                    "nsenter --net=/proc/17/ns/net ethtool -K veth0 gro on", peer(nameless)),
          of_device("veth_peer", Level::kWarn, "not found", "~no name and no process", peer({})),
          of_device("veth_peer", Level::kSkipped, "not found", "sudo edgeshed doctor --dev veth1",
                    peer({}))});
  PeerFacts odd = named;
  odd.dev = "x; reboot";
  Facts facts = good_facts();
  peer(odd)(facts.devices[0]);
  EXPECT_EQ(finding_of(facts, "veth_peer").command,
            "nsenter --net=/run/netns/blue ethtool -K 'x; reboot' gro on");
  EXPECT_EQ(finding_of(good_facts(), "veth_peer").check, "");  // a card is no veth
}

}  // namespace
}  // namespace edgeshed::doctor
