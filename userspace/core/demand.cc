// Rates, costs and their product. Only arithmetic on its arguments.
#include "userspace/core/demand.h"

#include <algorithm>
#include <cmath>

#include "maps/plan.h"
#include "userspace/core/time_units.h"

namespace edgeshed::core {
namespace {

/// Memory of how much counts vary: longer than the period of clients that send in step.
constexpr double kVarianceS = 1;
/// Memory of the farthest count, and how much further a jump must go.
constexpr double kFarthestS = 2;
constexpr double kFurther = 1.5;
/// After a longer time without a step a count says nothing: a host that was suspended.
constexpr double kStepMaxS = 1;
/// Fewer messages than this in a window say nothing about their cost.
constexpr uint64_t kMessagesMin = 10;
/// Cost of a control datagram or a handshake that is not given, in messages: 2 to 5 us of libenet
/// beside 250 us of a game's message, measured in the demo.
constexpr double kControlShare = 0.02;
/// Time of reports from which the unit is learned.
constexpr double kLearnS = 1;
/// After a longer silence the host, or the server, was stopped: what was busy was not the loop.
constexpr double kSilenceS = 2;
/// From this share on the loop is saturated: it cannot be busier, whatever passed.
constexpr double kSaturatedShare = 0.95;
/// Memory of the intercept: long enough for 20 windows, short enough for the next phase of a match.
constexpr double kMemoryS = 5;
constexpr double kWindowsMin = 4;
/// A window that has too few messages by then says all the same that they cost no more than this.
constexpr double kWindowMaxS = 5;
/// A loop that is saturated for as long does not only work off what waited: costs are at least so.
constexpr double kSaturatedMaxS = 1;
/// The cost must vary by this share of its mean before a slope is believed.
constexpr double kSpreadMin = 0.2;
/// A window of 7 ticks is uncertain by one tick at its ends: what is this near follows slowly.
constexpr double kWindowNoise = 0.2;
constexpr double kNoiseGainUp = 0.3;
constexpr double kNoiseGainDown = 0.1;
/// A unit below this is none; from here it grows back within seconds.
constexpr double kUnitMinUs = 0.01;
/// A slope that differs from the unit by this factor replaces it.
constexpr double kUnitWrong = 2;

bool is_cheap(uint32_t lane) { return lane == ES_LANE_control || lane == ES_LANE_join; }

bool gives_costs(const CostConfig& config) {
  return std::any_of(config.lane_us.begin(), config.lane_us.end(),
                     [](double cost_us) { return cost_us > 0; });
}

/// One window: both as shares of its time, cost at scale and unit 1.
struct Window {
  double length_s = 0;
  double busy = 0;
  double cost = 0;
  double cheap = 0;  ///< of it, what is priced as a fraction of a message
  uint64_t messages = 0;
  bool saturated = false;
  bool sparse = false;  ///< took longer than usual for want of messages
};

/// False when a counter or the clock went back, or no window is open.
bool goes_on(const CostState& state, const ShardWork& work) {
  if (!state.begun || work.reported_ns < state.last.reported_ns) return false;
  if (work.busy_ns < state.last.busy_ns) return false;
  const auto silent_ns = static_cast<double>(work.reported_ns - state.last.reported_ns);
  if (silent_ns > kSilenceS * kNsPerS) return false;
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    if (work.passed[lane] < state.last.passed[lane]) return false;
  }
  return true;
}

/// A jump that the next step does not bear out was one burst, or chance: the rate before it stands.
void take_back_jump(ArrivalRate& rate, double arrived, double elapsed_s) {
  if (rate.before_jump < 0) return;
  const double from_before = std::abs(arrived - rate.before_jump * elapsed_s);
  const double from_jump = std::abs(arrived - rate.per_s * elapsed_s);
  if (from_before < from_jump) rate.per_s = rate.before_jump;
  rate.before_jump = -1;
}

void begin_window(CostState& state, const ShardWork& work) {
  state.begun = true;
  state.begin = work;
  state.last = work;
  state.saturated = false;
}

bool is_saturated(const ShardWork& begin, const ShardWork& end) {
  const auto elapsed_ns = static_cast<double>(end.reported_ns - begin.reported_ns);
  return elapsed_ns > 0 &&
         static_cast<double>(end.busy_ns - begin.busy_ns) >= kSaturatedShare * elapsed_ns;
}

Window measure(const ShardWork& begin, const ShardWork& end, const CostConfig& config) {
  Window window;
  window.length_s = static_cast<double>(end.reported_ns - begin.reported_ns) / kNsPerS;
  const double busy_s = static_cast<double>(end.busy_ns - begin.busy_ns) / kNsPerS;
  window.busy = std::min(1.0, busy_s / window.length_s);  // one loop is busy at most all the time
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    const uint64_t passed = end.passed[lane] - begin.passed[lane];
    window.messages += passed;
    const double cost_s = static_cast<double>(passed) * lane_cost_us(config, lane) * kSPerUs;
    window.cost += cost_s;
    if (is_cheap(lane)) window.cheap += cost_s;
  }
  window.cost /= window.length_s;
  window.cheap /= window.length_s;
  return window;
}

