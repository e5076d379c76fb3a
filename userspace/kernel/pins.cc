// Pins in bpffs: see pins.h.
#include "userspace/kernel/pins.h"

#include <linux/magic.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>
#include <vector>

#include "userspace/kernel/error.h"
#include "userspace/kernel/programs.h"

namespace edgeshed::kernel {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOurPrefix = "es_";

/// Between the name of the pins and the process that fills or empties the folder. No dot: bpffs
/// refuses those.
constexpr std::string_view kFreshInfix = "_new_";

void require_bpffs(const fs::path& dir) {
  struct statfs info{};
  if (statfs(dir.c_str(), &info) != 0) {
    fail_errno(errno, "pin anything in", dir.string(), "mount a BPF file system there first");
  }
  if (static_cast<unsigned long>(info.f_type) != BPF_FS_MAGIC) {
    throw Error(
        fmt::format("{} is not on a BPF file system, so nothing can be pinned there: mount one by "
                    "`mount -t bpf bpf {}`",
                    dir.string(), dir.string()));
  }
}

/// Of the name of such a folder, what stands before the number of the process.
std::string temporary_prefix(const fs::path& pin_dir) {
  return pin_dir.filename().string() + std::string(kFreshInfix);
}

/// Beside the pins, of this process: what it leaves half done there is found when it is gone.
fs::path temporary_name(const fs::path& pin_dir) {
  return pin_dir.parent_path() / (temporary_prefix(pin_dir) + std::to_string(getpid()));
}

/// A folder in which there is nothing but pins of ours.
bool all_ours(const fs::path& dir) {
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with(kOurPrefix)) return false;
  }
  return !error;
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
    if (mkdir(path_.c_str(), 0700) != 0) {
      fail_errno(errno, "make the folder", path_.string(),
                 errno == EROFS ? fmt::format("`mount -o remount,rw {}` makes it writable",
                                              mount_point_of(path_.parent_path()).string())
                                : "");
    }
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

std::string hint_for_pin(int err, const fs::path& pin_dir) {
  if (std::abs(err) != ENOENT || !pins_exist(pin_dir)) return {};
  return fmt::format("some pins are gone and others are not: run `{}`, then `edgeshed attach`",
                     core::command_at(pin_dir.string(), "detach"));
}

fs::path mount_point_of(const fs::path& folder) {
  struct stat here{};
  fs::path at = folder;
  if (stat(at.c_str(), &here) != 0) return folder;
  for (struct stat above{}; at.has_relative_path(); at = at.parent_path()) {
    if (stat(at.parent_path().c_str(), &above) != 0 || above.st_dev != here.st_dev) break;
  }
  return at;
}

void pin_object(const Object& object, const fs::path& pin_dir) {
  require_bpffs(pin_dir.parent_path());
  TemporaryFolder fresh(temporary_name(pin_dir));
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

bool is_temporary_pin_folder(const fs::path& folder, const fs::path& pin_dir) {
  return folder.filename().string().starts_with(temporary_prefix(pin_dir));
}

std::vector<std::string> stale_pin_folders(const fs::path& pin_dir) {
  const std::string prefix = temporary_prefix(pin_dir);
  std::vector<std::string> stale;
  std::error_code error;
  for (fs::directory_iterator it(pin_dir.parent_path(), error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!is_temporary_pin_folder(it->path(), pin_dir)) continue;
    int pid = 0;
    const char* const last = name.data() + name.size();
    const auto [stopped, fault] = std::from_chars(name.data() + prefix.size(), last, pid);
    if (fault != std::errc() || stopped != last || pid <= 0) continue;
    if (kill(pid, 0) != 0 && errno == ESRCH) stale.push_back(it->path().string());
  }
  return stale;
}

void remove_pins(const fs::path& pin_dir) {
  // Out of the way in one step, so that nobody finds some of them. Not where something of others is
  // among them, nor where the folder is a mount (EBUSY): there one by one.
  const fs::path gone = temporary_name(pin_dir);
  const bool moved = all_ours(pin_dir) && rename(pin_dir.c_str(), gone.c_str()) == 0;
  remove_folder(moved ? gone : pin_dir);
  for (const std::string& folder : stale_pin_folders(pin_dir)) remove_folder(folder);
}

ProgramPins::ProgramPins(const Object& object, const fs::path& pin_dir) : pin_dir_(pin_dir) {
  for (const std::string& folder : stale_pin_folders(pin_dir)) remove_folder(folder);
  TemporaryFolder beside(temporary_name(pin_dir));
  for (const char* name : kOurPrograms) {
    const fs::path place = pin_dir / name;
    const fs::path pin = beside.path() / name;
    struct stat old{};
    if (stat(place.c_str(), &old) != 0) {
      fail_errno(errno, "find the pinned program", place.string(), hint_for_pin(errno, pin_dir));
    }
    pin_one(object.program_fd(name), pin);
    if (chown(pin.c_str(), old.st_uid, old.st_gid) != 0 ||
        chmod(pin.c_str(), old.st_mode & 07777) != 0) {
      fail_errno(errno, "give its owner to", pin.string());
    }
  }
  beside_ = beside.path();
  beside.keep();
}

ProgramPins::~ProgramPins() {
  try {
    remove_folder(beside_);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // stale_pin_folders() finds it.
  }
}

int ProgramPins::exchange_one(const char* name) const {
  return renameat2(AT_FDCWD, (beside_ / name).c_str(), AT_FDCWD, (pin_dir_ / name).c_str(),
                   RENAME_EXCHANGE);
}

void ProgramPins::exchange() {
  for (std::size_t i = 0; i < kOurPrograms.size(); ++i) {
    if (exchange_one(kOurPrograms[i]) == 0) continue;
    const int error = errno;
    const fs::path place = pin_dir_ / kOurPrograms[i];
    while (i > 0) exchange_one(kOurPrograms[--i]);
    fail_errno(error, "replace", place.string());
  }
}

Fd open_pinned_program(const fs::path& pin_dir, std::string_view name) {
  const std::string path = (pin_dir / name).string();
  Fd fd(bpf_obj_get(path.c_str()));
  if (!fd) fail_errno(errno, "open the pinned program", path, hint_for_pin(errno, pin_dir));
  return fd;
}

}  // namespace edgeshed::kernel
