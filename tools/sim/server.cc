#include "tools/sim/server.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "maps/lanes.h"

namespace edgeshed::sim {
namespace {

/// Ticks that are remembered: a report of a second, and the longest delay of feedback.
constexpr double kRememberMs = 3000;
constexpr double kSecondMs = 1000;

/// What a server of its own policy pays for a message that it refuses after reading it.
constexpr double kRefusalMs = 0.005;

// Facebook's CoDel for servers: everything that waited twice the target goes while the least wait
// of an interval was over it.
constexpr double kCodelTargetMs = 1000.0 / 30;
constexpr double kCodelIntervalMs = 100;

// DAGOR: 128 levels a tier; the level moves by 5 % down and 1 % up, once a second or 2,000
// requests, by whether the queueing time is over 20 ms beyond the half tick that is inherent.
constexpr std::uint32_t kDagorLevels = 128;
constexpr double kDagorWaitMs = 20;
constexpr double kDagorWindowMs = 1000;
constexpr std::uint32_t kDagorWindowCount = 2000;

std::uint32_t dagor_priority(const Message& message) {
  std::uint64_t hash = (message.player + 1) * 0x9E3779B97F4A7C15ull;
  hash ^= hash >> 29;
  hash *= 0xBF58476D1CE4E5B9ull;
  hash ^= hash >> 32;
  return message.tier * kDagorLevels + static_cast<std::uint32_t>(hash % kDagorLevels);
}

}  // namespace

double deadline_ms(std::uint8_t tier) {
  // Two ticks, a quarter of a second for an answer that a player waits for, three ticks.
  constexpr double kDeadlinesMs[ES_TIERS] = {2000.0 / 30, 250, 100};
  return kDeadlinesMs[tier];
}

Server::Server(const Scenario& scenario, Policy policy, std::uint64_t seed)
    : scenario_(scenario), policy_(policy), random_(seed) {
  // Loops do not tick in step.
  next_ms_ = random_.between(0, scenario.game.tick_ms);
  dagor_.seen.resize(std::size_t{ES_TIERS} * kDagorLevels);
  dagor_.level = ES_TIERS * kDagorLevels;
  codel_.least_ms = kNever;
}

void Server::receive(const Message& message, Ends& ends) {
  if (policy_ == Policy::dagor && dagor_refuses(message)) {
    ends.end(message, End::shed, message.sent_ms, 0);
    return;
  }
  if (queue_.size() >= scenario_.game.queue_max) {
    ends.end(message, End::queue_full, message.sent_ms, 0);
    return;
  }
  queue_.push_back(message);
}

void Server::run(double now_ms, Ends& ends) {
  while (next_ms_ <= now_ms) tick(next_ms_, ends);
  if (policy_ == Policy::dagor) dagor_adapt(now_ms);
}

void Server::tick(double begin_ms, Ends& ends) {
  double now_ms = begin_ms + std::exchange(owed_ms_, 0);
  std::uint32_t taken = 0;
  while (taken < scenario_.game.take_max && !queue_.empty() && queue_.front().sent_ms <= begin_ms) {
    const Message message = queue_.front();
    queue_.pop_front();
    ++taken;
    dagor_.wait_ms += now_ms - message.sent_ms;
    ++dagor_.waited;
    if (policy_ == Policy::codel && codel_refuses(message, now_ms)) {
      now_ms += kRefusalMs;
      ends.end(message, End::shed, now_ms, 0);
      continue;
    }
    const double spent_ms = cost_ms(message, begin_ms);
    now_ms += spent_ms;
    const bool in_time = now_ms - message.sent_ms <= deadline_ms(message.tier);
    ends.end(message, in_time ? End::handled : End::late, now_ms, spent_ms * 1000);
  }
  const double slow = scenario_.slow.covers(begin_ms / 1000) ? scenario_.slow_factor : 1;
  now_ms += scenario_.game.base_share * scenario_.game.tick_ms * slow;

  busy_ms_ += now_ms - begin_ms;
  ticks_.push_back({begin_ms, now_ms, busy_ms_, 0});
  ticks_.back().p99_ms = p99_ms(now_ms);
  while (ticks_.front().end_ms < now_ms - kRememberMs) ticks_.pop_front();
  next_ms_ = std::max(now_ms, begin_ms + scenario_.game.tick_ms);
}

double Server::cost_ms(const Message& message, double at_ms) {
  const double spread = scenario_.game.cost_spread;
  const double slow = scenario_.slow.covers(at_ms / 1000) ? scenario_.slow_factor : 1;
  for (const LaneLoad& lane : scenario_.game.lanes) {
    if (lane.lane == message.lane)
      return lane.cost_us / 1000 * random_.between(1 - spread, 1 + spread) * slow;
  }
  return 0;
}

double Server::p99_ms(double end_ms) const {
  std::vector<double> durations;
  for (auto tick = ticks_.rbegin(); tick != ticks_.rend(); ++tick) {
    if (tick->end_ms < end_ms - kSecondMs) break;
    durations.push_back(tick->end_ms - tick->begin_ms);
  }
  std::sort(durations.begin(), durations.end());
  const auto rank =
      static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(durations.size())));
  return durations[rank - 1];
}

