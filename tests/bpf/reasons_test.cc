// Every reason of maps/reasons.h is reached by a test of this program. Checked when all have run.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"

namespace edgeshed::test {
namespace {

class EveryReasonIsReached : public testing::Environment {
 public:
  void TearDown() override {
    if (testing::GTEST_FLAG(filter) != "*") return;  // not all tests have run
    for (std::uint8_t reason = 0; reason < ES_REASONS; ++reason)
      EXPECT_TRUE(reasons_seen()[reason]) << "no test reaches reason " << reason_name(reason);
  }
};

[[maybe_unused]] const testing::Environment* const kEveryReason =
    testing::AddGlobalTestEnvironment(new EveryReasonIsReached);

TEST(ReasonsTest, PlanesSayTheVerdictAndOutcomeOfTheList) {
#define X(name, verdict, outcome, text)                                          \
  EXPECT_EQ(es_reason_verdict(ES_REASON_##name), ES_VERDICT_##verdict) << #name; \
  EXPECT_EQ(es_reason_outcome(ES_REASON_##name), ES_OUTCOME_##outcome) << #name;
  ES_REASON_LIST(X)
#undef X
}

}  // namespace
}  // namespace edgeshed::test
