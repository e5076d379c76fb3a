// The list of codes: what holds for every entry, the groups in their order, and the page of docs/.
#include "userspace/core/codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "maps/reasons.h"
#include "userspace/core/codes_text.h"
#include "userspace/session/wire.h"

namespace edgeshed::core {
namespace {

TEST(Codes, EveryEntryIsSound) {
  std::set<std::string> names;
  for (const CodeInfo& info : kCodes) {
    const std::string name = info.name;
    const std::string sentence = info.sentence;
    EXPECT_TRUE(names.insert(name).second) << name << " is twice in the list";
    EXPECT_LT(name.size(), ES_SESSION_NAME_BYTES) << name;
    EXPECT_LT(sentence.size(), ES_SESSION_TEXT_BYTES) << name;
    EXPECT_TRUE(sentence.ends_with('.')) << name;
    EXPECT_EQ(sentence.find_first_of("|\n\""), std::string::npos) << name;
    EXPECT_EQ(info.retry, info.retry_after_ms != 0) << name;
    if (info.retry) {
      EXPECT_GE(info.retry_after_ms, 1000u) << name;
      EXPECT_LE(info.retry_after_ms, 30000u) << name;
      EXPECT_EQ(info.retry_after_ms % 1000, 0u) << name << ": the page tells whole seconds";
    }
    if (info.hint != CodeHint::none) {
      EXPECT_STREQ(info.category, "quota") << name;
    }
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Code::count));
}

TEST(Codes, AreFoundByTheirExactName) {
  for (uint32_t i = 0; i < std::size(kCodes); ++i) {
    EXPECT_EQ(find_code(kCodes[i].name), static_cast<Code>(i));
  }
  EXPECT_FALSE(find_code(""));
  EXPECT_FALSE(find_code("shard_norma"));
  EXPECT_FALSE(find_code("shard_normal "));
  EXPECT_FALSE(find_code("Shard_normal"));
  EXPECT_FALSE(find_code("count"));
}

TEST(Codes, LaddersStandInTheirOrder) {
  const char* const kShard[] = {
      "shard_normal",      "shard_thin_snapshots", "shard_reduce_snapshot_rate",
      "shard_pause_lanes", "shard_refuse_joins",   "shard_migrate_or_close"};
  const char* const kRoom[] = {
      "room_normal",          "room_downsample_streams",   "room_drop_low_priority",
      "room_reject_commands", "room_evict_slow_consumers", "room_unhealthy"};
  for (uint8_t rung = 0; rung <= 5; ++rung) {
    EXPECT_STREQ(code_info(rung_code(rung)).name, kShard[rung]);
    EXPECT_STREQ(code_info(room_rung_code(rung)).name, kRoom[rung]);
    EXPECT_STREQ(code_info(room_rung_code(rung)).scope, "room");
  }
}

TEST(Codes, ShardOverBudgetIsACapacityCode) {
  const auto code = find_code("runtime_shard_over_budget");
  ASSERT_TRUE(code);
  EXPECT_STREQ(code_info(*code).category, "capacity");
  EXPECT_STREQ(code_info(*code).scope, "shard");
}

TEST(Codes, OnlyAnEvictedConsumerIsClosed) {
  for (const CodeInfo& info : kCodes) {
    EXPECT_EQ(info.close_code, std::string(info.name) == "consumer_evict" ? 1008 : 0) << info.name;
  }
}

TEST(Codes, EveryReasonOfTheGovernorHasItsCodeAndHint) {
  struct Reason {
    const char* name;
    const char* outcome;
  };
  constexpr Reason kReasons[] = {
#define X(name, verdict, outcome, text) {#name, #outcome},
      ES_REASON_LIST(X)
#undef X
  };
  uint32_t quotas = 0;
  for (const CodeInfo& info : kCodes) quotas += std::string(info.category) == "quota";
  for (const Reason& reason : kReasons) {
    if (std::string(reason.outcome) != "governor") continue;
    const auto code = find_code(reason.name);
    ASSERT_TRUE(code) << reason.name;
    EXPECT_STREQ(code_info(*code).category, "quota");
    --quotas;
  }
  EXPECT_EQ(quotas, 1u) << "stream_near_limit, which refuses nothing";
  EXPECT_EQ(code_info(Code::stream_rate).hint, CodeHint::drop_next_sample);
  EXPECT_EQ(code_info(Code::stream_bytes).hint, CodeHint::downsample);
  EXPECT_EQ(code_info(Code::player_bytes).hint, CodeHint::downsample);
  EXPECT_EQ(code_info(Code::room_bytes).hint, CodeHint::downsample);
  EXPECT_EQ(code_info(Code::stream_cap).hint, CodeHint::none);
  EXPECT_STREQ(hint_name(CodeHint::drop_next_sample), "drop_next_sample");
}

TEST(Codes, ThePageIsMadeFromTheList) {
  std::ifstream file(EDGESHED_CODES_PAGE);
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), codes_markdown())
      << "docs/codes.md is stale: edgeshed codes --markdown > docs/codes.md";
}

}  // namespace
}  // namespace edgeshed::core
