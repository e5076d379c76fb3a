// Bytes, messages, milliseconds.
#include "userspace/core/receive_queue.h"

#include <algorithm>

namespace edgeshed::core {

double StandingQueue::step(double bytes) {
  last_[next_] = bytes;
  next_ = (next_ + 1) % kSamples;
  return *std::min_element(last_.begin(), last_.end());
}

double mean_message_us(const RoomDemand& rates, const CostState& state, const CostConfig& config) {
  double per_s = 0;
  double us_per_s = 0;
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    per_s += rates.lane[lane].per_s;
    us_per_s += rates.lane[lane].per_s * lane_cost_us(config, lane);
  }
  // Less than a message an hour is a rate that dies away.
  const bool some = per_s > 1.0 / 3600;
  const double mean_us = some ? us_per_s / per_s : lane_cost_us(config, ES_LANE_command);
  return mean_us * state.unit_us * state.scale;
}

double receive_queue_ms(double bytes, double message_us, double frame_budget_ms) {
  return std::max(0.0, bytes / kBytesPerMessage * message_us / 1000 - frame_budget_ms);
}

}  // namespace edgeshed::core
