#include "userspace/kernel/stream_block.h"

#include <span>

namespace edgeshed::kernel {
namespace {

/// Attempts to win a slot: the packet path takes one with a store, so nobody is in the way for
/// long.
constexpr int kTries = 4;

std::uint32_t load_once(const std::uint32_t& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

bool exchange(std::uint32_t& word, std::uint32_t expected, std::uint32_t wanted) {
  return __atomic_compare_exchange_n(&word, &expected, wanted, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

}  // namespace

StreamChange set_stream(es_stream_block& block, const StreamOrder& order, std::uint32_t usable) {
  const std::uint32_t open = order.stream + std::uint32_t{1};
  const std::uint32_t wanted = order.closed ? open | ES_STREAM_CLOSED : open;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    es_stream_slot* spare = nullptr;
    std::uint32_t spare_holder = 0;
    for (es_stream_slot& slot : std::span(block.slot).first(usable)) {
      const std::uint32_t holder = load_once(slot.stream_id);
      if ((holder & ~ES_STREAM_CLOSED) == open) {
        __atomic_store_n(&slot.seen_jiffies, order.jiffies, __ATOMIC_RELAXED);
        if (holder == wanted || exchange(slot.stream_id, holder, wanted)) return StreamChange::done;
      } else if (spare == nullptr && es_stream_forgotten(holder, load_once(slot.seen_jiffies),
                                                         order.jiffies, order.hz)) {
        spare = &slot;
        spare_holder = holder;
      }
    }
    if (!order.closed) return StreamChange::done;
    if (spare == nullptr) return StreamChange::no_slot;
    // Before it is taken: a closed stream that was last seen long ago would be open again.
    __atomic_store_n(&spare->seen_jiffies, order.jiffies, __ATOMIC_RELAXED);
    if (exchange(spare->stream_id, spare_holder, wanted)) return StreamChange::done;
  }
  return StreamChange::no_slot;
}

}  // namespace edgeshed::kernel
