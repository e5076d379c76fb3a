// Pins in bpffs: see pins.h.
#include "userspace/kernel/pins.h"

#include <linux/magic.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "userspace/kernel/error.h"

namespace edgeshed::kernel {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOurPrefix = "es_";

void require_bpffs(const fs::path& dir) {
  struct statfs info{};
  if (statfs(dir.c_str(), &info) != 0) {
    fail_errno(errno, "pin anything in", dir.string(), "mount a BPF file system there first");
  }
  if (static_cast<unsigned long>(info.f_type) != BPF_FS_MAGIC) {
    throw Error(
        fmt::format("{} is not on a BPF file system, so nothing can be pinned there: mount one by "
                    "`mount -t bpf "
                    "bpf /sys/fs/bpf`",
                    dir.string()));
  }
}

/// Removes the pins of ours in a folder, and the folder if nothing else is in it.
void remove_folder(const fs::path& dir) {
  std::error_code error;
  std::vector<fs::path> ours;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(kOurPrefix)) ours.push_back(it->path());
  }
  if (error == std::errc::no_such_file_or_directory) return;
  if (error) fail_errno(error.value(), "list the pins in", dir.string());
  for (const fs::path& pin : ours) {
    if (unlink(pin.c_str()) != 0 && errno != ENOENT) fail_errno(errno, "remove", pin.string());
  }
  if (rmdir(dir.c_str()) != 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EBUSY) {
    fail_errno(errno, "remove", dir.string());
  }
}

/// A folder that is removed again unless it is kept.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(fs::path path) : path_(std::move(path)) {
    remove_folder(path_);
    if (mkdir(path_.c_str(), 0700) != 0) fail_errno(errno, "make the folder", path_.string());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    try {
      if (!path_.empty()) remove_folder(path_);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      // The error that brought us here says more than one about cleaning up.
    }
  }
  const fs::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  fs::path path_;
};

void pin_one(int fd, const fs::path& path) {
  const int err = bpf_obj_pin(fd, path.c_str());
  if (err != 0) fail_errno(err, "pin", path.string());
}

}  // namespace

bool pins_exist(const fs::path& pin_dir) {
  std::error_code error;
  return fs::exists(pin_dir / "es_control", error);
}

void pin_object(const Object& object, const fs::path& pin_dir) {
  require_bpffs(pin_dir.parent_path());
  // No dot in the name: bpffs refuses those.
  TemporaryFolder fresh(pin_dir.string() + "_new_" + std::to_string(getpid()));
  const bpf_map* map = nullptr;
  for (map = bpf_object__next_map(object.get(), nullptr); map != nullptr;
       map = bpf_object__next_map(object.get(), map)) {
    // Internal maps (.rodata) are constants of the programs and live as long as they do.
    if (!bpf_map__is_internal(map)) pin_one(bpf_map__fd(map), fresh.path() / bpf_map__name(map));
  }
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    pin_one(bpf_program__fd(program), fresh.path() / bpf_program__name(program));
  }
  std::error_code error;
  if (!fs::exists(pin_dir, error)) {
    if (renameat2(AT_FDCWD, fresh.path().c_str(), AT_FDCWD, pin_dir.c_str(), RENAME_NOREPLACE) !=
        0) {
      fail_errno(errno, "name the pins", pin_dir.string());
    }
    fresh.keep();
    return;
  }
  // After the exchange the temporary name holds the old pins, and goes.
  if (renameat2(AT_FDCWD, fresh.path().c_str(), AT_FDCWD, pin_dir.c_str(), RENAME_EXCHANGE) != 0) {
    fail_errno(errno, "replace the pins", pin_dir.string());
  }
}

void remove_pins(const fs::path& pin_dir) { remove_folder(pin_dir); }

Fd open_pinned_program(const fs::path& pin_dir, std::string_view name) {
  const std::string path = (pin_dir / name).string();
  Fd fd(bpf_obj_get(path.c_str()));
  if (!fd) fail_errno(errno, "open the pinned program", path);
  return fd;
}

}  // namespace edgeshed::kernel
