// The law under random configurations and lives with fixed seeds: what must hold after every tick,
// and what must come true in time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/fuzz/law_invariants.h"
#include "tests/unit/law_loop.h"

namespace edgeshed::core {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  uint32_t below(uint32_t limit) { return engine_() % limit; }
  bool one_in(uint32_t n) { return below(n) == 0; }
  double between(double low, double high) {
    return low + (high - low) * std::uniform_real_distribution<double>(0, 1)(engine_);
  }
  /// As often between 1 and 10 as between 10 and 100.
  double scaled(double low, double high) { return low * std::pow(high / low, between(0, 1)); }

 private:
  std::mt19937 engine_;
};

LadderTable random_ladder(Random& random) {
  LadderTable table = default_ladder_table();
  for (uint8_t rung = 1; rung < kRungs; ++rung) {
    LadderEffects& effects = table[rung];
    if (rung > 1) effects = table[rung - 1];
    for (LaneEffect& lane : effects.lane) {
      for (double& keep : lane.keep) keep *= random.one_in(3) ? random.between(0, 1) : 1;
      if (random.one_in(6)) lane.paused = true;
      if (random.one_in(6)) lane.min_interval_ms = std::max(lane.min_interval_ms, 60.0);
    }
    for (double& threshold : effects.threshold) {
      if (random.one_in(8)) threshold = std::max(threshold, random.between(0, 128));
    }
    effects.refuse_joins = rung >= kRungRefuseJoins;
  }
  return table;
}

/// Of a plain game, or of one of which less is known.
LawConfig random_config(Random& random) {
  LawConfig config = plain_game_config();
  if (random.one_in(3)) config.cost.lane_us = {};
  if (random.one_in(3)) config.cost.base_share = 0;
  if (random.one_in(2)) config.ladder = random_ladder(random);
  ControlConfig& control = config.control;
  control.exit_ratio = random.between(0.5, 1);
  control.hold_s = random.between(0.1, 2);
  control.next_hold_s = random.between(0.1, 1);
  control.confirm_s = random.between(0, 0.5);
  control.reentry_window_s = random.between(0, 20);
  control.hold_factor_max = random.between(1, 8);
  control.best_effort_ramp_per_s = random.between(0.1, 2);
  control.standard_ramp_per_s = random.between(0.1, 2);
  control.report_timeout_s = random.between(0.2, 3);
  config.degree.budget_share = random.between(0.5, 1);
  config.degree.backlog_span_ms = random.between(20, 500);
  config.degree.missing_signal_share = random.between(0, 0.3);
  config.degree.large_cut = random.between(0.01, 0.3);
  config.fair_share.follow_s = random.between(0.05, 2);
  config.fair_share.thinning_slack = random.between(1, 2);
  config.fair_share.gap_share_max = random.between(0.01, 0.5);
  return config;
}

