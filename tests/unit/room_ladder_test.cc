// Conformance of the room ladder: each condition alone, at its edge, and that the highest wins.
#include "userspace/core/room_ladder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace edgeshed::core {
namespace {

constexpr uint64_t kS = 1'000'000'000;

double just_below(double value) { return std::nextafter(value, 0.0); }
double just_above(double value) { return std::nextafter(value, 10.0); }

void expect(const RoomLadderInput& input, uint8_t rung, RoomCause cause) {
  const RoomDegradation found = evaluate_room_ladder(input);
  EXPECT_EQ(found.rung, rung);
  EXPECT_EQ(found.cause, cause) << room_cause_name(found.cause);
}

TEST(RoomLadder, NothingHolds) {
  expect({}, 0, RoomCause::none);
  expect({.critical_ratio = 1, .tick_twice_s = just_below(3)}, 0, RoomCause::none);
}

// Rule: A2
TEST(RoomLadder, EachConditionAlone) {
  expect({.governor_rejects = true}, 1, RoomCause::governor_rejects);
  expect({.stream_keep = just_below(1)}, 1, RoomCause::stream_keep);
  expect({.stream_keep = 0}, 1, RoomCause::stream_keep);
  expect({.keep_best_effort = just_below(1)}, 2, RoomCause::best_effort_keep);
  expect({.keep_best_effort = 0}, 2, RoomCause::best_effort_keep);
  expect({.keep_standard = just_below(1)}, 3, RoomCause::standard_keep);
  expect({.keep_standard = 0}, 3, RoomCause::standard_keep);
  expect({.consumers_at_evict = 1}, 4, RoomCause::slow_consumer);
  expect({.critical_ratio = just_above(1)}, 5, RoomCause::critical_over_budget);
  expect({.tick_twice_s = 3}, 5, RoomCause::tick_fuse);
}

TEST(RoomLadder, TheHighestRungWins) {
  RoomLadderInput input;
  input.governor_rejects = true;
  input.stream_keep = 0.5;
  expect(input, 1, RoomCause::governor_rejects);
  input.keep_best_effort = 0.5;
  expect(input, 2, RoomCause::best_effort_keep);
  input.keep_standard = 0.5;
  expect(input, 3, RoomCause::standard_keep);
  input.consumers_at_evict = 2;
  expect(input, 4, RoomCause::slow_consumer);
  input.tick_twice_s = 60;
  expect(input, 5, RoomCause::tick_fuse);
  input.critical_ratio = 2;
  expect(input, 5, RoomCause::critical_over_budget);
  // The order is fixed, not a sum: what is below may be whole.
  expect({.keep_best_effort = 1, .keep_standard = 0.9}, 3, RoomCause::standard_keep);
}

TEST(RoomLadder, TheFuseNeedsThreeSecondsWithoutABreak) {
  TickFuse fuse;
  EXPECT_EQ(step(fuse, 5, 10 * kS), 0);
  EXPECT_EQ(step(fuse, 2, 12 * kS), 2);
  EXPECT_EQ(step(fuse, just_below(2), 12 * kS + 1), 0) << "one tick below ends it";
  EXPECT_EQ(step(fuse, 2, 13 * kS), 0);
  EXPECT_EQ(step(fuse, 2, 16 * kS - 1), (3 * kS - 1) / 1e9);
  EXPECT_LT(step(fuse, 2, 16 * kS - 1), kFuseDwellS);
  EXPECT_EQ(step(fuse, 2, 16 * kS), kFuseDwellS);
  EXPECT_EQ(step(fuse, std::nan(""), 17 * kS), 0) << "a missing signal holds nothing";
  step(fuse, 2, 20 * kS);
  EXPECT_EQ(step(fuse, 2, 19 * kS), 0) << "a clock that went back begins again";
}

TEST(RoomLadder, EveryRungHasItsCodeNameAndRelease) {
  for (uint8_t rung = 0; rung < kRoomRungs; ++rung) {
    const RoomDegradation found = {rung, RoomCause::none};
    EXPECT_EQ(std::string(code_info(found.code()).name),
              std::string("room_") + room_rung_name(rung));
    EXPECT_STRNE(found.release(), "");
  }
  EXPECT_STREQ(room_release_text(0), "nothing");
  for (uint8_t i = 0; i < static_cast<uint8_t>(RoomCause::count); ++i) {
    EXPECT_STRNE(room_cause_text(static_cast<RoomCause>(i)), "");
  }
}

TEST(RoomRung, GoesUpAtOnceAndDownAfterASecondOfNothing) {
  RoomRung place;
  EXPECT_FALSE(step(place, {}, kS));
  EXPECT_TRUE(step(place, {2, RoomCause::best_effort_keep}, 2 * kS));
  EXPECT_TRUE(step(place, {3, RoomCause::standard_keep}, 2 * kS + 1));
  EXPECT_EQ(place.since_ns, 2 * kS + 1);
  EXPECT_FALSE(step(place, {}, 3 * kS));
  EXPECT_FALSE(step(place, {}, 4 * kS - 1));
  EXPECT_EQ(place.now.rung, 3);
  EXPECT_TRUE(step(place, {1, RoomCause::stream_keep}, 4 * kS));
  EXPECT_EQ(place.now.cause, RoomCause::stream_keep);
  EXPECT_EQ(place.since_ns, 4 * kS);
}

TEST(RoomRung, WhatHoversIsOneChange) {
  RoomRung place;
  int changes = 0;
  for (uint64_t i = 1; i <= 100; ++i) {
    const RoomDegradation found =
        i % 5 == 0 ? RoomDegradation{2, RoomCause::best_effort_keep} : RoomDegradation{};
    changes += step(place, found, i * kS / 10);
  }
  EXPECT_EQ(changes, 1);
}

TEST(RoomRung, AnotherCauseOfTheSameRungIsShownAndNoChange) {
  RoomRung place;
  EXPECT_TRUE(step(place, {1, RoomCause::governor_rejects}, kS));
  EXPECT_FALSE(step(place, {1, RoomCause::stream_keep}, 2 * kS));
  EXPECT_EQ(place.now.cause, RoomCause::stream_keep);
  EXPECT_EQ(place.since_ns, kS);
}

}  // namespace
}  // namespace edgeshed::core
