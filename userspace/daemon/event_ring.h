// Reads the BPF event ring: sampled sheds, a few at a time. The ring has one reader, who advances
// its tail: the daemon while it runs, `edgeshed dump events` otherwise.
#ifndef EDGESHED_USERSPACE_DAEMON_EVENT_RING_H_
#define EDGESHED_USERSPACE_DAEMON_EVENT_RING_H_

#include <cstddef>
#include <memory>

#include "userspace/daemon/command.h"
#include "userspace/daemon/snapshot.h"

struct ring_buffer;

namespace edgeshed::daemon {

class EventRing {
 public:
  /// Records taken in one call at the most: what is left waits for the next tick.
  static constexpr std::size_t kBatchMax = 512;

  /// events_fd: of the map, borrowed. Throws Error: the ring could not be mapped.
  explicit EventRing(int events_fd);
  ~EventRing();

  /// Appends what is in the ring, up to kBatchMax records: samples to `tail`, refusals that a
  /// server is told of to `refusals` (null: dropped). No syscall. Returns the number of records.
  std::size_t consume(EventTail& tail, RefusalQueue* refusals = nullptr);

 private:
  static int take(void* context, void* data, std::size_t bytes);

  struct Batch {
    EventTail* tail = nullptr;
    RefusalQueue* refusals = nullptr;
    std::size_t count = 0;
  };
  struct Deleter {
    void operator()(ring_buffer* ring) const;
  };
  Batch batch_;  // libbpf keeps its address: a ring does not move
  std::unique_ptr<ring_buffer, Deleter> ring_;
};

}  // namespace edgeshed::daemon

#endif
