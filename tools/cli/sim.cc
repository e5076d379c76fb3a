// edgeshed sim: games under load, the packet path and the control law in one process; how well they
// meet their targets.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "tools/cli/commands.h"
#include "tools/cli/table.h"
#include "tools/sim/campaign.h"
#include "tools/sim/output_file.h"
#include "tools/sim/plot.h"
#include "tools/sim/report_json.h"
#include "tools/sim/targets.h"

namespace edgeshed::cli {
namespace {

using sim::Figure;

struct SimOptions {
  std::vector<std::string> scenarios;
  bool all = false;
  bool list = false;
  std::uint32_t seeds = 4;
  std::string json;
  std::string plot;
  std::string policy;  // empty: EdgeShed; with --all the others too, where they are compared
};

constexpr sim::Policy kPolicies[] = {sim::Policy::edgeshed, sim::Policy::none, sim::Policy::codel,
                                     sim::Policy::dagor};

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const sim::Policy policy : kPolicies) names.emplace_back(sim::policy_name(policy));
  return names;
}

/// Letters to change, add or take away.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, changed});
    }
  }
  return row.back();
}

const sim::Scenario* scenario_named(const std::string& name) {
  if (const sim::Scenario* found = sim::find_scenario(name)) return found;
  std::string names;
  std::string nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const sim::Scenario& scenario : sim::all_scenarios()) {
    names += (names.empty() ? "" : ", ") + scenario.name;
    const std::size_t away = distance(name, scenario.name);
    if (away >= least) continue;
    least = away;
    nearest = scenario.name;
  }
  throw Error(
      fmt::format("--scenario {}: there is no such scenario; the nearest is {}; allowed: {}", name,
                  nearest, names),
      kExitUsage);
}

std::vector<const sim::Scenario*> chosen(const SimOptions& options) {
  std::vector<const sim::Scenario*> list;
  if (options.all) {
    for (const sim::Scenario& scenario : sim::all_scenarios()) list.push_back(&scenario);
  }
  for (const std::string& name : options.scenarios) {
    const sim::Scenario* scenario = scenario_named(name);
    if (std::find(list.begin(), list.end(), scenario) == list.end()) list.push_back(scenario);
  }
  if (list.empty()) {
    throw Error(
        "sim: name what to simulate: --scenario NAME (edgeshed sim --list names them) or "
        "--all",
        kExitUsage);
  }
  if (!options.plot.empty() && list.size() != 1) {
    throw Error("--plot draws one run: give exactly one --scenario", kExitUsage);
  }
  return list;
}

std::vector<sim::Job> jobs_of(const SimOptions& options,
                              const std::vector<const sim::Scenario*>& scenarios) {
  std::vector<sim::Job> jobs;
  for (const sim::Policy policy : kPolicies) {
    const bool compared = options.policy.empty() && options.all && policy != kPolicies[0];
    const bool asked =
        options.policy.empty() ? policy == kPolicies[0] : options.policy == policy_name(policy);
    if (!compared && !asked) continue;
    const auto list = compared ? sim::compared_scenarios() : scenarios;
    const auto more = sim::jobs_of(list, policy, options.seeds);
    jobs.insert(jobs.end(), more.begin(), more.end());
  }
  return jobs;
}

double median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  // Between "never" and a number there is no middle: the worse one.
  if (values.size() % 2 == 1 || std::isinf(values[half])) return values[half];
  return (values[half - 1] + values[half]) / 2;
}

struct Column {
  const char* heading;
  Figure figure;
  int digits;
};
constexpr Column kColumns[] = {{"USEFUL", Figure::useful_gross, 3},
                               {"CRITICAL_LOST", Figure::critical_lost, 4},
                               {"CRITICAL_P99", Figure::critical_delay_p99, 2},
                               {"STANDARD", Figure::standard_handled, 3},
                               {"BEST_EFFORT", Figure::best_effort_kept, 3},
                               {"TICK_P99", Figure::tick_p99, 2},
                               {"SHED_MS", Figure::time_to_shed, 0},
                               {"BUDGET_MS", Figure::back_in_budget, 0},
                               {"WHOLE_S", Figure::recover_all, 1},
                               {"TURNS", Figure::reversals, 0}};

std::string cell(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : sim::figure_text(value);
}

void print_figures(const std::vector<sim::Result>& results) {
  std::vector<std::string> heading = {"SCENARIO"};
  for (const Column& column : kColumns) heading.emplace_back(column.heading);
  Table table(heading);
  for (std::size_t from = 0; from < results.size();) {
    const sim::Job& job = results[from].job;
    std::size_t to = from;
    while (to < results.size() && results[to].job.scenario == job.scenario &&
           results[to].job.policy == job.policy) {
      ++to;
    }
    std::string name = job.scenario->name;
    if (job.policy != sim::Policy::edgeshed) name += fmt::format(", {}", policy_name(job.policy));
    std::vector<std::string> cells = {name};
    for (const Column& column : kColumns) {
      std::vector<double> values;
      for (std::size_t i = from; i < to; ++i) {
        values.push_back(results[i].figures[static_cast<std::size_t>(column.figure)]);
      }
      cells.push_back(cell(median(values), column.digits));
    }
    table.add(cells, job.policy == sim::Policy::edgeshed ? Tone::kPlain : Tone::kDim);
    from = to;
  }
  table.print("");
}

