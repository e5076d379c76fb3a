// A server that became slower, seen in its running tick; and everything that only looks like it.
#include "userspace/core/tick_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace edgeshed::core {
namespace {

constexpr double kBudgetMs = 33.3;
constexpr double kBaseMs = 2;
constexpr double kControlMs = 1000.0 / 60;
constexpr TickWatchConfig kConfig;

/// A game server that takes up all that waits when a tick begins, and a control loop at 60 Hz that
/// looks at it. Costs of messages are told in ms of work, as they are known.
struct Loop {
  double work_per_ms = 0.5;  ///< known cost of what passes in one ms
  double slowness = 1;       ///< what it really costs, over that

  TickWatch watch;
  double now_ms = 1000;
  double passed_ms = 0;
  double tick_begin_ms = 0;
  double tick_end_ms = 0;
  double next_begin_ms = 1000;
  double taken_ms = 0;  ///< of what passed, taken up by the last tick

  double age_ms() const { return now_ms < tick_end_ms ? now_ms - tick_begin_ms : 0; }

  /// 1 ms of the world.
  void advance() {
    now_ms += 1;
    if (now_ms >= next_begin_ms) {
      tick_begin_ms = now_ms;
      tick_end_ms = now_ms + kBaseMs + (passed_ms - taken_ms) * slowness;
      next_begin_ms = std::max(tick_end_ms, tick_begin_ms + kBudgetMs);
      taken_ms = passed_ms;
    }
    passed_ms += work_per_ms;
  }
  void tick() {
    const double until_ms = now_ms + kControlMs;
    while (now_ms + 1 <= until_ms) advance();
    look();
  }
  void look() {
    step(watch, passed_ms, age_ms(), kBaseMs, kBudgetMs, kConfig,
         static_cast<uint64_t>(now_ms * 1e6));
  }
  template <typename Look>
  void run(double seconds, Look after) {
    for (const double end_ms = now_ms + 1000 * seconds; now_ms < end_ms;) {
      tick();
      after();
    }
  }
  void run(double seconds) {
    run(seconds, [] {});
  }
};

TEST(TickWatch, ATickThatTakesWhatItShouldIsNoNews) {
  for (const double load : {0.1, 0.5, 0.8, 0.93}) {
    Loop loop;
    loop.work_per_ms = load;
    loop.run(10, [&] { EXPECT_EQ(loop.watch.factor, 1) << load; });
  }
}

TEST(TickWatch, WithinItsToleranceToo) {
  Loop loop;
  loop.slowness = 1.15;
  loop.run(10, [&] { EXPECT_EQ(loop.watch.factor, 1); });
}

TEST(TickWatch, AServerThreeTimesSlowerIsSeenInItsFirstSlowTick) {
  // At .4 it would end 9 ms over its budget: between two looks.
  for (const double load : {0.6, 0.7, 0.8}) {
    Loop loop;
    loop.work_per_ms = load;
    loop.run(5);
    loop.slowness = 3;
    // The first tick that is slow is the next to begin.
    const double begin_ms = loop.next_begin_ms;
    while (loop.now_ms < begin_ms + 1) loop.advance();
    const double end_ms = loop.tick_end_ms;
    double seen_ms = 0;
    double at_end = 1;
    while (loop.now_ms < end_ms) {
      at_end = loop.watch.factor;
      loop.tick();
      if (seen_ms == 0 && loop.watch.factor > 1 && loop.now_ms < end_ms) seen_ms = loop.now_ms;
    }
    EXPECT_GT(seen_ms, 0) << load;
    EXPECT_GT(at_end, 1.2) << load;
    loop.run(0.5);
    EXPECT_NEAR(loop.watch.factor, 3, 0.45) << load;
  }
}

TEST(TickWatch, AtLessLoadInTheSecondOrThird) {
  Loop loop;
  loop.work_per_ms = 0.4;
  loop.run(5);
  loop.slowness = 3;
  loop.run(0.3);
  EXPECT_NEAR(loop.watch.factor, 3, 0.6);
}

TEST(TickWatch, NeverSaysMuchMoreThanItIs) {
  for (const double slowness : {1.5, 2.0, 3.0}) {
    Loop loop;
    loop.run(5);
    loop.slowness = slowness;
    loop.run(3, [&] { EXPECT_LE(loop.watch.factor, slowness * 1.15) << slowness; });
  }
}

TEST(TickWatch, GoesBackAfterATickThatTookNoLongerThanItShould) {
  Loop loop;
  loop.run(5);
  loop.slowness = 3;
  loop.run(0.5);
  ASSERT_GT(loop.watch.factor, 1.5);
  // Costs are known by now, or the server is itself again.
  loop.slowness = 1;
  double last_ms = loop.now_ms;
  loop.run(3, [&] {
    if (loop.watch.factor > 1) last_ms = loop.now_ms;
  });
  EXPECT_EQ(loop.watch.factor, 1);
  EXPECT_LT(last_ms - (loop.now_ms - 3000), 1500);
}

TEST(TickWatch, WorkThatPiledUpIsNoSlowness) {
  Loop loop;
  loop.run(5);
  // One tick stands still for three budgets, for a reason of its own...
  loop.tick_end_ms = loop.next_begin_ms = loop.tick_begin_ms + 3 * kBudgetMs;
  const double stands_until_ms = loop.tick_end_ms;
  loop.run(0.05 + (stands_until_ms - loop.now_ms) / 1000);
  // ...and those that work off what came meanwhile take as long as they should.
  loop.run(0.2);
  loop.run(5, [&] { EXPECT_EQ(loop.watch.factor, 1); });
}

TEST(TickWatch, ABurstIsWorkThatIsKnown) {
  Loop loop;
  loop.run(5);
  loop.passed_ms += 60;  // two ticks' worth at once
  loop.run(2, [&] { EXPECT_EQ(loop.watch.factor, 1); });
}

TEST(TickWatch, HardlyAnyMessagesSayNothingUpToTheBudget) {
  Loop loop;
  loop.work_per_ms = 0.001;
  loop.run(5, [&] { EXPECT_EQ(loop.watch.factor, 1); });
  // 25 ms of a server's own work in a tick are within its budget.
  for (int i = 0; i < 10; ++i) {
    loop.run(0.2);
    loop.tick_end_ms = loop.tick_begin_ms + 25;
    loop.run(0.2, [&] { EXPECT_EQ(loop.watch.factor, 1); });
  }
}

TEST(TickWatch, WithoutMessagesTheFactorStaysWithinItsBounds) {
  Loop loop;
  loop.work_per_ms = 0;
  loop.run(1);
  loop.tick_end_ms = loop.next_begin_ms = loop.tick_begin_ms + 1e4;
  loop.run(5, [&] { EXPECT_LE(loop.watch.factor, kConfig.factor_max); });
  EXPECT_EQ(loop.watch.factor, kConfig.factor_max);
}

TEST(TickWatch, NeverBeyondFactorMax) {
  Loop loop;
  loop.run(5);
  loop.slowness = 20;
  double most = 1;
  loop.run(3, [&] { most = std::max(most, loop.watch.factor); });
  EXPECT_EQ(most, kConfig.factor_max);
}

TEST(TickWatch, ACounterThatGoesBackBeginsAnew) {
  Loop loop;
  loop.run(5);
  loop.slowness = 3;
  loop.run(0.5);
  ASSERT_GT(loop.watch.factor, 1);
  loop.slowness = 1;
  loop.passed_ms = loop.taken_ms = 0;
  loop.look();
  EXPECT_EQ(loop.watch.factor, 1);
  loop.tick_end_ms = loop.next_begin_ms = loop.now_ms;
  loop.run(5, [&] { EXPECT_EQ(loop.watch.factor, 1); });
}

TEST(TickWatch, OfTheFirstTickNothingIsExpected) {
  Loop loop;
  loop.passed_ms = 60;  // waits, and takes 62 ms
  loop.run(2, [&] { EXPECT_EQ(loop.watch.factor, 1) << loop.now_ms; });
}

TEST(TickWatch, AClockThatGoesBackBeginsAnew) {
  Loop loop;
  loop.run(5);
  loop.slowness = 3;
  loop.run(0.5);
  ASSERT_GT(loop.watch.factor, 1);
  step(loop.watch, loop.passed_ms, 100, kBaseMs, kBudgetMs, kConfig, 1'000'000'000);
  EXPECT_EQ(loop.watch.factor, 1);
  EXPECT_EQ(loop.watch.at_ns, 1'000'000'000u);
}

TEST(TickWatch, TheFirstLookSaysNothing) {
  TickWatch watch;
  step(watch, 1e9, 1e6, kBaseMs, kBudgetMs, kConfig, 1);
  EXPECT_EQ(watch.factor, 1);
}

TEST(TickWatch, ATickOlderThanTheClockIsBounded) {
  TickWatch watch;
  step(watch, 0, 0, kBaseMs, kBudgetMs, kConfig, 1'000'000);
  step(watch, 1, 1e12, kBaseMs, kBudgetMs, kConfig, 2'000'000);
  EXPECT_GE(watch.factor, 1);
  EXPECT_LE(watch.factor, kConfig.factor_max);
}

TEST(TickWatch, AMissingBudgetIsNoDivisionByZero) {
  TickWatch watch;
  for (uint64_t now_ns = 1'000'000; now_ns < 1'000'000'000; now_ns += 16'666'667) {
    step(watch, 0, 5, 0, 0, kConfig, now_ns);
    EXPECT_GE(watch.factor, 1);
    EXPECT_LE(watch.factor, kConfig.factor_max);
  }
}

}  // namespace
}  // namespace edgeshed::core
