// A room's pressure state: what is measured of its connections, and the label that follows. The
// label is observational, operators and clients read it: it sheds nothing (room_ladder.h says what
// is shed). Must not keep history but RejectWindow's, nor know where the numbers come from.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "userspace/core/codes.h"
#include "userspace/core/slow_consumer.h"

namespace edgeshed::core {

// pressure: name, text. Worst last.
#define EDGESHED_ROOM_PRESSURE_LIST(X)       \
  X(none, "everyone keeps up")               \
  X(watch, "somebody begins to fall behind") \
  X(throttling, "connections are behind")    \
  X(shedding, "most of the room is far behind")

enum class RoomPressure : uint8_t {
#define X(name, text) name,
  EDGESHED_ROOM_PRESSURE_LIST(X)
#undef X
      count,
};
/// Thresholds lead to every pressure but none; index pressure - 1.
inline constexpr uint32_t kRoomThresholds = static_cast<uint32_t>(RoomPressure::count) - 1;

const char* room_pressure_name(RoomPressure pressure);  ///< as in JSON: "throttling"
const char* room_pressure_text(RoomPressure pressure);  ///< one line for people

constexpr Code room_pressure_code(RoomPressure pressure) {
  return code_after(Code::room_pressure_none, static_cast<uint8_t>(pressure));
}
static_assert(room_pressure_code(RoomPressure::shedding) == Code::room_pressure_shedding);

/// Levels from which a pressure is reached, inclusive (>=), in the order watch, throttling,
/// shedding. All provisional: no measurement of a real game stands behind them yet.
struct RoomStateConfig {
  /// Updates that the client has not acknowledged. At 30 updates/s: 0.27 s, which is more than a
  /// playable round trip; 0.53 s; 1.07 s, which interpolation cannot hide any more.
  std::array<uint32_t, kRoomThresholds> ack_lag = {8, 16, 32};

  /// Share of the connections that are degraded; watch takes any one of them.
  std::array<double, kRoomThresholds> degraded_share = {0, 0.10, 0.33};

  /// Share of the connections that the game server's gateway rejects. A rate over all would let one
  /// flooder speak for the room.
  std::array<double, kRoomThresholds> rejected_share = {0.05, 0.25, 0.50};

  /// Rejections of one connection in a second that make it count: a tenth of 30 commands/s.
  double rejects_per_s = 3;

  bool operator==(const RoomStateConfig&) const = default;
};

/// Empty when sound; otherwise one line that begins with the key of the configuration.
std::string check_room_state_config(const RoomStateConfig& config);

/// max(0, latest - acked) in sequence numbers that wrap: their difference is read as signed 32 bit.
constexpr uint32_t ack_lag(uint32_t latest_seq, uint32_t acked_seq) {
  const auto difference = static_cast<int32_t>(latest_seq - acked_seq);
  return difference > 0 ? static_cast<uint32_t>(difference) : 0;
}

/// What of a room's p95 presses its shard, in ticks of a server that sends an update a tick: what
/// is beyond the threshold of `watch`, for a round trip leaves that much behind without any load.
/// Of a shard that thins, only the share `kept` of it, 0 to 1: what was thinned is no lag, or
/// shedding would ask for more of itself.
double pressing_ack_lag(uint32_t ack_lag_p95, double kept, const RoomStateConfig& config);

/// Rejections of one connection over the last second, from a counter that only grows and wraps.
struct RejectWindow {
  uint64_t began_ns = 0;  ///< 0: never stepped
  uint32_t at_begin = 0;
  uint32_t before = 0;  ///< in the window before this one
};

/// Rejections per second: those of this window, and of the one before as much as the last second
/// still covers. The first call, and a counter that goes back (a new server), begin at 0.
double step(RejectWindow& window, uint32_t rejects_ever, uint64_t now_ns);

/// What is known of one connection of the room that is connected.
struct RoomConnection {
  uint32_t ack_lag = 0;
  SlowConsumer consumer = SlowConsumer::ok;
  double rejects_per_s = 0;  ///< by the gateway, without what the shedder rejected itself
};

/// A connection whose own lag is at throttling, or whose consumer stage is at throttle.
bool is_degraded(const RoomConnection& connection, const RoomStateConfig& config);

/// What one pass over the connections of a room leaves, in constant space. Against thresholds the
/// p95 is exact; as a number it is exact below 16, at most 1/8 too low up to 4095, and 4096 above.
class RoomObservation {
 public:
  void add(const RoomConnection& connection, const RoomStateConfig& config);

  uint32_t connections() const { return connections_; }
  uint32_t degraded() const { return degraded_; }
  uint32_t rejected() const { return rejected_; }
  uint32_t ack_lag_max() const { return ack_lag_max_; }

  /// Nearest rank: the lag of connection number ceil(.95 n), the smallest first; 0 without any. Up
  /// to 19 connections it is the maximum.
  uint32_t ack_lag_p95() const;

  /// Whether the p95 is at or over the threshold of that index. Exact.
  bool p95_reaches(uint32_t threshold) const;

 private:
  /// 16 exact buckets, then 8 per doubling up to 4095, then one for all that is more.
  static constexpr uint32_t kExact = 16;
  static constexpr uint32_t kPerDoubling = 8;
  static constexpr uint32_t kBuckets = kExact + 8 * kPerDoubling + 1;

  static uint32_t bucket_of(uint32_t lag);
  static uint32_t least_of(uint32_t bucket);
  uint32_t rank_from_top() const;

  uint32_t connections_ = 0;
  uint32_t degraded_ = 0;
  uint32_t rejected_ = 0;
  uint32_t ack_lag_max_ = 0;
  std::array<uint32_t, kRoomThresholds> reached_ = {};  ///< connections at or over ack_lag[i]
  std::array<uint32_t, kBuckets> histogram_ = {};
};

/// The state, and what each of the three says for itself. `pressure` is the worst of them.
struct RoomState {
  RoomPressure pressure = RoomPressure::none;
  RoomPressure by_ack_lag = RoomPressure::none;
  RoomPressure by_degraded = RoomPressure::none;
  RoomPressure by_gateway = RoomPressure::none;
  uint32_t ack_lag_max = 0;
  uint32_t ack_lag_p95 = 0;
  uint32_t connections = 0;
  uint32_t degraded = 0;
  uint32_t rejected = 0;
};

/// Worst of: the ack-lag thresholds (the p95 trips all three; the maximum, which is one connection,
/// trips watch only), the share of degraded connections, the share of rejected ones. A share trips
/// nothing while it counts nobody. `config` is the one that the connections were added with.
RoomState evaluate_room_state(const RoomObservation& observation, const RoomStateConfig& config);

}  // namespace edgeshed::core
