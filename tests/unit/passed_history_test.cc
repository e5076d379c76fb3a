// What had passed at a moment: between notes, outside them, and after they went round.
#include "userspace/core/passed_history.h"

#include <gtest/gtest.h>

namespace edgeshed::core {
namespace {

/// A different count for every lane, so that one in the wrong place shows.
LaneCounts counts(uint64_t first) {
  LaneCounts passed = {};
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) passed[lane] = first * (lane + 1);
  return passed;
}

TEST(PassedHistory, OneNoteIsTheAnswerToAll) {
  PassedHistory history;
  history.note(1000, counts(7));
  for (const uint64_t at_ns : {0u, 999u, 1000u, 5000u}) EXPECT_EQ(history.at(at_ns), counts(7));
}

TEST(PassedHistory, BetweenTwoNotesByTime) {
  PassedHistory history;
  history.note(1000, counts(100));
  history.note(2000, counts(200));
  EXPECT_EQ(history.at(1000), counts(100));
  EXPECT_EQ(history.at(1250), counts(125));
  EXPECT_EQ(history.at(1990), counts(199));
  EXPECT_EQ(history.at(2000), counts(200));
}

TEST(PassedHistory, RoundsDownSoThatNothingIsCountedBeforeItPassed) {
  PassedHistory history;
  history.note(1000, counts(0));
  history.note(2000, counts(1));
  EXPECT_EQ(history.at(1999)[0], 0u);
  EXPECT_EQ(history.at(1999)[7], 7u);
}

TEST(PassedHistory, OutsideTheNotesIsTheNearest) {
  PassedHistory history;
  for (uint64_t i = 1; i <= 5; ++i) history.note(1000 * i, counts(10 * i));
  EXPECT_EQ(history.at(0), counts(10));
  EXPECT_EQ(history.at(999), counts(10));
  EXPECT_EQ(history.at(5001), counts(50));
  EXPECT_EQ(history.at(~uint64_t{0}), counts(50));
}

TEST(PassedHistory, RemembersTheLastEntries) {
  PassedHistory history;
  constexpr uint64_t kNotes = 3 * PassedHistory::kEntries + 5;
  constexpr uint64_t kOldest = kNotes - PassedHistory::kEntries + 1;
  for (uint64_t i = 1; i <= kNotes; ++i) history.note(1000 * i, counts(10 * i));
  for (uint64_t i = kOldest; i < kNotes; ++i) {
    EXPECT_EQ(history.at(1000 * i), counts(10 * i)) << i;
    EXPECT_EQ(history.at(1000 * i + 500), counts(10 * i + 5)) << i;
  }
  EXPECT_EQ(history.at(1000 * kNotes), counts(10 * kNotes));
  EXPECT_EQ(history.at(1000 * kOldest - 1), counts(10 * kOldest)) << "older ones are gone";
  EXPECT_EQ(history.at(1), counts(10 * kOldest));
}

TEST(PassedHistory, ExactlyFullIsNoSpecialCase) {
  for (uint64_t notes = PassedHistory::kEntries - 1; notes <= PassedHistory::kEntries + 1;
       ++notes) {
    PassedHistory history;
    for (uint64_t i = 1; i <= notes; ++i) history.note(1000 * i, counts(10 * i));
    const uint64_t oldest = notes > PassedHistory::kEntries ? 2 : 1;
    EXPECT_EQ(history.at(0), counts(10 * oldest)) << notes;
    EXPECT_EQ(history.at(1000 * notes - 500), counts(10 * notes - 5)) << notes;
  }
}

TEST(PassedHistory, TwoNotesOfOneTimeAreTheLaterOne) {
  PassedHistory history;
  history.note(1000, counts(10));
  history.note(2000, counts(20));
  history.note(2000, counts(30));
  EXPECT_EQ(history.at(2000), counts(30));
  EXPECT_EQ(history.at(1500), counts(15));
  EXPECT_EQ(history.at(3000), counts(30));
}

TEST(PassedHistory, ATimeThatGoesBackBeginsAnew) {
  PassedHistory history;
  for (uint64_t i = 1; i <= 5; ++i) history.note(1000 * i, counts(10 * i));
  history.note(4999, counts(60));
  for (const uint64_t at_ns : {0u, 2500u, 4999u, 6000u}) EXPECT_EQ(history.at(at_ns), counts(60));
  history.note(6999, counts(80));
  EXPECT_EQ(history.at(5999), counts(70));
}

TEST(PassedHistory, ACountThatGoesBackBeginsAnew) {
  PassedHistory history;
  for (uint64_t i = 1; i <= 5; ++i) history.note(1000 * i, counts(10 * i));
  LaneCounts one_less = counts(60);
  one_less[ES_LANES - 1] = counts(50)[ES_LANES - 1] - 1;
  history.note(6000, one_less);
  for (const uint64_t at_ns : {0u, 2500u, 5500u, 6000u}) EXPECT_EQ(history.at(at_ns), one_less);
}

TEST(PassedHistory, NeverGoesBackWhileCountsGrow) {
  PassedHistory history;
  uint64_t now_ns = 1'000'000'000;
  LaneCounts passed = {};
  for (int i = 0; i < 200; ++i) {
    now_ns += 1 + static_cast<uint64_t>(i * 7919 % 33'000'000);
    for (uint32_t lane = 0; lane < ES_LANES; ++lane) passed[lane] += (i * (lane + 3)) % 11;
    history.note(now_ns, passed);
  }
  LaneCounts last = {};
  for (uint64_t at_ns = now_ns - 600'000'000; at_ns <= now_ns + 1'000'000; at_ns += 999'983) {
    const LaneCounts here = history.at(at_ns);
    for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
      EXPECT_GE(here[lane], last[lane]);
      EXPECT_LE(here[lane], passed[lane]);
    }
    last = here;
  }
}

}  // namespace
}  // namespace edgeshed::core
