// One daemon per socket and per set of pins: two writers would tear each other's plans.
#ifndef EDGESHED_USERSPACE_DAEMON_INSTANCE_LOCK_H_
#define EDGESHED_USERSPACE_DAEMON_INSTANCE_LOCK_H_

#include <string>

#include "userspace/kernel/fd.h"

namespace edgeshed::daemon {

class InstanceLock {
 public:
  /// Locks "<socket>.lock", making its folder (0755) if there is none, and the folder of the pins.
  /// The kernel lets go when the process ends, however it ends; the file stays.
  /// Throws Error: another daemon has it (kExitRefused), or the file cannot be made.
  InstanceLock(const std::string& socket_path, const std::string& pin_dir);

 private:
  kernel::Fd socket_lock_;
  kernel::Fd pins_lock_;
};

}  // namespace edgeshed::daemon

#endif
