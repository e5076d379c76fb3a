// The service thread's end of the command queue: what must arrive, arrives, and in its order.
#ifndef EDGESHED_USERSPACE_DAEMON_COMMAND_SENDER_H_
#define EDGESHED_USERSPACE_DAEMON_COMMAND_SENDER_H_

#include <deque>

#include "userspace/daemon/command.h"

namespace edgeshed::daemon {

class CommandSender {
 public:
  explicit CommandSender(CommandQueue& queue) : queue_(queue) {}

  /// Now, or never: false if the queue is full. For what is told again anyway.
  [[nodiscard]] bool try_send(const Command& command) {
    return flush() && queue_.try_push(command);
  }

  /// Now, or as soon as there is room (see flush).
  void send(const Command& command) {
    if (!try_send(command)) waiting_.push_back(command);
  }

  /// Hands over what waits. True: nothing waits any more. Call it now and then.
  bool flush() {
    while (!waiting_.empty() && queue_.try_push(waiting_.front())) waiting_.pop_front();
    return waiting_.empty();
  }

 private:
  CommandQueue& queue_;
  std::deque<Command> waiting_;
};

}  // namespace edgeshed::daemon

#endif
