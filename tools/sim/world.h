// One run: players, packet path, server and control plane of a scenario, a millisecond at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/sim/figures.h"
#include "tools/sim/scenario.h"

namespace edgeshed::sim {

struct Run {
  Figures figures{};
  std::vector<Sample> series;
};

/// Plays a scenario. The same seed gives the same figures, but for control_tick_max. Uses memory of
/// the thread (native_path.h): one run at a time in each.
Run run(const Scenario& scenario, Policy policy, std::uint64_t seed);

/// How far a level misses its rate: one connection that sends ten times as much as the level, whose
/// rate changes at 60 Hz; |passed - granted| / granted.
double quota_error(std::uint64_t seed);

}  // namespace edgeshed::sim
