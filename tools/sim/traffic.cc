#include "tools/sim/traffic.h"

#include <algorithm>
#include <cmath>

#include "maps/plan.h"
#include "userspace/core/model.h"

namespace edgeshed::sim {
namespace {

constexpr std::size_t kWheelMs = 16384;
/// Frames of a client are not exact: an interval is its mean times 1 +- this.
constexpr double kJitter = 0.25;
constexpr std::uint8_t kRetriesMax = 2;
/// A client that does not wait answers a refusal at its next frame.
constexpr double kNaiveMs = 50;
constexpr double kInStepMs = 500;

std::uint8_t tier_of(std::uint8_t lane) {
  static const std::uint16_t tiers = core::default_lane_tiers();
  return es_lane_tier(tiers, lane);
}

double largest_load(const Scenario& scenario) {
  double largest = 0;
  for (const LoadStep& step : scenario.load) largest = std::max(largest, step.load);
  return largest;
}

std::uint32_t players_of(const Scenario& scenario, double load) {
  return static_cast<std::uint32_t>(std::lround(load * scenario.game.players));
}

}  // namespace

Traffic::Traffic(const Scenario& scenario, std::uint64_t seed)
    : scenario_(scenario), random_(seed), wheel_(kWheelMs) {
  per_shard_ = players_of(scenario, largest_load(scenario));
  players_ = per_shard_ * scenario.shards;
  sources_.reserve(std::size_t{players_} * scenario.game.lanes.size());
  for (std::uint32_t player = 0; player < players_; ++player) {
    for (std::size_t lane = 0; lane < scenario.game.lanes.size(); ++lane) {
      Source source;
      source.player = player;
      source.lane = static_cast<std::uint8_t>(lane);
      source.interval_ms = static_cast<float>(1000 / scenario.game.lanes[lane].per_s);
      sources_.push_back(source);
    }
  }
  start_players(0);
}

bool Traffic::is_flooder(std::uint32_t player) const {
  return shard_of(player) == 0 && player / scenario_.shards < scenario_.flooders;
}

std::uint32_t Traffic::players_at(double at_s) const {
  double load = scenario_.load.front().load;
  for (const LoadStep& step : scenario_.load) {
    if (at_s >= step.at_s) load = step.load;
  }
  return players_of(scenario_, load);
}

bool Traffic::plays(std::uint32_t player, double at_s) const {
  const std::uint32_t of_shard = player / scenario_.shards;
  return of_shard < (shard_of(player) == 0 ? players_at(at_s) : players_at(0));
}

void Traffic::wait(std::uint32_t source) {
  const auto bucket = static_cast<std::size_t>(sources_[source].due_ms) % kWheelMs;
  wheel_[bucket].push_back(source);
}

/// Players who begin now, each at a phase of its own.
void Traffic::start_players(double now_ms) {
  const std::uint32_t playing = players_at(now_ms / 1000);
  const auto lanes = static_cast<std::uint32_t>(scenario_.game.lanes.size());
  const bool first = now_ms == 0;
  for (std::uint32_t player = 0; player < players_; ++player) {
    const std::uint32_t of_shard = player / scenario_.shards;
    const bool begins = first ? plays(player, 0)
                              : shard_of(player) == 0 && of_shard >= started_ && of_shard < playing;
    for (std::uint32_t lane = 0; begins && lane < lanes; ++lane) {
      const std::uint32_t source = player * lanes + lane;
      sources_[source].due_ms = now_ms + random_.between(0, sources_[source].interval_ms);
      wait(source);
    }
  }
  started_ = playing;
}

double Traffic::interval_ms(const Source& source, double at_ms) {
  const std::uint8_t lane = scenario_.game.lanes[source.lane].lane;
  const bool floods = is_flooder(source.player) && scenario_.flood.covers(at_ms / 1000) &&
                      tier_of(lane) != ES_TIER_critical;
  const double mean_ms = source.interval_ms / (floods ? scenario_.flood_factor : 1);
  return mean_ms * random_.between(1 - kJitter, 1 + kJitter);
}

const std::vector<Message>& Traffic::send(double from_ms) {
  sent_.clear();
  const std::uint32_t playing = players_at(from_ms / 1000);
  if (playing > started_) start_players(from_ms);
  started_ = std::min(started_, playing);
  const double to_ms = from_ms + 1;
  std::vector<std::uint32_t> due;
  due.swap(wheel_[static_cast<std::size_t>(from_ms) % kWheelMs]);
  for (const std::uint32_t number : due) {
    Source& source = sources_[number];
    if (!plays(source.player, from_ms / 1000)) continue;
    while (source.due_ms < to_ms) {
      const std::uint8_t lane = scenario_.game.lanes[source.lane].lane;
      sent_.push_back({source.due_ms, source.due_ms, source.player, lane, tier_of(lane), 0});
      source.due_ms += interval_ms(source, source.due_ms);
    }
    wait(number);
  }
  while (!retries_.empty() && retries_.top().sent_ms < to_ms) {
    Message message = retries_.top();
    retries_.pop();
    message.sent_ms = std::max(message.sent_ms, from_ms);
    if (plays(message.player, from_ms / 1000)) sent_.push_back(message);
  }
  std::sort(sent_.begin(), sent_.end(),
            [](const Message& a, const Message& b) { return a.sent_ms < b.sent_ms; });
  return sent_;
}

void Traffic::retry(Message message, double at_ms) {
  if (message.attempt >= kRetriesMax || scenario_.retries == Retries::none) return;
  ++message.attempt;
  message.sent_ms = at_ms;
  retries_.push(message);
}

void Traffic::refused(const Message& message, double at_ms, double told_ms) {
  if (message.tier != ES_TIER_standard) return;
  if (scenario_.retries == Retries::synchronised) {
    retry(message, (std::floor(at_ms / kInStepMs) + 1) * kInStepMs);
  } else if (scenario_.retries == Retries::obeying && told_ms > 0) {
    retry(message, at_ms + told_ms);
  } else {
    retry(message, at_ms + kNaiveMs);
  }
}

void Traffic::unanswered(const Message& message, double at_ms) {
  if (message.tier != ES_TIER_standard) return;
  const double timeout_ms = message.sent_ms + deadline_ms(ES_TIER_standard);
  const double patience_ms =
      scenario_.retries == Retries::obeying ? random_.between(1000, 2000) : 0;
  double again_ms = std::max(at_ms, timeout_ms + patience_ms);
  if (scenario_.retries == Retries::synchronised) {
    again_ms = (std::floor(again_ms / kInStepMs) + 1) * kInStepMs;
  }
  retry(message, again_ms);
}

}  // namespace edgeshed::sim