/// A shard about which anything may be sampled: counters that jump, reports that come late, twice
/// or never, a server that lies, clocks that stand still, an operator.
struct Chaos {
  Chaos(Random& source, const LawConfig& config)
      : random(source), law(config), memory(law.begin()) {
    sample.signals.frame_budget_ms = random.between(5, 200);
    sample.signals.room_capacity = 1 + random.below(10);
    sample.lane_tiers = default_lane_tiers();
    for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
      const auto tier = static_cast<uint8_t>(random.below(ES_TIERS));
      if (random.one_in(3)) sample.lane_tiers = with_lane_tier(sample.lane_tiers, lane, tier);
      per_s[lane] = random.one_in(4) ? 0 : random.scaled(1, 3000);
    }
  }

  void tick() {
    const double elapsed_s = random.one_in(200) ? random.scaled(0.1, 100) : 1.0 / 60;
    if (!random.one_in(300)) now_ns += static_cast<uint64_t>(elapsed_s * 1e9);
    if (random.one_in(60)) per_s[random.below(ES_LANES)] = random.scaled(0.1, 1e5);
    for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
      const auto more = static_cast<uint64_t>(per_s[lane] * elapsed_s * random.between(0, 2));
      sample.arrived[lane] += more;
      sample.passed[lane] += static_cast<uint64_t>(static_cast<double>(more) * passing);
    }
    if (random.one_in(500)) sample.passed = sample.arrived = {};
    if (random.one_in(100)) passing = random.between(0, 1);
    if (random.one_in(100)) sample.weights = random.one_in(4) ? 0 : random.scaled(0.01, 1e5);
    report();
    operate();
    law.step(memory, sample, now_ns);
  }

  void report() {
    sample.done = {};
    if (random.one_in(200)) silent = !silent;
    if (random.one_in(200)) sample.has_session = !sample.has_session;
    if (silent || random.one_in(5)) return;
    busy_ns += static_cast<uint64_t>(random.between(0, 2) * 1e9 / 60);
    if (random.one_in(300)) busy_ns = 0;
    const auto late_ns = static_cast<uint64_t>(random.scaled(1e5, 1e8));
    sample.done.reported_ns = now_ns - std::min(now_ns - 1, late_ns);
    sample.done.busy_ns = busy_ns;
    ShardSignals& signals = sample.signals;
    signals.reported_at_ns = sample.done.reported_ns;
    const bool lies = random.one_in(100);
    signals.tick_p99_ms = lies ? 6e5 : random.between(0, 1.5) * signals.frame_budget_ms;
    signals.running_tick_age_ms =
        random.one_in(2) ? 0 : random.between(0, 1.2) * signals.tick_p99_ms;
    signals.ring_occupancy = random.one_in(10) ? random.between(0, 1) : 0;
    signals.room_count = random.below(12);
  }

  void operate() {
    if (random.one_in(600)) {
      const uint64_t until_ns = random.one_in(2) ? 0 : now_ns + 2'000'000'000;
      ShardController::force(memory.state, static_cast<uint8_t>(random.below(kRungs)), until_ns);
    }
    if (random.one_in(300)) ShardController::clear_override(memory.state);
  }

  Random& random;
  const ShardLaw law;
  ShardMemory memory;
  ShardSample sample;
  std::array<double, ES_LANES> per_s = {};
  double passing = 1;
  bool silent = false;
  uint64_t busy_ns = 0;
  uint64_t now_ns = 1'000'000'000;
};

/// Two rooms of the shard, one with a level of its own, behind an endpoint of these lanes.
Model model_of(const LawConfig& config, uint16_t lane_tiers, Random& random) {
  Model model;
  model.law = config;
  model.shards.resize(1);
  model.rooms.resize(2);
  model.rooms[0].name = model.rooms[1].name = "room";
  model.rooms[1].level[ES_IN][random.below(kSheddableTiers)].tokens_per_s = 30;
  Endpoint endpoint;
  endpoint.name = "endpoint";
  endpoint.number = 1;
  endpoint.port = 7777;
  endpoint.mode = Mode::enforce;
  endpoint.lane_tiers = lane_tiers;
  endpoint.rooms = {0, 1};
  endpoint.stranger_tier_cap = static_cast<uint8_t>(random.below(ES_TIERS));
  model.endpoints.push_back(endpoint);
  return model;
}

TEST(LawProperty, TheInvariantsHoldAfterEveryTick) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const LawConfig config = random_config(random);
    Chaos chaos(random, config);
    const Model model = model_of(config, chaos.sample.lane_tiers, random);
    PlanRows rows(2, 2, 1);
    PlanTiming timing;
    for (int tick = 0; tick < 900; ++tick) {
      chaos.tick();
      ASSERT_EQ(test::law_fault(chaos.law, chaos.memory, chaos.sample), "")
          << "seed " << seed << " tick " << tick;
      ShardState state = chaos.memory.state;
      state.effects = chaos.memory.effects;
      const TierLevels levels = {chaos.memory.level[0].per_s, chaos.memory.level[1].per_s};
      PlanExtras extras;
      extras.levels = std::span(&levels, 1);
      timing.now_jiffies = chaos.now_ns / 4'000'000;
      fill_plan_rows(model, std::span(&state, 1), timing, rows.rooms, rows, extras);
      ASSERT_EQ(test::rows_fault(model, rows), "") << "seed " << seed << " tick " << tick;
    }
  }
}

