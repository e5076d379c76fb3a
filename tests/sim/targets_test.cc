// The list of targets, and how figures are held against it.
#include "tools/sim/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace edgeshed::sim {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// Figures that meet every target.
Figures good() {
  Figures figures;
  figures.fill(0);
  for (const Figure figure : {Figure::useful_gross, Figure::useful_net, Figure::jain,
                              Figure::best_effort_kept, Figure::critical_sent}) {
    figures[static_cast<std::size_t>(figure)] = 1;
  }
  return figures;
}

Figures good_but(Figure figure, double value) {
  Figures figures = good();
  figures[static_cast<std::size_t>(figure)] = value;
  return figures;
}

const Verdict* verdict_on(const std::vector<Verdict>& verdicts, Figure figure) {
  for (const Verdict& verdict : verdicts) {
    if (verdict.metric == figure_name(figure)) return &verdict;
  }
  return nullptr;
}

TEST(Scenarios, HaveNamesOfTheirOwnByWhichTheyAreFound) {
  std::set<std::string> names;
  for (const Scenario& scenario : all_scenarios()) {
    EXPECT_TRUE(names.insert(scenario.name).second) << scenario.name << " is there twice";
    EXPECT_EQ(find_scenario(scenario.name), &scenario);
    EXPECT_FALSE(scenario.about.empty()) << scenario.name;
  }
  EXPECT_EQ(find_scenario("nope"), nullptr);
}

TEST(Targets, EachJudgesSomething) {
  std::set<const Target*> used;
  for (const Scenario& scenario : all_scenarios()) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(Figure::count); ++i) {
      used.insert(find_target(scenario.name, static_cast<Figure>(i)));
    }
  }
  for (const Target& target : all_targets()) {
    EXPECT_TRUE(used.contains(&target))
        << target.scenario << ", " << figure_name(target.figure)
        << ": matches no scenario, or a row above it takes them all";
  }
}

TEST(Targets, AScenarioThatIsLeftOutHasAReason) {
  for (const Target& target : all_targets()) {
    if (target.compare == Compare::not_judged) {
      EXPECT_STRNE(target.reason, "") << target.scenario << ", " << figure_name(target.figure);
    }
  }
}

TEST(Targets, SheddingBeginsWithinAnIntervalOfTheScenario) {
  for (const Scenario& scenario : all_scenarios()) {
    const Target* target = find_target(scenario.name, Figure::time_to_shed);
    if (target == nullptr || target->compare == Compare::not_judged) continue;
    EXPECT_DOUBLE_EQ(target->value, 1000.0 / scenario.control_hz + 1) << scenario.name;
  }
}

TEST(Targets, WhoIsComparedIsThere) { EXPECT_EQ(compared_scenarios().size(), 6u); }

TEST(Judging, GoodFiguresPassEverywhere) {
  for (const Scenario& scenario : all_scenarios()) {
    const Figures seeds[] = {good()};
    const auto verdicts = judge(scenario.name, seeds);
    EXPECT_FALSE(verdicts.empty()) << scenario.name;
    for (const Verdict& verdict : verdicts) {
      EXPECT_TRUE(verdict.pass) << scenario.name << " " << verdict.metric;
    }
  }
}

TEST(Limits, EachIsOfATargetAndWeakerThanIt) {
  for (const Limit& limit : all_limits()) {
    EXPECT_STRNE(limit.reason, "") << limit.scenario;
    bool used = false;
    for (const Scenario& scenario : all_scenarios()) {
      if (find_limit(scenario.name, limit.figure) != &limit) continue;
      const Target* target = find_target(scenario.name, limit.figure);
      if (target == nullptr || target->compare == Compare::not_judged) continue;
      used = true;
      EXPECT_EQ(target->compare, Compare::at_most);
      EXPECT_GT(limit.value, target->value) << scenario.name << " " << figure_name(limit.figure);
    }
    EXPECT_TRUE(used) << limit.scenario << " " << figure_name(limit.figure);
  }
}

TEST(Limits, AMissIsKnownOnlyWithinItsLimit) {
  const Limit* limit = find_limit("step-3", Figure::back_in_budget);
  ASSERT_NE(limit, nullptr);
  const auto verdict_at = [&](double value) {
    const Figures seeds[] = {good_but(Figure::back_in_budget, value)};
    return *verdict_on(judge("step-3", seeds), Figure::back_in_budget);
  };
  EXPECT_FALSE(verdict_at(limit->value).pass);
  EXPECT_FALSE(failed(verdict_at(limit->value)));
  EXPECT_TRUE(failed(verdict_at(limit->value + 1)));
  EXPECT_TRUE(failed(verdict_at(kNever)));
  const Figures shed[] = {good_but(Figure::critical_dropped, 1)};
  EXPECT_TRUE(failed(*verdict_on(judge("step-3", shed), Figure::critical_dropped)));
}

TEST(Judging, TheWorstSeedCounts) {
  const Figures seeds[] = {good(), good_but(Figure::useful_gross, 0.5), good()};
  const auto least = judge("constant-2", seeds);
  ASSERT_NE(verdict_on(least, Figure::useful_gross), nullptr);
  EXPECT_FALSE(verdict_on(least, Figure::useful_gross)->pass);
  EXPECT_EQ(verdict_on(least, Figure::useful_gross)->value, 0.5);
  EXPECT_EQ(verdict_on(least, Figure::useful_gross)->target, ">= 0.95 share");

  const Figures drops[] = {good_but(Figure::critical_dropped, 3), good()};
  const auto equal = judge("constant-2", drops);
  EXPECT_FALSE(verdict_on(equal, Figure::critical_dropped)->pass);
  EXPECT_EQ(verdict_on(equal, Figure::critical_dropped)->value, 3);
}

