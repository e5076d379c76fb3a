// Plans that change while packets are decided, by the writer that the daemon uses: no packet is
// decided by parts of two.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "tests/bpf/harness.h"
#include "userspace/kernel/plan_writer.h"

namespace edgeshed::test {
namespace {

/// In either plan the endpoint sends strangers to the one room that sheds nothing: a packet that
/// sees the endpoint's row of one and the room's row of the other is dropped.
struct FlippingPlan {
  explicit FlippingPlan(const World& w, std::uint16_t open_room) {
    for (std::size_t i = 0; i < endpoints.size(); ++i) endpoints[i] = w.maps().plan_endpoints(1)[i];
    for (std::size_t i = 0; i < rooms.size(); ++i) rooms[i] = w.maps().plan_rooms(1)[i];
    endpoints[1].stranger_room = open_room;
    for (std::size_t i = 0; i < rooms.size(); ++i)
      rooms[i].rules[ES_IN].drop_mask = i == open_room ? 0 : 0xff;
  }
  kernel::Plan plan() const {
    return {.endpoints = endpoints,
            .rooms = rooms,
            .classes = classes,
            .valid_until_jiffies = ~0ull >> 1,
            .rejects_per_cpu = 0};
  }

  std::vector<es_plan_endpoint> endpoints{2};
  std::vector<es_plan_room> rooms{16};
  std::vector<es_plan_class> classes{8};
};

TEST(PlanFlipTest, NoPacketIsDecidedByPartsOfTwoPlans) {
  World w;
  w.endpoint().publish();
  const FlippingPlan one(w, 4), other(w, 5);
  std::atomic<bool> stop = false;
  std::thread flipper([&] {
    cpu_set_t every;
    CPU_ZERO(&every);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &every);
    sched_setaffinity(0, sizeof(every), &every);  // not only the CPU of the packets
    kernel::PlanWriter writer(w.maps());
    for (std::uint64_t i = 0; !stop; ++i) writer.publish((i & 1 ? one : other).plan(), i);
  });
  const Bytes frame = lane_in(ES_LANE_voice);
  unsigned dropped = 0;
  while (w.generation() < 3) std::this_thread::yield();
  for (int i = 0; i < 200'000; ++i) dropped += !w.passes(frame);
  stop = true;
  flipper.join();
  EXPECT_EQ(dropped, 0u);
  const std::uint64_t torn = w.cell(ES_IN, ES_LANE_voice, ES_REASON_torn_plan);
  RecordProperty("torn_plan", std::to_string(torn));
  RecordProperty("plans", std::to_string(w.generation()));
  EXPECT_GT(w.cell(ES_IN, ES_LANE_voice, ES_REASON_stranger), 0u);
}

}  // namespace
}  // namespace edgeshed::test