/// Busy over cost as a line, from the sums.
struct Line {
  bool found = false;
  double slope = 0;
  double base = 0;
};

Line fit(const CostState& state) {
  const auto& sums = state.sums;
  if (sums.n < kWindowsMin) return {};
  const double x = sums.x / sums.n;
  const double y = sums.y / sums.n;
  const double variance = sums.xx / sums.n - x * x;
  if (variance < kSpreadMin * x * kSpreadMin * x || variance <= 0) return {};
  const double slope = (sums.xy / sums.n - x * y) / variance;
  if (slope <= 0) return {};
  return {true, slope, std::clamp(y - slope * x, 0.0, y)};
}

void learn_line(CostState& state, const Window& window, const CostConfig& config) {
  auto& sums = state.sums;
  const double kept = std::exp(-window.length_s / kMemoryS);
  sums.n = sums.n * kept + 1;
  sums.x = sums.x * kept + window.cost;
  sums.y = sums.y * kept + window.busy;
  sums.xx = sums.xx * kept + window.cost * window.cost;
  sums.xy = sums.xy * kept + window.cost * window.busy;
  const Line line = fit(state);
  if (!line.found) return;
  state.base_share = line.base;
  if (gives_costs(config) || !state.known) return;
  const double wrong = line.slope / (state.unit_us * state.scale);
  if (wrong > kUnitWrong || wrong < 1 / kUnitWrong) {
    state.unit_us = std::max(kUnitMinUs, line.slope);
    state.scale = 1;
  }
}

void learn_unit(CostState& state, const Window& window) {
  state.learned_s += window.length_s;
  state.learned_busy_s += std::max(0.0, window.busy - state.base_share) * window.length_s;
  state.learned_cost_s += window.cost * window.length_s;
  if (state.learned_s < kLearnS || state.learned_busy_s <= 0) return;
  state.unit_us = state.learned_busy_s / state.learned_cost_s;
  state.known = true;
}

void move_scale(CostState& state, const Window& window, const CostConfig& config) {
  const double observed = window.busy / (state.base_share + window.cost * state.unit_us);
  if (observed < state.scale && window.saturated) return;
  // Few messages beside much work say nothing of their cost, but for what it is not.
  if (observed > state.scale && window.sparse) return;
  double gain = observed > state.scale ? config.scale_gain_up : config.scale_gain_down;
  // Within what a window is uncertain by, neither direction is news.
  // A loop that was saturated is: it could not have done less.
  const bool noise = std::abs(observed / state.scale - 1) < kWindowNoise && !window.saturated;
  if (noise) gain = std::min(gain, observed > state.scale ? kNoiseGainUp : kNoiseGainDown);
  state.scale += gain * (observed - state.scale);
  const double bounded = std::clamp(state.scale, config.scale_min, config.scale_max);
  if (bounded != state.scale && !gives_costs(config)) {
    state.unit_us = std::max(kUnitMinUs, state.unit_us * bounded);
    state.scale = 1;
    return;
  }
  state.scale = bounded;
}

}  // namespace

std::string check_cost_config(const CostConfig& config) {
  if (config.scale_max <= config.scale_min) return "scale_max must be above scale_min";
  return "";
}