TEST(Judging, ExactlyTheTargetMeetsIt) {
  const Figures most[] = {good_but(Figure::reversals, 1)};
  EXPECT_TRUE(verdict_on(judge("step-3", most), Figure::reversals)->pass);
  const Figures least[] = {good_but(Figure::jain, 0.99)};
  EXPECT_TRUE(verdict_on(judge("step-3", least), Figure::jain)->pass);
}

TEST(Judging, NeverIsNotInTime) {
  for (const Figure figure : {Figure::back_in_budget, Figure::recover_standard, Figure::recover_all,
                              Figure::critical_delay_p99}) {
    const Figures seeds[] = {good(), good_but(figure, kNever)};
    const auto verdicts = judge("step-3", seeds);
    ASSERT_NE(verdict_on(verdicts, figure), nullptr);
    EXPECT_FALSE(verdict_on(verdicts, figure)->pass) << figure_name(figure);
    EXPECT_EQ(verdict_on(verdicts, figure)->value, kNever);
  }
}

TEST(Judging, WhatWasNotMeasuredFailsWhereItHasToBeThere) {
  for (const Figure figure : {Figure::time_to_shed, Figure::critical_delay_p99, Figure::jain}) {
    for (const bool first : {true, false}) {
      const Figures seeds[] = {first ? good_but(figure, kNothing) : good(),
                               first ? good() : good_but(figure, kNothing)};
      const auto verdicts = judge("step-3", seeds);
      ASSERT_NE(verdict_on(verdicts, figure), nullptr);
      EXPECT_FALSE(verdict_on(verdicts, figure)->pass) << figure_name(figure);
      EXPECT_TRUE(std::isnan(verdict_on(verdicts, figure)->value));
    }
  }
}

TEST(Judging, WhatWasNotMeasuredIsGoodOrLeftOutWhereThatIsRight) {
  const Figures in_budget[] = {good_but(Figure::back_in_budget, kNothing)};
  const auto never_over = judge("step-3", in_budget);
  ASSERT_NE(verdict_on(never_over, Figure::back_in_budget), nullptr);
  EXPECT_TRUE(verdict_on(never_over, Figure::back_in_budget)->pass);

  const Figures whole[] = {good_but(Figure::recover_all, kNothing)};
  EXPECT_EQ(verdict_on(judge("step-3", whole), Figure::recover_all), nullptr);

  // One seed that has nothing to measure does not hide another one.
  const Figures mixed[] = {good_but(Figure::back_in_budget, kNothing),
                           good_but(Figure::back_in_budget, 500)};
  EXPECT_FALSE(verdict_on(judge("step-3", mixed), Figure::back_in_budget)->pass);
}

TEST(Judging, WhatIsNotJudgedHasNoRow) {
  const Figures seeds[] = {good_but(Figure::critical_delay_p99, 50)};
  EXPECT_EQ(verdict_on(judge("step-3-blind", seeds), Figure::critical_delay_p99), nullptr);
  EXPECT_NE(verdict_on(judge("step-3", seeds), Figure::critical_delay_p99), nullptr);
}

TEST(Judging, OverAllRunsCriticalDropsAreAddedUp) {
  const Scenario* two = find_scenario("constant-2");
  const Scenario* flood = find_scenario("flood");
  Figures sent = good_but(Figure::critical_sent, 1000);
  Figures dropped = sent;
  dropped[static_cast<std::size_t>(Figure::critical_dropped)] = 2;
  const std::vector<Result> results = {{{two, Policy::edgeshed, 1}, sent, {}},
                                       {{two, Policy::edgeshed, 2}, dropped, {}},
                                       {{flood, Policy::edgeshed, 1}, sent, {}},
                                       {{flood, Policy::none, 1}, dropped, {}}};
  const auto verdicts = judge_all(results, {});
  const Verdict& last = verdicts.back();
  EXPECT_EQ(last.scenario, "all runs");
  EXPECT_THAT(last.metric, testing::HasSubstr("of 3000 messages"));
  EXPECT_EQ(last.value, 2);
  EXPECT_FALSE(last.pass);
}

TEST(Judging, OtherPoliciesAreNotJudged) {
  Figures bad;
  bad.fill(kNothing);
  const std::vector<Result> results = {{{find_scenario("step-3"), Policy::codel, 1}, bad, {}}};
  EXPECT_TRUE(judge_all(results, {}).empty());
}

TEST(Judging, TheQuotasErrorIsTheWorstSeeds) {
  const std::vector<Result> results = {
      {{find_scenario("step-3"), Policy::edgeshed, 1}, good(), {}}};
  const auto quota = [&](std::vector<double> errors) { return judge_all(results, errors).back(); };
  EXPECT_EQ(quota({0.001, 0.01}).metric, "quota_error");
  EXPECT_TRUE(quota({0.001, 0.01}).pass);
  EXPECT_FALSE(quota({0.02, 0.01}).pass);
  EXPECT_FALSE(quota({kNothing, 0.001}).pass);
  EXPECT_FALSE(quota({0.001, kNothing}).pass);
}

TEST(Judging, FiguresAsPeopleReadThem) {
  EXPECT_EQ(figure_text(kNothing), "-");
  EXPECT_EQ(figure_text(kNever), "never");
  EXPECT_EQ(figure_text(3), "3");
  EXPECT_EQ(figure_text(0.98994), "0.9899");
  EXPECT_EQ(figure_text(12345.6), "12346");
}

}  // namespace
}  // namespace edgeshed::sim
