#include "tools/sim/campaign.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace edgeshed::sim {
namespace {

constexpr double kLargeConnections = 100'000;

class Campaign {
 public:
  Campaign(const std::vector<Job>& jobs, const Progress& progress)
      : jobs_(jobs), progress_(progress), results_(jobs.size()) {}

  std::vector<Result> run(unsigned threads) {
    std::vector<std::size_t> small;
    std::vector<std::size_t> large;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      (is_large(*jobs_[i].scenario) ? large : small).push_back(i);
    }
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    side_by_side(small, threads);
    side_by_side(large, 1);
    return std::move(results_);
  }

 private:
  void side_by_side(const std::vector<std::size_t>& list, unsigned threads) {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < list.size() && !failed_; i = next++) play(list[i]);
    };
    {
      std::vector<std::jthread> pool;
      for (std::size_t i = 1; i < std::min<std::size_t>(threads, list.size()); ++i) {
        pool.emplace_back(work);
      }
      work();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  void play(std::size_t index) {
    const Job& job = jobs_[index];
    try {
      Run played = sim::run(*job.scenario, job.policy, job.seed);
      if (job.seed != 1) played.series = {};
      results_[index] = {job, played.figures, std::move(played.series)};
      const std::lock_guard lock(mutex_);
      if (progress_) progress_(++done_, jobs_.size(), job);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      failed_ = true;
    }
  }

  const std::vector<Job>& jobs_;
  const Progress& progress_;
  std::vector<Result> results_;
  std::mutex mutex_;  // of what follows
  std::size_t done_ = 0;
  std::exception_ptr failure_;
  std::atomic<bool> failed_ = false;
};

}  // namespace

bool is_large(const Scenario& scenario) {
  double load = 0;
  for (const LoadStep& step : scenario.load) load = std::max(load, step.load);
  return load * scenario.game.players * scenario.shards > kLargeConnections;
}

std::vector<Job> jobs_of(std::span<const Scenario* const> scenarios, Policy policy,
                         std::uint32_t seeds) {
  std::vector<Job> jobs;
  for (const Scenario* scenario : scenarios) {
    const std::uint32_t last = is_large(*scenario) ? 1 : seeds;
    for (std::uint32_t seed = 1; seed <= last; ++seed) jobs.push_back({scenario, policy, seed});
  }
  return jobs;
}

std::vector<const Scenario*> compared_scenarios() {
  static constexpr const char* kNames[] = {"constant-2", "constant-5",    "constant-10",
                                           "step-3",     "slow-2s-naive", "flood"};
  std::vector<const Scenario*> list;
  for (const char* name : kNames) {
    if (const Scenario* scenario = find_scenario(name)) list.push_back(scenario);
  }
  return list;
}

std::vector<Result> run_campaign(const std::vector<Job>& jobs, unsigned threads,
                                 const Progress& progress) {
  return Campaign(jobs, progress).run(threads);
}

}  // namespace edgeshed::sim