/// The exit code.
int print_verdicts(const std::vector<sim::Verdict>& verdicts) {
  if (verdicts.empty()) {
    fmt::print("\nNo targets: they are EdgeShed's, other policies are only compared.\n");
    return kExitOk;
  }
  Table missed({"SCENARIO", "MISSED", "TARGET", "WORST", "KNOWN LIMIT"});
  std::size_t met = 0;
  std::size_t known = 0;
  for (const sim::Verdict& verdict : verdicts) {
    met += verdict.pass ? 1 : 0;
    if (verdict.pass) continue;
    const sim::Limit* limit = verdict.limit;
    known += limit != nullptr ? 1 : 0;
    const std::string why =
        limit == nullptr ? "none" : sim::figure_text(limit->value) + ": " + limit->reason;
    missed.add(
        {verdict.scenario, verdict.metric, verdict.target, sim::figure_text(verdict.value), why},
        limit == nullptr ? Tone::kBad : Tone::kDim);
  }
  fmt::print("\n");
  if (met < verdicts.size()) {
    missed.print("");
    fmt::print("\n");
  }
  const std::size_t bad = verdicts.size() - met - known;
  fmt::print("{}\n",
             toned(fmt::format("{} of {} targets met, {} missed within a known limit, {} beyond",
                               met, verdicts.size(), known, bad),
                   bad == 0 ? Tone::kGood : Tone::kBad));
  return bad == 0 ? kExitOk : kExitFailure;
}

void print_list() {
  Table table({"SCENARIO", "WHAT HAPPENS"});
  for (const sim::Scenario& scenario : sim::all_scenarios()) {
    table.add({scenario.name, scenario.about});
  }
  table.print("");
}

void show_progress(std::size_t done, std::size_t all, const sim::Job& job) {
  fmt::print(stderr, "\r\033[K{} of {} runs: {}, {}, seed {}{}", done, all, job.scenario->name,
             policy_name(job.policy), job.seed, done == all ? "\r\033[K" : "");
}

int run_sim(const SimOptions& options) {
  if (options.list) {
    print_list();
    return kExitOk;
  }
  const auto scenarios = chosen(options);
  std::optional<sim::OutputFile> json;
  std::optional<sim::OutputFile> picture;
  if (!options.plot.empty()) {
    sim::check_plot(options.plot);
    picture.emplace(options.plot);
  }
  if (!options.json.empty()) json.emplace(options.json);

  const auto jobs = jobs_of(options, scenarios);
  const bool seen = isatty(STDERR_FILENO) == 1;
  const auto results =
      sim::run_campaign(jobs, 0, seen ? sim::Progress(show_progress) : sim::Progress());
  std::vector<double> quota_errors;
  for (std::uint32_t seed = 1; options.all && seed <= options.seeds; ++seed) {
    quota_errors.push_back(sim::quota_error(seed));
  }
  const auto verdicts = sim::judge_all(results, quota_errors);
  fmt::print("Medians over {} seed{}; edgeshed sim --help says what the columns are.\n",
             options.seeds, options.seeds == 1 ? "" : "s");
  print_figures(results);
  const int code = print_verdicts(verdicts);
  if (json) json->write(sim::report_json(options.seeds, verdicts, results));
  if (picture) {
    sim::plot(*scenarios[0], jobs[0].policy, results[0].series, options.plot, *picture);
  }
  return code;
}

constexpr char kExamples[] =
    "  edgeshed sim --list\n"
    "  edgeshed sim --scenario step-3 --plot step-3.svg\n"
    "  edgeshed sim --scenario flood --policy codel\n"
    "  edgeshed sim --all --seeds 20 --json sim.json\n"
    "Columns, of the event unless said otherwise:\n"
    "  USEFUL         work on messages handled in time, as a share of the budget\n"
    "  CRITICAL_LOST  share of critical messages dropped anywhere or too late, of the whole run\n"
    "  CRITICAL_P99   from sent to handled, in ticks of the server\n"
    "  STANDARD       share of requests handled in time, within three attempts\n"
    "  BEST_EFFORT    share handled in time, of players within their contract\n"
    "  TICK_P99       of the server's loop, in budgets\n"
    "  SHED_MS        from the event to the first decision to shed\n"
    "  BUDGET_MS      from the event to the first tick in budget again\n"
    "  WHOLE_S        from the event's end until nothing is shed any more\n"
    "  TURNS          changes of direction of what is kept\n"
    "Exit code 0: all targets met, or missed within a known limit; 1: some missed beyond.\n";

}  // namespace

void add_sim(CLI::App& app, Context& context) {
  auto options = std::make_shared<SimOptions>();
  CLI::App* command = add_command(
      app, "sim", "Simulate games under load and hold the control law against its targets",
      kExamples);
  CLI::Option* all = command->add_flag(
      "--all", options->all, "Every scenario, and other policies where they are compared");
  command->add_option("--scenario", options->scenarios, "A scenario; may be given again")
      ->option_text("NAME")
      ->allow_extra_args(false)
      ->excludes(all);
  command->add_flag("--list", options->list, "Name the scenarios and what happens in each");
  command->add_option("--seeds", options->seeds, "Runs of each scenario, 1 to 1000")
      ->option_text("N [4]")
      ->check(CLI::Range(1u, sim::kSeedsMax));
  command->add_option("--policy", options->policy, "Who sheds: edgeshed, none, codel or dagor")
      ->option_text("NAME [edgeshed]")
      ->check(CLI::IsMember(policy_names()));
  command->add_option("--json", options->json, "Write targets and figures to a file")
      ->option_text("FILE");
  command->add_option("--plot", options->plot, "Draw the run with seed 1: .svg or .png")
      ->option_text("FILE");
  command->callback([options, &context] { context.run = [options] { return run_sim(*options); }; });
}

}  // namespace edgeshed::cli