void step(ArrivalRate& rate, uint64_t ever, uint64_t now_ns, const CostConfig& config) {
  if (rate.at_ns == 0 || ever < rate.ever) {
    rate.ever = ever;
    rate.at_ns = std::max({rate.at_ns, now_ns, uint64_t{1}});
    return;
  }
  if (now_ns <= rate.at_ns) return;
  const double elapsed_s = static_cast<double>(now_ns - rate.at_ns) / kNsPerS;
  const auto arrived = static_cast<double>(ever - rate.ever);
  rate.ever = ever;
  rate.at_ns = now_ns;
  if (elapsed_s > kStepMaxS) return;

  take_back_jump(rate, arrived, elapsed_s);
  const double expected = rate.per_s * elapsed_s;
  const double by_chance = std::max(1.0, expected);  // at 0/s one packet is no surprise
  const double sigma = std::sqrt(by_chance);
  const double measured = arrived / elapsed_s;
  const double away = arrived - expected;
  rate.farthest *= std::exp(-elapsed_s / kFarthestS);
  if (std::abs(away) > std::max(config.rate_jump_sigma * sigma, kFurther * rate.farthest)) {
    rate.before_jump = rate.per_s;
    rate.per_s = measured;
  } else {
    const double varies = std::sqrt(rate.variance) / sigma;
    const double slow = std::clamp(varies, 1.0, config.rate_slow_max);
    rate.per_s += (1 - std::exp(-elapsed_s / (config.rate_tau_s * slow))) * (measured - rate.per_s);
  }
  rate.farthest = std::max(rate.farthest, std::abs(away));
  rate.variance += (1 - std::exp(-elapsed_s / kVarianceS)) * (away * away - rate.variance);
}

void step(RoomDemand& room, std::span<const uint64_t, ES_LANES> arrived_ever, uint64_t now_ns,
          const CostConfig& config) {
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    step(room.lane[lane], arrived_ever[lane], now_ns, config);
  }
}

double lane_cost_us(const CostConfig& config, uint32_t lane) {
  if (config.lane_us[lane] > 0) return config.lane_us[lane];
  // Acknowledgements, pings and handshakes are the network layer's: no game logic runs for them.
  const double share = is_cheap(lane) ? kControlShare : 1;
  double sum_us = 0;
  uint32_t given = 0;
  for (const double cost_us : config.lane_us) {
    sum_us += cost_us;
    given += cost_us > 0 ? 1 : 0;
  }
  return share * (given == 0 ? 1 : sum_us / given);
}

CostState initial_cost(const CostConfig& config) {
  CostState state;
  state.known = gives_costs(config);
  state.base_share = config.base_share;
  return state;
}

void observe_cost(CostState& state, const ShardWork& work, const CostConfig& config) {
  if (!goes_on(state, work)) {
    begin_window(state, work);
    return;
  }
  const bool saturated_now = is_saturated(state.last, work);
  state.saturated |= saturated_now;
  state.last = work;
  const double length_s = static_cast<double>(work.reported_ns - state.begin.reported_ns) / kNsPerS;
  if (length_s < config.window_s) return;
  Window window = measure(state.begin, work, config);
  window.saturated = state.saturated;
  // What waits in a saturated loop was passed before, or is worked on later: a window ends where
  // nothing waits, so that what passed in it is what was done.
  if (saturated_now && length_s < kSaturatedMaxS) return;
  // Too few messages: the window stays open, or a cost that is far too high, and so lets hardly any
  // message pass, would never be looked at again.
  const double per_window = static_cast<double>(window.messages) * config.window_s / length_s;
  window.sparse = length_s >= 2 * config.window_s && per_window < kMessagesMin;
  const bool some = window.messages > 0;
  if (some && window.messages < kMessagesMin && length_s < kWindowMaxS) return;
  begin_window(state, work);

  if (config.base_share <= 0 && !window.saturated) learn_line(state, window, config);
  if (window.messages == 0) return;
  // A lobby that fills: handshakes and acknowledgements, whose price is guessed, say nothing of
  // what a message costs. 600 players who had joined before the first message came made it twice.
  if (!gives_costs(config) && window.cheap > window.cost / 2) return;
  if (state.known) {
    move_scale(state, window, config);
  } else if (!window.saturated && !window.sparse) {
    learn_unit(state, window);
  }
}

double ShardDemand::offered_cost_ratio() const {
  double sum = base;
  for (const double share : tier) sum += share;
  return known ? sum : 0;
}

ShardDemand begin_demand(const CostState& state) {
  ShardDemand demand;
  demand.known = state.known;
  demand.base = state.base_share * state.scale;
  return demand;
}

void add_room(ShardDemand& demand, const RoomDemand& room, uint16_t lane_tiers,
              const CostState& state, const CostConfig& config) {
  const double factor = state.scale * state.unit_us * kSPerUs;
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    demand.tier[es_lane_tier(lane_tiers, static_cast<uint8_t>(lane))] +=
        room.lane[lane].per_s * lane_cost_us(config, lane) * factor;
  }
}

}  // namespace edgeshed::core
