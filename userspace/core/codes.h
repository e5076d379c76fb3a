// What a peer or an operator is told: the one list of codes. An entry makes the enum, the JSON
// name, the metrics label, the docs line and `edgeshed codes`. Why a packet got its verdict is
// another list (maps/reasons.h). Nothing here decides anything.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace edgeshed::core {

// category: name, text. What kind of answer a code is.
#define EDGESHED_CODE_CATEGORY_LIST(X)                              \
  X(health, "nothing is wrong")                                     \
  X(degraded, "it goes on with less than usual")                    \
  X(capacity, "there is no room for it now; later there may be")    \
  X(quota, "one peer took more than its share")                     \
  X(slow_consumer, "one peer reads more slowly than it is sent to") \
  X(invalid, "it cannot be right, now or later: the sender has to be corrected")

// scope: name. What a code speaks of.
#define EDGESHED_CODE_SCOPE_LIST(X) \
  X(host) X(shard) X(room) X(session) X(connection) X(player) X(stream) X(report)

// hint: name, text. What the sender of a rejected sample should do.
#define EDGESHED_CODE_HINT_LIST(X)                  \
  X(none, "")                                       \
  X(drop_next_sample, "leave the next sample out")  \
  X(downsample, "send less often, or less at once") \
  X(stop_stream, "send nothing of it until it is opened again")

enum class CodeCategory : uint8_t {
#define X(name, text) name,
  EDGESHED_CODE_CATEGORY_LIST(X)
#undef X
      count,
};

enum class CodeScope : uint8_t {
#define X(name) name,
  EDGESHED_CODE_SCOPE_LIST(X)
#undef X
      count,
};

enum class CodeHint : uint8_t {
#define X(name, text) name,
  EDGESHED_CODE_HINT_LIST(X)
#undef X
      count,
};

