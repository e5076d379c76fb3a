#include "tools/sim/targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace edgeshed::sim {
namespace {

constexpr double kQuotaError = 0.01;

/// From what happened to the next tick of the control plane: an interval, and the simulator's step.
constexpr double one_interval_ms(double control_hz) { return 1000 / control_hz + 1; }

constexpr const char* kBlind = "without its signals there is nothing to control by";
constexpr const char* kAway = "while no daemon runs, the last plan ends and everything passes";
constexpr const char* kSlower = "the interval is longer";
constexpr const char* kShorter = "the interval is shorter";
constexpr const char* kFurther = "from ten times the load the way back is longer";

constexpr Compare kMost = Compare::at_most;
constexpr Compare kLeast = Compare::at_least;
constexpr Compare kNone = Compare::not_judged;

constexpr Target kTargets[] = {
    // What the budget is spent on.
    {"constant-2*", Figure::useful_gross, kLeast, 0.95, ""},
    {"constant-5*", Figure::useful_gross, kLeast, 0.85, ""},
    {"constant-10*", Figure::useful_gross, kLeast, 0.68, ""},
    {"constant-2*", Figure::useful_net, kLeast, 0.95, ""},
    {"constant-5*", Figure::useful_net, kLeast, 0.90, ""},
    {"constant-10*", Figure::useful_net, kLeast, 0.85, ""},

    // Critical messages.
    {"*", Figure::critical_dropped, Compare::equal, 0, ""},
    {"step-3-blind", Figure::critical_delay_p99, kNone, 0, kBlind},
    {"step-3-no-*", Figure::critical_delay_p99, kNone, 0, kBlind},
    {"step-3-restart", Figure::critical_delay_p99, kNone, 0, kAway},
    {"*", Figure::critical_delay_p99, kMost, 1.2, ""},
    {"step-3-blind", Figure::critical_delay_p999, kNone, 0, kBlind},
    {"step-3-no-*", Figure::critical_delay_p999, kNone, 0, kBlind},
    {"step-3-restart", Figure::critical_delay_p999, kNone, 0, kAway},
    {"*", Figure::critical_delay_p999, kMost, 2, ""},

    // Nothing to control by.
    {"step-3-blind", Figure::time_to_shed, kNone, 0, kBlind},
    {"step-3-blind", Figure::back_in_budget, kNone, 0, kBlind},
    {"step-3-blind", Figure::reversals, kNone, 0, kBlind},
    {"step-3-blind", Figure::jain, kNone, 0, kBlind},

    // How fast it begins.
    {"step-10-20hz", Figure::time_to_shed, kMost, one_interval_ms(20), kSlower},
    {"step-10-120hz", Figure::time_to_shed, kMost, one_interval_ms(120), kShorter},
    {"step-*", Figure::time_to_shed, kMost, one_interval_ms(60), ""},
    {"demo-10", Figure::time_to_shed, kMost, one_interval_ms(60), ""},
    {"step-10-20hz", Figure::back_in_budget, kNone, 0, kSlower},
    {"step-3*", Figure::back_in_budget, kMost, 100, ""},
    {"step-10*", Figure::back_in_budget, kMost, 100, ""},
    {"demo-10", Figure::back_in_budget, kMost, 100, ""},

    // How fast it ends.
    {"step-10*", Figure::recover_standard, kMost, 3.5, kFurther},
    {"demo-10", Figure::recover_standard, kMost, 3.5, kFurther},
    {"step-3*", Figure::recover_standard, kMost, 2, ""},
    {"flood-3", Figure::recover_standard, kMost, 2, ""},
    {"slow-2s*", Figure::recover_standard, kMost, 5, "at a load of .9 little is left to catch up"},
    {"step-10*", Figure::recover_all, kMost, 9, kFurther},
    {"demo-10", Figure::recover_all, kMost, 9, kFurther},
    {"step-3*", Figure::recover_all, kMost, 8, ""},
    {"flood-3", Figure::recover_all, kMost, 8, ""},
    {"*", Figure::reversals, kMost, 1, ""},

    // Who gets what.
    {"step-*", Figure::jain, kLeast, 0.99, ""},
    {"flood*", Figure::jain, kLeast, 0.99, ""},
    {"constant-2*", Figure::jain, kLeast, 0.99, ""},
    {"constant-3*", Figure::jain, kLeast, 0.99, ""},
    {"constant-5*", Figure::jain, kLeast, 0.99, ""},
    {"constant-10*", Figure::jain, kLeast, 0.99, ""},
    {"flood*", Figure::flooder_share, kMost, 1.2, ""},
    {"flood", Figure::best_effort_kept, kLeast, 0.95, ""},
    {"slow-2s*", Figure::retry_amplification, kMost, 1.1, ""},
};

constexpr const char* kTransient =
    "what arrived before the first plan is worked off beside what critical and the base need";
constexpr const char* kInStep =
    "all who were refused ask in one millisecond, and each may have a message to its credit";
constexpr const char* kTicksAlone = "ticks tell of an overload only once it is there";
constexpr const char* kSpare = "at .9 of the budget there is nothing left for what is asked again";
constexpr const char* kMixture =
    "a base and one cost are learned from one load, and hold at another";

constexpr const char* kSlowSenders =
    "of players who send twice a second more pass than is kept for .3 s, 1.5 s after the cut";

constexpr const char* kOneSeed = "one seed of 16: chance cuts a second time, while it comes back";
constexpr const char* kOneCost =
    "one seed of 16: a cost learned 12 % too low, and a socket that is never empty";

constexpr Limit kLimits[] = {
    {"constant-1.5", Figure::reversals, 8, kOneSeed},
    {"constant-1*", Figure::reversals, 3, "at the edge of the budget chance decides"},
    {"step-3-no-costs", Figure::back_in_budget, 2000, kTicksAlone},
    {"step-3-no-costs", Figure::time_to_shed, 120, kTicksAlone},
    {"step-3-no-costs", Figure::recover_standard, 6, kTicksAlone},
    {"step-3-no-costs", Figure::recover_all, 10, kOneSeed},
    {"step-3-no-costs", Figure::reversals, 8, kTicksAlone},
    {"step-3-no-report", Figure::recover_standard, 8, kOneSeed},
    {"step-3-no-report", Figure::recover_all, 15, kOneSeed},
    {"step-3-cost-x2", Figure::recover_standard, 8, kOneSeed},
    {"step-10-120hz", Figure::recover_standard, 15, kOneSeed},
    {"step-10-120hz", Figure::recover_all, 15, kOneSeed},
    {"step-10-120hz", Figure::reversals, 4, kOneSeed},
    {"step-3-learned", Figure::back_in_budget, 2000, kMixture},
    {"step-3-learned", Figure::critical_delay_p99, 1.4, kMixture},
    {"step-3-learned", Figure::recover_all, 10, kMixture},
    {"scale", Figure::critical_delay_p99, 1.4, kSlowSenders},
    {"step-3*", Figure::back_in_budget, 500, kTransient},
    {"step-10*", Figure::back_in_budget, 1200, kTransient},
    {"demo-10", Figure::back_in_budget, 400, kTransient},
    {"step-10-120hz", Figure::critical_delay_p99, 2.5, kTransient},
    {"step-10-20hz", Figure::critical_delay_p99, 3, kTransient},
    {"step-10-20hz", Figure::critical_delay_p999, 4, kTransient},
    {"step-10*", Figure::critical_delay_p99, 1.4, kTransient},
    {"step-10*", Figure::critical_delay_p999, 3, kTransient},
    {"demo-10", Figure::critical_delay_p99, 2, kOneCost},
    {"demo-10", Figure::critical_delay_p999, 3, kOneCost},
    {"demo-10", Figure::reversals, 5, kOneCost},
    {"step-3-late-*", Figure::critical_delay_p99, 1.7, kInStep},
    {"step-3-late-*", Figure::critical_delay_p999, 3, kInStep},
    {"step-3-late-*", Figure::recover_standard, 8, kInStep},
    {"step-3-late-*", Figure::recover_all, 15, kInStep},
    {"step-3-late-*", Figure::reversals, 20, kInStep},
    {"slow-2s*", Figure::recover_standard, 8, kSpare},
    {"slow-2s*", Figure::reversals, 16, kSpare},
    {"slow-2s*", Figure::retry_amplification, 1.5, kSpare},
    {"step-3-restart", Figure::reversals, 6, kAway},
    {"step-3*", Figure::reversals, 3, kOneSeed},
};

bool matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

/// What it means that a figure was not measured.
enum class Absent : std::uint8_t { fails, passes, left_out };

Absent absent(Figure figure) {
  switch (figure) {
    case Figure::back_in_budget:  // no tick was ever over it
      return Absent::passes;
    case Figure::recover_standard:  // nothing was shed, or the event did not end
    case Figure::recover_all:
      return Absent::left_out;
    default:  // nothing was handled, or nothing was shed where something had to be
      return Absent::fails;
  }
}

bool meets(double value, const Target& target) {
  switch (target.compare) {
    case Compare::at_most:
      return value <= target.value;  // false for never, and for what is no number
    case Compare::at_least:
      return value >= target.value;
    case Compare::equal:
      return value == target.value;
    case Compare::not_judged:
      break;
  }
  return true;
}

std::string text_of(const Target& target) {
  const char* sign = target.compare == Compare::at_most    ? "<="
                     : target.compare == Compare::at_least ? ">="
                                                           : "=";
  return fmt::format("{} {} {}", sign, figure_text(target.value), figure_unit(target.figure));
}

/// The further value from the target of two.
double worse(double a, double b, const Target& target) {
  if (target.compare == Compare::at_least) return std::min(a, b);
  if (target.compare == Compare::at_most) return std::max(a, b);
  return std::abs(a - target.value) > std::abs(b - target.value) ? a : b;
}

Verdict quota_verdict(std::span<const double> errors) {
  double worst = 0;
  for (const double error : errors) {
    // What is no number must not get lost among the others.
    worst = std::isnan(error) || std::isnan(worst) ? kNothing : std::max(worst, error);
  }
  return {"quota", "quota_error", fmt::format("<= {} share", kQuotaError), worst,
          worst <= kQuotaError};
}

}  // namespace

