// Program ids and names: see programs.h.
#include "userspace/kernel/programs.h"

#include <bpf/bpf.h>

#include <array>
#include <cerrno>

#include "userspace/kernel/error.h"

namespace edgeshed::kernel {
namespace {

constexpr std::array<const char*, 4> kOurPrograms = {"es_xdp", "es_xdp_srv", "es_tc", "es_tc_srv"};

bpf_prog_info info_of(int fd) {
  bpf_prog_info info{};
  __u32 bytes = sizeof(info);
  const int err = bpf_obj_get_info_by_fd(fd, &info, &bytes);
  if (err != 0) fail_errno(err, "inspect a BPF program", "");
  return info;
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

Fd open_program(std::uint32_t id) {
  Fd fd(bpf_prog_get_fd_by_id(id));
  if (!fd) fail_errno(errno, "open the BPF program with id", std::to_string(id));
  return fd;
}

std::uint32_t program_id(int fd) { return info_of(fd).id; }

}  // namespace edgeshed::kernel
