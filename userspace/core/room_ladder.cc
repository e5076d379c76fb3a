// The room ladder as a list of conditions, highest rung first.
#include "userspace/core/room_ladder.h"

#include "userspace/core/time_units.h"

namespace edgeshed::core {
namespace {

constexpr const char* kRungNames[kRoomRungs] = {
#define X(name, release) #name,
    EDGESHED_ROOM_RUNG_LIST(X)
#undef X
};
constexpr const char* kReleaseTexts[kRoomRungs] = {
#define X(name, release) release,
    EDGESHED_ROOM_RUNG_LIST(X)
#undef X
};
constexpr const char* kRoomCauseNames[] = {
#define X(name, text) #name,
    EDGESHED_ROOM_CAUSE_LIST(X)
#undef X
};
constexpr const char* kRoomCauseTexts[] = {
#define X(name, text) text,
    EDGESHED_ROOM_CAUSE_LIST(X)
#undef X
};

}  // namespace

const char* room_rung_name(uint8_t rung) { return kRungNames[rung]; }

const char* room_release_text(uint8_t rung) { return kReleaseTexts[rung]; }

const char* room_cause_name(RoomCause cause) {
  return kRoomCauseNames[static_cast<uint8_t>(cause)];
}

const char* room_cause_text(RoomCause cause) {
  return kRoomCauseTexts[static_cast<uint8_t>(cause)];
}

double step(TickFuse& fuse, double tick_ratio, uint64_t now_ns) {
  if (!(tick_ratio >= kFuseTickRatio)) {
    fuse.since_ns = 0;
    return 0;
  }
  if (fuse.since_ns == 0 || now_ns < fuse.since_ns) fuse.since_ns = now_ns;
  return static_cast<double>(now_ns - fuse.since_ns) / kNsPerS;
}

RoomDegradation evaluate_room_ladder(const RoomLadderInput& input) {
  if (input.critical_ratio > 1) return {5, RoomCause::critical_over_budget};
  if (input.tick_twice_s >= kFuseDwellS) return {5, RoomCause::tick_fuse};
  if (input.consumers_at_evict > 0) return {4, RoomCause::slow_consumer};
  if (input.keep_standard < 1) return {3, RoomCause::standard_keep};
  if (input.keep_best_effort < 1) return {2, RoomCause::best_effort_keep};
  if (input.governor_rejects) return {1, RoomCause::governor_rejects};
  if (input.stream_keep < 1) return {1, RoomCause::stream_keep};
  return {};
}

bool step(RoomRung& place, const RoomDegradation& found, uint64_t now_ns) {
  if (found.rung < place.now.rung) {
    if (place.below_since_ns == 0 || now_ns < place.below_since_ns) {
      place.below_since_ns = now_ns;
    }
    if (now_ns - place.below_since_ns < kRoomReleaseNs) return false;
  }
  place.below_since_ns = 0;
  const bool another = found.rung != place.now.rung;
  place.now = found;
  if (another) place.since_ns = now_ns;
  return another;
}

}  // namespace edgeshed::core
