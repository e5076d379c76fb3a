// What the simulator's figures are held against: the targets as data, and the verdict on a run's
// figures. Decides nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/sim/campaign.h"
#include "tools/sim/figures.h"
#include "tools/sim/scenario.h"

namespace edgeshed::sim {

enum class Compare : std::uint8_t { at_most, at_least, equal, not_judged };

/// A row of the list. Of several rows of one figure that match a scenario, the first one holds.
struct Target {
  const char* scenario;  ///< a name, or the beginning of names and then `*`
  Figure figure;
  Compare compare;
  double value;
  /// Why the scenario is not judged by this figure, or has a value of its own; else empty.
  const char* reason;
};

std::span<const Target> all_targets();

/// A target that is missed, how far, and why: what holds instead until somebody does better. A miss
/// within its limit is reported and is no failure; one beyond it is.
struct Limit {
  const char* scenario;  ///< as in Target
  Figure figure;
  double value;
  const char* reason;
};

std::span<const Limit> all_limits();

/// Null: the target itself has to be met.
const Limit* find_limit(const std::string& scenario, Figure figure);

/// The target that a scenario has for a figure; null: none was set.
const Target* find_target(const std::string& scenario, Figure figure);

/// A target and what became of it.
struct Verdict {
  std::string scenario;
  std::string metric;
  std::string target;  ///< such as "<= 2 s"
  double value = 0;    ///< the worst over the seeds; not a number: there was nothing to measure
  bool pass = false;
  const Limit* limit = nullptr;  ///< it was missed within this limit
};

/// Neither met nor within a known limit.
inline bool failed(const Verdict& verdict) { return !verdict.pass && verdict.limit == nullptr; }

/// The worst of a figure over the seeds: not a number if none was measured, or if one was not and
/// the figure has to be there.
double worst_of(std::span<const Figures> seeds, const Target& target);

/// One scenario's verdicts: `seeds` are the figures of its runs.
std::vector<Verdict> judge(const std::string& scenario, std::span<const Figures> seeds);

/// All verdicts on a campaign, in its order, and those that are about all of it: critical drops
/// over all runs, and how far a level misses its rate (`quota_errors`, of each seed; may be empty).
/// Runs of other policies are not judged.
std::vector<Verdict> judge_all(std::span<const Result> results,
                               std::span<const double> quota_errors);

/// A figure as people read it: "never", "-" for not a number, else at most four digits.
std::string figure_text(double value);

}  // namespace edgeshed::sim
