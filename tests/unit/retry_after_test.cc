// Control law B4 at its edges.
#include "userspace/core/retry_after.h"

#include <gtest/gtest.h>

namespace edgeshed::core {
namespace {

// Rule: B4
TEST(RetryAfter, WhoWaitsIsSpreadOverWhatTheRampNeeds) {
  const RetryAfter retry = retry_after(2, 600, 200);
  EXPECT_EQ(retry.least_s, 2);
  EXPECT_EQ(retry.spread_s, 3);
}

TEST(RetryAfter, StaysWithinOneAndThirtySeconds) {
  EXPECT_EQ(retry_after(0.05, 0, 100).least_s, 1);
  EXPECT_EQ(retry_after(0.05, 0, 100).spread_s, 0);
  EXPECT_EQ(retry_after(60, 1, 1).least_s, 30);
  EXPECT_EQ(retry_after(60, 1, 1).spread_s, 0);
  EXPECT_EQ(retry_after(8, 1e9, 1).spread_s, 22);
}

TEST(RetryAfter, WithoutARampNobodyIsSpread) { EXPECT_EQ(retry_after(1, 100, 0).spread_s, 0); }

}  // namespace
}  // namespace edgeshed::core
