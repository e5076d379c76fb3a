// The shard ladder as a table look-up, highest rung first. No state, no clock.
#include "userspace/core/shard_ladder.h"

#include <algorithm>
#include <cstdio>

namespace edgeshed::core {
namespace {

constexpr const char* kCauseNames[] = {
#define X(name, text) #name,
    EDGESHED_CAUSE_LIST(X)
#undef X
};
constexpr const char* kCauseTexts[] = {
#define X(name, text) text,
    EDGESHED_CAUSE_LIST(X)
#undef X
};

bool rooms_full(const ShardSignals& signals) { return signals.room_count >= signals.room_capacity; }

Degradation evaluate(ActuatingRatio ratio, const ShardSignals& signals, bool with_rooms) {
  for (uint8_t rung = kRungMax; rung >= 1; --rung) {
    const RungLevel& level = kRungLevels[rung - 1];
    Degradation result;
    result.rung = rung;
    result.release = {level.tick_ratio, level.ring_occupancy, 0};
    const bool rooms_count = with_rooms && rung == kRungRefuseJoins;
    if (rooms_count) result.release.room_count_below = signals.room_capacity;
    if (ratio.value >= level.tick_ratio) {
      result.cause = ratio.cause;
    } else if (signals.ring_occupancy >= level.ring_occupancy) {
      result.cause = Cause::ring_occupancy;
    } else if (rooms_count && rooms_full(signals)) {
      result.cause = Cause::room_capacity;
    } else {
      continue;
    }
    return result;
  }
  return {};
}

}  // namespace

const char* cause_name(Cause cause) { return kCauseNames[static_cast<uint8_t>(cause)]; }

const char* cause_text(Cause cause) { return kCauseTexts[static_cast<uint8_t>(cause)]; }

std::string to_text(const Release& release) {
  std::string text;
  const auto append = [&text](const std::string& part) {
    if (!text.empty()) text += " and ";
    text += part;
  };
  char part[64];
  if (release.tick_ratio_below > 0) {
    std::snprintf(part, sizeof part, "tick_ratio below %.2f", release.tick_ratio_below);
    append(part);
  }
  if (release.ring_occupancy_below > 0) {
    std::snprintf(part, sizeof part, "ring_occupancy below %.2f", release.ring_occupancy_below);
    append(part);
  }
  if (release.room_count_below > 0) {
    std::snprintf(part, sizeof part, "room_count below %u", release.room_count_below);
    append(part);
  }
  return text.empty() ? "nothing" : text;
}

double tick_ratio(double tick_ms, double frame_budget_ms) {
  return tick_ms / std::max(1.0, frame_budget_ms);
}

ActuatingRatio actuating_ratio(const ShardSignals& signals) {
  ActuatingRatio ratio = {tick_ratio(signals.tick_p99_ms, signals.frame_budget_ms),
                          Cause::tick_ratio};
  const auto worst = [&ratio](double value, Cause cause) {
    if (value > ratio.value) ratio = {value, cause};
  };
  worst(tick_ratio(signals.running_tick_age_ms, signals.frame_budget_ms), Cause::running_tick);
  worst(signals.offered_cost_ratio, Cause::offered_cost);
  worst(tick_ratio(signals.receive_queue_ms, signals.frame_budget_ms), Cause::receive_queue);
  return ratio;
}

Degradation evaluate_shard_degradation(const ShardSignals& signals) {
  const double ratio = tick_ratio(signals.tick_p99_ms, signals.frame_budget_ms);
  return evaluate({ratio, Cause::tick_ratio}, signals, true);
}

Degradation evaluate_actuating_degradation(const ShardSignals& signals) {
  return evaluate(actuating_ratio(signals), signals, true);
}

Degradation evaluate_load_degradation(const ShardSignals& signals) {
  return evaluate(actuating_ratio(signals), signals, false);
}

Release scaled(const Release& release, double factor) {
  return {release.tick_ratio_below * factor, release.ring_occupancy_below * factor,
          release.room_count_below};
}

bool is_released(const Release& release, const ShardSignals& signals) {
  const double ratio = actuating_ratio(signals).value;
  return (release.tick_ratio_below <= 0 || ratio < release.tick_ratio_below) &&
         (release.ring_occupancy_below <= 0 ||
          signals.ring_occupancy < release.ring_occupancy_below) &&
         (release.room_count_below == 0 || signals.room_count < release.room_count_below);
}

}  // namespace edgeshed::core
