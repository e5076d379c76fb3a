// Two threads in PROG_TEST_RUN at once: see two_cpu_rows.h.
#include "tests/bench/two_cpu_rows.h"

#include <linux/bpf.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <exception>
#include <string>
#include <thread>

#include "tests/bench/case_set.h"
#include "tests/bench/scenarios.h"
#include "tests/bench/test_run.h"
#include "tests/bench/world.h"

namespace edgeshed::bench {
namespace {

constexpr std::uint32_t kConnections = 1'000;
constexpr std::uint32_t kPackets = 500'000;

/// Which connection each CPU sends on; all are of one room.
struct Layout {
  const char* name;
  unsigned cpus;
  std::array<std::uint32_t, 2> flow;
};
constexpr std::array<Layout, 3> kLayouts = {{{"one CPU", 1, {0, 0}},
                                             {"two CPUs, two connections", 2, {0, 1}},
                                             {"two CPUs, one connection", 2, {0, 0}}}};

/// ns_per_packet() on several CPUs at once; the mean over the CPUs. All run the same program, so
/// the kernel's XDP dispatcher, which would make one wait for the other, is changed only once.
double ns_per_packet_on(unsigned cpus, int program_fd, const test::Bytes& frame) {
  std::barrier sync(cpus);
  std::array<double, 2> ns{};
  std::array<std::exception_ptr, 2> failed;
  const auto body = [&](unsigned cpu) {
    try {
      pin_to_cpu(cpu);
      std::array<std::uint64_t, 2> spent{};
      for (const unsigned run : {0u, 1u}) {
        sync.arrive_and_wait();
        const std::uint64_t start_ns = thread_cpu_ns();
        run_program(program_fd, frame, run == 0 ? kPackets : 3 * kPackets);
        spent[run] = thread_cpu_ns() - start_ns;
      }
      ns[cpu] = (static_cast<double>(spent[1]) - static_cast<double>(spent[0])) / (2.0 * kPackets);
    } catch (...) {
      failed[cpu] = std::current_exception();
      sync.arrive_and_drop();
    }
  };
  {
    std::array<std::jthread, 2> threads;
    for (unsigned cpu = 0; cpu < cpus; ++cpu) threads[cpu] = std::jthread(body, cpu);
  }
  for (const std::exception_ptr& error : failed) {
    if (error) std::rethrow_exception(error);
  }
  return (ns[0] + ns[1]) / cpus;
}

class TwoCpuBench {
 public:
  TwoCpuBench() : world_(Table::kSlots, kConnections) {}

  std::vector<Row> run(unsigned rounds) {
    for (unsigned round = 0; round < rounds; ++round) {
      for (std::size_t plan = 0; plan < kPlans; ++plan) sample(plan);
    }
    rows_of(1, "class drop, two connections of a room", Goal{Goal::Side::kAtMost, 1.10}, kClass);
    rows_of(1, "table drop, two connections of a room", Goal{Goal::Side::kAtMost, 1.10}, kDrop);
    rows_of(1, "table pass, quotas charged, two connections of a room",
            Goal{Goal::Side::kAtMost, 1.10}, kCharged);
    rows_of(2, "table drop, one connection", Goal{Goal::Side::kAtMost, 2.5}, kDrop);
    rows_of(2, "table pass, quotas charged, one connection", Goal{Goal::Side::kAtMost, 2.5},
            kCharged);
    return std::move(rows_);
  }

 private:
  enum Plan : std::size_t { kBare, kClass, kDrop, kCharged, kPlans };

  void sample(std::size_t plan) {
    const std::array<Scenario, kPlans> scenarios = {
        open_plan(ES_PROTOCOL_dscp), class_drop(ES_PROTOCOL_dscp), table_drop(ES_PROTOCOL_dscp),
        table_pass_charged(ES_PROTOCOL_dscp)};
    const int fd = world_.program_fd(plan == kBare ? "bench_bare" : "bench_shed");
    world_.enter(scenarios[plan]);
    for (std::size_t i = 0; i < kLayouts.size(); ++i) {
      const Layout& layout = kLayouts[i];
      for (unsigned cpu = 0; cpu < layout.cpus; ++cpu) world_.draw(cpu, layout.flow[cpu], 1);
      samples_[plan][i].push_back(ns_per_packet_on(layout.cpus, fd, plain_frame()));
    }
  }

  void rows_of(std::size_t layout, const std::string& name, Goal goal, Plan plan) {
    const Cost both = cost_of(samples_[plan][layout]), one = cost_of(samples_[plan][0]);
    const Cost bare_both = cost_of(samples_[kBare][layout]), bare = cost_of(samples_[kBare][0]);
    rows_.push_back(compare("two CPUs, net: " + name, "one CPU, net",
                            both.median - bare_both.median, one.median - bare.median, goal));
    rows_.back().ratio_quartile =
        (both.quartile - bare_both.quartile) / (one.quartile - bare.quartile);
  }

  World world_;
  std::array<std::array<std::vector<double>, kLayouts.size()>, kPlans> samples_;
  std::vector<Row> rows_;
};

}  // namespace

std::vector<Row> two_cpu_rows(const RunOptions& options) {
  if (std::thread::hardware_concurrency() < 2) return {};
  return TwoCpuBench().run(options.rounds());
}

}  // namespace edgeshed::bench