const Tick* Server::reported(double at_ms) const {
  for (auto tick = ticks_.rbegin(); tick != ticks_.rend(); ++tick) {
    if (tick->end_ms <= at_ms) return &*tick;
  }
  return nullptr;
}

double Server::running_age_ms(double at_ms) const {
  for (auto tick = ticks_.rbegin(); tick != ticks_.rend(); ++tick) {
    if (tick->begin_ms <= at_ms) return at_ms < tick->end_ms ? at_ms - tick->begin_ms : 0;
  }
  return 0;
}

bool Server::codel_refuses(const Message& message, double now_ms) {
  if (now_ms > codel_.interval_end_ms) {
    codel_.over = codel_.least_ms > kCodelTargetMs;
    codel_.least_ms = kNever;
    codel_.interval_end_ms = now_ms + kCodelIntervalMs;
  }
  const double waited_ms = now_ms - message.sent_ms;
  codel_.least_ms = std::min(codel_.least_ms, waited_ms);
  return codel_.over && waited_ms > 2 * kCodelTargetMs;
}

bool Server::dagor_refuses(const Message& message) {
  const std::uint32_t priority = dagor_priority(message);
  ++dagor_.seen[priority];
  ++dagor_.count;
  if (priority >= dagor_.level) return true;
  ++dagor_.admitted;
  return false;
}

void Server::dagor_adapt(double now_ms) {
  const bool due = now_ms - dagor_.window_ms >= kDagorWindowMs || dagor_.count >= kDagorWindowCount;
  if (!due || dagor_.count == 0 || dagor_.waited == 0) return;
  const double inherent_ms = scenario_.game.tick_ms / 2;
  const bool overloaded = dagor_.wait_ms / dagor_.waited > kDagorWaitMs + inherent_ms;
  auto below = static_cast<double>(
      std::accumulate(dagor_.seen.begin(), dagor_.seen.begin() + dagor_.level, 0u));
  if (overloaded) {
    const double wanted = 0.95 * dagor_.admitted;
    while (below > wanted && dagor_.level > 1) below -= dagor_.seen[--dagor_.level];
  } else {
    const double wanted = dagor_.admitted + 0.01 * dagor_.count + 1;
    while (below < wanted && dagor_.level < dagor_.seen.size())
      below += dagor_.seen[dagor_.level++];
  }
  std::fill(dagor_.seen.begin(), dagor_.seen.end(), 0);
  dagor_.count = dagor_.admitted = dagor_.waited = 0;
  dagor_.wait_ms = 0;
  dagor_.window_ms = now_ms;
}

}  // namespace edgeshed::sim
