// What the kernel writes, and what it never would: a parser takes it whole or gives nothing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "userspace/host/cgroup.h"
#include "userspace/host/psi.h"
#include "userspace/host/softnet.h"

namespace edgeshed::host {
namespace {

constexpr char kSoftnet[] =
    "00713d9a 00000002 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
    "00000000 00000000 00000000 00000000 00000000\n"
    "00ca11ba 0000000a ffffffff 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
    "00000000 00000000 00000001 00000000 00000000\n";

TEST(SoftnetText, IsSummedOverCpus) {
  const auto counts = parse_softnet(kSoftnet);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->dropped, 12u);
  EXPECT_EQ(counts->time_squeezes, 0x1'0000'0000u);
  // Kernels before 3.11 write nine columns; three are what is needed.
  EXPECT_EQ(parse_softnet("1 2 3\n")->dropped, 2u);
}

TEST(SoftnetText, AnythingElseIsNothing) {
  for (const char* const text : {"", "\n", "00000001\n", "00000001 00000002\n", "x 1 2\n",
                                 "1 2 3\nhost down\n", "1 -2 3\n", "1 2 11111111111111111\n"}) {
    EXPECT_FALSE(parse_softnet(text)) << text;
  }
}

TEST(SoftnetText, ACounterThatGoesBackGrewByNothing) {
  EXPECT_EQ(growth_of(3, 10), 7u);
  EXPECT_EQ(growth_of(10, 3), 0u);
}

TEST(PsiText, GivesTheTotalOfSome) {
  EXPECT_EQ(parse_psi_some_us("some avg10=16.18 avg60=8.45 avg300=6.59 total=11338089701\n"
                              "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"),
            11338089701u);
  EXPECT_EQ(parse_psi_some_us("some total=5"), 5u);
  for (const char* const text :
       {"", "full avg10=0.00 total=7\n", "some avg10=0.00\n", "some total=\n", "some total=-1\n",
        "some total=99999999999999999999\n", "some total=5x\n", "sometotal=5\n"}) {
    EXPECT_FALSE(parse_psi_some_us(text)) << text;
  }
}

TEST(ShareOfTime, IsOfTheTimeBetween) {
  ShareOfTime share;
  EXPECT_FALSE(share.step(1'000'000, 1'000'000'000));
  EXPECT_NEAR(*share.step(1'010'000, 1'050'000'000), 0.2, 1e-9);  // 10 of 50 ms
  EXPECT_EQ(share.step(9'000'000, 1'100'000'000), 1.0);           // never more than all
  EXPECT_FALSE(share.step(9'000'000, 1'100'000'000));             // no time
  EXPECT_FALSE(share.step(8'000'000, 1'150'000'000));             // a counter that went back
  EXPECT_FALSE(share.step({}, 1'200'000'000));
  EXPECT_FALSE(share.step(9'000'000, 1'250'000'000));  // nothing to compare with
  EXPECT_EQ(share.step(9'000'000, 1'300'000'000), 0.0);
}

TEST(CgroupText, OnlyOneOfItsOwn) {
  EXPECT_EQ(parse_cgroup("9:name=systemd:/\n0::/game.slice/arena.service\n"),
            "/game.slice/arena.service");
  for (const char* const text : {"", "0::/\n", "1:cpu:/game\n", "0::\n", "0::/../other\n",
                                 "0::/a/../b\n", "0::relative\n"}) {
    EXPECT_FALSE(parse_cgroup(text)) << text;
  }
}

TEST(CgroupText, Throttled) {
  EXPECT_EQ(parse_throttled_us("usage_usec 9\nnr_throttled 3\nthrottled_usec 1234\n"), 1234u);
  EXPECT_FALSE(parse_throttled_us("usage_usec 9\n"));
  EXPECT_FALSE(parse_throttled_us("throttled_usec many\n"));
}

/// A file that goes when the test does.
struct TemporaryFile {
  TemporaryFile() { close(mkstemp(path.data())); }
  ~TemporaryFile() { std::remove(path.c_str()); }
  void write(const std::string& text) const { std::ofstream(path) << text; }
  std::string path = testing::TempDir() + "edgeshed-host-XXXXXX";
};

TEST(RereadFile, SeesWhatChangedAndFilesOfAnyLength) {
  const TemporaryFile file;
  RereadFile reader(file.path);
  EXPECT_EQ(reader.read(), "");
  file.write("a\n");
  EXPECT_EQ(reader.read(), "a\n");
  const std::string rows(50'000, 'x');
  file.write(rows);
  EXPECT_EQ(reader.read(), rows);
  file.write(std::string(2 * kFileBytesMax, 'x'));
  EXPECT_EQ(reader.read().size(), kFileBytesMax);
}

TEST(RereadFile, OneThatIsNotThereIsNothing) {
  EXPECT_FALSE(CpuPressure("/proc/pressure/absent").sample(1));
  EXPECT_FALSE(Softnet("/proc/net/absent").read());
  CgroupCpu cgroup("/sys/fs/cgroup/absent");
  EXPECT_FALSE(cgroup.sample(1));
  EXPECT_FALSE(cgroup.sample(50'000'001));
  EXPECT_EQ(cgroup_folder(0), "");
}

TEST(RereadFile, ThisHost) {
  EXPECT_TRUE(Softnet().read());
  // Absent with CONFIG_PSI off; then it must be absent each time.
  CpuPressure pressure;
  EXPECT_FALSE(pressure.sample(1'000'000'000));
  const auto share = pressure.sample(1'050'000'000);
  if (share) {
    EXPECT_LE(*share, 1);
  }
}

}  // namespace
}  // namespace edgeshed::host