// code: name, category, scope, retry?, retry_after_ms, close code, hint, sentence that a player may
// read. The list is in groups; a ladder's rungs and a machine's states stand in their order, and
// the first six are the rungs of the shard ladder: rung r is code r. retry_after_ms lies in 1 to 30
// s, the range in which returns can be spread; 0: nothing to retry. The close code (of WebSocket,
// RFC 6455) is what a connection that ends so is closed with; 0: it does not end.
#define EDGESHED_CODE_LIST(X)                                                               \
  /* the shard ladder */                                                                    \
  X(shard_normal, health, shard, false, 0, 0, none, "The server is running normally.")      \
  X(shard_thin_snapshots, degraded, shard, false, 0, 0, none,                               \
    "The server is busy: distant movement may look less smooth.")                           \
  X(shard_reduce_snapshot_rate, degraded, shard, false, 0, 0, none,                         \
    "The server is busy: the world is updated less often.")                                 \
  X(shard_pause_lanes, degraded, shard, false, 0, 0, none,                                  \
    "The server is very busy: voice and effects are paused for a moment.")                  \
  X(shard_refuse_joins, capacity, shard, true, 5000, 0, none,                               \
    "The server is full: please try again in a few seconds.")                               \
  X(shard_migrate_or_close, capacity, shard, true, 30000, 0, none,                          \
    "The server is overloaded: please try another one, or come back in half a minute.")     \
  /* the room ladder */                                                                     \
  X(room_normal, health, room, false, 0, 0, none, "The match is running normally.")         \
  X(room_downsample_streams, degraded, room, false, 0, 0, none,                             \
    "The match is busy: some details are updated less often.")                              \
  X(room_drop_low_priority, degraded, room, false, 0, 0, none,                              \
    "The match is busy: what is far away may be missing for a moment.")                     \
  X(room_reject_commands, degraded, room, true, 1000, 0, none,                              \
    "The match is very busy: an action may have to be repeated.")                           \
  X(room_evict_slow_consumers, degraded, room, true, 5000, 0, none,                         \
    "The match is overloaded: players whose connection is too slow are disconnected.")      \
  X(room_unhealthy, capacity, room, true, 30000, 0, none,                                   \
    "The match cannot keep up: please try another one, or come back in half a minute.")     \
  /* a room's pressure */                                                                   \
  X(room_pressure_none, health, room, false, 0, 0, none, "Everyone in the match keeps up.") \
  X(room_pressure_watch, health, room, false, 0, 0, none,                                   \
    "Some players in the match begin to fall behind.")                                      \
  X(room_pressure_throttling, degraded, room, false, 0, 0, none,                            \
    "Players in the match fall behind: updates may arrive late.")                           \
  X(room_pressure_shedding, degraded, room, false, 0, 0, none,                              \
    "Players in the match are far behind: updates are left out.")                           \
  /* a slow consumer's stage */                                                             \
  X(consumer_ok, health, connection, false, 0, 0, none, "Your connection keeps up.")        \
  X(consumer_watch, slow_consumer, connection, false, 0, 0, none,                           \
    "Your connection begins to fall behind.")                                               \
  X(consumer_throttle, slow_consumer, connection, false, 0, 0, none,                        \
    "Your connection is slow: less important updates are left out.")                        \
  X(consumer_evict, slow_consumer, connection, true, 5000, 1008, none,                      \
    "Your connection is too slow for this match: please reconnect in a few seconds.")       \
  /* placement of a room */                                                                 \
  X(placement_closed, capacity, shard, true, 5000, 0, none,                                 \
    "No new matches are started here for a moment: please try again in a few seconds.")     \
  X(shard_draining, capacity, shard, true, 30000, 0, none,                                  \
    "This server takes no new matches: please try another one.")                            \
  X(placement_host_rooms, capacity, host, true, 30000, 0, none,                             \
    "This machine runs as many matches as it can: please try again in half a minute.")      \
  X(placement_host_players, capacity, host, true, 30000, 0, none,                           \
    "This machine has as many players as it can: please try again in half a minute.")       \
  X(placement_host_connections, capacity, host, true, 30000, 0, none,                       \
    "This machine has as many connections as it can: please try again in half a minute.")   \
  X(placement_shard_rooms, capacity, shard, true, 10000, 0, none,                           \
    "The server runs as many matches as it can: please try again in a few seconds.")        \
  X(placement_shard_players, capacity, shard, true, 10000, 0, none,                         \
    "The server has as many players as it can: please try again in a few seconds.")         \
  X(runtime_shard_over_budget, capacity, shard, true, 10000, 0, none,                       \
    "The server is too busy for another match: please try again in a few seconds.")         \
  X(placement_critical_over_bound, capacity, shard, true, 30000, 0, none,                   \
    "The server has promised all that it can keep: please try another one.")                \
  X(placement_room_unknown, invalid, room, false, 0, 0, none, "There is no such match.")    \
  X(placement_room_already_placed, invalid, room, false, 0, 0, none,                        \
    "The match is running already.")                                                        \
  X(placement_room_of_another_shard, invalid, room, false, 0, 0, none,                      \
    "The match belongs to another server.")                                                 \
  /* registration of a server, and of its connections */                                    \
  X(register_version_mismatch, invalid, session, false, 0, 0, none,                         \
    "The server has to be updated before it can be used.")                                  \
  X(register_user_not_allowed, invalid, session, false, 0, 0, none,                         \
    "The server is not allowed to run here.")                                               \
  X(register_shard_unknown, invalid, session, false, 0, 0, none,                            \
    "The server is not set up on this machine.")                                            \
  X(register_shard_taken, capacity, session, true, 5000, 0, none,                           \
    "The server is being replaced: please try again in a few seconds.")                     \
  X(register_rows_over_limit, invalid, session, false, 0, 0, none,                          \
    "The server asks for more players than this machine allows.")                           \
  X(register_table_full, capacity, host, true, 30000, 0, none,                              \
    "This machine knows as many players as it can: please try again in half a minute.")     \
  X(register_endpoint_unknown, invalid, connection, false, 0, 0, none,                      \
    "The server has no such address.")                                                      \
  X(register_class_unknown, invalid, connection, false, 0, 0, none,                         \
    "The server asks for a kind of player that is not set up.")                             \
  X(register_room_unknown, invalid, connection, false, 0, 0, none,                          \
    "There is no such match on this server.")                                               \
  X(register_other_session, invalid, connection, false, 0, 0, none,                         \
    "You are connected through another server.")                                            \
  /* reports of a server; a player hears of them only as "not used" */                      \
  X(report_negative, invalid, report, false, 0, 0, none,                                    \
    "A figure that the server reported is below zero and is not used.")                     \
  X(report_not_a_number, invalid, report, false, 0, 0, none,                                \
    "A figure that the server reported is no number and is not used.")                      \
  X(report_ring_out_of_range, invalid, report, false, 0, 0, none,                           \
    "The server reported a queue that is more than full; it is not used.")                  \
  X(report_sequence_back, invalid, report, false, 0, 0, none,                               \
    "The server's reports came out of order; the older one is not used.")                   \
  X(report_time_in_future, invalid, report, false, 0, 0, none,                              \
    "The server's report is dated in the future and is not used.")                          \
  X(report_room_in_no_shard, invalid, report, false, 0, 0, none,                            \
    "The server reported a match that runs nowhere; it is not used.")                       \
  /* the governor of state streams; the names are those of maps/reasons.h */                \
  X(stream_rate, quota, stream, true, 1000, 0, drop_next_sample,                            \
    "You send updates too often: one of them was left out.")                                \
  X(stream_bytes, quota, stream, true, 1000, 0, downsample,                                 \
    "You send too much at once: an update was left out.")                                   \
  X(player_bytes, quota, player, true, 1000, 0, downsample,                                 \
    "You send more than a player may: an update was left out.")                             \
  X(room_bytes, quota, room, true, 1000, 0, downsample,                                     \
    "All players of the match together send too much: an update was left out.")             \
  X(stream_cap, quota, player, false, 0, 0, none,                                           \
    "You send more kinds of updates than a player may: this one is left out.")              \
  X(stream_closed, quota, stream, false, 0, 0, stop_stream,                                 \
    "This kind of update is switched off for you.")                                         \
  X(stream_near_limit, quota, stream, false, 0, 0, downsample,                              \
    "You send almost as much as you may.")                                                  \
  X(stream_unmanaged, invalid, stream, false, 0, 0, none,                                   \
    "The server wanted to switch off an update that nobody watches.")