bool whole(const ShardMemory& memory) {
  for (const LaneEffect& lane : memory.effects.lane) {
    if (lane.paused || lane.keep[ES_IN] < 1 || lane.keep[ES_OUT] < 1) return false;
    if (lane.min_interval_ms > 0) return false;
  }
  return memory.state.rung == 0 && memory.level[0].per_s == 0 && memory.level[1].per_s == 0 &&
         memory.effects.threshold == std::array<double, kSheddableTiers>{} &&
         !memory.effects.refuse_joins && memory.effects.ce_share == 0;
}

TEST(LawProperty, FromAnyStateCalmReleasesEverything) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    const LawConfig config = random_config(random);
    Chaos chaos(random, config);
    for (uint32_t ticks = 100 + random.below(900); ticks > 0; --ticks) chaos.tick();
    ShardController::clear_override(chaos.memory.state);
    LawLoop loop(config, seed);
    add_plain_game(loop);
    loop.load = 0.3;
    loop.memory = chaos.memory;
    loop.begin_at(static_cast<double>(chaos.now_ns) / 1e6);
    // Two holds of 16 s at most, two ramps of 10 s, five rungs, and costs that are learned anew.
    loop.run(90);
    ASSERT_TRUE(whole(loop.memory)) << "seed " << seed << " rung " << int{loop.memory.state.rung}
                                    << " rho " << loop.memory.signals.offered_cost_ratio;
    loop.run(5, [&] { ASSERT_TRUE(whole(loop.memory)) << "seed " << seed; });
  }
}

/// Players of random habits, whose costs are known.
void add_random_game(LawLoop& loop, Random& random) {
  loop.base_share = 0.1;
  for (uint32_t groups = 1 + random.below(4); groups > 0; --groups) {
    LawLoop::Group group;
    group.players = 5 + random.below(100);
    group.weight = random.one_in(3) ? random.between(0.5, 4) : 1;
    group.per_s[ES_LANE_event] = random.between(0, 2);
    group.per_s[ES_LANE_command] = random.between(5, 30);
    group.per_s[ES_LANE_snapshot] = random.between(5, 30);
    if (random.one_in(2)) group.per_s[ES_LANE_voice] = random.between(1, 20);
    if (random.one_in(3)) group.per_s[ES_LANE_stream] = random.between(1, 20);
    loop.groups.push_back(group);
  }
  // At load 1 all of it takes .6 of the loop.
  double per_s = 0;
  for (const LawLoop::Group& group : loop.groups) {
    for (const double rate : group.per_s) per_s += group.players * rate;
  }
  loop.cost_us.fill(0.6 * 1e6 / per_s);
}

LawLoop random_loop(uint32_t seed, Random& random) {
  LawLoop game(plain_game_config(), seed);
  add_random_game(game, random);
  LawConfig config;
  config.cost.lane_us = game.cost_us;
  config.cost.base_share = game.base_share;
  LawLoop loop(config, seed);
  loop.groups = game.groups;
  loop.cost_us = game.cost_us;
  loop.base_share = game.base_share;
  return loop;
}

/// Share of the loop, over the second and third second of four loads each, that what passes costs
/// beyond what it may: the budget, or what is not the law's to shed.
double worst_overspending(uint32_t seeds) {
  double worst = 0;
  for (uint32_t seed = 1; seed <= seeds; ++seed) {
    Random random(seed);
    LawLoop loop = random_loop(seed, random);
    for (int phase = 0; phase < 4; ++phase) {
      loop.load = random.scaled(0.3, 10);
      loop.run(1);
      double sum = 0;
      int ticks = 0;
      loop.run(2, [&] {
        sum += loop.all_spent();
        ++ticks;
      });
      const double critical = loop.base_share + loop.wanted[ES_TIER_critical];
      worst = std::max(worst, sum / ticks - std::max(0.9, critical));
    }
  }
  return worst;
}

