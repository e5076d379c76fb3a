// The default table and the checks on any table. No decision about when a rung applies.
#include "userspace/core/ladder_effects.h"

#include <algorithm>
#include <cmath>

namespace edgeshed::core {
namespace {

constexpr uint32_t kSnapshot = ES_LANE_snapshot - kFirstThinLane;
constexpr uint32_t kStream = ES_LANE_stream - kFirstThinLane;
constexpr uint32_t kVoice = ES_LANE_voice - kFirstThinLane;
constexpr uint32_t kCosmetic = ES_LANE_cosmetic - kFirstThinLane;

constexpr const char* kThinLaneNames[kThinLanes] = {"snapshot", "stream", "voice", "cosmetic"};

/// Longest min_interval_ms and max_gap_ms: 16 bits of jiffies at HZ 1000 hold 65 s.
constexpr double kTimeMaxMs = 60000;

bool in_range(double value, double low, double high) {
  return std::isfinite(value) && value >= low && value <= high;
}

void keep(LaneEffect& lane, double share) { lane.keep = {share, share}; }

/// What passes of a lane in one direction, whatever the reason.
double kept(const LaneEffect& lane, uint32_t direction) {
  return lane.paused ? 0 : lane.keep[direction];
}

/// Silence that a table allows: 0 promises nothing, which is more than any number.
double gap(double max_gap_ms) { return max_gap_ms == 0 ? HUGE_VAL : max_gap_ms; }

std::string check_lane(const LaneEffect& lane, double max_gap_ms) {
  for (const double share : lane.keep) {
    if (!in_range(share, 0, 1)) return "keep must be 0 to 1";
  }
  if (!in_range(lane.min_interval_ms, 0, kTimeMaxMs)) return "min_interval_ms must be 0 to 60000";
  if (lane.min_interval_ms > gap(max_gap_ms)) return "min_interval_ms must not exceed max_gap_ms";
  return "";
}

std::string check_rung(const LadderEffects& effects, uint8_t rung) {
  if (!in_range(effects.max_gap_ms, 0, kTimeMaxMs)) return "max_gap_ms must be 0 to 60000";
  if (!in_range(effects.ce_share, 0, 1)) return "ce_share must be 0 to 1";
  for (const double threshold : effects.threshold) {
    if (!in_range(threshold, 0, 255)) return "threshold must be 0 to 255";
  }
  if (effects.refuse_joins != (rung >= kRungRefuseJoins)) {
    return "refuse_joins must be true on rungs 4 and 5 and false below";
  }
  for (uint32_t lane = 0; lane < kThinLanes; ++lane) {
    const std::string fault = check_lane(effects.lane[lane], effects.max_gap_ms);
    if (!fault.empty()) return std::string(kThinLaneNames[lane]) + ": " + fault;
  }
  return "";
}

}  // namespace

LadderTable default_ladder_table() {
  LadderTable table;
  // 1: the next snapshot replaces a lost one, so half of them cost the least. Whatever is
  // best-effort says so to the network (DSCP LE), and senders that understand ECN hear of it.
  keep(table[1].lane[kSnapshot], 0.5);
  for (LaneEffect& lane : table[1].lane) lane.lower_effort = true;
  table[1].ce_share = 0.5;

  // 2: at most 10 snapshots/s, which interpolation still hides; streams begin to give.
  table[2] = table[1];
  table[2].lane[kSnapshot].min_interval_ms = 100;
  keep(table[2].lane[kStream], 0.5);
  table[2].ce_share = 1;

  // 3: a match goes on without voice and effects.
  table[3] = table[2];
  keep(table[3].lane[kSnapshot], 0.25);
  table[3].lane[kVoice].paused = true;
  table[3].lane[kCosmetic].paused = true;

  // 4: nothing more is taken from those who play; nobody comes in.
  table[4] = table[3];
  table[4].refuse_joins = true;

  // 5: of best-effort only the proof of life remains, a snapshot per max_gap_ms. Standard below
  // priority 64 goes too: strangers have priority 0, connections 128 unless told otherwise.
  table[5] = table[4];
  keep(table[5].lane[kSnapshot], 0);
  table[5].lane[kStream].paused = true;
  table[5].threshold[kTierStandard] = 64;
  return table;
}

double least_keep(const LadderEffects& effects) {
  double least = 1;
  for (const LaneEffect& lane : effects.lane) {
    for (const double keep : lane.keep) least = std::min(least, lane.paused ? 0 : keep);
  }
  return least;
}

bool keeps_no_more(const LadderEffects& higher, const LadderEffects& lower) {
  for (uint32_t i = 0; i < kThinLanes; ++i) {
    const LaneEffect& high = higher.lane[i];
    const LaneEffect& low = lower.lane[i];
    for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
      if (kept(high, direction) > kept(low, direction)) return false;
    }
    if (low.paused && !high.paused) return false;
    if (low.lower_effort && !high.lower_effort) return false;
    if (high.min_interval_ms < low.min_interval_ms) return false;
  }
  for (uint32_t tier = 0; tier < kSheddableTiers; ++tier) {
    if (higher.threshold[tier] < lower.threshold[tier]) return false;
  }
  return gap(higher.max_gap_ms) >= gap(lower.max_gap_ms) && higher.ce_share >= lower.ce_share &&
         (higher.refuse_joins || !lower.refuse_joins);
}

std::string check_ladder_table(const LadderTable& table) {
  for (uint8_t rung = 0; rung < kRungs; ++rung) {
    const std::string fault = check_rung(table[rung], rung);
    if (!fault.empty()) return "rung " + std::to_string(rung) + ": " + fault;
  }
  LadderEffects nothing;
  nothing.max_gap_ms = table[0].max_gap_ms;
  if (!keeps_no_more(nothing, table[0])) return "rung 0: must shed and mark nothing";
  for (uint8_t rung = 1; rung < kRungs; ++rung) {
    if (keeps_no_more(table[rung], table[rung - 1])) continue;
    return "rung " + std::to_string(rung) + ": must not keep more of anything than rung " +
           std::to_string(rung - 1);
  }
  return "";
}

}  // namespace edgeshed::core