std::span<const Target> all_targets() { return kTargets; }

const Target* find_target(const std::string& scenario, Figure figure) {
  const auto found =
      std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& target) {
        return target.figure == figure && matches(target.scenario, scenario);
      });
  return found == std::end(kTargets) ? nullptr : found;
}

std::span<const Limit> all_limits() { return kLimits; }

const Limit* find_limit(const std::string& scenario, Figure figure) {
  const auto found = std::find_if(std::begin(kLimits), std::end(kLimits), [&](const Limit& limit) {
    return limit.figure == figure && matches(limit.scenario, scenario);
  });
  return found == std::end(kLimits) ? nullptr : found;
}

double worst_of(std::span<const Figures> seeds, const Target& target) {
  double worst = kNothing;
  for (const Figures& figures : seeds) {
    const double value = figures[static_cast<std::size_t>(target.figure)];
    if (std::isnan(value)) {
      if (absent(target.figure) == Absent::fails) return kNothing;
      continue;
    }
    worst = std::isnan(worst) ? value : worse(worst, value, target);
  }
  return worst;
}

namespace {

/// The known limit that a missed target is within; null: none.
const Limit* limit_of(const std::string& scenario, const Target& target, double value) {
  const Limit* limit = find_limit(scenario, target.figure);
  if (limit == nullptr) return nullptr;
  Target instead = target;
  instead.value = limit->value;
  return meets(value, instead) ? limit : nullptr;
}

}  // namespace

