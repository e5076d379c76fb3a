// A fuzz target on its seeds and on bytes of a generator, so that it cannot rot, and so that what
// breaks it for everybody is found without a fuzzer.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace edgeshed::test {
namespace {

using Input = std::vector<uint8_t>;

struct Seed {
  std::string name;
  Input bytes;
};

/// The corpus, in the order of the files' names.
std::vector<Seed> read_seeds() {
  std::vector<Seed> seeds;
  const std::string folder = std::string(EDGESHED_FUZZ_DIR) + "/" + kTargetName + "_corpus";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    EXPECT_TRUE(file.is_open()) << entry.path();
    const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
    seeds.push_back({entry.path().filename(), Input(text.begin(), text.end())});
  }
  std::sort(seeds.begin(), seeds.end(),
            [](const Seed& a, const Seed& b) { return a.name < b.name; });
  return seeds;
}

/// One change of the kinds that a fuzzer makes.
void mutate(Input& bytes, const Input& other, std::mt19937& random) {
  const size_t at = bytes.empty() ? 0 : random() % bytes.size();
  const auto here = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random() % 5) {
    case 0:
      if (!bytes.empty()) *here ^= static_cast<uint8_t>(1u << random() % 8);
      break;
    case 1:
      if (!bytes.empty()) *here = random() % 2 == 0 ? 0xff : static_cast<uint8_t>(random());
      break;
    case 2:
      bytes.insert(here, 1 + random() % 8, static_cast<uint8_t>(random()));
      break;
    case 3:
      bytes.erase(here, bytes.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(
                                            bytes.size(), at + 1 + random() % 16)));
      break;
    default:
      bytes.resize(at);
      bytes.insert(bytes.end(), other.begin(), other.end());
  }
}

TEST(Corpus, HoldsOnEverySeed) {
  const std::vector<Seed> seeds = read_seeds();
  EXPECT_GE(seeds.size(), 5u);
  for (const Seed& seed : seeds) EXPECT_EQ(run_target(seed.bytes), "") << seed.name;
}

TEST(Corpus, HoldsOnChangedSeeds) {
  const std::vector<Seed> seeds = read_seeds();
  ASSERT_FALSE(seeds.empty());
  for (uint32_t number = 1; number <= 300; ++number) {
    std::mt19937 random(number);
    Input bytes = seeds[number % seeds.size()].bytes;
    for (uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
      mutate(bytes, seeds[random() % seeds.size()].bytes, random);
    }
    ASSERT_EQ(run_target(bytes), "") << seeds[number % seeds.size()].name << ", run " << number;
  }
}

TEST(Corpus, HoldsOnRandomBytes) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    Input bytes(random() % 2000);
    // Half of them are mostly zeros: values at which nothing special happens.
    const uint32_t plain = seed % 2 == 0 ? 4 : 1;
    for (uint8_t& byte : bytes) {
      byte = random() % plain == 0 ? static_cast<uint8_t>(random()) : uint8_t{0};
    }
    ASSERT_EQ(run_target(bytes), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace edgeshed::test
