// Counting in constant space, and the worst of three. No decision about shedding.
#include "userspace/core/room_state.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "userspace/core/time_units.h"

namespace edgeshed::core {
namespace {

constexpr uint32_t kThrottling = static_cast<uint32_t>(RoomPressure::throttling) - 1;

constexpr const char* kNames[] = {
#define X(name, text) #name,
    EDGESHED_ROOM_PRESSURE_LIST(X)
#undef X
};
constexpr const char* kTexts[] = {
#define X(name, text) text,
    EDGESHED_ROOM_PRESSURE_LIST(X)
#undef X
};
constexpr const char* kKeys[kRoomThresholds] = {"watch", "throttling", "shedding"};

/// The highest pressure whose threshold holds; `holds(i)` is asked from the highest down.
template <typename Holds>
RoomPressure highest(const Holds& holds) {
  for (uint32_t i = kRoomThresholds; i > 0; --i) {
    if (holds(i - 1)) return static_cast<RoomPressure>(i);
  }
  return RoomPressure::none;
}

RoomPressure by_share(uint32_t number, uint32_t connections,
                      const std::array<double, kRoomThresholds>& shares) {
  if (number == 0) return RoomPressure::none;
  constexpr double kRounding = 1e-9;  // .07 * 100 is more than 7
  return highest([&](uint32_t i) { return number + kRounding >= shares[i] * connections; });
}

/// "" or the fault of three thresholds that must rise.
template <typename Value>
std::string check_rising(const std::string& key, const std::array<Value, kRoomThresholds>& values) {
  for (uint32_t i = 1; i < kRoomThresholds; ++i) {
    if (values[i] > values[i - 1]) continue;
    const auto name = [&key](const char* of) { return std::string(key).append("_").append(of); };
    return name(kKeys[i]).append(" must be above ").append(name(kKeys[i - 1]));
  }
  return "";
}

}  // namespace

const char* room_pressure_name(RoomPressure pressure) {
  return kNames[static_cast<uint8_t>(pressure)];
}

const char* room_pressure_text(RoomPressure pressure) {
  return kTexts[static_cast<uint8_t>(pressure)];
}

std::string check_room_state_config(const RoomStateConfig& config) {
  if (config.ack_lag[0] == 0) return "ack_lag_watch must be above 0";
  std::string fault = check_rising("ack_lag", config.ack_lag);
  if (fault.empty()) fault = check_rising("degraded_share", config.degraded_share);
  if (fault.empty()) fault = check_rising("rejected_share", config.rejected_share);
  return fault;
}

double step(RejectWindow& window, uint32_t rejects_ever, uint64_t now_ns) {
  if (window.began_ns == 0 || now_ns < window.began_ns) {
    window = {std::max<uint64_t>(now_ns, 1), rejects_ever, 0};
    return 0;
  }
  if (static_cast<int32_t>(rejects_ever - window.at_begin) < 0) {
    window = {now_ns, rejects_ever, 0};
    return 0;
  }
  uint64_t age_ns = now_ns - window.began_ns;
  if (age_ns >= kNsPerS) {
    // A window that nobody looked at for long tells the mean of its time.
    const double length_s = static_cast<double>(age_ns) / kNsPerS;
    window.before = static_cast<uint32_t>(std::lround((rejects_ever - window.at_begin) / length_s));
    window.began_ns = now_ns;
    window.at_begin = rejects_ever;
    age_ns = 0;
  }
  const double covered = 1 - static_cast<double>(age_ns) / kNsPerS;
  return (rejects_ever - window.at_begin) + covered * window.before;
}

double pressing_ack_lag(uint32_t ack_lag_p95, double kept, const RoomStateConfig& config) {
  const double lag = ack_lag_p95 * kept;
  return std::max(0.0, lag - config.ack_lag[static_cast<uint32_t>(RoomPressure::watch) - 1]);
}

bool is_degraded(const RoomConnection& connection, const RoomStateConfig& config) {
  return connection.ack_lag >= config.ack_lag[kThrottling] ||
         connection.consumer >= SlowConsumer::throttle;
}

void RoomObservation::add(const RoomConnection& connection, const RoomStateConfig& config) {
  ++connections_;
  if (is_degraded(connection, config)) ++degraded_;
  if (connection.rejects_per_s >= config.rejects_per_s) ++rejected_;
  ack_lag_max_ = std::max(ack_lag_max_, connection.ack_lag);
  for (uint32_t i = 0; i < kRoomThresholds; ++i) {
    if (connection.ack_lag >= config.ack_lag[i]) ++reached_[i];
  }
  ++histogram_[bucket_of(connection.ack_lag)];
}

uint32_t RoomObservation::bucket_of(uint32_t lag) {
  if (lag < kExact) return lag;
  const auto doubling = static_cast<uint32_t>(std::bit_width(lag)) - 5;  // 0: 16 to 31
  const uint32_t bucket = kExact + doubling * kPerDoubling + ((lag >> (doubling + 1)) & 7);
  return std::min(bucket, kBuckets - 1);
}

uint32_t RoomObservation::least_of(uint32_t bucket) {
  if (bucket < kExact) return bucket;
  const uint32_t doubling = (bucket - kExact) / kPerDoubling;
  return (kPerDoubling + (bucket - kExact) % kPerDoubling) << (doubling + 1);
}

/// Of the p95, counted from the largest: 1 is the maximum. In integers, since .95 n is not exact.
uint32_t RoomObservation::rank_from_top() const {
  const uint64_t rank = (uint64_t{95} * connections_ + 99) / 100;
  return static_cast<uint32_t>(connections_ - rank + 1);
}

uint32_t RoomObservation::ack_lag_p95() const {
  if (connections_ == 0) return 0;
  const uint32_t wanted = rank_from_top();
  if (wanted == 1) return ack_lag_max_;
  uint32_t seen = 0;
  for (uint32_t bucket = kBuckets; bucket > 0; --bucket) {
    seen += histogram_[bucket - 1];
    if (seen >= wanted) return least_of(bucket - 1);
  }
  return 0;
}

bool RoomObservation::p95_reaches(uint32_t threshold) const {
  return connections_ > 0 && reached_[threshold] >= rank_from_top();
}

RoomState evaluate_room_state(const RoomObservation& observation, const RoomStateConfig& config) {
  RoomState state;
  state.ack_lag_max = observation.ack_lag_max();
  state.ack_lag_p95 = observation.ack_lag_p95();
  state.connections = observation.connections();
  state.degraded = observation.degraded();
  state.rejected = observation.rejected();

  state.by_ack_lag = highest([&](uint32_t i) { return observation.p95_reaches(i); });
  if (state.ack_lag_max >= config.ack_lag[0]) {
    state.by_ack_lag = std::max(state.by_ack_lag, RoomPressure::watch);
  }
  state.by_degraded = by_share(state.degraded, state.connections, config.degraded_share);
  state.by_gateway = by_share(state.rejected, state.connections, config.rejected_share);
  state.pressure = std::max({state.by_ack_lag, state.by_degraded, state.by_gateway});

  // The number that is told must not contradict what the exact count decided.
  for (uint32_t i = 0; i < kRoomThresholds; ++i) {
    if (!observation.p95_reaches(i)) continue;
    state.ack_lag_p95 = std::max(state.ack_lag_p95, config.ack_lag[i]);
  }
  return state;
}

}  // namespace edgeshed::core
