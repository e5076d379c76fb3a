// What arrives, and what it costs: arrival rates per room and lane, the cost of a message, and from
// both the offered cost ratio rho of a shard, split by tier. The leading signal: it is there before
// the first tick is late. Must not decide what is shed (degree.h does), nor read a clock.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "maps/lanes.h"
#include "maps/types.h"

namespace edgeshed::core {

struct CostConfig {
  /// Microseconds of the shard's loop per message of a lane. 0: not known; then the mean of those
  /// that are given, and where none is, one cost for all that is learned.
  std::array<double, ES_LANES> lane_us = {};

  /// Share of the loop that is spent without any message. 0: not known; then it is learned.
  double base_share = 0;

  /// Arrival rates follow with this time constant: longer than the 33 ms between the packets of a
  /// 30 Hz client, shorter than the time in which a queue becomes visible...
  double rate_tau_s = 0.15;

  /// ...and jump when a step's count is this many sigma of a Poisson count away: chance alone does
  /// so once in 16,000 steps. But only if it is further away than the lane's counts have been of
  /// late: clients that ask again in step make a burst twice a second, and no new load.
  double rate_jump_sigma = 4;

  /// Clients that send in step, or in frames, vary more than chance does. Their rates follow more
  /// slowly, by the factor that their sigma is above a Poisson count's, up to this.
  double rate_slow_max = 8;

  /// Costs that rise are believed quickly, since shedding too late is worse than too much...
  double scale_gain_up = 0.6;
  /// ...and costs that fall slowly.
  double scale_gain_down = 0.4;

  /// Bounds of the scale of given costs. Beyond them the costs, not the load, are wrong.
  double scale_min = 0.1;
  double scale_max = 10;

  /// Costs are compared over this long: seven ticks of a 30 Hz server, of which one may be counted
  /// on the wrong side.
  double window_s = 0.25;

  bool operator==(const CostConfig&) const = default;
};

/// Empty when sound; otherwise one line that begins with the field.
std::string check_cost_config(const CostConfig& config);

/// Messages per lane.
using LaneCounts = std::array<uint64_t, ES_LANES>;

/// Rate of a counter that only grows.
struct ArrivalRate {
  double per_s = 0;
  uint64_t ever = 0;
  uint64_t at_ns = 0;       ///< 0: never stepped
  double variance = 0;      ///< of the counts of a step, over about a second
  double before_jump = -1;  ///< rate before the last step, if that was a jump; else below 0
  double farthest = 0;      ///< count that was farthest away, of the last seconds
};

/// One sample. The first, and one of a counter that went back, only begin; without time nothing
/// changes.
void step(ArrivalRate& rate, uint64_t ever, uint64_t now_ns, const CostConfig& config);

/// What arrives for one room, counted after contract drops and before ladder and fair-share drops:
/// a flooder is no demand, and what is shed still is.
struct RoomDemand {
  std::array<ArrivalRate, ES_LANES> lane;
};

void step(RoomDemand& room, std::span<const uint64_t, ES_LANES> arrived_ever, uint64_t now_ns,
          const CostConfig& config);

/// What a shard did: of its report, and what passed to its rooms up to then. All but the time ever.
struct ShardWork {
  uint64_t reported_ns = 0;
  uint64_t busy_ns = 0;
  LaneCounts passed = {};
};

/// What is known of a shard's costs. Value type; only observe_cost() writes it.
struct CostState {
  bool known = false;  ///< rho may be computed
  double scale = 1;    ///< of the costs that are given, or of unit_us
  double unit_us = 1;  ///< learned cost of any message; stays 1 where costs are given
  double base_share = 0;

  // Private to observe_cost().
  bool begun = false;
  ShardWork begin;         ///< of the window
  ShardWork last;          ///< the last report
  bool saturated = false;  ///< between some two reports of the window
  double learned_s = 0;
  double learned_busy_s = 0;
  double learned_cost_s = 0;  ///< at 1 us each
  /// Exponentially weighted sums over windows: number, cost x and busy share y as their shares.
  struct {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  } sums;
};

/// State to begin with: known at once where any cost is given.
CostState initial_cost(const CostConfig& config);

/// Takes a report; looks at whole windows only. In each,
///   observed = (busy share - base) / (cost share of what passed), s += g (observed - s).
/// - Where no cost is given, the unit is learned from the first second of reports in which messages
///   passed; until then nothing is known. A scale that leaves its bounds is moved into the unit.
/// - A base that is not given is the intercept of busy over cost, over the last seconds, once the
///   cost has varied enough; until then 0, so that all work counts as caused by messages. When the
///   slope says that the learned unit is wrong by a factor of 2, it is taken instead. Without this
///   a server that works much for few players would be shed as soon as more of them come, and what
///   is shed would hold the mistake.
/// - A window with few messages stays open longer: costs that are far too high let few pass.
/// - A window in which the loop was saturated, if only between two reports, says no more than that
///   costs are no lower: it raises the scale or is left out.
void observe_cost(CostState& state, const ShardWork& work, const CostConfig& config);

/// What is offered to a shard, as shares of the time that its loop has.
struct ShardDemand {
  bool known = false;
  double base = 0;
  std::array<double, ES_TIERS> tier = {};

  /// rho = sum(rate * cost * scale) + base; 0 while costs are not known (the signal is missing).
  double offered_cost_ratio() const;
};

/// Of a shard without rooms.
ShardDemand begin_demand(const CostState& state);

/// Adds a room's rates. `lane_tiers` as in es_lane_tier().
void add_room(ShardDemand& demand, const RoomDemand& room, uint16_t lane_tiers,
              const CostState& state, const CostConfig& config);

/// Cost of a message of a lane before scale and unit, in us.
double lane_cost_us(const CostConfig& config, uint32_t lane);

}  // namespace edgeshed::core
