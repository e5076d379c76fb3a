// Reads the facts of this host. Changes nothing that lasts: what is tried (a program, a ring, a
// folder in bpffs) is gone again on return. Must not judge.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "userspace/doctor/facts.h"

namespace edgeshed::doctor {

struct CollectOptions {
  std::string pin_dir;
  std::string config;  ///< for commands; empty: none
  bool config_has_devices = false;
  std::optional<std::uint64_t> tables_bytes;  ///< of the configuration
  std::vector<std::string> devices;           ///< empty: the network cards of this namespace
};

/// Takes some 100 ms, most of it measuring HZ; up to some seconds on a host that stalls. Never
/// throws for a fact that cannot be read. Throws Error: no netlink socket.
Facts collect(const CollectOptions& options);

// Its parts, a file each.
HostFacts collect_host(const CollectOptions& options);
PinFacts collect_pins(const std::string& pin_dir);
std::vector<DeviceFacts> collect_devices(const CollectOptions& options);

/// Loads a program of two instructions; an XDP one, as EdgeShed's are. jited: whether the kernel
/// compiled it; left alone if it does not say.
Tried try_bpf(std::optional<bool>& jited);
/// Extends a program (freplace), on no device: loads both, links one into the other, and lets go.
Tried try_freplace();
/// Opens a ring as the daemon's tick thread does.
Tried try_io_uring();

}  // namespace edgeshed::doctor