std::vector<Verdict> judge(const std::string& scenario, std::span<const Figures> seeds) {
  std::vector<Verdict> verdicts;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Figure::count); ++i) {
    const auto figure = static_cast<Figure>(i);
    const Target* target = find_target(scenario, figure);
    if (target == nullptr || target->compare == Compare::not_judged) continue;
    const double value = worst_of(seeds, *target);
    bool pass = meets(value, *target);
    if (std::isnan(value)) {
      if (absent(figure) == Absent::left_out) continue;
      pass = absent(figure) == Absent::passes;
    }
    Verdict verdict{scenario, figure_name(figure), text_of(*target), value, pass, nullptr};
    if (!pass) verdict.limit = limit_of(scenario, *target, value);
    verdicts.push_back(verdict);
  }
  return verdicts;
}

std::vector<Verdict> judge_all(std::span<const Result> results,
                               std::span<const double> quota_errors) {
  std::vector<Verdict> verdicts;
  double critical_sent = 0;
  double critical_dropped = 0;
  for (std::size_t i = 0; i < results.size();) {
    const Job& job = results[i].job;
    std::vector<Figures> seeds;
    for (; i < results.size() && results[i].job.scenario == job.scenario &&
           results[i].job.policy == job.policy;
         ++i) {
      seeds.push_back(results[i].figures);
    }
    if (job.policy != Policy::edgeshed) continue;
    for (const Figures& figures : seeds) {
      critical_sent += figures[static_cast<std::size_t>(Figure::critical_sent)];
      critical_dropped += figures[static_cast<std::size_t>(Figure::critical_dropped)];
    }
    for (Verdict& verdict : judge(job.scenario->name, seeds)) {
      verdicts.push_back(std::move(verdict));
    }
  }
  if (verdicts.empty()) return verdicts;
  verdicts.push_back(
      {"all runs",
       fmt::format("critical in-contract drops by the shedder, of {:.0f} messages", critical_sent),
       "= 0 messages", critical_dropped, critical_dropped == 0});
  if (!quota_errors.empty()) verdicts.push_back(quota_verdict(quota_errors));
  return verdicts;
}

std::string figure_text(double value) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return "never";
  const double size = std::abs(value);
  if (value == std::round(value)) return fmt::format("{:.0f}", value);
  return size >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

}  // namespace edgeshed::sim
