// What is simulated: who plays, what happens when, and what the control plane can see of it. Data
// only; scenarios.cc is the list, world.h runs one.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "maps/lanes.h"

namespace edgeshed::sim {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// A span of simulated seconds.
struct Span {
  double from_s = kNever;
  double to_s = kNever;
  bool covers(double at_s) const { return at_s >= from_s && at_s < to_s; }
};

/// Who sheds. The others see nothing that EdgeShed's packet path would tell them.
enum class Policy : std::uint8_t {
  edgeshed,  ///< the product's packet path and control law
  none,      ///< nobody
  codel,  ///< at the server's queue: 33 ms target, 100 ms interval, what waited twice as long goes
  dagor,  ///< at the door: tier and hash of the player against a level that follows queueing time
};
const char* policy_name(Policy policy);

/// What a player sends on one lane, and what it costs the server.
struct LaneLoad {
  std::uint8_t lane = ES_LANE_command;
  double per_s = 0;
  double cost_us = 0;
};

/// A game: its loop, and what a player of it is.
struct Game {
  double tick_ms = 1000.0 / 30;
  double base_share = 0.18;     ///< of the tick, whoever plays
  std::uint32_t players = 200;  ///< at load 1, which fills the loop to the brim
  std::vector<LaneLoad> lanes;
  double cost_spread = 0.2;        ///< each message costs its mean times 1 +- this
  std::uint32_t queue_max = 8192;  ///< messages that the socket holds
  std::uint32_t take_max = 8192;   ///< that one tick takes from it
};

/// 200 players of four lanes: critical 5 %, standard 40 %, snapshots 40 %, voice 15 % of what the
/// loop can do besides its base, in messages of 80 to 160 us.
Game simulated_game();

/// The game of tools/demo: 63 players are .85 of the loop, 250 us a message.
Game demo_game();

/// From this time on the load is this: players, in the game's players at load 1.
struct LoadStep {
  double at_s = 0;
  double load = 0.8;
};

/// What a client whose standard message was refused, or not answered, does.
enum class Retries : std::uint8_t {
  none,
  naive,         ///< at once, twice
  obeying,       ///< when it was told to, twice
  synchronised,  ///< at the next whole half second, all together, twice
};

/// Signals that the control plane does not get for a while.
enum class Lost : std::uint8_t {
  nothing,
  report,  ///< the server says nothing
  costs,   ///< it says how long its ticks take, not how busy it is
  all,     ///< both, and no cost is given
};

struct Scenario {
  std::string name;
  std::string about;  ///< one sentence
  Game game = simulated_game();
  std::vector<LoadStep> load = {{0, 0.8}};
  double seconds = 20;
  double warm_s = 4;  ///< nothing before it is judged
  Span event;         ///< what happens: a step, a flood, a slow server

  std::uint32_t flooders = 0;  ///< of the players, during `flood`, who send `flood_factor` as much
  Span flood;
  double flood_factor = 40;
  Span slow;  ///< the server takes `slow_factor` as long for everything
  double slow_factor = 3;
  Retries retries = Retries::naive;

  bool costs_given = true;  ///< [cost] names each lane's; else they are learned from reports
  double cost_error = 1;    ///< what is given is the truth times this
  std::uint32_t control_hz = 60;
  double feedback_delay_ms = 0;  ///< of everything that the server reports
  Lost lost = Lost::nothing;
  Span lost_for;
  Span restart;                     ///< no control plane; then a new one, which remembers nothing
  double clock_step_at_s = kNever;  ///< the clock is ten seconds ahead at once
  std::uint32_t shards = 1;         ///< alike; the load steps happen on the first one only
  std::uint32_t rooms_per_shard = 4;
};

/// Every scenario, in the order of the report. Names are unique.
const std::vector<Scenario>& all_scenarios();

/// Null if there is none of that name.
const Scenario* find_scenario(const std::string& name);

}  // namespace edgeshed::sim
