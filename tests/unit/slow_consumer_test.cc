// Conformance of the slow-consumer machine: every threshold's edges, and the latch.
#include "userspace/core/slow_consumer.h"

#include <gtest/gtest.h>

namespace edgeshed::core {
namespace {

constexpr SlowConsumerConfig kConfig = {100, 200, 300};

TEST(SlowConsumer, EdgesOfEveryThreshold) {
  struct Row {
    uint64_t bytes;
    SlowConsumer stage;
  };
  constexpr Row kRows[] = {
      {0, SlowConsumer::ok},         {99, SlowConsumer::ok},        {100, SlowConsumer::watch},
      {101, SlowConsumer::watch},    {199, SlowConsumer::watch},    {200, SlowConsumer::throttle},
      {201, SlowConsumer::throttle}, {299, SlowConsumer::throttle}, {300, SlowConsumer::evict},
      {301, SlowConsumer::evict},    {~0ull, SlowConsumer::evict},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(step(SlowConsumer::ok, row.bytes, kConfig), row.stage) << row.bytes;
  }
}

// Rule: A5
TEST(SlowConsumer, OnlyRises) {
  for (uint8_t from = 0; from < static_cast<uint8_t>(SlowConsumer::count); ++from) {
    const auto stage = static_cast<SlowConsumer>(from);
    for (const uint64_t bytes : {0, 100, 200, 300}) {
      const SlowConsumer next = step(stage, bytes, kConfig);
      EXPECT_GE(next, stage);
      EXPECT_EQ(next, std::max(stage, step(SlowConsumer::ok, bytes, kConfig)));
    }
  }
}

TEST(SlowConsumer, ThrottleDropsLowPriorityOnlyAndEvictDropsAll) {
  for (const bool low_priority : {false, true}) {
    EXPECT_FALSE(drops_frame(SlowConsumer::ok, low_priority));
    EXPECT_FALSE(drops_frame(SlowConsumer::watch, low_priority));
    EXPECT_EQ(drops_frame(SlowConsumer::throttle, low_priority), low_priority);
    EXPECT_TRUE(drops_frame(SlowConsumer::evict, low_priority));
  }
}

TEST(SlowConsumer, NamesAndCodes) {
  const char* const kNames[] = {"ok", "watch", "throttle", "evict"};
  for (uint8_t i = 0; i < 4; ++i) {
    const auto stage = static_cast<SlowConsumer>(i);
    EXPECT_STREQ(slow_consumer_name(stage), kNames[i]);
    EXPECT_EQ(std::string(code_info(slow_consumer_code(stage)).name),
              std::string("consumer_") + kNames[i]);
    EXPECT_STRNE(slow_consumer_text(stage), "");
  }
  EXPECT_EQ(code_info(slow_consumer_code(SlowConsumer::evict)).close_code, 1008);
}

TEST(SlowConsumer, ConfigurationMustRise) {
  EXPECT_EQ(check_slow_consumer_config({}), "");
  EXPECT_EQ(check_slow_consumer_config({1, 2, 3}), "");
  EXPECT_EQ(check_slow_consumer_config({0, 2, 3}), "watch_bytes must be above 0");
  EXPECT_EQ(check_slow_consumer_config({2, 2, 3}), "throttle_bytes must be above watch_bytes");
  EXPECT_EQ(check_slow_consumer_config({1, 3, 3}), "evict_bytes must be above throttle_bytes");
}

}  // namespace
}  // namespace edgeshed::core
