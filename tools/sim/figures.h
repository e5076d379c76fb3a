// What a run is judged by: figures of the whole, and a series over time for the plot.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "maps/lanes.h"
#include "tools/sim/scenario.h"
#include "tools/sim/server.h"
#include "tools/sim/traffic.h"
#include "userspace/core/shard_law.h"

namespace edgeshed::sim {

/// The value of a figure that nothing was measured for.
inline constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// figure: name, unit, what it is. All are of shard 0, whose load changes.
#define EDGESHED_SIM_FIGURE_LIST(X)                                                                \
  X(useful_gross, "share", "work on messages that were handled in time / budget, in the event")    \
  X(useful_net, "share", "the same, the cost of dropping taken off the budget")                    \
  X(critical_sent, "messages", "critical messages, all of them")                                   \
  X(critical_dropped, "messages", "of those, within contract, dropped by the shedder")             \
  X(critical_lost, "share", "of those, dropped anywhere or later than their deadline")             \
  X(critical_delay_p99, "ticks", "from sent to handled, but for the first second of the event")    \
  X(critical_delay_p999, "ticks", "the same")                                                      \
  X(standard_handled, "share", "of standard requests, in time, within three attempts")             \
  X(tick_p99, "budgets", "from one second after the event began")                                  \
  X(time_to_shed, "ms", "from the event to the first plan that sheds")                             \
  X(back_in_budget, "ms", "from the event to the first tick in budget after one over it")          \
  X(recover_standard, "s", "from the event's end until standard is whole, for good")               \
  X(recover_all, "s", "from its end until all is as whole as before it, for good")                 \
  X(reversals, "times", "changes of direction of what is kept, by over 15 %, beyond the way back") \
  X(jain, "index", "of what players in contract got handled, in the event")                        \
  X(flooder_share, "times", "best-effort handled of a flooder, in what a player got")              \
  X(best_effort_kept, "share", "of best-effort of players in contract, in the event")              \
  X(retry_amplification, "times",                                                                  \
    "standard messages sent / first attempts, from 5 s after the event")                           \
  X(control_tick_max, "ms", "longest tick of the control plane, in real time")

enum class Figure : std::uint8_t {
#define X(name, unit, text) name,
  EDGESHED_SIM_FIGURE_LIST(X)
#undef X
      count,
};
const char* figure_name(Figure figure);
const char* figure_unit(Figure figure);

/// Not a number: nothing to judge, such as a recovery where nothing was shed. Infinite: never.
using Figures = std::array<double, static_cast<std::size_t>(Figure::count)>;

/// One sample of the series, each control tick.
struct Sample {
  double at_s = 0;
  std::array<double, ES_TIERS> offered{};  ///< share of the loop's time that it would cost
  std::array<double, ES_TIERS> handled{};  ///< in time
  double keep_standard = 1;
  double keep_best_effort = 1;
  double tick_ratio = 0;  ///< longest tick since the last sample
  std::uint8_t rung = 0;
  double rho = 0;
};

/// Counts while a world runs. Only reads; one world's.
class Recorder {
 public:
  Recorder(const Scenario& scenario, Policy policy, const Traffic& traffic);

  void sent(const Message& message);
  void ended(const Message& message, End end, double done_ms, double cost_us);
  void shed(const Message& message, bool critical_in_contract);
  void tick(const Tick& tick);
  /// After each control tick; null for the baselines.
  void decided(double now_ms, const core::ShardMemory* memory, double loop_cpu_s);

  Figures figures() const;
  const std::vector<Sample>& series() const { return series_; }
  double control_tick_max_ms = 0;

 private:
  bool in_event(double at_ms) const;
  bool is_transient(double at_ms) const;
  void note_keeps(double at_s, double keep_standard, double keep_best_effort);

  const Scenario& scenario_;
  Policy policy_;
  const Traffic& traffic_;
  std::vector<float> critical_delays_ms_;
  std::uint64_t critical_sent_ = 0, critical_dropped_ = 0, critical_lost_ = 0;
  std::uint64_t standard_first_ = 0, standard_handled_ = 0;
  std::uint64_t after_first_ = 0, after_sent_ = 0;
  double useful_ms_ = 0, dropping_ms_ = 0;
  std::vector<double> ticks_ms_;
  std::vector<std::uint32_t> handled_of_;      // by player, in the event
  std::vector<std::uint32_t> best_effort_of_;  // handled, by player
  std::vector<std::uint32_t> best_effort_sent_of_;
  double first_shed_ms_ = kNever, back_in_budget_ms_ = -1;
  bool was_over_ = false;
  double best_effort_before_ = 1;  // kept, at the least, in the second before the event
  double standard_short_s_ = -1, all_short_s_ = -1;  // when it was last not whole
  double extreme_ = 2, turn_ = 0;
  int turns_ = 0;
  std::vector<Sample> series_;
  Sample now_;
};

}  // namespace edgeshed::sim
