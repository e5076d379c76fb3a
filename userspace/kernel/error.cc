// errno to edgeshed::Error: see error.h.
#include "userspace/kernel/error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace edgeshed::kernel {
namespace {

int exit_code_of(int err) {
  switch (std::abs(err)) {
    case EPERM:
    case EACCES:
    case ENOSYS:
    case EOPNOTSUPP:
      return kExitEnvironment;
    default:
      return kExitFailure;
  }
}

}  // namespace

std::string_view errno_hint(int err) {
  switch (std::abs(err)) {
    case EPERM:
    case EACCES:
      return "run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON";
    case ENOMEM:
      return "too little memory for the tables: lower the capacities in the configuration, or "
             "raise "
             "the memory limit (ulimit -l, the cgroup's memory.max)";
    case EBUSY:
    case EEXIST:
      return "something else holds it: see `ip link show` and `bpftool net show`";
    case ENOENT:
      return "not attached: run `edgeshed attach` first";
    case ENODEV:
      return "no such device in this network namespace: see `ip link`";
    case ENOSYS:
    case EOPNOTSUPP:
      return "the kernel or the driver lacks it (EdgeShed needs Linux 6.1 or newer)";
    case EMFILE:
    case ENFILE:
      return "too many open files: raise `ulimit -n`";
    default:
      return {};
  }
}

std::string errno_line(int err, std::string_view what, std::string_view where,
                       std::string_view hint) {
  std::string line = "cannot ";
  line.append(what);
  if (!where.empty()) line.append(" ").append(where);
  if (err != 0) line.append(": ").append(std::strerror(std::abs(err)));
  if (hint.empty()) hint = errno_hint(err);
  if (!hint.empty()) line.append("; ").append(hint);
  return line;
}

void fail_errno(int err, std::string_view what, std::string_view where, std::string_view hint) {
  throw Error(errno_line(err, what, where, hint), exit_code_of(err));
}

}  // namespace edgeshed::kernel
