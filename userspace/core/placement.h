// The capacity floor: whether a room may join a tick loop, checked against a budget before it does.
// Admission is all it decides; what runs already is never judged here. Pure, without memory: the
// caller keeps the usage, and adds to it what was admitted.
#pragma once

#include <cstdint>
#include <optional>

#include "userspace/core/codes.h"

namespace edgeshed::core {

/// All but critical_share_max provisional: no measurement of a real host stands behind them yet.
struct PlacementConfig {
  /// Rooms of the host, all shards together: the default of [host] rooms_max, which also bounds it.
  uint32_t host_rooms_max = 256;

  /// Players of the host: the default of [host] connections_max.
  uint32_t host_players_max = 4096;

  /// Players of one shard: 200 clients filled the loop of the simulation at 30 Hz; real servers do
  /// less for each.
  uint32_t shard_players_max = 512;

  /// Contracted critical of a shard, as a share of its budget. Critical is never shed by load, so
  /// what is promised must fit together with the base load and a margin. Found by simulation.
  double critical_share_max = 0.6;

  /// A shard whose tick ratio (p99 / budget) has come this far takes no more rooms: its ticks are
  /// late already.
  double shard_tick_ratio_max = 1.0;

  bool operator==(const PlacementConfig&) const = default;
};

/// What a room may be placed against: the configuration, and what the tables can hold.
struct PlacementBudget {
  PlacementConfig config;
  uint32_t rooms_max = 256;         ///< [host]
  uint32_t connections_max = 4096;  ///< [host]
};

/// How the room stands to the shard that asks.
enum class RoomStanding : uint8_t {
  free,              ///< known, and runs nowhere
  unknown,           ///< in no configuration
  placed,            ///< runs already
  of_another_shard,  ///< the configuration gives it to another shard
};

struct PlacementRequest {
  RoomStanding standing = RoomStanding::free;
  bool sharded = true;        ///< into a shard of this host; else only host scopes are checked
  uint32_t players = 0;       ///< expected; each needs a connection
  double critical_ratio = 0;  ///< contracted critical of the room / budget of the shard
};

struct HostUsage {
  uint32_t rooms = 0;
  uint32_t players = 0;      ///< expected of the rooms that are placed
  uint32_t connections = 0;  ///< records in the table, of any kind
};

struct ShardUsage {
  bool draining = false;  ///< by hand: takes no rooms until the operator says otherwise
  bool closed = false;    ///< on a rung that refuses joins
  uint32_t rooms = 0;
  uint32_t room_capacity = 0;  ///< 0: full
  uint32_t players = 0;
  double tick_ratio = 0;      ///< p99 of the last second / budget; 0: never reported
  double critical_ratio = 0;  ///< contracted critical of the rooms that are placed / budget
};

/// Nothing: admitted. Otherwise the refusal that names the first breached scope, in this order: the
/// room itself; the host's rooms, players, connections; and for a sharded placement whether the
/// shard drains or is closed, its rooms, its players, its tick (`runtime_shard_over_budget`), its
/// critical.
std::optional<Code> evaluate_room_placement(const PlacementRequest& request, const HostUsage& host,
                                            const ShardUsage& shard, const PlacementBudget& budget);

/// Contracted critical of a room / budget: `players` of a class that may send `packets_per_s` of
/// critical, each costing `cost_us` of the shard's loop, which has 10^6 us a second. A class
/// without a limit (0) promises nothing, and so adds nothing.
double contracted_critical_ratio(uint32_t players, double packets_per_s, double cost_us);

}  // namespace edgeshed::core
