// The way back from an attach: what stood before it is noted, and put back if the attach fails or
// nobody confirms it. Must not decide when (tools/cli does).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "userspace/kernel/attach.h"

namespace edgeshed::kernel {

/// A device before the attach.
struct DeviceBefore {
  std::string dev;
  bool attached = false;  ///< something of ours was on it
  bool whole = false;     ///< both programs were, and those of the pins
  Faces faces = Faces::kClients;
};

struct AttachUndo {
  std::filesystem::path pin_dir;
  bool pins_there = false;
  std::uint32_t default_enforce = 0;  ///< the word of the control page; 0 without pins
  std::vector<DeviceBefore> devices;  ///< those that will be attached to, in this order
};

/// Looks, changes nothing. A device that does not exist counts as not attached. Throws Error: pins
/// that cannot be used, no permission.
AttachUndo note_before_attach(const std::filesystem::path& pin_dir,
                              const std::vector<std::string>& devices);

/// Takes ours off the devices that did not carry it and turns the others' faces back, puts the mode
/// word back, and removes pins that were not there. A device that is gone is passed over; a failure
/// does not keep it from the rest. Doing it again changes nothing.
/// Throws Error afterwards: the first failure.
void roll_back(const AttachUndo& undo);

}  // namespace edgeshed::kernel
