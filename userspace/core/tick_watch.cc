// Expected against seen, tick by tick.
#include "userspace/core/tick_watch.h"

#include <algorithm>
#include <cmath>

#include "userspace/core/time_units.h"

namespace edgeshed::core {
namespace {

/// Begins of one tick, seen twice, differ by less: the clocks that they are computed from are read
/// at different times.
constexpr double kSameTickMs = 2;
/// Part of a factor that stays after a tick that says neither: a third of a second is enough for
/// costs to be learned.
constexpr double kStays = 0.7;
/// Budgets after which no slow tick was seen: those that shed little take two or three.
constexpr double kUnseen = 4;

/// What had passed by `at_ns`, between the last step and now.
double passed_by(const TickWatch& watch, double passed_ms, uint64_t at_ns, uint64_t now_ns) {
  if (at_ns <= watch.at_ns || now_ns <= watch.at_ns) return watch.passed_ms;
  const double share =
      static_cast<double>(at_ns - watch.at_ns) / static_cast<double>(now_ns - watch.at_ns);
  return watch.passed_ms + std::min(1.0, share) * (passed_ms - watch.passed_ms);
}

/// What a tick that has ended leaves of the factor.
double factor_after(const TickWatch& watch, double base_ms, double tolerance) {
  if (watch.exceeded || watch.begun_ns == 0) return watch.factor;
  const bool as_expected = watch.longest_ms <= tolerance * (base_ms + watch.expected_ms);
  return as_expected ? 1 : 1 + kStays * (watch.factor - 1);
}

/// A factor that no tick has confirmed for so long goes.
void fade(TickWatch& watch, double budget_ms, uint64_t now_ns) {
  if (watch.factor <= 1 || now_ns <= watch.at_ns) return;
  const double since_ms = static_cast<double>(now_ns - watch.exceeded_ns) / kNsPerMs;
  if (since_ms < kUnseen * budget_ms) return;
  const double elapsed_ms = static_cast<double>(now_ns - watch.at_ns) / kNsPerMs;
  watch.factor = 1 + std::pow(kStays, elapsed_ms / budget_ms) * (watch.factor - 1);
}

void begin_tick(TickWatch& watch, double begun_ms, uint64_t begun_ns) {
  watch.known = watch.begun_ns != 0;
  watch.expected_ms = watch.begun_ns == 0 ? 0 : std::max(0.0, begun_ms - watch.begun_ms);
  watch.begun_ns = begun_ns;
  watch.begun_ms = begun_ms;
  watch.longest_ms = 0;
  watch.exceeded = false;
}

}  // namespace

void step(TickWatch& watch, double passed_ms, double age_ms, double base_ms, double budget_ms,
          const TickWatchConfig& config, uint64_t now_ns) {
  const bool goes_on = watch.at_ns != 0 && passed_ms >= watch.passed_ms && now_ns >= watch.at_ns;
  if (!goes_on) watch = {};
  if (goes_on && age_ms > 0) {
    const auto age_ns = static_cast<uint64_t>(age_ms * kNsPerMs);
    const uint64_t begun_ns = now_ns - std::min(now_ns - 1, age_ns);
    const double later_ms =
        (static_cast<double>(begun_ns) - static_cast<double>(watch.begun_ns)) / kNsPerMs;
    if (std::abs(later_ms) > kSameTickMs) {
      watch.factor = factor_after(watch, base_ms, config.tolerance);
      begin_tick(watch, passed_by(watch, passed_ms, begun_ns, now_ns), begun_ns);
    }
    watch.longest_ms = age_ms;
    // Of work that is hardly there a tick's length says nothing.
    const double expected_ms = std::max(watch.expected_ms, budget_ms / 4);
    if (watch.known && age_ms > std::max(budget_ms, config.tolerance * (base_ms + expected_ms))) {
      watch.exceeded = true;
      watch.exceeded_ns = now_ns;
      const double factor = (age_ms - base_ms) / expected_ms;
      watch.factor = std::clamp(factor, watch.factor, std::max(watch.factor, config.factor_max));
    }
  }
  if (age_ms <= 0) fade(watch, budget_ms, now_ns);
  watch.passed_ms = passed_ms;
  watch.at_ns = std::max(now_ns, uint64_t{1});
}

}  // namespace edgeshed::core
