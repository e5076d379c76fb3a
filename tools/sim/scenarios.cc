// The list of scenarios, and the two games that are played in them.
#include <algorithm>

#include "tools/sim/scenario.h"

namespace edgeshed::sim {
namespace {

/// A step from .8 and back: 10 s of overload, then time to come back.
Scenario step(const std::string& name, const std::string& about, double load) {
  Scenario scenario;
  scenario.name = name;
  scenario.about = about;
  scenario.event = {5, 15};
  scenario.load = {{0, 0.8}, {5, load}, {15, 0.8}};
  scenario.seconds = 30;
  return scenario;
}

std::string number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

void add_constant(std::vector<Scenario>& all) {
  for (const double load : {0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0}) {
    Scenario scenario;
    scenario.name = "constant-" + number(load);
    scenario.about = number(load) + " times what fills the loop, from the start, for 20 s";
    scenario.load = {{0, load}};
    scenario.event = {4, 20};
    scenario.retries = Retries::obeying;
    all.push_back(scenario);
    if (load < 2) continue;
    scenario.name += "-naive";
    scenario.about += "; refused clients ask again at once";
    scenario.retries = Retries::naive;
    all.push_back(scenario);
  }
}

void add_steps(std::vector<Scenario>& all) {
  all.push_back(step("step-3", "three times the load for 10 s", 3));
  all.push_back(step("step-10", "ten times the load for 10 s", 10));
  for (const std::uint32_t hz : {20u, 120u}) {
    Scenario scenario =
        step("step-10-" + std::to_string(hz) + "hz",
             "ten times the load, decided " + std::to_string(hz) + " times a second", 10);
    scenario.control_hz = hz;
    all.push_back(scenario);
  }
  for (const double error : {0.5, 0.7, 1.5, 2.0}) {
    Scenario scenario = step("step-3-cost-x" + number(error),
                             "three times the load; costs are given wrong by " + number(error), 3);
    scenario.cost_error = error;
    all.push_back(scenario);
  }
  Scenario learned = step("step-3-learned", "three times the load; costs are learned", 3);
  learned.costs_given = false;
  all.push_back(learned);
  for (const double delay_ms : {200.0, 500.0}) {
    Scenario scenario =
        step("step-3-late-" + number(delay_ms) + "ms",
             "three times the load; reports are old, and refused clients ask again in step", 3);
    scenario.feedback_delay_ms = delay_ms;
    scenario.retries = Retries::synchronised;
    all.push_back(scenario);
  }
  Scenario demo = step("demo-10", "the game of the demo, ten times its players for 10 s", 8.5);
  demo.game = demo_game();
  demo.load.front().load = demo.load.back().load = 0.85;
  demo.costs_given = false;
  demo.retries = Retries::none;
  all.push_back(demo);
}

void add_faults(std::vector<Scenario>& all) {
  Scenario flood;
  flood.name = "flood";
  flood.about = "five players send 40 times as much, at a load of .85";
  flood.load = {{0, 0.85}};
  flood.event = {5, 15};
  flood.flooders = 5;
  flood.flood = flood.event;
  flood.seconds = 25;
  all.push_back(flood);
  flood.name = "flood-3";
  flood.about = "five players send 40 times as much, at three times the load";
  flood.load = {{0, 0.8}, {5, 3}, {15, 0.8}};
  flood.seconds = 30;
  all.push_back(flood);

  for (const Retries retries : {Retries::naive, Retries::obeying}) {
    Scenario slow;
    slow.name = retries == Retries::naive ? "slow-2s-naive" : "slow-2s";
    slow.about = "the server takes three times as long for 2 s, at a load of .9";
    slow.load = {{0, 0.9}};
    slow.event = slow.slow = {5, 7};
    slow.retries = retries;
    all.push_back(slow);
  }
  Scenario silent = step("step-3-no-report", "three times the load; the server reports nothing", 3);
  silent.lost = Lost::report;
  silent.lost_for = {3, kNever};
  all.push_back(silent);
  Scenario blind = step("step-3-no-costs", "three times the load; no cost is known, only ticks", 3);
  blind.costs_given = false;
  blind.lost = Lost::costs;
  blind.lost_for = {0, kNever};
  all.push_back(blind);
  blind.name = "step-3-blind";
  blind.about = "three times the load; no cost and no report: only contracts are left";
  blind.lost = Lost::all;
  all.push_back(blind);

  Scenario clock =
      step("step-3-clock", "three times the load; the clock jumps ten seconds ahead", 3);
  clock.clock_step_at_s = 8;
  all.push_back(clock);
  Scenario restart = step("step-3-restart", "three times the load; the daemon is away for 2 s", 3);
  restart.restart = {8, 10};
  all.push_back(restart);
}

void add_scale(std::vector<Scenario>& all) {
  Scenario scale;
  scale.name = "scale";
  scale.about =
      "10,000 rooms in 100 shards, 1,000,000 connections; one shard at three times its load";
  scale.shards = 100;
  scale.rooms_per_shard = 100;
  scale.game.players = 3333;
  for (LaneLoad& lane : scale.game.lanes) lane.per_s *= 200.0 / scale.game.players;
  scale.load = {{0, 0.5}, {3, 3}};
  scale.warm_s = 2;
  scale.event = {3, 6};
  scale.seconds = 6;
  all.push_back(scale);
}

}  // namespace

const char* policy_name(Policy policy) {
  switch (policy) {
    case Policy::edgeshed:
      return "edgeshed";
    case Policy::none:
      return "none";
    case Policy::codel:
      return "codel";
    case Policy::dagor:
      return "dagor";
  }
  return "?";
}

Game simulated_game() {
  Game game;
  // Per player and second, so that 200 of them are .82 of the loop: .05, .40, .40 and .15 of it.
  game.lanes = {{ES_LANE_event, 0.05 * 0.82 / 200 / 100e-6, 100},
                {ES_LANE_command, 0.40 * 0.82 / 200 / 160e-6, 160},
                {ES_LANE_snapshot, 0.40 * 0.82 / 200 / 80e-6, 80},
                {ES_LANE_voice, 0.15 * 0.82 / 200 / 80e-6, 80}};
  return game;
}

Game demo_game() {
  Game game;
  game.players = 74;
  game.base_share = 0.01;
  game.lanes = {{ES_LANE_event, 1, 250},
                {ES_LANE_command, 10, 250},
                {ES_LANE_snapshot, 35, 250},
                {ES_LANE_control, 3, 5}};
  game.queue_max = 4096;
  game.take_max = 512;
  return game;
}

const std::vector<Scenario>& all_scenarios() {
  static const std::vector<Scenario> kAll = [] {
    std::vector<Scenario> all;
    add_constant(all);
    add_steps(all);
    add_faults(all);
    add_scale(all);
    return all;
  }();
  return kAll;
}

const Scenario* find_scenario(const std::string& name) {
  const auto& all = all_scenarios();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Scenario& scenario) { return scenario.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace edgeshed::sim
