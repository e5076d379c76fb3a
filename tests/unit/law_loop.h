// The loop closed: players, a packet path that passes exactly what the law lets pass, and a game
// server that works it off. Fluid but for the noise of arrivals. Only for tests.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "userspace/core/model.h"
#include "userspace/core/shard_law.h"

namespace edgeshed::core {

struct LawLoop {
  static constexpr double kTickMs = 1000.0 / 60;

  /// Players that send alike.
  struct Group {
    double players = 0;
    std::array<double, ES_LANES> per_s = {};  ///< messages of each
    double weight = 1;
  };

  explicit LawLoop(const LawConfig& config = {}, uint32_t seed = 1)
      : law(config), random(seed), memory(law.begin()) {
    sample.signals.frame_budget_ms = 33.3;
    sample.signals.room_capacity = 10;
    sample.lane_tiers = default_lane_tiers();
    sample.has_session = true;
  }

  // The world. Costs are those that are really spent.
  std::vector<Group> groups;
  std::array<double, ES_LANES> cost_us = {};
  double base_share = 0;
  double slowness = 1;
  double load = 1;  ///< factor of all rates
  bool poisson = false;
  bool reports = true;

  const ShardLaw law;
  std::mt19937 random;
  ShardMemory memory;
  ShardSample sample;
  double now_ms = 1000;
  std::optional<RungChange> change;    ///< of the last tick
  std::array<double, ES_TIERS> spent;  ///< share of the loop, by what passed in the last tick
  std::array<double, ES_TIERS> wanted;

  uint64_t now_ns() const { return static_cast<uint64_t>(now_ms * 1e6); }
  double all_spent() const { return (base_share + spent[0] + spent[1] + spent[2]) * slowness; }

  /// Before the first tick: another time than the second that all begin at.
  void begin_at(double ms) {
    now_ms = ms;
    next_ms_ = ms + 10;
  }
  void run(double seconds) {
    run(seconds, [] {});
  }
  /// Calls `look` after each tick.
  template <typename Look>
  void run(double seconds, Look look) {
    for (double end_ms = now_ms + 1000 * seconds; now_ms < end_ms;) {
      tick();
      look();
    }
  }

  /// What arrives and passes in one control tick, what the server does of it, and the law.
  void tick() {
    spent = wanted = {};
    sample.weights = 0;
    std::array<double, ES_LANES> more = {};
    for (const Group& group : groups) {
      sample.weights += group.players * group.weight;
      pass(group, more);
    }
    double work_ms = 0;
    for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
      passed_[lane] += more[lane];
      work_ms += more[lane] * cost_us[lane] / 1000;
      sample.arrived[lane] = static_cast<uint64_t>(arrived_[lane]);
      sample.passed[lane] = static_cast<uint64_t>(passed_[lane]);
    }
    serve(work_ms);
    change = law.step(memory, sample, now_ns());
  }

 private:
  double arrivals(double expected) {
    if (!poisson || expected <= 0) return expected;
    return std::poisson_distribution<int>(expected)(random);
  }

  /// Share of a lane's messages of one player that thinning passes.
  double thinned(uint32_t lane, double per_s) const {
    if (lane < kFirstThinLane) return 1;
    if (es_lane_tier(sample.lane_tiers, static_cast<uint8_t>(lane)) == ES_TIER_critical) return 1;
    const LaneEffect& effect = memory.effects.lane[lane - kFirstThinLane];
    if (effect.paused) return 0;
    const double gap_ms = memory.effects.max_gap_ms;
    const double least = gap_ms > 0 ? std::min(1.0, 1000 / gap_ms / per_s) : 0;
    double most = 1;
    if (effect.min_interval_ms > 0) most = std::min(1.0, 1000 / effect.min_interval_ms / per_s);
    return std::min(most, std::max(effect.keep[ES_IN], least));
  }

