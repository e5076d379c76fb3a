// A server that became slower, seen while its tick still runs. What a tick works on has passed
// before it began; one that runs longer than that should take shows that messages cost more than is
// known, long before a window of cost learning ends. Pure.
#pragma once

#include <cstdint>

namespace edgeshed::core {

struct TickWatchConfig {
  /// A tick may run this much longer than expected: costs vary, and messages are counted where they
  /// pass, not where they are taken up.
  double tolerance = 1.25;

  /// The most that one tick may say. Beyond it something else stands still, not the work.
  double factor_max = 4;

  bool operator==(const TickWatchConfig&) const = default;
};

/// Value type; only step() writes it.
struct TickWatch {
  double factor = 1;  ///< messages cost at least this much more than is known

  // Private to step().
  uint64_t at_ns = 0;  ///< last step; 0: none yet
  double passed_ms = 0;
  uint64_t begun_ns = 0;  ///< of the tick that ran last; 0: none seen
  double begun_ms = 0;    ///< what had passed by then
  bool known = false;     ///< what came for the tick was counted from the begin of one before it
  double expected_ms = 0;
  double longest_ms = 0;  ///< age of the tick, as last seen
  bool exceeded = false;
  uint64_t exceeded_ns = 0;  ///< last step at which a tick ran longer than it should; 0: none
};

/// One control tick. `passed_ms`: cost, as it is known, of all that ever passed to the server;
/// `age_ms`: how long its tick has been running, 0: none runs; `base_ms`: of a tick without
/// messages. A factor stands until a tick has ended that took no longer than it should; after one
/// that is in between, since so much was shed that it kept its budget, a part of it stands. So
/// it does for every budget's time after four in which no tick is seen to run: they are short.
void step(TickWatch& watch, double passed_ms, double age_ms, double base_ms, double budget_ms,
          const TickWatchConfig& config, uint64_t now_ns);

}  // namespace edgeshed::core
