#include "userspace/daemon/room_watch.h"

#include <algorithm>

namespace edgeshed::daemon {
namespace {

std::uint32_t load_once(const std::uint32_t& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}

/// Bytes that count for the stage: those of evict only once they have stood for the dwell.
std::uint64_t patient_bytes(WatchedPeer& peer, std::uint64_t bytes, std::uint64_t now_ns,
                            const core::SlowConsumerConfig& config) {
  if (bytes < config.evict_bytes) {
    peer.evict_since_ns = 0;
    return bytes;
  }
  if (peer.evict_since_ns == 0) peer.evict_since_ns = now_ns;
  const double stood_s = static_cast<double>(now_ns - peer.evict_since_ns) / 1e9;
  return stood_s >= kEvictDwellS ? bytes : config.evict_bytes - 1;
}

}  // namespace

core::RoomConnection watch(WatchedPeer& peer, const es_board_connection& row,
                           std::optional<std::uint32_t> seen_lag, std::uint64_t now_ns,
                           const core::Model& model) {
  const std::uint64_t bytes =
      patient_bytes(peer, load_once(row.buffered_bytes), now_ns, model.slow_consumer);
  peer.stage = core::step(peer.stage, bytes, model.slow_consumer);
  const std::uint32_t rejects = load_once(row.rejects[0]) + load_once(row.rejects[1]);
  core::RoomConnection connection;
  const std::uint32_t latest = load_once(row.latest_seq);
  const std::uint32_t acked = load_once(row.acked_seq);
  const bool reported = latest != 0 || acked != 0;
  connection.ack_lag = reported ? core::ack_lag(latest, acked) : seen_lag.value_or(0);
  connection.consumer = peer.stage;
  connection.rejects_per_s = core::step(peer.rejects, rejects, now_ns);
  return connection;
}

void RoomWatch::begin() {
  // An observation is a third of a kilobyte: only those that were added to are made anew.
  for (std::size_t room = 0; room < observed_.size(); ++room) {
    if (observed_[room].connections() == 0) continue;
    observed_[room] = {};
    at_evict_[room] = 0;
  }
}

void RoomWatch::add(std::uint16_t room, const core::RoomConnection& connection,
                    const core::Model& model) {
  observed_[room].add(connection, model.room_state);
  if (connection.consumer == core::SlowConsumer::evict) ++at_evict_[room];
}

void RoomWatch::end(const core::Model& model,
                    const std::function<void(std::uint16_t, const core::RoomState&)>& changed) {
  for (std::size_t room = 0; room < observed_.size(); ++room) {
    // Nobody there, and nobody there before: nothing to work out.
    if (observed_[room].connections() == 0 && states_[room].connections == 0) continue;
    const core::RoomPressure before = states_[room].pressure;
    states_[room] = core::evaluate_room_state(observed_[room], model.room_state);
    if (states_[room].pressure != before) {
      changed(static_cast<std::uint16_t>(room), states_[room]);
    }
  }
}

bool RoomWatch::governor_rejects(std::uint16_t room, std::uint64_t now_ns) const {
  // A second of the packet path, and one look of the service thread.
  constexpr std::uint64_t kNewsNs = 1'200'000'000;
  return governor_ns_[room] != 0 && now_ns - governor_ns_[room] < kNewsNs;
}

}  // namespace edgeshed::daemon
