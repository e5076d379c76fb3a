// How far players are behind, as the packet path saw their acknowledgements go by: for servers that
// do not report it, and for players of no server. Service thread only; sheds nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "userspace/core/model.h"
#include "userspace/daemon/connections.h"

namespace edgeshed::daemon {

/// The kernel's clock, for words that hold its low bits.
struct Jiffies {
  std::uint64_t now = 0;
  std::uint32_t hz = 1;
};

/// Updates that a player is behind, as its last acknowledgement says; `update_ms`: between two
/// updates, for ENet, which tells times. Nullopt: none came within the last three seconds (at 100
/// Hz up to eight).
std::optional<std::uint32_t> seen_ack_lag(const es_ack_watch& acks, std::uint8_t protocol,
                                          double update_ms, const Jiffies& jiffies);

/// One pass over the table a second, kept by whom a connection belongs to.
class AckWatch {
 public:
  /// Does nothing sooner than a second after the last pass.
  void look(const Connections& connections, const core::Model& model, const Jiffies& jiffies,
            std::uint64_t now_ns);

  /// Of a session's connection; nullopt: not measured.
  [[nodiscard]] std::optional<std::uint32_t> lag_of(std::uint32_t session, std::uint32_t row) const;
  /// Every measured connection that no session has.
  void each_unowned(const std::function<void(std::uint16_t room, std::uint32_t lag)>& each) const;
  /// Whether any connection of the room was measured.
  [[nodiscard]] bool measures(std::uint16_t room) const {
    return room < measured_.size() && measured_[room];
  }

 private:
  struct Unowned {
    std::uint16_t room = 0;
    std::uint32_t lag = 0;
  };
  std::map<std::uint32_t, std::vector<std::int32_t>> by_session_;  // by row; below 0: not measured
  std::vector<Unowned> unowned_;
  std::vector<bool> measured_;  // by room
  std::uint64_t looked_ns_ = 0;
};

}  // namespace edgeshed::daemon
