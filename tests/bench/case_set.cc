// Interleaved rounds: see case_set.h.
#include "tests/bench/case_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "tests/bench/test_run.h"

namespace edgeshed::bench {

Cost cost_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  const std::size_t middle = samples.size() / 2;
  const double median =
      samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {median, samples[samples.size() / 4]};
}

std::size_t CaseSet::add(Case added) {
  cases_.push_back(std::move(added));
  samples_.emplace_back();
  references_.emplace_back();
  return cases_.size() - 1;
}

void CaseSet::check() {
  constexpr std::uint32_t kPackets = 10'000;
  for (const Case& one : cases_) {
    if (one.world != nullptr) one.world->enter(one.scenario);
    const std::uint64_t before = one.reason ? one.world->counted(*one.reason) : 0;
    const std::uint32_t verdict = run_program(one.program_fd, one.frame, kPackets);
    if (verdict != one.verdict) {
      throw std::runtime_error(
          fmt::format("{}: verdict {} instead of {}", one.name, verdict, one.verdict));
    }
    if (!one.reason) continue;
    const std::uint64_t counted = one.world->counted(*one.reason) - before;
    // Slot tags may collide: one packet in a thousand may get another reason.
    if (counted < kPackets - kPackets / 1000) {
      throw std::runtime_error(fmt::format("{}: only {} of {} packets were decided as they should",
                                           one.name, counted, kPackets));
    }
  }
}

void CaseSet::run_round(unsigned round, std::uint32_t packets) {
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const std::size_t number = (i + std::size_t{7} * round) % cases_.size();
    const Case& one = cases_[number];
    if (one.world != nullptr) one.world->enter(one.scenario);
    // Cheap packets: more of them for the same precision.
    references_[number].push_back(ns_per_packet(reference_fd_, one.frame, 4 * packets));
    samples_[number].push_back(ns_per_packet(one.program_fd, one.frame, packets));
  }
}

Cost CaseSet::reference() const {
  std::vector<double> all;
  for (const std::vector<double>& samples : references_) {
    all.insert(all.end(), samples.begin(), samples.end());
  }
  return cost_of(std::move(all));
}

Cost CaseSet::net(std::size_t number) const {
  const std::vector<double>& ns = samples_[number];
  const std::vector<double>& reference_ns = references_[number];
  std::vector<double> ratios(ns.size());
  std::ranges::transform(ns, reference_ns, ratios.begin(), std::divides<>());
  const double quartile = cost_of(ns).quartile / cost_of(reference_ns).quartile;
  return {kReferenceNs * (cost_of(ratios).median - 1), kReferenceNs * (quartile - 1)};
}

}  // namespace edgeshed::bench
