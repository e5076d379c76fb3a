// A rung that an operator holds one room at: what the ladder table sheds at that rung is in force
// in the room, whatever its shard does. Time is an argument; what it means for a plan is
// plan_rows.h's.
#pragma once

#include <cstdint>

namespace edgeshed::core {

struct RoomOverride {
  uint8_t rung = 0;       ///< 0 to 5; 0: the room sheds nothing
  uint64_t until_ns = 0;  ///< as `now_ns`; 0: the room follows its shard

  bool holds() const { return until_ns != 0; }
  bool is_over(uint64_t now_ns) const { return holds() && now_ns >= until_ns; }
};

}  // namespace edgeshed::core
