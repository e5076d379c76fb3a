#include "userspace/daemon/ack_watch.h"

#include <algorithm>
#include <cmath>

#include "maps/lanes.h"
#include "userspace/core/time_units.h"

namespace edgeshed::daemon {
namespace {

constexpr std::uint64_t kLookEveryNs = core::kNsPerS;
constexpr std::uint32_t kFreshSeconds = 3;

std::uint8_t load_once(const std::uint8_t& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

}  // namespace

std::optional<std::uint32_t> seen_ack_lag(const es_ack_watch& acks, std::uint8_t protocol,
                                          double update_ms, const Jiffies& jiffies) {
  const std::uint8_t at = load_once(acks.acked_at);
  if (at == 0) return std::nullopt;
  std::uint8_t age = static_cast<std::uint8_t>(jiffies.now >> ES_ACK_AT_SHIFT) - at;
  // The packet path may be a moment ahead of the daemon's clock, and says 1 where 0 would be never.
  if (age >= 254) age = 0;
  const std::uint32_t fresh = std::max(2u, kFreshSeconds * jiffies.hz >> ES_ACK_AT_SHIFT);
  if (age > fresh) return std::nullopt;
  const std::uint32_t lag = load_once(acks.lag);
  if (protocol != ES_PROTOCOL_enet) return lag;
  return static_cast<std::uint32_t>(std::lround(lag * ES_ACK_LAG_UNIT_MS / update_ms));
}

void AckWatch::look(const Connections& connections, const core::Model& model,
                    const Jiffies& jiffies, std::uint64_t now_ns) {
  if (looked_ns_ != 0 && now_ns - looked_ns_ < kLookEveryNs) return;
  looked_ns_ = now_ns;
  by_session_.clear();
  unowned_.clear();
  measured_.assign(model.rooms.size(), false);
  connections.each_acked(
      [&](const Connections::Owner& owner, const es_connection& record, es_ack_watch& acks) {
        const std::size_t index = record.key.endpoint - std::size_t{1};
        const std::uint16_t room = record.policy.room;
        if (index >= model.endpoints.size() || room >= model.rooms.size()) return;
        if (!core::exists(model.rooms[room])) return;
        const double update_ms = model.shards[model.rooms[room].shard].frame_budget_ms;
        const auto lag = seen_ack_lag(acks, model.endpoints[index].protocol, update_ms, jiffies);
        if (!lag) {
          // Before its eight bits come around and it looks new.
          __atomic_store_n(&acks.acked_at, std::uint8_t{0}, __ATOMIC_RELAXED);
          return;
        }
        measured_[room] = true;
        if (owner.session == Connections::kNoSession) {
          unowned_.push_back({room, *lag});
          return;
        }
        auto& rows = by_session_[owner.session];
        if (owner.row >= rows.size()) rows.resize(owner.row + std::size_t{1}, -1);
        rows[owner.row] = static_cast<std::int32_t>(*lag);
      });
}

std::optional<std::uint32_t> AckWatch::lag_of(std::uint32_t session, std::uint32_t row) const {
  const auto found = by_session_.find(session);
  if (found == by_session_.end() || row >= found->second.size()) return std::nullopt;
  const std::int32_t lag = found->second[row];
  return lag < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(lag));
}

void AckWatch::each_unowned(
    const std::function<void(std::uint16_t room, std::uint32_t lag)>& each) const {
  for (const Unowned& one : unowned_) each(one.room, one.lag);
}

}  // namespace edgeshed::daemon