TEST(LawProperty, WhatPassesHardlyOverrunsTheLoopAfterASecond) {
  EXPECT_LT(worst_overspending(60), 0.15);
}

// Not yet: .14, as a rung's table keeps more than the degree asks for (see the next), and where two
// lanes have different shares in the table, the one above the common share is not made up for.
TEST(LawProperty, DISABLED_WhatPassesCostsNoMoreThanTheBudgetAfterASecond) {
  EXPECT_LT(worst_overspending(60), 0.02);
}

// Not yet: the order holds for the degree (law_invariants.h), but the rung bounds what it may take
// from best-effort, and nothing bounds what it takes from standard. At 1.99 of the loop, rung 4,
// standard was cut to .79 while .23 of best-effort passed, of which gaps are .08.
TEST(LawProperty, DISABLED_NoBestEffortBeyondItsGapsPassesWhileStandardIsCut) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    LawLoop loop = random_loop(seed, random);
    for (int phase = 0; phase < 4; ++phase) {
      loop.load = random.scaled(0.3, 10);
      loop.run(1);
      loop.run(2, [&] {
        const ShardMemory& memory = loop.memory;
        const double best_effort = memory.demand.tier[ES_TIER_best_effort];
        // What comes back from a load that is gone is all within its gaps.
        if (memory.degree.now.keep_standard >= 1 || memory.signals.offered_cost_ratio < 1) return;
        const double reserve = gap_reserve(memory.rates, loop.sample.lane_tiers, memory.demand,
                                           loop.sample.weights, memory.effects.max_gap_ms);
        ASSERT_LE(loop.spent[ES_TIER_best_effort], reserve + 0.02 * best_effort)
            << "seed " << seed << " rung " << int{memory.state.rung} << " standard "
            << memory.degree.now.keep_standard << " rho " << memory.signals.offered_cost_ratio;
      });
      if (testing::Test::HasFailure()) return;
    }
  }
}

/// How often a value turns round after it moved by more than `least`.
class Turns {
 public:
  void look(double value) {
    if (rises_) {
      extreme_ = std::max(extreme_, value);
      if (value < extreme_ - kLeast) turn(value);
    } else {
      extreme_ = std::min(extreme_, value);
      if (value > extreme_ + kLeast) turn(value);
    }
  }
  /// The first movement is none.
  int count() const { return std::max(0, count_ - 1); }

 private:
  static constexpr double kLeast = 0.15;
  void turn(double value) {
    ++count_;
    rises_ = !rises_;
    extreme_ = value;
  }
  bool rises_ = true;
  double extreme_ = -1;
  int count_ = 0;
};

/// Turns of the keep that turned more often, in 15 s of a load that only varies by chance.
int turns_of(uint32_t seed) {
  Random random(seed);
  LawLoop loop = random_loop(seed, random);
  loop.poisson = true;
  loop.load = random.scaled(0.8, 6);
  loop.run(1);
  Turns standard;
  Turns best_effort;
  loop.run(15, [&] {
    standard.look(loop.memory.degree.now.keep_standard);
    best_effort.look(loop.memory.degree.now.keep_best_effort);
  });
  return std::max(standard.count(), best_effort.count());
}

TEST(LawProperty, AStationaryLoadIsHardlyHunted) {
  constexpr uint32_t kRuns = 100;
  uint32_t turns = 0;
  for (uint32_t seed = 1; seed <= kRuns; ++seed) turns += static_cast<uint32_t>(turns_of(seed));
  EXPECT_LE(turns, kRuns * 3 / 2) << "in 15 s each";
}

// Not yet: a rate jumps by chance once in half a minute, and decays too slowly for the cut to be
// undone within confirm_s.
TEST(LawProperty, DISABLED_AStationaryLoadTurnsOnce) {
  for (uint32_t seed = 1; seed <= 100; ++seed) EXPECT_LE(turns_of(seed), 1) << "seed " << seed;
}

}  // namespace
}  // namespace edgeshed::core
