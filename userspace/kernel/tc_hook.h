// The TC side of attach.h: our filter at the egress of a device. Must not know XDP.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "userspace/kernel/programs.h"

namespace edgeshed::kernel {

/// Ours alone, so that replacing and removing never meets a filter of somebody else. The priority
/// leaves room before and behind: `tc` itself counts down from 49152.
inline constexpr std::uint32_t kTcHandle = 0xed6e;
inline constexpr std::uint32_t kTcPriority = 0xed6;

struct TcStanding {
  std::uint32_t program = 0;  ///< program id at our handle and priority; 0: none
  bool ours = false;
  bool hidden = false;               ///< this process may not look up what it is
  std::filesystem::path other_pins;  ///< it is another EdgeShed's; these are its pins
};

/// Asks the kernel; a device without clsact has nothing of ours.
TcStanding query_tc(int ifindex, const ProgramNames& names);

/// Makes clsact if it is missing, and adds the pinned program, or replaces ours in place. Returns
/// the program id. Throws Error; a foreign filter at our handle and priority: kExitRefused.
std::uint32_t attach_tc(int ifindex, std::string_view name, const std::filesystem::path& pin_dir,
                        const TcStanding& standing);

/// Removes our filter, and clsact if no filter is left in it. False: it was not there. Throws
/// Error.
bool detach_tc(int ifindex, const TcStanding& standing);

}  // namespace edgeshed::kernel
