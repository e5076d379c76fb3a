// The fuzz target on its seeds and on bytes of a generator, so that it cannot rot.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/law_target.h"

namespace edgeshed::test {
namespace {

TEST(LawCorpus, HoldsOnEverySeed) {
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(EDGESHED_LAW_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    ASSERT_TRUE(file.is_open()) << entry.path();
    const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    EXPECT_EQ(run_law(bytes), "") << entry.path();
    ++seeds;
  }
  EXPECT_GE(seeds, 5);
}

TEST(LawCorpus, HoldsOnRandomBytes) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    std::vector<uint8_t> bytes(random() % 2000);
    // Half of them are mostly ticks in which nothing special happens.
    const uint32_t plain = seed % 2 == 0 ? 4 : 1;
    for (uint8_t& byte : bytes) {
      byte = random() % plain == 0 ? static_cast<uint8_t>(random()) : uint8_t{0};
    }
    ASSERT_EQ(run_law(bytes), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace edgeshed::test
