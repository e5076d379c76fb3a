#include "tools/sim/figures.h"

#include <algorithm>
#include <cmath>

#include "userspace/core/model.h"

namespace edgeshed::sim {
namespace {

/// The first second of an event is its transient.
constexpr double kSettleS = 1;
/// Kernel work for a packet that is dropped (performance.md of the measurements: .2 us), and for
/// one that is answered, on the CPU of the game.
constexpr double kDropMs = 0.0002;
/// Retries must have died out this long after an event.
constexpr double kAfterS = 5;
constexpr double kWhole = 0.999;
constexpr double kReversal = 0.15;
/// At a load of .9 best-effort is not whole before the event either, and hovers.
constexpr double kAlmost = 0.05;

double ratio(double part, double whole) { return whole > 0 ? part / whole : kNothing; }

double percentile(std::vector<float> values, double share) {
  if (values.empty()) return kNothing;
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank),
                   values.end());
  return values[rank];
}

}  // namespace

const char* figure_name(Figure figure) {
  static constexpr const char* kNames[] = {
#define X(name, unit, text) #name,
      EDGESHED_SIM_FIGURE_LIST(X)
#undef X
  };
  return kNames[static_cast<std::size_t>(figure)];
}

const char* figure_unit(Figure figure) {
  static constexpr const char* kUnits[] = {
#define X(name, unit, text) unit,
      EDGESHED_SIM_FIGURE_LIST(X)
#undef X
  };
  return kUnits[static_cast<std::size_t>(figure)];
}

Recorder::Recorder(const Scenario& scenario, Policy policy, const Traffic& traffic)
    : scenario_(scenario),
      policy_(policy),
      traffic_(traffic),
      handled_of_(traffic.players()),
      best_effort_of_(traffic.players()),
      best_effort_sent_of_(traffic.players()) {}

bool Recorder::in_event(double at_ms) const {
  const double at_s = at_ms / 1000;
  return at_s >= scenario_.event.from_s + kSettleS && at_s < scenario_.event.to_s;
}

bool Recorder::is_transient(double at_ms) const {
  const double since_s = at_ms / 1000 - scenario_.event.from_s;
  return since_s >= 0 && since_s < kSettleS;
}

void Recorder::sent(const Message& message) {
  if (traffic_.shard_of(message.player) != 0) return;
  const std::uint8_t tier = message.tier;
  for (const LaneLoad& lane : scenario_.game.lanes) {
    if (lane.lane == message.lane) now_.offered[tier] += lane.cost_us / 1000;
  }
  if (message.sent_ms < scenario_.warm_s * 1000) return;
  if (tier == ES_TIER_critical && !traffic_.is_flooder(message.player)) ++critical_sent_;
  if (tier == ES_TIER_standard) {
    if (message.attempt == 0 && in_event(message.sent_ms)) ++standard_first_;
    if (message.sent_ms >= (scenario_.event.to_s + kAfterS) * 1000) {
      ++after_sent_;
      if (message.attempt == 0) ++after_first_;
    }
  }
  if (tier == ES_TIER_best_effort && in_event(message.sent_ms)) {
    ++best_effort_sent_of_[message.player];
  }
}

void Recorder::shed(const Message& message, bool critical_in_contract) {
  if (traffic_.shard_of(message.player) != 0) return;
  if (in_event(message.sent_ms)) dropping_ms_ += kDropMs;
  if (message.sent_ms < scenario_.warm_s * 1000 || message.tier != ES_TIER_critical) return;
  if (critical_in_contract) ++critical_dropped_;
}

void Recorder::ended(const Message& message, End end, double done_ms, double cost_us) {
  if (traffic_.shard_of(message.player) != 0) return;
  const bool handled = end == End::handled;
  if (handled) now_.handled[message.tier] += cost_us / 1000;
  if (message.sent_ms < scenario_.warm_s * 1000) return;
  if (message.tier == ES_TIER_critical && !traffic_.is_flooder(message.player)) {
    if ((end == End::handled || end == End::late) && !is_transient(message.sent_ms))
      critical_delays_ms_.push_back(static_cast<float>(done_ms - message.sent_ms));
    if (!handled) ++critical_lost_;
  }
  if (!in_event(message.sent_ms) || !handled) return;
  useful_ms_ += cost_us / 1000;
  ++handled_of_[message.player];
  if (message.tier == ES_TIER_standard) ++standard_handled_;
  if (message.tier == ES_TIER_best_effort) ++best_effort_of_[message.player];
}

void Recorder::tick(const Tick& tick) {
  const double took_ms = tick.end_ms - tick.begin_ms;
  now_.tick_ratio = std::max(now_.tick_ratio, took_ms / scenario_.game.tick_ms);
  if (in_event(tick.begin_ms)) ticks_ms_.push_back(took_ms);
  const double since_ms = tick.end_ms - scenario_.event.from_s * 1000;
  if (since_ms <= 0 || back_in_budget_ms_ >= 0) return;
  const bool over = took_ms > scenario_.game.tick_ms;
  if (over && since_ms < kSettleS * 1000) was_over_ = true;
  if (!over && was_over_) back_in_budget_ms_ = since_ms - took_ms;
}

