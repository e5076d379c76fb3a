// The level as a fixed point of what passes. Only arithmetic on its arguments.
#include "userspace/core/fair_share.h"

#include <algorithm>
#include <cmath>

#include "userspace/core/time_units.h"

namespace edgeshed::core {
namespace {

constexpr double kPauseS = 1;

/// What passed since the last step, and under which level, into the two memories.
void remember(FairLevel& level, uint64_t passed_ever, double elapsed_s, double follow_s) {
  // A counter that went back begins anew.
  const uint64_t passed = passed_ever >= level.passed_ever ? passed_ever - level.passed_ever : 0;
  const double kept = std::exp(-elapsed_s / follow_s);
  level.granted = level.granted * kept + level.per_s * elapsed_s;
  level.passed = level.passed * kept + static_cast<double>(passed);
}

/// Nobody can take part with more than all weights, and at least one connection does.
double taking_part(const FairLevel& level, const FairShareInput& input,
                   const FairShareConfig& config) {
  const double least = std::min(1.0, input.weights);
  if (level.granted > 0) return std::clamp(level.passed / level.granted, least, input.weights);
  double part = input.weights;
  if (level.taking_part_per_msg > 0) {
    part = level.taking_part_per_msg * input.offered_per_s;
  } else if (input.contract_per_s > 0) {
    // Contracts leave some room above what is sent.
    part = config.thinning_slack * input.offered_per_s / input.contract_per_s;
  }
  return std::clamp(part, least, input.weights);
}

}  // namespace

void step(FairLevel& level, const FairShareInput& input, const FairShareConfig& config,
          uint64_t now_ns) {
  const bool begun = level.at_ns != 0 && level.per_s > 0;
  if (begun && now_ns > level.at_ns) {
    const double elapsed_s = static_cast<double>(now_ns - level.at_ns) / kNsPerS;
    // After a pause of the host or of the daemon nothing is known about the time between.
    if (elapsed_s < kPauseS) remember(level, input.passed_ever, elapsed_s, config.follow_s);
  }
  level.passed_ever = input.passed_ever;
  level.at_ns = std::max({level.at_ns, now_ns, uint64_t{1}});
  if (input.keep >= 1 || input.offered_per_s <= 0 || input.weights <= 0) {
    level.per_s = level.granted = level.passed = 0;
    return;
  }
  const bool begins = level.per_s <= 0;
  if (begins) level.begun_ns = level.at_ns;
  const double part = taking_part(level, input, config);
  level.per_s = std::max(input.keep * input.offered_per_s / part, input.least_per_s);
  level.per_s = std::clamp(level.per_s, kLevelPerSMin, kLevelPerSMax);
  if (begins) {
    // Until some time has passed under it this stands: the first packets come late.
    level.granted = level.per_s * config.follow_s;
    level.passed = level.granted * part;
    return;
  }
  const double on_s = static_cast<double>(level.at_ns - level.begun_ns) / kNsPerS;
  if (on_s >= 2 * config.follow_s) level.taking_part_per_msg = part / input.offered_per_s;
}

std::string check_fair_share_config(const FairShareConfig& config) {
  if (config.thinning_slack < 1) return "thinning_slack must be 1 or more";
  return "";
}

double affordable_gap_ms(double max_gap_ms, double connections, double message_share,
                         const FairShareConfig& config) {
  if (max_gap_ms <= 0) return max_gap_ms;
  const double affordable_ms = 1000 * connections * message_share / config.gap_share_max;
  return std::clamp(affordable_ms, max_gap_ms, std::max(max_gap_ms, config.gap_ms_max));
}

}  // namespace edgeshed::core
