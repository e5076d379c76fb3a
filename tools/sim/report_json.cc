#include "tools/sim/report_json.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

namespace edgeshed::sim {
namespace {

/// Up to here a double counts one by one.
constexpr double kWholeMax = 0x1p53;

boost::json::value json_number(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return "never";
  // Boost writes a double that is 3 as 3E0.
  if (value == std::round(value) && std::abs(value) < kWholeMax)
    return static_cast<std::int64_t>(value);
  return value;
}

boost::json::object row(const Verdict& verdict) {
  boost::json::object object = {{"scenario", verdict.scenario},
                                {"metric", verdict.metric},
                                {"target", verdict.target},
                                {"value", json_number(verdict.value)},
                                {"pass", verdict.pass}};
  if (verdict.limit != nullptr) {
    object["known_limit"] = json_number(verdict.limit->value);
    object["why"] = verdict.limit->reason;
  }
  return object;
}

boost::json::object run_of(const Result& result) {
  boost::json::object object = {{"scenario", result.job.scenario->name},
                                {"policy", policy_name(result.job.policy)},
                                {"seed", result.job.seed}};
  for (std::size_t i = 0; i < result.figures.size(); ++i) {
    object[figure_name(static_cast<Figure>(i))] = json_number(result.figures[i]);
  }
  return object;
}

}  // namespace

std::string report_json(std::uint32_t seeds, std::span<const Verdict> verdicts,
                        std::span<const Result> results) {
  boost::json::array rows;
  for (const Verdict& verdict : verdicts) rows.push_back(row(verdict));
  boost::json::array runs;
  for (const Result& result : results) runs.push_back(run_of(result));
  const bool passed = std::all_of(verdicts.begin(), verdicts.end(),
                                  [](const Verdict& verdict) { return !failed(verdict); });
  return boost::json::serialize(boost::json::object{{"seeds", seeds},
                                                    {"rows", std::move(rows)},
                                                    {"runs", std::move(runs)},
                                                    {"passed", passed}}) +
         "\n";
}

}  // namespace edgeshed::sim
