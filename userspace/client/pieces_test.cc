// The parts that need no daemon and no clock: thinning, percentile, event queue, header.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "userspace/client/client.h"

extern "C" int edgeshed_header_c99(void);
int edgeshed_header_cxx();

namespace edgeshed::client_test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

es_client_thin_rule rule(std::uint16_t keep, std::uint16_t interval_ms, std::uint32_t gap_ms) {
  return {.keep_q16 = keep, .min_interval_ms = interval_ms, .max_gap_ms = gap_ms};
}

/// Asks every `step_ms` for `count` times; the times of those that went out.
std::vector<std::uint32_t> sent(es_client_thin_rule thinned, std::uint32_t step_ms, int count) {
  es_client_thin state{.passed_ms = 1'000'000, .error_q16 = 0, .reserved = 0};
  std::vector<std::uint32_t> times;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t now = 1'000'000 + static_cast<std::uint32_t>(i) * step_ms;
    if (es_client_thin_judge(&state, thinned, now)) times.push_back(now - 1'000'000);
  }
  return times;
}

std::uint32_t widest_gap(const std::vector<std::uint32_t>& times) {
  std::uint32_t widest = 0;
  for (std::size_t i = 1; i < times.size(); ++i) widest = std::max(widest, times[i] - times[i - 1]);
  return widest;
}

TEST(Header, CompilesAsC99AndAsCxx11) {
  EXPECT_TRUE(edgeshed_header_c99());
  EXPECT_TRUE(edgeshed_header_cxx());
}

TEST(Thin, KeepAllSendsAll) { EXPECT_EQ(sent(rule(0xffff, 0, 0), 10, 100).size(), 100u); }

TEST(Thin, HalfIsEverySecondOne) {
  const auto times = sent(rule(0x8000, 0, 0), 10, 1000);
  EXPECT_EQ(times.size(), 500u);
  EXPECT_EQ(widest_gap(times), 20u);
}

TEST(Thin, AnyShareIsEvenlySpaced) {
  for (std::uint32_t keep = 1; keep < 0xffff; keep += 97) {
    const auto times = sent(rule(static_cast<std::uint16_t>(keep), 0, 0), 1, 20'000);
    const double share = keep / 65536.0;
    EXPECT_NEAR(static_cast<double>(times.size()), share * 20'000, 1.0) << keep;
    EXPECT_LE(widest_gap(times), std::ceil(1 / share)) << keep;
  }
}

TEST(Thin, NothingKeptStillSendsOnePerGap) {
  const auto times = sent(rule(0, 0, 100), 10, 1000);
  // Up to a quarter shorter each time, so that peers do not stay in step.
  EXPECT_GE(times.size(), 99u);
  EXPECT_LE(times.size(), 100u * 4 / 3 + 2);
  EXPECT_LE(widest_gap(times), 100u);
  EXPECT_TRUE(sent(rule(0, 0, 0), 10, 1000).empty());
}

TEST(Thin, TheGapIsAPromiseForSmallSharesToo) {
  EXPECT_LE(widest_gap(sent(rule(655, 0, 250), 33, 3000)), 250u + 33);
}

TEST(Thin, MinimumIntervalHoldsAtFullShareToo) {
  const auto times = sent(rule(0xffff, 50, 0), 10, 1000);
  EXPECT_EQ(widest_gap(times), 50u);
  EXPECT_EQ(times.size(), 199u);
  EXPECT_EQ(widest_gap(sent(rule(0x8000, 50, 0), 10, 1000)), 60u);
}

double p99_of(const std::vector<std::uint64_t>& durations_us) {
  const auto ticks = std::make_unique<es_client_ticks>();
  std::uint64_t now = 10'000'000'000;
  for (const std::uint64_t duration : durations_us) {
    ticks->started_ns = now - duration * 1000;
    es_client_ticks_ended(ticks.get(), now);
  }
  return es_client_ticks_p99_ms(ticks.get(), now);
}

TEST(TickP99, IsTheNearestRank) {
  std::mt19937 random(7);
  for (const std::size_t count : {1u, 2u, 30u, 99u, 100u, 101u, 128u, 200u, 999u, 1024u}) {
    std::vector<std::uint64_t> durations(count);
    for (auto& duration : durations) duration = random() % 50'000;
    auto sorted = durations;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t rank = (count * 99 + 99) / 100;  // ceil(0.99 count), from 1
    EXPECT_DOUBLE_EQ(p99_of(durations), static_cast<double>(sorted[rank - 1]) / 1000) << count;
  }
  EXPECT_EQ(p99_of({}), 0);
}

TEST(TickP99, ForgetsWhatIsOlderThanASecond) {
  const auto ticks = std::make_unique<es_client_ticks>();
  const std::uint64_t start = 5'000'000'000;
  ticks->started_ns = start - 900 * kMs;
  es_client_ticks_ended(ticks.get(), start);
  ticks->started_ns = start + 498 * kMs;
  es_client_ticks_ended(ticks.get(), start + 500 * kMs);
  EXPECT_EQ(es_client_ticks_p99_ms(ticks.get(), start + 1000 * kMs), 900);
  EXPECT_EQ(es_client_ticks_p99_ms(ticks.get(), start + 1001 * kMs), 2);
  EXPECT_EQ(es_client_ticks_p99_ms(ticks.get(), start + 1501 * kMs), 0);
  EXPECT_EQ(ticks->completed, 2u);
  EXPECT_EQ(ticks->busy_ns, 902 * kMs);
}

TEST(Events, KeepTheirOrderAndDropTheOldest) {
  const auto events = std::make_unique<es_client_events>();
  edgeshed_event event{};
  for (std::uint32_t i = 0; i < ES_CLIENT_EVENTS_MAX + 10; ++i) {
    event.value = i;
    es_client_event_push(events.get(), &event);
  }
  for (std::uint32_t i = 10; i < ES_CLIENT_EVENTS_MAX + 10; ++i) {
    ASSERT_TRUE(es_client_event_pop(events.get(), &event));
    EXPECT_EQ(event.value, i);
    EXPECT_EQ(event.dropped, i == 10 ? 10u : 0u);
  }
  EXPECT_FALSE(es_client_event_pop(events.get(), &event));
}

TEST(Names, AreTerminatedOrRefused) {
  char name[ES_SESSION_NAME_BYTES];
  EXPECT_TRUE(es_client_name(name, std::string(63, 'x').c_str()));
  EXPECT_EQ(std::strlen(name), 63u);
  EXPECT_FALSE(es_client_name(name, std::string(64, 'x').c_str()));
  EXPECT_TRUE(es_client_name(name, nullptr));
  EXPECT_EQ(*name, 0);
}

}  // namespace
}  // namespace edgeshed::client_test