  void pass(const Group& group, std::array<double, ES_LANES>& more) {
    std::array<double, ES_TIERS> per_s = {};
    std::array<double, ES_LANES> share = {};
    for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
      const double rate = group.per_s[lane] * load;
      if (rate <= 0) continue;
      share[lane] = thinned(lane, rate);
      per_s[es_lane_tier(sample.lane_tiers, static_cast<uint8_t>(lane))] += rate * share[lane];
    }
    for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
      const double rate = group.per_s[lane] * load;
      if (rate <= 0) continue;
      const uint32_t tier = es_lane_tier(sample.lane_tiers, static_cast<uint8_t>(lane));
      const double level = tier == ES_TIER_critical ? 0 : memory.level[tier - 1].per_s;
      if (level > 0 && per_s[tier] > 0) {
        share[lane] *= std::min(1.0, level * group.weight / per_s[tier]);
      }
      const double came = arrivals(group.players * rate * kTickMs / 1000);
      arrived_[lane] += came;
      more[lane] += came * share[lane];
      wanted[tier] += came * cost_us[lane] / 1000 / kTickMs;
      spent[tier] += came * share[lane] * cost_us[lane] / 1000 / kTickMs;
    }
  }

  /// One control tick of a loop that takes up all that waits at the begin of each of its own.
  void serve(double work_ms) {
    constexpr int kParts = 16;
    for (int part = 0; part < kParts; ++part) {
      now_ms += kTickMs / kParts;
      waiting_ms_ += work_ms / kParts;
      while (now_ms >= next_ms_) {
        const double length_ms =
            (base_share * sample.signals.frame_budget_ms + waiting_ms_) * slowness;
        ticks_.push_back({next_ms_, next_ms_ + length_ms});
        waiting_ms_ = 0;
        next_ms_ += std::max(length_ms, sample.signals.frame_budget_ms);
      }
    }
    while (!ticks_.empty() && ticks_.front().end_ms < now_ms - 1000) ticks_.pop_front();
    sample.done = {};
    if (reports) report();
  }

  void report() {
    ShardSignals& signals = sample.signals;
    signals.running_tick_age_ms = signals.tick_p99_ms = 0;
    for (Tick& tick : ticks_) {
      if (tick.end_ms > now_ms) {
        signals.running_tick_age_ms = now_ms - tick.begin_ms;
        signals.reported_at_ns = now_ns();
        continue;
      }
      signals.tick_p99_ms = std::max(signals.tick_p99_ms, tick.end_ms - tick.begin_ms);
      if (tick.reported) continue;
      tick.reported = true;
      busy_ms_ += tick.end_ms - tick.begin_ms;
      sample.done = {
          static_cast<uint64_t>(tick.end_ms * 1e6), static_cast<uint64_t>(busy_ms_ * 1e6), {}};
      signals.reported_at_ns = std::max(signals.reported_at_ns, sample.done.reported_ns);
    }
  }

  struct Tick {
    double begin_ms = 0;
    double end_ms = 0;
    bool reported = false;
  };

  std::array<double, ES_LANES> arrived_ = {};
  std::array<double, ES_LANES> passed_ = {};
  std::deque<Tick> ticks_;
  double next_ms_ = 1010;
  double waiting_ms_ = 0;
  double busy_ms_ = 0;
};

/// 100 players of a plain game at `costs` us a message: .1 of the loop by itself, at load 1 .06
/// critical, .2 standard and .3 best-effort.
inline void add_plain_game(LawLoop& loop) {
  LawLoop::Group players;
  players.players = 100;
  players.per_s[ES_LANE_event] = 3;
  players.per_s[ES_LANE_command] = 10;
  players.per_s[ES_LANE_snapshot] = 10;
  players.per_s[ES_LANE_voice] = 5;
  loop.groups.push_back(players);
  loop.cost_us.fill(200);
  loop.base_share = 0.1;
}

/// A law that is told those costs.
inline LawConfig plain_game_config() {
  LawConfig config;
  config.cost.lane_us.fill(200);
  config.cost.base_share = 0.1;
  return config;
}

}  // namespace edgeshed::core
