// Publishing: what a reader may see, and what a tick may cost.
#include "userspace/kernel/plan_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

namespace {
std::atomic<std::uint64_t> g_allocations{0};
}  // namespace

// Not inlined, or the compiler sees a malloc() that is paired with a delete.
__attribute__((noinline)) void* operator new(std::size_t bytes) {
  ++g_allocations;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace edgeshed::kernel::test {
namespace {

struct PlanMaps {
  explicit PlanMaps(std::size_t rows = 4)
      : endpoints(2 * rows), rooms(2 * rows), classes(2 * rows) {}
  PlanMemory memory() { return {&control, endpoints, rooms, classes}; }
  es_control control{};
  std::vector<es_plan_endpoint> endpoints;
  std::vector<es_plan_room> rooms;
  std::vector<es_plan_class> classes;
};

TEST(PlanWriter, FirstPlanIsGenerationOneInCopyOne) {
  PlanMaps maps;
  PlanWriter writer(maps.memory());
  std::vector<es_plan_endpoint> endpoints(2);
  endpoints[1].default_lane = 5;
  std::vector<es_plan_room> rooms(1);
  rooms[0].stream_cap = 3;
  EXPECT_EQ(writer.publish({.endpoints = endpoints,
                            .rooms = rooms,
                            .classes = {},
                            .valid_until_jiffies = 1234,
                            .rejects_per_cpu = 9},
                           777),
            1u);
  EXPECT_EQ(maps.control.generation, 1u);
  EXPECT_EQ(maps.control.valid_until_jiffies, 1234u);
  EXPECT_EQ(maps.control.rejects_per_cpu, 9u);
  EXPECT_EQ(maps.control.tick_count, 1u);
  EXPECT_EQ(maps.control.tick_monotonic_ns, 777u);
  EXPECT_EQ(maps.endpoints[4 + 1].default_lane, 5);
  EXPECT_EQ(maps.endpoints[4 + 1].generation, 1u);
  EXPECT_EQ(maps.endpoints[4 + 2].generation, 0u);
  EXPECT_EQ(maps.rooms[4].stream_cap, 3);
  EXPECT_EQ(maps.classes[4].generation, 0u);
  EXPECT_EQ(maps.endpoints[1].generation, 0u) << "copy 0 is untouched";
}

TEST(PlanWriter, ShorterPlanTakesRowsAway) {
  PlanMaps maps;
  PlanWriter writer(maps.memory());
  std::vector<es_plan_room> rooms(4);
  writer.publish({.endpoints = {}, .rooms = rooms, .classes = {}}, 0);
  writer.publish({.endpoints = {}, .rooms = rooms, .classes = {}}, 0);
  writer.publish({.endpoints = {}, .rooms = std::span(rooms).first(1), .classes = {}}, 0);
  EXPECT_EQ(maps.rooms[4].generation, 3u);
  EXPECT_EQ(maps.rooms[5].generation, 0u);
  EXPECT_EQ(maps.rooms[1].generation, 2u) << "the former plan still stands for late readers";
}

std::uint16_t action(unsigned lane, es_lane_action what) {
  return static_cast<std::uint16_t>(what << (2 * lane));
}

TEST(PlanWriter, HolesArePublishedAsAbsent) {
  PlanMaps maps;
  PlanWriter writer(maps.memory());
  std::vector<es_plan_room> rooms(2);
  rooms[1].generation = 1;
  for (int i = 0; i < 2; ++i) writer.publish({.endpoints = {}, .rooms = rooms, .classes = {}}, 0);
  rooms[0].generation = 0;
  const std::uint32_t generation =
      writer.publish({.endpoints = {}, .rooms = rooms, .classes = {}, .holes = true}, 0);
  const auto live = maps.memory().rooms.subspan((generation & 1) * maps.memory().rooms.size() / 2);
  EXPECT_EQ(live[0].generation, 0u);
  EXPECT_EQ(live[1].generation, generation);
}

TEST(PlanWriter, EndpointsCarryWhatTheirMasksSay) {
  PlanMaps maps;
  PlanWriter writer(maps.memory());
  std::vector<es_plan_endpoint> endpoints(4);
  for (es_plan_endpoint& row : endpoints) {
    row.lane_tiers = ES_TIER_best_effort << (2 * ES_LANE_join) |
                     ES_TIER_best_effort << (2 * ES_LANE_voice) |
                     ES_TIER_standard << (2 * ES_LANE_command);
    row.drop_mask[ES_IN] = 1 << ES_LANE_join | 1 << ES_LANE_voice | 1 << ES_LANE_command;
    row.pass_mask[ES_IN] = 1 << ES_LANE_voice | 1 << ES_LANE_event;
    row.pass_mask[ES_OUT] = 1 << ES_LANE_command;
    row.lane_actions[ES_OUT] = 0xffff;  // whatever stood there
  }
  endpoints[2].flags = ES_EP_REJECTS;
  endpoints[3].flags = ES_EP_SHADOW;
  writer.publish({.endpoints = endpoints, .rooms = {}, .classes = {}}, 0);
  const auto written = [&](unsigned number, es_direction direction) {
    return maps.endpoints[4 + number].lane_actions[direction];
  };
  const int joins = action(ES_LANE_join, ES_LANE_DROPS),
            voice = action(ES_LANE_voice, ES_LANE_DROPS),
            event = action(ES_LANE_event, ES_LANE_PASSES);
  EXPECT_EQ(written(1, ES_IN), joins | voice | event) << "only best-effort is dropped by a mask";
  EXPECT_EQ(written(1, ES_OUT), action(ES_LANE_command, ES_LANE_PASSES));
  EXPECT_EQ(written(2, ES_IN), voice | event) << "a refused join may be answered";
  EXPECT_EQ(written(3, ES_IN), event) << "shadow mode drops nothing";
}

TEST(PlanWriter, GenerationSkipsZeroAndKeepsAlternatingCopies) {
  EXPECT_EQ(next_generation(0), 1u);
  EXPECT_EQ(next_generation(7), 8u);
  EXPECT_EQ(next_generation(0xffffffffu), 2u);
  std::uint32_t generation = 0xfffffffcu;
  for (int i = 0; i < 8; ++i) {
    const std::uint32_t next = next_generation(generation);
    EXPECT_NE(next, 0u);
    EXPECT_NE(next & 1, generation & 1) << "the live copy must never be the one written";
    generation = next;
  }
}

TEST(PlanWriter, GoesOnFromAnAdoptedGeneration) {
  PlanMaps maps;
  maps.control.generation = 41;
  maps.control.bypass = 1;
  PlanWriter writer(maps.memory());
  EXPECT_EQ(writer.publish({}, 0), 42u);
  EXPECT_EQ(maps.control.bypass, 1u) << "the CLI's alone";
  writer.extend(99, 5);
  EXPECT_EQ(maps.control.generation, 42u);
  EXPECT_EQ(maps.control.valid_until_jiffies, 99u);
  EXPECT_EQ(maps.control.tick_count, 2u);
  writer.identify(4711, 60);
  EXPECT_EQ(maps.control.daemon_pid, 4711u);
  EXPECT_EQ(maps.control.tick_rate_hz, 60u);
}

TEST(PlanWriter, NeverAllocates) {
  PlanMaps maps(64);
  PlanWriter writer(maps.memory());
  std::vector<es_plan_endpoint> endpoints(64);
  std::vector<es_plan_room> rooms(64);
  std::vector<es_plan_class> classes(64);
  const Plan plan{.endpoints = endpoints, .rooms = rooms, .classes = classes};
  const std::uint64_t before = g_allocations;
  for (int i = 0; i < 10; ++i) writer.publish(plan, 1);
  EXPECT_EQ(g_allocations, before);
}

/// What the writer adds to a row: takes it away again, or says false when it does not fit the row.
bool unseal(es_plan_endpoint& row, unsigned char pattern) {
  for (const unsigned direction : {ES_IN, ES_OUT})
    if (row.lane_actions[direction] != es_lane_actions_of(&row, direction)) return false;
  std::memset(row.lane_actions, pattern, sizeof(row.lane_actions));
  return true;
}
bool unseal(es_plan_room&, unsigned char) { return true; }

/// Copies a row as a packet does: the live generation, the row, then the row's generation again.
/// Empty pattern byte -1: torn, the packet path would read again.
struct Seen {
  bool passed_check = false;
  bool whole = false;
};

template <typename Row>
Seen read_row(const es_control& control, const std::vector<Row>& both, std::size_t number) {
  const std::uint32_t generation = __atomic_load_n(&control.generation, __ATOMIC_ACQUIRE);
  const Row& row = both[(generation & 1) * (both.size() / 2) + number];
  if (__atomic_load_n(&row.generation, __ATOMIC_ACQUIRE) != generation) return {};
  Row copy;
  auto* to = reinterpret_cast<unsigned char*>(&copy);
  const auto* from = reinterpret_cast<const unsigned char*>(&row);
  for (std::size_t i = sizeof(row.generation); i < sizeof(Row); ++i) {
    to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  Seen seen;
  seen.passed_check = __atomic_load_n(&row.generation, __ATOMIC_ACQUIRE) == generation;
  seen.whole = unseal(copy, static_cast<unsigned char>(generation));
  for (std::size_t i = sizeof(row.generation); i < sizeof(Row); ++i) {
    seen.whole = seen.whole && to[i] == static_cast<unsigned char>(generation);
  }
  return seen;
}

TEST(PlanWriter, AReaderNeverAcceptsAMixedRow) {
  PlanMaps maps(2);
  PlanWriter writer(maps.memory());
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> mixed{0}, accepted{0};
  std::thread reader([&] {
    while (!stop) {
      for (std::size_t number = 0; number < 2; ++number) {
        for (const Seen seen : {read_row(maps.control, maps.endpoints, number),
                                read_row(maps.control, maps.rooms, number)}) {
          accepted += seen.passed_check;
          mixed += seen.passed_check && !seen.whole;
        }
      }
    }
  });
  std::vector<es_plan_endpoint> endpoints(2);
  std::vector<es_plan_room> rooms(2);
  // Until the reader has accepted plenty: on a busy machine it may start late.
  for (std::uint64_t i = 0; i < 200'000 || (accepted < 1000 && i < 50'000'000); ++i) {
    const int pattern = static_cast<unsigned char>(next_generation(writer.generation()));
    std::memset(static_cast<void*>(endpoints.data()), pattern, sizeof(es_plan_endpoint) * 2);
    std::memset(static_cast<void*>(rooms.data()), pattern, sizeof(es_plan_room) * 2);
    writer.publish({.endpoints = endpoints, .rooms = rooms, .classes = {}}, i);
  }
  stop = true;
  reader.join();
  EXPECT_EQ(mixed, 0u);
  EXPECT_GE(accepted, 1000u);
}

}  // namespace
}  // namespace edgeshed::kernel::test
