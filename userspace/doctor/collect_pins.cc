// bpffs, the pins, and what is attached.
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "userspace/core/error_type.h"
#include "userspace/doctor/collect.h"
#include "userspace/kernel/attach.h"
#include "userspace/kernel/map_set.h"
#include "userspace/kernel/pins.h"
#include "userspace/kernel/programs.h"

namespace edgeshed::doctor {
namespace {

namespace fs = std::filesystem;

/// Makes a folder and removes it again: a mount that says rw may still refuse.
Tried try_write(const std::string& parent) {
  const std::string folder = parent + "/edgeshed_doctor_" + std::to_string(getpid());
  if (mkdir(folder.c_str(), 0700) == 0) {
    rmdir(folder.c_str());
    return {true, 0};
  }
  if ((errno == EACCES || errno == EPERM) && geteuid() != 0) return {};
  return {true, errno};
}

void look_at_parent(PinFacts& pins) {
  pins.mount = kernel::mount_point_of(pins.parent);
  struct statfs info{};
  if (statfs(pins.parent.c_str(), &info) != 0) {
    pins.parent_error = errno;
    return;
  }
  pins.on_bpffs = static_cast<unsigned long>(info.f_type) == BPF_FS_MAGIC;
  if (pins.on_bpffs) pins.write = try_write(pins.parent);
}

void look_at_pins(PinFacts& pins) {
  struct stat info{};
  const bool folder = stat(pins.dir.c_str(), &info) == 0;
  if (!folder && errno != ENOENT && errno != ENOTDIR) return;
  if (folder && access(pins.dir.c_str(), X_OK | R_OK) != 0) return;
  pins.readable = true;
  pins.stale = kernel::stale_pin_folders(pins.dir);
  pins.there = kernel::pins_exist(pins.dir);
  if (!pins.there) return;
  try {
    kernel::MapSet::from_pins(pins.dir, kernel::Access::kRead);
    for (const char* program : {"es_xdp", "es_tc", "es_xdp_srv", "es_tc_srv"}) {
      kernel::open_pinned_program(pins.dir, program);
    }
  } catch (const Error& error) {
    pins.fault = error.what();
    // Root may open every map; to all others a refusal says nothing.
    if (error.exit_code() == kExitEnvironment && geteuid() != 0) {
      pins.readable = false;
      pins.fault.clear();
    }
  }
}

void look_at_devices(PinFacts& pins) {
  // Without pins to compare with, only who may look programs up by id sees whose they are.
  pins.attached_known = pins.readable && (pins.there || kernel::may_look_up_programs());
  if (!pins.attached_known) return;
  for (const kernel::Attachment& one : kernel::attachments(pins.dir)) {
    AttachedFacts attached;
    attached.dev = one.dev;
    attached.mode = kernel::xdp_state_name(one.xdp);
    attached.faces_servers = one.faces == kernel::Faces::kServers;
    attached.xdp = one.xdp != kernel::XdpState::kNone;
    attached.tc = one.tc_program != 0;
    attached.of_pins = one.of_pins;
    pins.attached.push_back(std::move(attached));
  }
}

}  // namespace

PinFacts collect_pins(const std::string& pin_dir) {
  PinFacts pins;
  pins.dir = pin_dir;
  pins.parent = fs::path(pin_dir).parent_path();
  look_at_parent(pins);
  look_at_pins(pins);
  look_at_devices(pins);
  return pins;
}

}  // namespace edgeshed::doctor
