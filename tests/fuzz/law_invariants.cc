#include "tests/fuzz/law_invariants.h"

#include <algorithm>
#include <cmath>

namespace edgeshed::test {
namespace {

using namespace core;

constexpr double kExact = 1e-9;

/// Keeps the first thing that does not hold.
class Faults {
 public:
  void unless(bool holds, const char* what, double value = 0) {
    if (holds || !text_.empty()) return;
    text_ = std::string(what) + ": " + std::to_string(value);
  }
  void range(double value, double low, double high, const char* what) {
    unless(std::isfinite(value) && value >= low && value <= high, what, value);
  }
  void sum(double value, const char* what) { range(value, 0, HUGE_VAL, what); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void check_demand(const ShardMemory& memory, const LawConfig& config, Faults& faults) {
  for (const ArrivalRate& rate : memory.rates.lane) {
    faults.sum(rate.per_s, "arrival rate");
    faults.sum(rate.variance, "variance of a rate");
    faults.sum(rate.farthest, "farthest count of a rate");
  }
  faults.range(memory.cost.scale, config.cost.scale_min, config.cost.scale_max, "cost scale");
  faults.unless(memory.cost.unit_us > 0, "cost unit", memory.cost.unit_us);
  faults.sum(memory.cost.unit_us, "cost unit");
  faults.range(memory.cost.base_share, 0, 1, "base share");
  faults.range(memory.tick_watch.factor, 1, config.tick_watch.factor_max, "tick factor");
  faults.sum(memory.demand.base, "base demand");
  for (const double share : memory.demand.tier) faults.sum(share, "demand of a tier");
  faults.sum(memory.signals.offered_cost_ratio, "offered cost ratio");
  faults.range(memory.state.pressure, 0, 2, "pressure");
}

void check_degree(const ShardMemory& memory, const ShardSample& sample, const LawConfig& config,
                  Faults& faults) {
  const Degree& now = memory.degree.now;
  faults.range(now.keep_standard, 0, 1, "keep of standard");
  faults.range(now.keep_best_effort, 0, 1, "keep of best-effort");
  const double gap_ms = affordable_gap_ms(
      memory.state.effects.max_gap_ms, sample.weights,
      best_effort_message_share(memory.rates, sample.lane_tiers, memory.demand), config.fair_share);
  DegreeInput input;
  input.demand = memory.demand;
  const ShardSignals& signals = memory.signals;
  const bool silent = memory.state.report != ReportState::fresh;
  // An age counts only while somebody vouches for it.
  const double age_ms = silent ? 0 : signals.running_tick_age_ms;
  const double over_ms = age_ms - signals.frame_budget_ms;
  input.backlog_ms = std::max({0.0, over_ms, signals.receive_queue_ms});
  input.sources_lost = sources_in(signals.lost);
  faults.unless(!silent || !sample.has_session || input.sources_lost > 0, "silent, and not lost");
  input.best_effort_reserve =
      gap_reserve(memory.rates, sample.lane_tiers, memory.demand, sample.weights, gap_ms);
  // Without costs the loop itself is all that says where standard has to be.
  if (!memory.demand.known) return;
  const Degree target = target_degree(input, config.degree);
  faults.unless(now.keep_standard <= target.keep_standard, "standard above its target",
                now.keep_standard - target.keep_standard);
  faults.unless(now.keep_best_effort <= target.keep_best_effort, "best-effort above its target",
                now.keep_best_effort - target.keep_best_effort);
  if (target.keep_standard >= 1) return;
  const double best_effort = memory.demand.tier[ES_TIER_best_effort];
  const double reserve = std::clamp(input.best_effort_reserve, 0.0, best_effort);
  faults.unless(now.keep_best_effort * best_effort <= reserve * (1 + kExact) + kExact,
                "best-effort beyond its gaps while standard is cut",
                now.keep_best_effort * best_effort - reserve);
}

void check_effects(const ShardMemory& memory, Faults& faults) {
  const LadderEffects& floor = memory.state.effects;
  const LadderEffects& effects = memory.effects;
  for (uint32_t i = 0; i < kThinLanes; ++i) {
    const LaneEffect& lane = effects.lane[i];
    faults.unless(lane.paused == floor.lane[i].paused, "paused, but not by the rung", i);
    faults.unless(lane.lower_effort == floor.lane[i].lower_effort, "marks are the rung's", i);
    faults.range(lane.min_interval_ms, 0, floor.lane[i].min_interval_ms, "interval");
    for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
      faults.range(lane.keep[direction], 0, 1, "keep of a lane");
      // While standard is cut best-effort is spent, and the table bounds nothing of it.
      const bool spent = memory.degree.now.keep_standard < 1;
      faults.unless(spent || lane.keep[direction] >= floor.lane[i].keep[direction] - kExact,
                    "a lane is below its table", lane.keep[direction]);
    }
  }
  for (uint32_t tier = 0; tier < kSheddableTiers; ++tier) {
    faults.range(effects.threshold[tier], 0, 255, "threshold");
  }
  faults.unless(effects.threshold == floor.threshold, "thresholds are the rung's");
  faults.unless(effects.refuse_joins == floor.refuse_joins, "joins are the rung's");
  faults.sum(effects.max_gap_ms, "gap");
  faults.unless(effects.max_gap_ms >= floor.max_gap_ms, "gap is shorter", effects.max_gap_ms);
  faults.range(effects.ce_share, 0, 1, "CE share");
}

}  // namespace

std::string law_fault(const ShardLaw& law, const ShardMemory& memory, const ShardSample& sample) {
  Faults faults;
  check_demand(memory, law.config(), faults);
  check_degree(memory, sample, law.config(), faults);
  check_effects(memory, faults);
  const double of_best_effort = memory.level[kTierBestEffort].per_s;
  faults.unless(memory.demand.known || of_best_effort == 0, "a level without costs",
                of_best_effort);
  for (const FairLevel& level : memory.level) {
    if (level.per_s != 0) faults.range(level.per_s, kLevelPerSMin, kLevelPerSMax, "level");
    const bool beside = memory.state.overridden && level.per_s != 0;
    faults.unless(!beside, "a level beside an operator's rung", level.per_s);
    faults.sum(level.granted, "granted");
    faults.sum(level.passed, "passed");
  }
  faults.unless(memory.state.rung <= kRungMax, "rung", memory.state.rung);
  faults.unless(memory.state.load_rung <= memory.state.rung, "load rung", memory.state.load_rung);
  return faults.text();
}

std::string rows_fault(const Model& model, const PlanRows& rows) {
  Faults faults;
  for (const Endpoint& endpoint : model.endpoints) {
    const es_plan_endpoint& row = rows.endpoints[endpoint.number];
    for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
      const uint16_t actions = es_lane_actions_of(&row, direction);
      faults.unless((row.drop_mask[direction] & row.pass_mask[direction]) == 0, "masks overlap");
      for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
        const uint8_t tier = es_lane_tier(endpoint.lane_tiers, lane);
        const bool dropped = (row.drop_mask[direction] >> lane & 1) != 0;
        faults.unless(!dropped || tier == ES_TIER_best_effort, "drop mask above best-effort", lane);
        faults.unless(tier != ES_TIER_critical || (actions >> (2 * lane) & 3) != ES_LANE_DROPS,
                      "critical is dropped by its lane", lane);
      }
    }
  }
  for (size_t i = 0; i < model.rooms.size(); ++i) {
    for (const es_room_rules& rules : rows.rooms[i].rules) {
      faults.unless((rules.drop_mask & 0x0f) == 0, "a lane without thinning is paused");
      for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
        const bool paused = (rules.drop_mask >> lane & 1) != 0;
        faults.unless((rules.keep_q16[lane] == 0) == paused, "keep and pause differ", lane);
        faults.unless(lane >= kFirstThinLane || rules.keep_q16[lane] == ES_KEEP_ALL,
                      "a lane without thinning is thinned", lane);
      }
      for (const es_level& level : rules.level) {
        const bool on = level.burst != 0;
        faults.unless(on == (level.rate_q16 != 0), "half a level");
        faults.unless(!on || level.burst >= kPacketCost, "a level below one packet", level.burst);
      }
    }
  }
  return faults.text();
}

}  // namespace edgeshed::test
