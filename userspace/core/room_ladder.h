// The room ladder: what is done to a room in, rung out. Unlike the shard ladder it follows the
// shedding, it does not cause it: the rung says how far the shedding has come, in a fixed order.
// Pure; the memories are TickFuse's and RoomRung's. Must not know how a keep is enforced.
#pragma once

#include <cstdint>

#include "userspace/core/codes.h"

namespace edgeshed::core {

inline constexpr uint8_t kRoomRungMax = 5;
inline constexpr uint8_t kRoomRungs = kRoomRungMax + 1;

// rung: name, release text. In the fixed order; rung r has code room_rung_code(r).
#define EDGESHED_ROOM_RUNG_LIST(X)                                                         \
  X(normal, "nothing")                                                                     \
  X(downsample_streams, "the governor rejects nothing for 1 s and streams are kept whole") \
  X(drop_low_priority, "best-effort is kept whole")                                        \
  X(reject_commands, "standard is kept whole")                                             \
  X(evict_slow_consumers, "the game server has closed every connection that is at evict")  \
  X(unhealthy, "critical alone is within the budget and the tick is below twice its budget")

// cause: name, text. The condition that holds the rung.
#define EDGESHED_ROOM_CAUSE_LIST(X)                                    \
  X(none, "no condition holds")                                        \
  X(governor_rejects, "the governor of state streams rejects samples") \
  X(stream_keep, "state streams are thinned")                          \
  X(best_effort_keep, "best-effort is not kept whole")                 \
  X(standard_keep, "standard is not kept whole")                       \
  X(slow_consumer, "a connection is at evict")                         \
  X(critical_over_budget, "critical alone costs more than the budget") \
  X(tick_fuse, "the tick has taken twice its budget or more for 3 s")

enum class RoomCause : uint8_t {
#define X(name, text) name,
  EDGESHED_ROOM_CAUSE_LIST(X)
#undef X
      count,
};

const char* room_rung_name(uint8_t rung);      ///< as in JSON: "reject_commands"
const char* room_release_text(uint8_t rung);   ///< what must hold for the rung to be left
const char* room_cause_name(RoomCause cause);  ///< as in JSON: "standard_keep"
const char* room_cause_text(RoomCause cause);  ///< one line for people

/// Part of the tick ladder's rung 5; what cannot be undone needs this dwell.
inline constexpr double kFuseTickRatio = 2;
inline constexpr double kFuseDwellS = 3;

/// Since when a shard's tick has been at twice its budget without a break.
struct TickFuse {
  uint64_t since_ns = 0;  ///< 0: it is not
};

/// Seconds that tick_ratio has been at kFuseTickRatio or over, 0 when it is not. `now_ns` is not 0.
/// Feed it the larger of the measured p99 and the age of the running tick.
double step(TickFuse& fuse, double tick_ratio, uint64_t now_ns);

/// What is in force in a room. A keep is a share, 0 to 1, the least over lanes and directions.
struct RoomLadderInput {
  bool governor_rejects = false;  ///< any sample of the room in the last second
  double stream_keep = 1;         ///< of the lane `stream`; 0 when it is paused
  double keep_best_effort = 1;
  double keep_standard = 1;
  uint32_t consumers_at_evict = 0;  ///< connections that are still there
  double critical_ratio = 0;        ///< cost of critical that arrives / budget of the shard
  double tick_twice_s = 0;          ///< as step(TickFuse&) says
};

struct RoomDegradation {
  uint8_t rung = 0;
  RoomCause cause = RoomCause::none;

  Code code() const { return room_rung_code(rung); }
  const char* release() const { return room_release_text(rung); }
};

/// The highest rung whose condition holds, and the first condition, in the order of the causes,
/// that holds it.
RoomDegradation evaluate_room_ladder(const RoomLadderInput& input);

/// A rung is left when nothing has held it for this long: keeps hover, and each change is told.
inline constexpr uint64_t kRoomReleaseNs = 1'000'000'000;

/// Where a room stands. Value type.
struct RoomRung {
  RoomDegradation now;
  uint64_t since_ns = 0;  ///< when it came to this rung; 0: never left 0

  uint64_t below_since_ns = 0;  ///< private to step(); 0: what is found holds the rung
};

/// One look, at what evaluate_room_ladder() finds: up at once, down after kRoomReleaseNs. True: it
/// went to another rung. `now_ns` is not 0.
bool step(RoomRung& place, const RoomDegradation& found, uint64_t now_ns);

}  // namespace edgeshed::core
