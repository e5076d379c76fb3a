// Runs: a seed means the same run, whatever the threads do, and the JSON says what they gave.
#include "tools/sim/campaign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <limits>

#include "tools/sim/plot.h"
#include "tools/sim/report_json.h"
#include "tools/sim/targets.h"

namespace edgeshed::sim {
namespace {

/// Three times the load for a second.
Scenario short_step() {
  Scenario scenario;
  scenario.name = "short";
  scenario.about = "a step";
  scenario.load = {{0, 0.8}, {1, 3}, {3, 0.8}};
  scenario.warm_s = 0.5;
  scenario.event = {1, 3};
  scenario.seconds = 4;
  return scenario;
}

void expect_same(const Figures& a, const Figures& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto figure = static_cast<Figure>(i);
    if (figure == Figure::control_tick_max || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    EXPECT_EQ(a[i], b[i]) << figure_name(figure);
  }
}

std::vector<Job> short_jobs(const Scenario& scenario, std::uint32_t seeds) {
  const Scenario* const list[] = {&scenario};
  return jobs_of(list, Policy::edgeshed, seeds);
}

TEST(Campaign, TheSameSeedGivesTheSameFiguresOnAnyNumberOfThreads) {
  const Scenario scenario = short_step();
  const auto jobs = short_jobs(scenario, 4);
  const auto alone = run_campaign(jobs, 1, {});
  const auto together = run_campaign(jobs, 4, {});
  ASSERT_EQ(alone.size(), 4u);
  ASSERT_EQ(together.size(), 4u);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(together[i].job.seed, i + 1);
    expect_same(alone[i].figures, together[i].figures);
  }
  const auto useful = static_cast<std::size_t>(Figure::useful_gross);
  EXPECT_NE(alone[0].figures[useful], alone[1].figures[useful]);
  EXPECT_FALSE(alone[0].series.empty());
  EXPECT_TRUE(alone[1].series.empty());
}

TEST(Campaign, OtherPoliciesAreRepeatableToo) {
  const Scenario scenario = short_step();
  for (const Policy policy : {Policy::none, Policy::codel, Policy::dagor}) {
    expect_same(run(scenario, policy, 7).figures, run(scenario, policy, 7).figures);
  }
}

TEST(Campaign, TellsOfEachRunOnce) {
  const Scenario scenario = short_step();
  std::vector<std::size_t> done;
  run_campaign(short_jobs(scenario, 3), 2, [&](std::size_t count, std::size_t all, const Job& job) {
    done.push_back(count);
    EXPECT_EQ(all, 3u);
    EXPECT_EQ(job.scenario, &scenario);
  });
  EXPECT_THAT(done, testing::ElementsAre(1, 2, 3));
}

TEST(Campaign, ThrowsWhatItsCallbackThrows) {
  const Scenario scenario = short_step();
  EXPECT_THROW(run_campaign(short_jobs(scenario, 3), 2,
                            [](std::size_t, std::size_t, const Job&) { throw std::bad_alloc(); }),
               std::bad_alloc);
}

TEST(Campaign, ALargeScenarioIsRunOnce) {
  for (const Scenario& scenario : all_scenarios()) {
    EXPECT_EQ(is_large(scenario), scenario.name == "scale") << scenario.name;
  }
  const Scenario* const list[] = {find_scenario("step-3"), find_scenario("scale")};
  const auto jobs = jobs_of(list, Policy::edgeshed, 3);
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(jobs.back().seed, 1u);
}

TEST(Campaign, QuotaErrorIsRepeatable) {
  EXPECT_EQ(quota_error(3), quota_error(3));
  EXPECT_GE(quota_error(3), 0);
}

TEST(Report, SaysWhatTheRunsGave) {
  const Scenario scenario = short_step();
  auto results = run_campaign(short_jobs(scenario, 2), 2, {});
  results[1].figures[static_cast<std::size_t>(Figure::back_in_budget)] = kNever;
  results[1].figures[static_cast<std::size_t>(Figure::flooder_share)] =
      std::numeric_limits<double>::quiet_NaN();
  const std::vector<Verdict> verdicts = {{"short", "jain", ">= 0.99 index", 0.5, false, nullptr}};
  const auto root = boost::json::parse(report_json(2, verdicts, results)).as_object();

  EXPECT_EQ(root.at("seeds"), 2);
  EXPECT_EQ(root.at("passed"), false);
  const auto& row = root.at("rows").as_array().at(0).as_object();
  EXPECT_EQ(row.at("scenario"), "short");
  EXPECT_EQ(row.at("metric"), "jain");
  EXPECT_EQ(row.at("target"), ">= 0.99 index");
  EXPECT_EQ(row.at("value"), 0.5);
  EXPECT_EQ(row.at("pass"), false);

  const auto& runs = root.at("runs").as_array();
  ASSERT_EQ(runs.size(), 2u);
  const auto& second = runs.at(1).as_object();
  EXPECT_EQ(second.at("scenario"), "short");
  EXPECT_EQ(second.at("policy"), "edgeshed");
  EXPECT_EQ(second.at("seed"), 2);
  EXPECT_EQ(second.at("back_in_budget"), "never");
  EXPECT_TRUE(second.at("flooder_share").is_null());
  EXPECT_EQ(second.size(), 3 + static_cast<std::size_t>(Figure::count));
}

TEST(Report, PassesWhenNothingIsMissed) {
  const std::vector<Verdict> verdicts = {{"a", "jain", ">= 0.99 index", 1, true, nullptr}};
  EXPECT_EQ(boost::json::parse(report_json(1, verdicts, {})).at("passed"), true);
}

TEST(Plot, TextIsTextForGnuplotToo) {
  Scenario scenario = short_step();
  scenario.about = "it's a 'step'; exit";
  const Sample samples[2] = {};
  const std::string script =
      plot_script(scenario, Policy::edgeshed, samples, "a.svg", "/tmp/it's.svg");
  EXPECT_THAT(script, testing::HasSubstr("'It''s a ''step''; exit'"));
  EXPECT_THAT(script, testing::HasSubstr("set output '/tmp/it''s.svg'"));
}

}  // namespace
}  // namespace edgeshed::sim
