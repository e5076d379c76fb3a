// The pins: names in bpffs that keep maps and programs alive without a process. Maps are pinned
// under their names, programs under theirs. Must not attach nor detach anything.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "userspace/core/pin_dir.h"
#include "userspace/kernel/fd.h"
#include "userspace/kernel/object.h"

namespace edgeshed::kernel {

using core::kDefaultPinDir;

/// True if `pin_dir` exists and holds the control page's pin.
bool pins_exist(const std::filesystem::path& pin_dir);

/// Pins all maps and programs of a loaded object: in a folder beside `pin_dir`, which then takes
/// its name in one rename. An older `pin_dir` is swapped out in the same step and removed: programs
/// that are attached stay attached, with the maps that they have, until attach() replaces them.
/// On failure the old pins stand as they were and nothing new is left behind.
/// Throws Error: bpffs is not mounted there, no permission.
void pin_object(const Object& object, const std::filesystem::path& pin_dir);

/// True for the name of a folder beside `pin_dir` that pin_object() or remove_pins() fills or
/// empties.
bool is_temporary_pin_folder(const std::filesystem::path& folder,
                             const std::filesystem::path& pin_dir);

/// Folders beside `pin_dir` that pin_object() or remove_pins() of a process which is gone left. An
/// unreadable parent has none.
std::vector<std::string> stale_pin_folders(const std::filesystem::path& pin_dir);

/// Removes our pins and the folder, in one step for whoever looks, and stale_pin_folders(); files
/// of others in it stay, and then so does the folder. No pins: does nothing. Throws Error: no
/// permission.
void remove_pins(const std::filesystem::path& pin_dir);

/// What to do when one pin could not be opened: ENOENT beside other pins is no missing attach.
/// Empty: nothing special.
std::string hint_for_pin(int err, const std::filesystem::path& pin_dir);

/// Where the file system that a folder is on is mounted, for a command that mounts it otherwise.
/// The folder itself if it cannot be looked at.
std::filesystem::path mount_point_of(const std::filesystem::path& folder);

/// Other programs for the place of those that are pinned.
class ProgramPins {
 public:
  /// Pins them beside `pin_dir`, with the owner and the mode of the pins whose place they may take;
  /// what a killed one left there goes.
  /// Throws Error, and nothing stays.
  ProgramPins(const Object& object, const std::filesystem::path& pin_dir);
  ProgramPins(const ProgramPins&) = delete;
  ProgramPins& operator=(const ProgramPins&) = delete;
  /// Removes those that are beside.
  ~ProgramPins();

  /// These and those change places, each pair in one step; a second time it is as before. Takes no
  /// memory. Throws Error, and all are where they were.
  void exchange();

 private:
  int exchange_one(const char* name) const;

  std::filesystem::path pin_dir_;
  std::filesystem::path beside_;
};

/// The pinned program of that name ("es_xdp"). Throws Error: not attached, no permission.
Fd open_pinned_program(const std::filesystem::path& pin_dir, std::string_view name);

}  // namespace edgeshed::kernel
