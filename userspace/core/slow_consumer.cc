// Bytes to stage, highest first. No memory but the stage that is passed in.
#include "userspace/core/slow_consumer.h"

#include <algorithm>

namespace edgeshed::core {
namespace {

constexpr const char* kStageNames[] = {
#define X(name, text) #name,
    EDGESHED_SLOW_CONSUMER_LIST(X)
#undef X
};
constexpr const char* kStageTexts[] = {
#define X(name, text) text,
    EDGESHED_SLOW_CONSUMER_LIST(X)
#undef X
};

SlowConsumer reached(uint64_t buffered_bytes, const SlowConsumerConfig& config) {
  if (buffered_bytes >= config.evict_bytes) return SlowConsumer::evict;
  if (buffered_bytes >= config.throttle_bytes) return SlowConsumer::throttle;
  if (buffered_bytes >= config.watch_bytes) return SlowConsumer::watch;
  return SlowConsumer::ok;
}

}  // namespace

const char* slow_consumer_name(SlowConsumer stage) {
  return kStageNames[static_cast<uint8_t>(stage)];
}

const char* slow_consumer_text(SlowConsumer stage) {
  return kStageTexts[static_cast<uint8_t>(stage)];
}

std::string check_slow_consumer_config(const SlowConsumerConfig& config) {
  if (config.watch_bytes == 0) return "watch_bytes must be above 0";
  if (config.throttle_bytes <= config.watch_bytes) {
    return "throttle_bytes must be above watch_bytes";
  }
  if (config.evict_bytes <= config.throttle_bytes) {
    return "evict_bytes must be above throttle_bytes";
  }
  return "";
}

SlowConsumer step(SlowConsumer stage, uint64_t buffered_bytes, const SlowConsumerConfig& config) {
  return std::max(stage, reached(buffered_bytes, config));
}

}  // namespace edgeshed::core
