#include "userspace/daemon/instance_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <filesystem>

#include "userspace/kernel/error.h"

namespace edgeshed::daemon {
namespace {

/// The process number that a lock file holds; 0: none.
int holder_of(int fd) {
  char text[16] = {};
  const ssize_t bytes = pread(fd, text, sizeof(text) - 1, 0);
  int pid = 0;
  if (bytes > 0) std::from_chars(text, text + bytes, pid);
  return pid;
}

[[noreturn]] void refuse(const std::string& path, int pid) {
  throw Error(fmt::format("another edgeshedd{} holds {}; stop it first",
                          pid > 0 ? fmt::format(" (process {})", pid) : "", path),
              kExitRefused);
}

void lock(int fd, const std::string& path, int pid) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) refuse(path, pid);
  kernel::fail_errno(errno, "lock", path);
}

}  // namespace

InstanceLock::InstanceLock(const std::string& socket_path, const std::string& pin_dir) {
  const std::string path = socket_path + ".lock";
  std::error_code ignored;  // open() says better what is wrong
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  socket_lock_ = kernel::Fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!socket_lock_) kernel::fail_errno(errno, "open the lock", path);
  lock(socket_lock_.get(), path, holder_of(socket_lock_.get()));

  pins_lock_ = kernel::Fd(open(pin_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!pins_lock_) kernel::fail_errno(errno, "open the pins", pin_dir, "run edgeshed attach first");
  lock(pins_lock_.get(), pin_dir, 0);

  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(socket_lock_.get(), 0) != 0 ||
      pwrite(socket_lock_.get(), pid.data(), pid.size(), 0) < 0) {
    kernel::fail_errno(errno, "write the lock", path);
  }
}

}  // namespace edgeshed::daemon
