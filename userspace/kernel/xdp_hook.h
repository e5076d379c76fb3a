// The XDP side of attach.h: what stands on a device, and putting ours on and off. Must not know TC
// nor devices by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "userspace/kernel/attach.h"
#include "userspace/kernel/programs.h"

namespace edgeshed::kernel {

struct XdpStanding {
  bool anything = false;    ///< some XDP program is on the device
  bool dispatcher = false;  ///< it is libxdp's dispatcher
  bool hidden = false;      ///< this process may not look up what it is; most likely a dispatcher
  bool generic = false;
  std::uint32_t main_id = 0;         ///< the program that the driver sees
  std::uint32_t our_id = 0;          ///< ours, plain or in the dispatcher; 0: not there
  std::filesystem::path other_pins;  ///< another EdgeShed's program is there; these are its pins
  std::string name;  ///< of ours if it is there, else of the main program (may be empty)
};

/// Asks the kernel. Throws Error: the device is gone.
XdpStanding query_xdp(int ifindex, const ProgramNames& names);

struct XdpResult {
  XdpState state = XdpState::kNone;
  bool generic = false;
  std::string fallback_reason;
  std::uint32_t program = 0;
};

/// Attaches program `name`, or puts it in the place of ours. Throws Error; a foreign program that
/// is no dispatcher: kExitRefused, nothing changed.
XdpResult attach_xdp(int ifindex, std::string_view name, const AttachOptions& options,
                     const XdpStanding& standing, const ProgramNames& names);

/// Takes ours off. False: it was not there. Throws Error.
bool detach_xdp(int ifindex, const XdpStanding& standing, const ProgramNames& names);

}  // namespace edgeshed::kernel
