// A game server's loop: takes what its socket holds at the start of a tick, works it off in order,
// then its base work; a tick that was too long starts the next one late. With a policy of its own
// where the scenario says so.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "tools/sim/random.h"
#include "tools/sim/scenario.h"

namespace edgeshed::sim {

struct Message {
  double sent_ms = 0;   ///< this attempt
  double first_ms = 0;  ///< the first attempt
  std::uint32_t player = 0;
  std::uint8_t lane = 0;
  std::uint8_t tier = 0;
  std::uint8_t attempt = 0;
};

/// What became of a message.
enum class End : std::uint8_t {
  handled,     ///< within its deadline
  late,        ///< handled, but nobody waits for it any more
  shed,        ///< refused by EdgeShed, or by the policy
  queue_full,  ///< the socket had no room
};

/// Told of every message that ends. `done_ms`: when.
class Ends {
 public:
  virtual ~Ends() = default;
  virtual void end(const Message& message, End end, double done_ms, double cost_us) = 0;
};

/// A tick that was, or runs.
struct Tick {
  double begin_ms = 0;
  double end_ms = 0;
  double busy_ms_ever = 0;  ///< at its end
  double p99_ms = 0;        ///< over the second that ended with it
};

class Server {
 public:
  Server(const Scenario& scenario, Policy policy, std::uint64_t seed);

  /// A message that reached the socket. Must not go back in time.
  void receive(const Message& message, Ends& ends);

  /// Work of the kernel on this loop's CPU for packets that were shed before it, in ms.
  void spend(double ms) { owed_ms_ += ms; }

  /// Runs the ticks that begin up to `now_ms`.
  void run(double now_ms, Ends& ends);

  /// What a report that left at `at_ms` or before says; null: none yet.
  const Tick* reported(double at_ms) const;
  /// How long the tick that runs at `at_ms` has been running; 0: none runs.
  double running_age_ms(double at_ms) const;

  std::size_t queued() const { return queue_.size(); }
  const std::deque<Tick>& ticks() const { return ticks_; }

 private:
  void tick(double begin_ms, Ends& ends);
  double cost_ms(const Message& message, double at_ms);
  double p99_ms(double end_ms) const;

  // The baselines.
  bool codel_refuses(const Message& message, double now_ms);
  bool dagor_refuses(const Message& message);
  void dagor_adapt(double now_ms);

  const Scenario& scenario_;
  Policy policy_;
  Random random_;
  std::deque<Message> queue_;
  std::deque<Tick> ticks_;  // of the last seconds
  double next_ms_ = 0;
  double busy_ms_ = 0;
  double owed_ms_ = 0;

  struct {
    double interval_end_ms = 0, least_ms = 0;
    bool over = false;
  } codel_;
  struct {
    std::vector<std::uint32_t> seen;
    std::uint32_t level = 0;  ///< priorities below pass
    std::uint32_t count = 0, admitted = 0, waited = 0;
    double wait_ms = 0, window_ms = 0;
  } dagor_;
};

/// Deadline of a tier: after it nobody waits any more.
double deadline_ms(std::uint8_t tier);

}  // namespace edgeshed::sim
