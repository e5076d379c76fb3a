// Other programs on the same maps, in place. Must not change what stands in the maps.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "userspace/kernel/attach.h"

namespace edgeshed::kernel {

/// Whether the pinned programs are those of the object file. False also where that was never noted
/// or an upgrade is half done.
bool are_from(const es_control& control, const std::filesystem::path& object_path);

/// Loads the object's programs on the pinned maps, pins them and puts them in the place of ours on
/// every device of this network namespace: no packet passes without a program, counters and
/// connections go on. Returns what stands then; nothing: the pinned programs, and those on the
/// devices, are the object's already, and `again` is false.
/// Throws Error. Nothing has changed: pins of another schema, an object that cannot be loaded. A
/// device that refuses: all have their old programs again (in a libxdp dispatcher: the new one).
std::optional<std::vector<Attachment>> upgrade_programs(const std::filesystem::path& object_path,
                                                        const std::filesystem::path& pin_dir,
                                                        bool again);

}  // namespace edgeshed::kernel
