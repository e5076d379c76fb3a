// The level of a tier: what a connection of weight 1 gets per second, so that the tier as a whole
// passes what the degree keeps. Weighted max-min: whoever asks for less than the level gets all,
// the others get the same. Needs no number per connection. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace edgeshed::core {

struct FairShareConfig {
  /// Follows over this long who takes part: some messages of each, at the lowest levels that are
  /// useful, and short beside the second over which a tick p99 remembers.
  double follow_s = 0.2;

  /// Best-effort is thinned to this factor of what is kept, evenly, and the level takes the rest:
  /// from those who ask for most. At 1 the level would have nothing to take, and a flooder at twice
  /// its contract would keep twice a fair share.
  double thinning_slack = 1.15;

  /// Share of the loop that guaranteed gaps may take. 603 players at one message in 250 ms were .7
  /// of the demo's loop at ten times its load, and left nothing for standard.
  double gap_share_max = 0.2;

  /// The longest that a gap becomes for it, in ms: what a player takes for a broken connection.
  double gap_ms_max = 2000;

  bool operator==(const FairShareConfig&) const = default;
};

/// Beyond it a level's clock would overflow within months.
inline constexpr double kLevelPerSMax = 1e5;
/// Below it a packet waits 10 s.
inline constexpr double kLevelPerSMin = 0.1;

/// A level and what was learned of those whom it limits. Value type.
struct FairLevel {
  double per_s = 0;  ///< tokens per second and weight; 0: no level, everything passes

  // Private to step().
  double granted = 0;  ///< integral of per_s, and of what passed under it, over about follow_s
  double passed = 0;
  uint64_t passed_ever = 0;
  uint64_t at_ns = 0;              ///< 0: never stepped
  uint64_t begun_ns = 0;           ///< of the level that is on
  double taking_part_per_msg = 0;  ///< as last known, per message/s that is offered; 0: never
};

struct FairShareInput {
  double keep = 1;            ///< share of the tier to pass; from 1 on there is no level
  double offered_per_s = 0;   ///< messages of the tier
  uint64_t passed_ever = 0;   ///< of those, passed, ever
  double weights = 0;         ///< sum over all connections, whether they send or not
  double least_per_s = 0;     ///< the level is never below: a guaranteed gap
  double contract_per_s = 0;  ///< what one connection may send at most; 0: not known
};

/// One tick. With n = passed / granted, the weights that would have passed as much if all took
/// their whole share, the level becomes keep * offered / n. What passes is concave in the level, so
/// this comes to the max-min level from either side without crossing it. n begins as what it was
/// the last time, in proportion to what is offered (of 603 players who were connected to the demo
/// 63 played: levels that hover at the budget began at a tenth of what they should be); the first
/// time as those who make up what is offered if each sends most of its contract, or, without one,
/// as `weights`. No level: without offer, without connections, or when all is kept.
void step(FairLevel& level, const FairShareInput& input, const FairShareConfig& config,
          uint64_t now_ns);

/// Empty when sound; otherwise one line that begins with the field.
std::string check_fair_share_config(const FairShareConfig& config);

/// The longest silence that the budget allows: `max_gap_ms`, or more when the gaps of `connections`
/// would cost more than gap_share_max of the loop; `message_share` is the share of one message per
/// second. 0 (no guarantee) stays.
double affordable_gap_ms(double max_gap_ms, double connections, double message_share,
                         const FairShareConfig& config);

}  // namespace edgeshed::core
