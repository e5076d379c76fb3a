// Writing of plan boards: see plan_board.h. Each word is a store of its own: a server that reads
// two ticks' words sees two plans that were both in force within one tick.
#include "userspace/session/plan_board.h"

#include <algorithm>
#include <cmath>

namespace edgeshed::session {
namespace {

template <typename Word>
void store_once(Word& word, Word value) {
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}

std::uint16_t to_q16(double share) {
  return static_cast<std::uint16_t>(std::clamp(share, 0.0, 1.0) * ES_KEEP_ALL);
}

std::uint16_t to_ms(double ms) {
  return static_cast<std::uint16_t>(std::clamp(std::ceil(ms), 0.0, 65535.0));
}

}  // namespace

void write_room(es_board_room& row, const core::LadderEffects& effects,
                std::uint8_t best_effort_lanes, std::uint8_t rung, std::uint32_t retry_after_ms) {
  std::uint8_t paused = 0;
  for (std::uint32_t i = 0; i < ES_BOARD_THIN_LANES; ++i) {
    const core::LaneEffect& lane = effects.lane[i];
    const auto bit = static_cast<std::uint8_t>(1u << (core::kFirstThinLane + i));
    const bool applies = (best_effort_lanes & bit) != 0;
    if (applies && lane.paused) paused |= bit;
    store_once(row.keep_q16[i], applies ? to_q16(lane.keep[ES_OUT]) : std::uint16_t{ES_KEEP_ALL});
    store_once(row.min_interval_ms[i], applies ? to_ms(lane.min_interval_ms) : std::uint16_t{0});
  }
  store_once(row.paused, paused);
  store_once(row.rung, rung);
  store_once(row.retry_after_ms, retry_after_ms);
  store_once(row.max_gap_ms, static_cast<std::uint32_t>(effects.max_gap_ms));
}

void write_head(es_plan_board& board, std::uint32_t generation, std::uint64_t valid_until_ns,
                std::uint8_t shard_rung, bool refuse_joins) {
  store_once(board.shard_rung, shard_rung);
  store_once(board.refuse_joins, static_cast<std::uint8_t>(refuse_joins ? 1 : 0));
  store_once(board.valid_until_ns, valid_until_ns);
  __atomic_store_n(&board.generation, generation, __ATOMIC_RELEASE);
}

}  // namespace edgeshed::session
