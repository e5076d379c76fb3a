// Plans as a game server reads them: from a room's rules to its row of the board. Pure memory, no
// clock, no allocation: a tick may call it.
#pragma once

#include <cstdint>

#include "maps/plan.h"
#include "userspace/core/ladder_effects.h"
#include "userspace/session/wire.h"

namespace edgeshed::session {

/// What a board says about a room's egress. `effects`: in force now, `best_effort_lanes`: bit per
/// lane that is best-effort at every endpoint of the room (only those may be paused).
void write_room(es_board_room& row, const core::LadderEffects& effects,
                std::uint8_t best_effort_lanes, std::uint8_t rung, std::uint32_t retry_after_ms);

/// The head of the board, after all rows: it makes the generation current.
void write_head(es_plan_board& board, std::uint32_t generation, std::uint64_t valid_until_ns,
                std::uint8_t shard_rung, bool refuse_joins);

}  // namespace edgeshed::session
