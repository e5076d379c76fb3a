// What players send, and send again. Each lane of a player is a source with a phase and some jitter
// of its own; sources wait in a wheel of one bucket a millisecond.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "tools/sim/random.h"
#include "tools/sim/scenario.h"
#include "tools/sim/server.h"

namespace edgeshed::sim {

class Traffic {
 public:
  Traffic(const Scenario& scenario, std::uint64_t seed);

  /// All players that ever play, of all shards. Player p belongs to shard p % shards.
  std::uint32_t players() const { return players_; }
  std::uint32_t shard_of(std::uint32_t player) const { return player % scenario_.shards; }
  bool is_flooder(std::uint32_t player) const;
  /// Of shard 0 at that time.
  std::uint32_t players_at(double at_s) const;

  /// Everything that is sent in the millisecond that begins at `from_ms`, in order.
  const std::vector<Message>& send(double from_ms);

  /// A standard message was refused, with a time to wait if `told_ms` is above 0, or was not
  /// answered in time: its client may send it again.
  void refused(const Message& message, double at_ms, double told_ms);
  void unanswered(const Message& message, double at_ms);

 private:
  struct Source {
    std::uint32_t player = 0;
    std::uint8_t lane = 0;  ///< index into Game::lanes
    float interval_ms = 0;
    double due_ms = 0;
  };
  struct Later {
    bool operator()(const Message& a, const Message& b) const { return a.sent_ms > b.sent_ms; }
  };

  bool plays(std::uint32_t player, double at_s) const;
  void wait(std::uint32_t source);
  void start_players(double now_ms);
  void retry(Message message, double at_ms);
  double interval_ms(const Source& source, double at_ms);

  const Scenario& scenario_;
  Random random_;
  std::uint32_t players_ = 0;
  std::uint32_t per_shard_ = 0;
  std::uint32_t started_ = 0;  ///< players of shard 0 whose sources wait
  std::vector<Source> sources_;
  std::vector<std::vector<std::uint32_t>> wheel_;
  std::priority_queue<Message, std::vector<Message>, Later> retries_;
  std::vector<Message> sent_;
};

}  // namespace edgeshed::sim
