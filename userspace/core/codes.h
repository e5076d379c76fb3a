// What a peer or an operator is told: the one list of codes. An entry makes the enum, the JSON
// name, the metrics label, the docs line and `edgeshed codes`. Why a packet got its verdict is
// another list (maps/reasons.h). Nothing here decides anything.
#pragma once

#include <cstdint>

namespace edgeshed::core {

// code: name, category, scope, retry?, retry_after_ms, sentence that a player may read.
// The first six are the rungs of the shard ladder, in its order: rung r is code r.
// retry_after_ms lies in 1 to 30 s, the range in which returns can be spread; 0: nothing to retry.
#define EDGESHED_CODE_LIST(X)                                                 \
  X(shard_normal, health, shard, false, 0, "The server is running normally.") \
  X(shard_thin_snapshots, degraded, shard, false, 0,                          \
    "The server is busy: distant movement may look less smooth.")             \
  X(shard_reduce_snapshot_rate, degraded, shard, false, 0,                    \
    "The server is busy: the world is updated less often.")                   \
  X(shard_pause_lanes, degraded, shard, false, 0,                             \
    "The server is very busy: voice and effects are paused for a moment.")    \
  X(shard_refuse_joins, capacity, shard, true, 5000,                          \
    "The server is full: please try again in a few seconds.")                 \
  X(shard_migrate_or_close, capacity, shard, true, 30000,                     \
    "The server is overloaded: please try another one, or come back in half a minute.")

enum class Code : uint8_t {
#define X(name, category, scope, retry, retry_after_ms, sentence) name,
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
  const char* sentence;
};

inline constexpr CodeInfo kCodes[] = {
#define X(name, category, scope, retry, retry_after_ms, sentence) \
  {#name, #category, #scope, retry, retry_after_ms, sentence},
    EDGESHED_CODE_LIST(X)
#undef X
};

/// The entry of a code; `code` must be below Code::count.
constexpr const CodeInfo& code_info(Code code) { return kCodes[static_cast<uint8_t>(code)]; }

/// The code that rung 0 to 5 of the shard ladder emits.
constexpr Code rung_code(uint8_t rung) { return static_cast<Code>(rung); }

}  // namespace edgeshed::core
