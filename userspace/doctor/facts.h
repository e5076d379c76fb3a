// What was found on a host, as plain data: the collectors fill it, the checks judge it. An empty
// optional is "not there or not readable". Must not know how a fact is read, nor what it means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace edgeshed::doctor {

/// What came of really trying something.
struct Tried {
  bool tried = false;  ///< false: the caller may not try it
  int error = 0;       ///< errno; 0: it worked
};

/// Memory that the tables of a configuration come out of.
struct MemoryFacts {
  std::optional<std::uint64_t> tables_bytes;  ///< of the configuration; empty: none was given
  std::optional<std::uint64_t> available_bytes;
  /// What the caller's cgroup, or one above it, still allows; empty: no limit.
  std::optional<std::uint64_t> cgroup_left_bytes;
  std::string cgroup_limit_file;  ///< that sets it
};

struct ClockFacts {
  std::optional<std::uint32_t> hz;  ///< jiffies per second
  std::string hz_source;            ///< "measured", or the file
  std::string hz_error;             ///< one line: why measuring failed
  std::string source;               ///< the clocksource in use
  std::vector<std::string> sources;
};

/// Where cgroup v2 is: alone, beside v1, or nowhere.
enum class CgroupLayout { kNone, kHybrid, kUnified };

struct HostFacts {
  std::string kernel_release;     ///< as of uname -r
  bool kernel_btf = false;        ///< /sys/kernel/btf/vmlinux
  std::optional<int> jit_enable;  ///< the settings are shown in the first network namespace only
  std::optional<int> jit_harden;
  std::optional<bool> jited;       ///< whether the program that was tried was compiled
  bool root = false;               ///< effective user 0
  std::uint64_t capabilities = 0;  ///< effective, bit per capability
  std::optional<int> unprivileged_bpf_disabled;
  Tried bpf;       ///< loading of a program of two instructions
  Tried freplace;  ///< loading and linking of an extension of a program
  std::optional<int> io_uring_disabled;
  Tried io_uring;
  std::string lockdown;  ///< "none", "integrity", "confidentiality"; empty: the kernel has none
  MemoryFacts memory;
  ClockFacts clock;
  bool cpu_pressure = false;  ///< /proc/pressure/cpu can be read
  CgroupLayout cgroups = CgroupLayout::kNone;
  unsigned cpus = 1;  ///< online
  std::uint32_t page_bytes = 4096;
};

/// A device of this network namespace that carries something of EdgeShed.
struct AttachedFacts {
  std::string dev;
  std::string mode;  ///< as `edgeshed status` has it
  bool faces_servers = false;
  bool xdp = false;
  bool tc = false;
  bool of_pins = false;  ///< both are those of the pins
};

struct PinFacts {
  std::string dir;
  std::string parent;              ///< the folder that the pins are made in
  std::string mount;               ///< where the file system of `parent` is mounted
  int parent_error = 0;            ///< errno of looking at it
  bool on_bpffs = false;           ///< `parent` is on a BPF file system
  Tried write;                     ///< making a folder in `parent`
  bool readable = false;           ///< whether there are pins could be seen
  bool there = false;              ///< the control page is pinned
  std::string fault;               ///< one line: why the maps cannot be used; empty: they can
  std::vector<std::string> stale;  ///< folders of an attach that was killed
  bool attached_known = false;     ///< whether something is attached could be seen
  std::vector<AttachedFacts> attached;
};

/// Whose program is at one of the two places on a device that EdgeShed wants. kOtherPins: another
/// EdgeShed's. kHidden: the caller may not look it up. kDispatcher: XDP only.
enum class Owner { kNobody, kOurs, kOtherPins, kHidden, kDispatcher, kForeign };

/// The XDP program of a device.
struct XdpFacts {
  Owner owner = Owner::kNobody;
  bool generic = false;
  std::uint32_t id = 0;
  std::string name;           ///< empty: not known without CAP_SYS_ADMIN
  std::string other_pins;     ///< of kOtherPins
  std::uint32_t link_id = 0;  ///< of the BPF link that holds it; 0: none, as netlink put it there
};

/// A program or filter at TC egress.
struct TcFilterFacts {
  bool tcx = false;  ///< before all filters of clsact
  std::uint32_t priority = 0;
  std::uint32_t handle = 0;
  std::string kind;  ///< "bpf", "flower"; empty for tcx
  std::string name;  ///< of the BPF program
};

/// TC egress of a device.
struct EgressFacts {
  std::vector<TcFilterFacts> filters;
  bool known = true;             ///< false: the kernel did not tell all of them
  Owner owner = Owner::kNobody;  ///< of the BPF program at EdgeShed's priority and handle
  std::string other_pins;        ///< of kOtherPins
};

struct ChannelFacts {
  std::uint32_t rx = 0;  ///< queues that receive, in use
  std::uint32_t tx = 0;
  std::uint32_t rx_max = 0;  ///< 0: the device does not say
  std::uint32_t combined_max = 0;
  std::uint32_t spread_over = 0;  ///< queues that RSS uses; 0: the device does not say
};

/// A feature of a device, as `ethtool -k` shows it.
struct FeatureFacts {
  bool on = false;
  bool fixed = false;  ///< the device does not let it be changed
};

/// The other end of a veth pair.
struct PeerFacts {
  bool found = false;  ///< false: its namespace is not known, or may not be entered
  std::string dev;
  std::string netns_file;  ///< of the namespace that it is in; empty: this one
  std::uint32_t tx = 0;    ///< queues that it sends by
  std::optional<bool> gro;
  bool xdp = false;
};

struct DeviceFacts {
  std::string name;
  bool exists = false;
  bool loopback = false;
  bool up = false;
  bool carrier = false;
  bool hardware = false;                      ///< behind a bus: PCI, virtio, Xen
  std::string kind;                           ///< "veth", "bond", "bridge", "vlan"; empty: a card
  std::string driver;                         ///< as ethtool has it
  std::uint32_t mtu = 0;                      ///< bytes
  std::optional<std::uint64_t> xdp_features;  ///< NETDEV_XDP_ACT_*; from Linux 6.3 on
  ChannelFacts channels;
  std::optional<FeatureFacts> lro;     ///< the device joins received packets, beyond recall
  std::optional<FeatureFacts> gro_hw;  ///< it joins them as GRO would; virtio_net: its host does
  std::string master;                  ///< the bond or bridge that it is a port of
  std::string master_kind;
  std::vector<std::string> lower;  ///< ports of a bond or bridge, the device below a VLAN
  XdpFacts xdp;
  std::string above;  ///< if `xdp` is nobody's: a device above that has a program; empty: none
  XdpFacts above_xdp;
  EgressFacts egress;
  PeerFacts peer;  ///< kind "veth"
};

struct Facts {
  HostFacts host;
  PinFacts pins;
  std::string config;               ///< path; empty: none
  bool config_has_devices = false;  ///< attach needs no --dev
  std::vector<DeviceFacts> devices;
};

}  // namespace edgeshed::doctor
