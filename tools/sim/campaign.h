// Many runs: scenarios by seeds, on several threads, with results in the order that they were asked
// for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tools/sim/scenario.h"
#include "tools/sim/world.h"

namespace edgeshed::sim {

inline constexpr std::uint32_t kSeedsMax = 1000;

struct Job {
  const Scenario* scenario = nullptr;
  Policy policy = Policy::edgeshed;
  std::uint64_t seed = 1;
};

struct Result {
  Job job;
  Figures figures{};
  std::vector<Sample> series;  ///< of seed 1 only: a thousand seeds would not fit into memory
};

/// So many connections that it takes seconds and hundreds of MB: is run alone, and once.
bool is_large(const Scenario& scenario);

/// Each scenario with seeds 1 to `seeds`; a large one with seed 1.
std::vector<Job> jobs_of(std::span<const Scenario* const> scenarios, Policy policy,
                         std::uint32_t seeds);

/// The scenarios that the other policies are compared on.
std::vector<const Scenario*> compared_scenarios();

/// Told of each run that ends: how many have, of how many, and which. One thread at a time.
using Progress = std::function<void(std::size_t done, std::size_t all, const Job& job)>;

/// Runs all jobs on up to `threads` threads (0: as many as there are CPUs); results in the order of
/// the jobs. What a run throws is thrown once the others have stopped. Figures do not depend on the
/// number of threads, but for control_tick_max.
std::vector<Result> run_campaign(const std::vector<Job>& jobs, unsigned threads,
                                 const Progress& progress);

}  // namespace edgeshed::sim