void Recorder::note_keeps(double at_s, double keep_standard, double keep_best_effort) {
  const double event_s = at_s - scenario_.event.from_s;
  if (event_s >= -kSettleS && event_s < 0) {
    best_effort_before_ = std::min(best_effort_before_, keep_best_effort);
  }
  const bool standard_short = keep_standard < kWhole;
  const bool any_short = standard_short || keep_best_effort < best_effort_before_ - kAlmost;
  if (standard_short) standard_short_s_ = at_s;
  if (any_short) all_short_s_ = at_s;
  if (any_short && at_s >= scenario_.event.from_s && first_shed_ms_ == kNever) {
    first_shed_ms_ = at_s * 1000;
  }
  if (at_s < scenario_.event.from_s) return;
  // A turn: what is kept has moved by more than 15 % against the way it went before.
  const double kept = keep_standard + keep_best_effort;
  if (turn_ <= 0) extreme_ = std::min(extreme_, kept);
  if (turn_ > 0) extreme_ = std::max(extreme_, kept);
  if (turn_ <= 0 && kept > extreme_ + kReversal) {
    turn_ = 1;
    extreme_ = kept;
    ++turns_;
  } else if (turn_ > 0 && kept < extreme_ - kReversal) {
    turn_ = -1;
    extreme_ = kept;
    ++turns_;
  }
}

void Recorder::decided(double now_ms, const core::ShardMemory* memory, double loop_cpu_s) {
  now_.at_s = now_ms / 1000;
  if (memory != nullptr) {
    now_.keep_standard = memory->degree.now.keep_standard;
    now_.keep_best_effort =
        core::kept_best_effort(memory->effects, memory->rates, core::default_lane_tiers());
    now_.rung = memory->state.rung;
    now_.rho = memory->signals.offered_cost_ratio;
    note_keeps(now_.at_s, now_.keep_standard, now_.keep_best_effort);
  }
  for (std::size_t tier = 0; tier < ES_TIERS; ++tier) {
    now_.offered[tier] /= loop_cpu_s * 1000;
    now_.handled[tier] /= loop_cpu_s * 1000;
  }
  series_.push_back(now_);
  now_ = {};
}

Figures Recorder::figures() const {
  Figures all;
  all.fill(kNothing);
  const auto set = [&all](Figure figure, double value) {
    all[static_cast<std::size_t>(figure)] = value;
  };
  const double budget_share = 0.9 - scenario_.game.base_share;
  const double event_ms =
      (std::min(scenario_.event.to_s, scenario_.seconds) - scenario_.event.from_s - kSettleS) *
      1000;
  set(Figure::useful_gross, ratio(useful_ms_, budget_share * event_ms));
  set(Figure::useful_net, ratio(useful_ms_, budget_share * event_ms - dropping_ms_));
  set(Figure::critical_sent, static_cast<double>(critical_sent_));
  set(Figure::critical_dropped, static_cast<double>(critical_dropped_));
  set(Figure::critical_lost,
      ratio(static_cast<double>(critical_lost_), static_cast<double>(critical_sent_)));
  set(Figure::critical_delay_p99, percentile(critical_delays_ms_, 0.99) / scenario_.game.tick_ms);
  set(Figure::critical_delay_p999, percentile(critical_delays_ms_, 0.999) / scenario_.game.tick_ms);
  set(Figure::standard_handled,
      ratio(static_cast<double>(standard_handled_), static_cast<double>(standard_first_)));
  set(Figure::tick_p99,
      percentile({ticks_ms_.begin(), ticks_ms_.end()}, 0.99) / scenario_.game.tick_ms);
  if (first_shed_ms_ != kNever) {
    set(Figure::time_to_shed, first_shed_ms_ - scenario_.event.from_s * 1000);
  }
  if (was_over_) {
    set(Figure::back_in_budget, back_in_budget_ms_ >= 0 ? back_in_budget_ms_ : kNever);
  }
  const double interval_s = 1.0 / scenario_.control_hz;
  const auto recovery = [&](double short_s) {
    if (short_s < scenario_.event.to_s) return 0.0;
    return short_s >= scenario_.seconds - 2 * interval_s ? kNever : short_s - scenario_.event.to_s;
  };
  const bool shed = first_shed_ms_ != kNever;
  if (policy_ == Policy::edgeshed && shed && scenario_.event.to_s < scenario_.seconds) {
    set(Figure::recover_standard, recovery(standard_short_s_));
    set(Figure::recover_all, recovery(all_short_s_));
  }
  if (policy_ == Policy::edgeshed) set(Figure::reversals, std::max(0, turns_ - 1));

  double sum = 0, squares = 0, flooded = 0, kept = 0, wanted = 0;
  std::uint32_t players = 0, flooders = 0;
  const std::uint32_t playing = traffic_.players_at(scenario_.event.from_s + 1e-3);
  for (std::uint32_t player = 0; player < traffic_.players(); ++player) {
    if (traffic_.shard_of(player) != 0 || player / scenario_.shards >= playing) continue;
    const double handled = handled_of_[player];
    if (traffic_.is_flooder(player)) {
      flooded += best_effort_of_[player];
      ++flooders;
      continue;
    }
    sum += handled;
    squares += handled * handled;
    kept += best_effort_of_[player];
    wanted += best_effort_sent_of_[player];
    ++players;
  }
  set(Figure::jain, ratio(sum * sum, players * squares));
  if (flooders > 0) set(Figure::flooder_share, ratio(flooded / flooders, kept / players));
  set(Figure::best_effort_kept, ratio(kept, wanted));
  set(Figure::retry_amplification,
      ratio(static_cast<double>(after_sent_), static_cast<double>(after_first_)));
  set(Figure::control_tick_max, control_tick_max_ms);
  return all;
}

}  // namespace edgeshed::sim
