// The lines that people get to read, and the arithmetic of the jiffies clock. No kernel needed.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "userspace/kernel/error.h"
#include "userspace/kernel/jiffies_clock.h"
#include "userspace/kernel/library_log.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::kernel::test {
namespace {

TEST(ErrorLine, SaysWhatWhereWhyAndWhatToDo) {
  EXPECT_EQ(
      errno_line(-EPERM, "open the pinned map", "/sys/fs/bpf/x"),
      "cannot open the pinned map /sys/fs/bpf/x: Operation not permitted; run as root, or with "
      "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
  EXPECT_EQ(errno_line(EBUSY, "a", "b", "own hint"),
            "cannot a b: Device or resource busy; own hint");
  EXPECT_EQ(errno_line(EINVAL, "a", ""), "cannot a: Invalid argument");
}

TEST(ErrorLine, ExitCodeTellsEnvironmentFromFailure) {
  const auto exit_code = [](int err) {
    try {
      fail_errno(err, "do", "it");
    } catch (const Error& error) {
      return error.exit_code();
    }
    return 0;
  };
  EXPECT_EQ(exit_code(-EPERM), kExitEnvironment);
  EXPECT_EQ(exit_code(ENOSYS), kExitEnvironment);
  EXPECT_EQ(exit_code(ENOMEM), kExitFailure);
}

TEST(Pins, MountPoint) {
  EXPECT_EQ(mount_point_of("/proc/self/net"), "/proc");
  EXPECT_EQ(mount_point_of("/proc"), "/proc");
  EXPECT_EQ(mount_point_of("/"), "/");
  EXPECT_EQ(mount_point_of("/proc/nowhere"), "/proc/nowhere");
}

TEST(LoadFailure, NamesProgramAndVerifierReason) {
  const LoadFailure failure = parse_load_failure(
      "libbpf: prog 'es_tc': BPF program load failed: Permission denied\n"
      "libbpf: prog 'es_tc': -- BEGIN PROG LOAD LOG --\n"
      "0: (b7) r0 = 0\n"
      "R1 invalid mem access 'scalar'\n"
      "processed 1 insns (limit 1000000) max_states_per_insn 0\n"
      "-- END PROG LOAD LOG --\n"
      "libbpf: prog 'es_tc': failed to load: -13\n"
      "libbpf: failed to load object 'edgeshed.bpf.o'\n");
  EXPECT_EQ(failure.program, "es_tc");
  EXPECT_EQ(failure.verifier_line, "R1 invalid mem access 'scalar'");
  EXPECT_EQ(failure.map, "");
}

TEST(LoadFailure, NamesTheMapThatDidNotFit) {
  const LoadFailure failure = parse_load_failure(
      "libbpf: map 'es_conns': failed to create: Cannot allocate memory(-12)\n"
      "libbpf: failed to load object 'edgeshed.bpf.o'\n");
  EXPECT_EQ(failure.map, "es_conns");
  EXPECT_EQ(failure.program, "");
  EXPECT_EQ(parse_load_failure("").map, "");
}

TEST(JiffiesClock, RoundsToTheNearestTickBothWays) {
  const JiffiesSample sample{.jiffies = 1000, .coarse_ns = 50'000'000};
  EXPECT_EQ(JiffiesClock::at(sample, 50'000'000, 250), 1000u);
  EXPECT_EQ(JiffiesClock::at(sample, 54'000'000, 250), 1001u);
  EXPECT_EQ(JiffiesClock::at(sample, 54'900'000, 250), 1001u) << "a tick handled late";
  EXPECT_EQ(JiffiesClock::at(sample, 53'200'000, 250), 1001u) << "the sample's tick was late";
  EXPECT_EQ(JiffiesClock::at(sample, 46'000'000, 250), 999u);
  EXPECT_EQ(JiffiesClock::at(sample, 1'050'000'000, 1000), 2000u);
  EXPECT_EQ(JiffiesClock::at(sample, 50'000'000 + 3'333'333ull * 300, 300), 1300u);
}

}  // namespace
}  // namespace edgeshed::kernel::test
