// Publishing of plans: see plan_writer.h.
#include "userspace/kernel/plan_writer.h"

#include <atomic>
#include <cassert>
#include <cstring>

namespace edgeshed::kernel {
namespace {

template <typename T>
void store_release(T& place, T value) {
  std::atomic_ref<T>(place).store(value, std::memory_order_release);
}

/// Rows as they are published: an endpoint's with the summary of its masks, so that no planner can
/// forget it.
template <typename Row>
const Row& sealed(const Row& row) {
  return row;  // NOLINT(bugprone-return-const-ref-from-parameter): rows outlive a publish
}

es_plan_endpoint sealed(const es_plan_endpoint& content) {
  es_plan_endpoint row = content;
  for (const unsigned direction : {ES_IN, ES_OUT})
    row.lane_actions[direction] = es_lane_actions_of(&row, direction);
  return row;
}

/// Row order of maps/plan.h: generation 0, the fields, the new generation. The fence keeps the
/// fields behind the first store; the release keeps them before the last one.
template <typename Row>
void write_row(Row& row, const Row& content, std::uint32_t generation) {
  static_assert(offsetof(Row, generation) == 0);
  std::atomic_ref<std::uint32_t> mark(row.generation);
  mark.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  constexpr std::size_t kHead = sizeof(row.generation);
  std::memcpy(reinterpret_cast<std::byte*>(&row) + kHead,
              reinterpret_cast<const std::byte*>(&content) + kHead, sizeof(Row) - kHead);
  mark.store(generation, std::memory_order_release);
}

template <typename Row>
void take_away(Row& row) {
  // Absent already: no store, so the page stays clean.
  if (row.generation != 0) store_release(row.generation, __u32{0});
}

template <typename Row>
void write_copy(std::span<Row> both, std::span<const Row> rows, std::uint32_t generation,
                bool holes) {
  const std::size_t per_copy = both.size() / 2;
  assert(rows.size() <= per_copy);
  const std::span<Row> copy = both.subspan((generation & 1) * per_copy, per_copy);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (holes && rows[i].generation == 0) {
      take_away(copy[i]);
    } else {
      write_row(copy[i], sealed(rows[i]), generation);
    }
  }
  for (std::size_t i = rows.size(); i < per_copy; ++i) take_away(copy[i]);
}

template <typename Row>
std::span<Row> both_copies(std::span<Row> copy0) {
  return {copy0.data(), copy0.size() * 2};
}

}  // namespace

PlanWriter::PlanWriter(const MapSet& maps)
    : PlanWriter(PlanMemory{&maps.control(), both_copies(maps.plan_endpoints(0)),
                            both_copies(maps.plan_rooms(0)), both_copies(maps.plan_classes(0))}) {}

PlanWriter::PlanWriter(const PlanMemory& memory)
    : memory_(memory), generation_(memory.control->generation) {}

std::uint32_t PlanWriter::publish(const Plan& plan, std::uint64_t now_ns) {
  const std::uint32_t generation = next_generation(generation_);
  write_copy(memory_.endpoints, plan.endpoints, generation, plan.holes);
  write_copy(memory_.rooms, plan.rooms, generation, plan.holes);
  write_copy(memory_.classes, plan.classes, generation, plan.holes);
  es_control& control = *memory_.control;
  // Before the flip: the new plan must never be seen with the old one's expiry.
  store_release(control.stream_hint_q8, plan.stream_hint_q8);
  store_release(control.rejects_per_cpu, plan.rejects_per_cpu);
  store_release(control.valid_until_jiffies, __u64{plan.valid_until_jiffies});
  store_release(control.generation, __u32{generation});
  generation_ = generation;
  beat(now_ns);
  return generation;
}

void PlanWriter::extend(std::uint64_t valid_until_jiffies, std::uint64_t now_ns) {
  store_release(memory_.control->valid_until_jiffies, __u64{valid_until_jiffies});
  beat(now_ns);
}

void PlanWriter::identify(std::uint32_t daemon_pid, std::uint32_t tick_rate_hz) {
  store_release(memory_.control->daemon_pid, __u32{daemon_pid});
  store_release(memory_.control->tick_rate_hz, __u32{tick_rate_hz});
}

void PlanWriter::beat(std::uint64_t now_ns) {
  es_control& control = *memory_.control;
  store_release(control.tick_monotonic_ns, __u64{now_ns});
  store_release(control.tick_count, control.tick_count + 1);
}

}  // namespace edgeshed::kernel
