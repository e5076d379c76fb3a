// Program ids and names: see programs.h.
#include "userspace/kernel/programs.h"

#include <bpf/bpf.h>

#include <array>
#include <cerrno>
#include <vector>

#include "userspace/kernel/error.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::kernel {
namespace {

bpf_prog_info info_of(int fd) {
  bpf_prog_info info{};
  __u32 bytes = sizeof(info);
  const int err = bpf_obj_get_info_by_fd(fd, &info, &bytes);
  if (err != 0) fail_errno(err, "inspect a BPF program", "");
  return info;
}

/// The id of the map that every EdgeShed has; 0: no such pin.
std::uint32_t control_page_of(const std::filesystem::path& pin_dir) {
  const Fd fd(bpf_obj_get((pin_dir / "es_control").c_str()));
  bpf_map_info info{};
  __u32 bytes = sizeof(info);
  if (!fd || bpf_obj_get_info_by_fd(fd.get(), &info, &bytes) != 0) return 0;
  return info.id;
}

std::vector<__u32> maps_of(int fd) {
  std::vector<__u32> ids(info_of(fd).nr_map_ids);
  bpf_prog_info info{};
  info.nr_map_ids = static_cast<__u32>(ids.size());
  info.map_ids = reinterpret_cast<std::uintptr_t>(ids.data());
  __u32 bytes = sizeof(info);
  if (bpf_obj_get_info_by_fd(fd, &info, &bytes) != 0) return {};
  return ids;
}

}  // namespace

bool is_our_program(std::string_view name) {
  for (const char* ours : kOurPrograms) {
    if (name == ours) return true;
  }
  return false;
}

ProgramNames::ProgramNames(const std::filesystem::path& pin_dir) {
  for (const char* name : kOurPrograms) {
    const Fd fd(bpf_obj_get((pin_dir / name).c_str()));
    if (fd) pinned_[program_id(fd.get())] = name;
  }
  const std::uint32_t own_page = control_page_of(pin_dir);
  std::error_code error;
  for (std::filesystem::directory_iterator it(pin_dir.parent_path(), error), end;
       !error && it != end; it.increment(error)) {
    const std::filesystem::path& beside = it->path();
    // Pins of ours that are about to be exchanged are no other EdgeShed's.
    if (beside == pin_dir || is_temporary_pin_folder(beside, pin_dir)) continue;
    const std::uint32_t page = control_page_of(beside);
    if (page != 0 && page != own_page) others_[page] = beside;
  }
}

std::filesystem::path ProgramNames::other_pins_of(std::uint32_t id) const {
  if (others_.empty() || pinned_.contains(id)) return {};
  const Fd fd(bpf_prog_get_fd_by_id(id));
  if (!fd) return {};
  for (const __u32 map : maps_of(fd.get())) {
    const auto other = others_.find(map);
    if (other != others_.end()) return other->second;
  }
  return {};
}

std::string ProgramNames::name_of(std::uint32_t id) const {
  const auto pinned = pinned_.find(id);
  if (pinned != pinned_.end()) return pinned->second;
  if (id == 0) return {};
  const Fd fd(bpf_prog_get_fd_by_id(id));
  return fd ? info_of(fd.get()).name : std::string();
}

std::uint32_t ProgramNames::pinned_id(std::string_view name) const {
  for (const auto& [id, pinned] : pinned_) {
    if (pinned == name) return id;
  }
  return 0;
}

bool may_look_up_programs() {
  __u32 next = 0;
  return bpf_prog_get_next_id(0, &next) == 0 || errno != EPERM;
}

Fd open_program(std::uint32_t id) {
  Fd fd(bpf_prog_get_fd_by_id(id));
  if (!fd) fail_errno(errno, "open the BPF program with id", std::to_string(id));
  return fd;
}

std::uint32_t program_id(int fd) { return info_of(fd).id; }

}  // namespace edgeshed::kernel
