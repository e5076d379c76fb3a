// The pins: names in bpffs that keep maps and programs alive without a process. Maps are pinned
// under their names, programs under theirs. Must not attach nor detach anything.
#pragma once

#include <filesystem>
#include <string_view>

#include "userspace/kernel/fd.h"
#include "userspace/kernel/object.h"

namespace edgeshed::kernel {

inline constexpr std::string_view kDefaultPinDir = "/sys/fs/bpf/edgeshed";

/// True if `pin_dir` exists and holds the control page's pin.
bool pins_exist(const std::filesystem::path& pin_dir);

/// Pins all maps and programs of a loaded object: in a folder beside `pin_dir`, which then takes
/// its name in one rename. An older `pin_dir` is swapped out in the same step and removed: programs
/// that are attached stay attached, with the maps that they have, until attach() replaces them.
/// On failure the old pins stand as they were and nothing new is left behind.
/// Throws Error: bpffs is not mounted there, no permission.
void pin_object(const Object& object, const std::filesystem::path& pin_dir);

/// Removes our pins and the folder; files of others in it stay, and then so does the folder.
/// No pins: does nothing. Throws Error: no permission.
void remove_pins(const std::filesystem::path& pin_dir);

/// The pinned program of that name ("es_xdp"). Throws Error: not attached, no permission.
Fd open_pinned_program(const std::filesystem::path& pin_dir, std::string_view name);

}  // namespace edgeshed::kernel
