// Where the pins are if nobody says so, and commands for people that name where they are instead.
// Header-only, so that also what cannot look at pins can tell of them.
#pragma once

#include <string>
#include <string_view>

#include "userspace/core/shell_word.h"

namespace edgeshed::core {

inline constexpr std::string_view kDefaultPinDir = "/sys/fs/bpf/edgeshed";

/// A command line of edgeshed that is right as typed: "edgeshed detach", or, for pins elsewhere,
/// "edgeshed --pin-dir /sys/fs/bpf/b detach".
inline std::string command_at(std::string_view pin_dir, std::string_view words) {
  std::string command = "edgeshed ";
  if (pin_dir != kDefaultPinDir)
    command.append("--pin-dir ").append(shell_word(pin_dir)).append(" ");
  return command.append(words);
}

}  // namespace edgeshed::core
