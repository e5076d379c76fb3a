#include "userspace/daemon/event_ring.h"

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstring>

#include "userspace/kernel/error.h"

namespace edgeshed::daemon {

EventRing::EventRing(int events_fd) {
  ring_.reset(ring_buffer__new(events_fd, &EventRing::take, &batch_, nullptr));
  if (!ring_) kernel::fail_errno(errno, "map the ring", "es_events");
}

EventRing::~EventRing() = default;

void EventRing::Deleter::operator()(ring_buffer* ring) const { ring_buffer__free(ring); }

std::size_t EventRing::consume(EventTail& tail, RefusalQueue* refusals) {
  batch_ = {&tail, refusals, 0};
  ring_buffer__consume(ring_.get());  // an error is only take() saying that the batch is full
  return batch_.count;
}

int EventRing::take(void* context, void* data, std::size_t bytes) {
  auto* batch = static_cast<Batch*>(context);
  if (bytes >= sizeof(es_event)) {
    EventTail& tail = *batch->tail;
    es_event event;
    std::memcpy(&event, data, sizeof(event));
    if (event.sampled_of != 0) {
      tail.events[tail.count % kEventsKept] = event;
      ++tail.count;
    } else if (batch->refusals == nullptr || !batch->refusals->try_push(event)) {
      ++tail.refusals_lost;
    }
  }
  return ++batch->count < kBatchMax ? 0 : -ENOSPC;
}

}  // namespace edgeshed::daemon