enum class Code : uint8_t {
#define X(name, category, scope, retry, retry_after_ms, close_code, hint, sentence) name,
  EDGESHED_CODE_LIST(X)
#undef X
      count,
};

/// One code, as told. `retry_after_ms` is before jitter.
struct CodeInfo {
  const char* name;
  const char* category;
  const char* scope;
  bool retry;
  uint32_t retry_after_ms;
  uint16_t close_code;
  CodeHint hint;
  const char* sentence;
};

inline constexpr const char* kCodeCategoryNames[] = {
#define X(name, text) #name,
    EDGESHED_CODE_CATEGORY_LIST(X)
#undef X
};
inline constexpr const char* kCodeScopeNames[] = {
#define X(name) #name,
    EDGESHED_CODE_SCOPE_LIST(X)
#undef X
};
inline constexpr const char* kCodeHintNames[] = {
#define X(name, text) #name,
    EDGESHED_CODE_HINT_LIST(X)
#undef X
};

inline constexpr CodeInfo kCodes[] = {
#define X(name, category, scope, retry, retry_after_ms, close_code, hint, sentence) \
  {#name,                                                                           \
   kCodeCategoryNames[static_cast<uint8_t>(CodeCategory::category)],                \
   kCodeScopeNames[static_cast<uint8_t>(CodeScope::scope)],                         \
   retry,                                                                           \
   retry_after_ms,                                                                  \
   close_code,                                                                      \
   CodeHint::hint,                                                                  \
   sentence},
    EDGESHED_CODE_LIST(X)
#undef X
};
static_assert(std::size(kCodes) < 256, "a code is one byte");

/// The entry of a code; `code` must be below Code::count.
constexpr const CodeInfo& code_info(Code code) { return kCodes[static_cast<uint8_t>(code)]; }

/// The code of a name, exactly as in the list.
constexpr std::optional<Code> find_code(std::string_view name) {
  for (uint32_t i = 0; i < std::size(kCodes); ++i) {
    if (name == kCodes[i].name) return static_cast<Code>(i);
  }
  return std::nullopt;
}

constexpr const char* hint_name(CodeHint hint) {
  return kCodeHintNames[static_cast<uint8_t>(hint)];
}

/// The code that many places behind `first`: how ladders and machines find theirs.
constexpr Code code_after(Code first, uint8_t places) {
  return static_cast<Code>(static_cast<uint8_t>(first) + places);
}

/// The code that rung 0 to 5 of the shard ladder emits.
constexpr Code rung_code(uint8_t rung) { return static_cast<Code>(rung); }

/// The code that rung 0 to 5 of the room ladder emits.
constexpr Code room_rung_code(uint8_t rung) { return code_after(Code::room_normal, rung); }

static_assert(rung_code(5) == Code::shard_migrate_or_close);
static_assert(room_rung_code(5) == Code::room_unhealthy);

}  // namespace edgeshed::core
