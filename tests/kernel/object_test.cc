// Load, pin, adopt and refuse, with the real object on this kernel.
#include "userspace/kernel/object.h"

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/kernel/kernel_fixture.h"
#include "userspace/kernel/grace.h"
#include "userspace/kernel/jiffies_clock.h"
#include "userspace/kernel/map_set.h"
#include "userspace/kernel/slot_table.h"

namespace edgeshed::kernel::test {
namespace {

using ObjectTest = KernelTest;

TEST_F(ObjectTest, LoadsFillsTheControlPageAndSizesTheMaps) {
  ObjectOptions options = small_object();
  options.default_enforce = true;
  const Object object = Object::load(options);
  const MapSet maps = object.maps();
  const es_control& control = maps.control();
  EXPECT_EQ(control.magic, ES_CONTROL_MAGIC);
  EXPECT_EQ(control.schema_version, ES_SCHEMA_VERSION);
  EXPECT_EQ(control.default_enforce, 1u);
  EXPECT_EQ(control.event_sample_mask, 1023u);
  EXPECT_EQ(control.generation, 0u);
  EXPECT_EQ(control.geometry.cpus, possible_cpus());
  EXPECT_NE(control.geometry.seed[0], 0u);
  EXPECT_EQ(maps.ports().size(), ES_PORTS);
  EXPECT_EQ(maps.plan_endpoints(0).size(), 4u);
  EXPECT_EQ(maps.plan_endpoints(1).data(), maps.plan_endpoints(0).data() + 4);
  EXPECT_EQ(maps.buckets().size(), 187u);
  EXPECT_EQ(maps.connections().size(), maps.connections_in().size());
  EXPECT_EQ(maps.connections().size(), maps.connections_out().size());
  EXPECT_EQ(maps.streams().size(), 11u);
  EXPECT_EQ(maps.endpoint_counters().size(), std::size_t{possible_cpus()} * 4);
  EXPECT_EQ(maps.room_counters().size(), std::size_t{possible_cpus()} * 8);
  EXPECT_GE(maps.events_fd(), 0);
}

TEST_F(ObjectTest, TheRealObjectLoads) {
  if (!std::filesystem::exists(default_object_path())) {
    GTEST_SKIP() << "no BPF object at " << default_object_path();
  }
  ObjectOptions options = small_object();
  options.path = default_object_path();
  const Object object = Object::load(options);
  for (const char* program : {"es_xdp", "es_xdp_srv", "es_tc", "es_tc_srv"}) {
    EXPECT_GE(object.program_fd(program), 0) << program;
  }
  EXPECT_NE(error_of([&] { object.program_fd("es_none"); }), "");
}

TEST_F(ObjectTest, KnobsReachTheProgram) {
  const Object object = Object::load(small_object());
  const MapSet maps = object.maps();
  char frame[64] = {};
  DECLARE_LIBBPF_OPTS(bpf_test_run_opts, run);
  run.data_in = frame;
  run.data_size_in = sizeof(frame);
  ASSERT_EQ(bpf_prog_test_run_opts(object.program_fd("es_xdp"), &run), 0);
  std::uint64_t seen = 0;
  for (std::uint32_t cpu = 0; cpu < possible_cpus(); ++cpu) {
    seen += maps.endpoint_counters()[cpu * small_geometry().endpoints].seen[ES_IN];
  }
  EXPECT_EQ(seen, 1u) << "counted in the row of a CPU and endpoint 0, by the geometry's stride";
}

TEST_F(ObjectTest, SeedsDiffer) {
  const Object first = Object::load(small_object());
  const Object second = Object::load(small_object());
  EXPECT_NE(std::memcmp(first.geometry().seed, second.geometry().seed, sizeof(es_geometry::seed)),
            0);
}

TEST_F(ObjectTest, MapsOutliveTheObject) {
  auto maps = [] { return Object::load(small_object()).maps(); }();
  maps.control().bypass = 1;
  MapSet moved = std::move(maps);
  EXPECT_EQ(moved.control().bypass, 1u);
}

TEST_F(ObjectTest, PinnedMapsAreAdoptedByAnother) {
  {
    const Object object = Object::load(small_object());
    pin_object(object, pin_dir_);
    object.maps().ports()[27015] = 3;
  }
  EXPECT_TRUE(pins_exist(pin_dir_));
  const MapSet writer = MapSet::from_pins(pin_dir_, Access::kReadWrite);
  const MapSet reader = MapSet::from_pins(pin_dir_, Access::kRead);
  EXPECT_EQ(reader.ports()[27015], 3);
  writer.control().generation = 5;
  EXPECT_EQ(reader.control().generation, 5u);
  EXPECT_TRUE(open_pinned_program(pin_dir_, "es_xdp"));
  remove_pins(pin_dir_);
  EXPECT_FALSE(std::filesystem::exists(pin_dir_));
}

TEST_F(ObjectTest, PinningAgainReplacesWholeAndLeavesNothingBeside) {
  const Object first = Object::load(small_object());
  const Object second = Object::load(small_object());
  pin_object(first, pin_dir_);
  pin_object(second, pin_dir_);
  const MapSet maps = MapSet::from_pins(pin_dir_, Access::kRead);
  EXPECT_EQ(std::memcmp(&maps.geometry(), &second.geometry(), sizeof(es_geometry)), 0);
  for (const auto& entry : std::filesystem::directory_iterator("/sys/fs/bpf")) {
    const std::string path = entry.path().string();
    EXPECT_FALSE(path.starts_with(pin_dir_.string() + "_new")) << path;
  }
}

TEST_F(ObjectTest, PinsOfAnotherSchemaAreRefusedInOneLine) {
  const Object object = Object::load(small_object());
  pin_object(object, pin_dir_);
  object.maps().control().schema_version = 77;
  const std::string line = error_of([&] { MapSet::from_pins(pin_dir_, Access::kReadWrite); });
  EXPECT_NE(line.find("schema 77"), std::string::npos) << line;
  EXPECT_NE(line.find("schema " + std::to_string(ES_SCHEMA_VERSION)), std::string::npos) << line;
  EXPECT_NE(line.find("edgeshed --pin-dir " + pin_dir_.string() + " detach"), std::string::npos)
      << line;
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
}

TEST_F(ObjectTest, SizesThatContradictTheGeometryAreRefused) {
  const Object object = Object::load(small_object());
  pin_object(object, pin_dir_);
  MapSet maps = object.maps();
  maps.control().geometry.rooms = 9;
  EXPECT_NE(error_of([&] { MapSet::from_pins(pin_dir_, Access::kRead); }).find("es_plan_room"),
            std::string::npos);
  maps.control().geometry.rooms = 0;
  EXPECT_NE(error_of([&] { MapSet::from_pins(pin_dir_, Access::kRead); }).find("names no sizes"),
            std::string::npos);
  maps.control().magic = 1;
  EXPECT_NE(error_of([&] { MapSet::from_pins(pin_dir_, Access::kRead); }).find("magic"),
            std::string::npos);
}

TEST_F(ObjectTest, MissingPinsSayWhatToRun) {
  const std::string line = error_of([&] { MapSet::from_pins(pin_dir_, Access::kRead); });
  EXPECT_NE(line.find("edgeshed attach"), std::string::npos) << line;
  remove_pins(pin_dir_);  // nothing there is no error
}

TEST_F(ObjectTest, WhoLooksWhilePinsAreRemovedFindsAllOrNone) {
  const Object object = Object::load(small_object());
  std::atomic<bool> done = false;
  std::atomic<int> halves = 0, found = 0, looks = 0;
  std::thread looker([&] {
    for (; !done; ++looks) {
      if (!pins_exist(pin_dir_)) continue;
      try {
        MapSet::from_pins(pin_dir_, Access::kRead);
        ++found;
      } catch (const Error&) {
        halves += std::filesystem::exists(pin_dir_) ? 1 : 0;
      }
    }
  });
  for (int round = 0; round < 200; ++round) {
    pin_object(object, pin_dir_);
    for (const int before = found; found == before;) std::this_thread::yield();
    remove_pins(pin_dir_);
    // Until the looker has looked at none of these any more: the next ones are others.
    for (const int before = looks; looks < before + 2;) std::this_thread::yield();
  }
  done = true;
  looker.join();
  EXPECT_EQ(halves, 0);
  EXPECT_GT(found, 0);
}

TEST_F(ObjectTest, PinsOfOthersStayWhereTheyAre) {
  const Object object = Object::load(small_object());
  pin_object(object, pin_dir_);
  const std::string foreign = (pin_dir_ / "theirs").string();
  ASSERT_EQ(mkdir(foreign.c_str(), 0700), 0);
  remove_pins(pin_dir_);
  EXPECT_FALSE(pins_exist(pin_dir_));
  EXPECT_TRUE(std::filesystem::exists(foreign));
  rmdir(foreign.c_str());
}

TEST_F(ObjectTest, FolderOutsideOfBpffsIsRefused) {
  const Object object = Object::load(small_object());
  const std::string line = error_of([&] { pin_object(object, "/tmp/edgeshed_no_bpffs"); });
  EXPECT_NE(line.find("mount -t bpf"), std::string::npos) << line;
  EXPECT_FALSE(std::filesystem::exists("/tmp/edgeshed_no_bpffs"));
}

TEST_F(ObjectTest, ObjectFilesThatAreNoneAreRefused) {
  ObjectOptions options = small_object();
  options.path = "/nonexistent.bpf.o";
  EXPECT_NE(error_of([&] { Object::load(options); }).find("EDGESHED_OBJECT"), std::string::npos);
  const std::string path = "/tmp/edgeshed_not_elf_" + std::to_string(getpid());
  std::ofstream(path) << "this is not an object";
  options.path = path;
  const std::string line = error_of([&] { Object::load(options); });
  EXPECT_NE(line.find(path), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  std::filesystem::remove(path);
}

TEST_F(ObjectTest, TooLargeTableNamesSizeAndConfigKey) {
  ObjectOptions options = small_object();
  options.geometry.rooms = 0x7fffffff;  // es_plan_room would be 1 TiB
  const std::string line = error_of([&] { Object::load(options); });
  EXPECT_NE(line.find("KiB"), std::string::npos) << line;
  EXPECT_NE(line.find("rooms_max"), std::string::npos) << line;
}

TEST_F(ObjectTest, SlotTableWorksOnRealMapsWithARealGrace) {
  const Object object = Object::load(small_object());
  const MapSet maps = object.maps();
  SlotTable table({.buckets = maps.buckets(),
                   .connections = maps.connections(),
                   .connections_in = maps.connections_in(),
                   .connections_out = maps.connections_out(),
                   .stash_used = &maps.control().stash_used,
                   .seed = {maps.geometry().seed[0], maps.geometry().seed[1]}});
  es_key key{};
  key.endpoint = 1;
  for (std::uint16_t port = 0; port < 1000; ++port) {
    key.port = port;
    ASSERT_TRUE(table.insert(key, es_policy{}));
  }
  EXPECT_FALSE(table.insert(
      {.addr_hi = 1, .addr_lo = 2, .port = 3, .endpoint = 1, .reserved = 0, .stream_block = 0},
      es_policy{}));
  for (std::uint16_t port = 0; port < 1000; ++port) {
    key.port = port;
    ASSERT_TRUE(table.remove(key));
  }
  EXPECT_EQ(table.reclaim(), 1000u);
}

TEST_F(ObjectTest, JiffiesClockFollowsTheKernel) {
  const std::uint32_t hz = measure_hz();
  JiffiesClock clock(hz);
  const JiffiesProbe probe;
  for (int i = 0; i < 50; ++i) {
    usleep(3000);
    const std::uint64_t before = probe.sample().jiffies;
    const std::uint64_t now = clock.now();
    const std::uint64_t after = probe.sample().jiffies;
    EXPECT_GE(now + 1, before);
    EXPECT_LE(now, after + 1);
  }
  const std::int64_t error = clock.recalibrate();
  EXPECT_LE(std::abs(error), 1);
}

}  // namespace
}  // namespace edgeshed::kernel::test
