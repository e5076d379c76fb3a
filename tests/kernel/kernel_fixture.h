// What tests with real BPF share: a small loaded object, a pin folder of their own that always goes
// again, and a network namespace that dies with the process.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "userspace/kernel/attach.h"
#include "userspace/kernel/error.h"
#include "userspace/kernel/object.h"
#include "userspace/kernel/pins.h"

namespace edgeshed::kernel::test {

inline es_geometry small_geometry() {
  es_geometry geometry{};
  geometry.endpoints = 4;
  geometry.rooms = 8;
  geometry.classes = 4;
  geometry.connections = 1000;
  geometry.stream_blocks = 10;
  geometry.buckets = 186;
  return geometry;
}

/// tests/kernel/stand_in.bpf.c, built.
inline std::filesystem::path stand_in_path() { return EDGESHED_STAND_IN_PATH; }

inline ObjectOptions small_object() {
  ObjectOptions options;
  options.path = stand_in_path();
  options.geometry = small_geometry();
  return options;
}

/// The line of the Error that `act` throws; empty if it throws none.
template <typename Act>
std::string error_of(Act act, int* exit_code = nullptr) {
  try {
    act();
  } catch (const Error& error) {
    if (exit_code != nullptr) *exit_code = error.exit_code();
    return error.what();
  }
  return {};
}

class KernelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
  }
  void TearDown() override { remove_pins(pin_dir_); }

  std::filesystem::path pin_dir_ = "/sys/fs/bpf/edgeshed_test_" + std::to_string(getpid());
};

/// In a network namespace of its own, with the veth pair es0 - es1.
class NetnsTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(unshare(CLONE_NEWNET), 0) << "needs CAP_SYS_ADMIN";
    ASSERT_EQ(run("ip link add es0 type veth peer name es1 && ip link set es0 up && "
                  "ip link set es1 up"),
              0);
  }
  void TearDown() override {
    // Also after a test that found out on its way that it has to skip: it may have pinned.
    if (geteuid() != 0) return;
    // Before the devices go: libxdp keeps pins of its own for a dispatcher.
    detach_all(pin_dir_);
    run("ip link del es0 2>/dev/null");
    KernelTest::TearDown();
  }

  static int run(const std::string& command) { return std::system(command.c_str()); }
  static std::string output(const std::string& command) {
    std::string text;
    FILE* pipe = popen(command.c_str(), "r");
    for (int c = 0; pipe != nullptr && (c = fgetc(pipe)) != EOF;)
      text.push_back(static_cast<char>(c));
    if (pipe != nullptr) pclose(pipe);
    return text;
  }

  AttachOptions attach_options(Faces faces = Faces::kClients) const {
    AttachOptions options;
    options.dev = "es0";
    options.faces = faces;
    options.pin_dir = pin_dir_;
    options.object_path = stand_in_path();
    return options;
  }
};

}  // namespace edgeshed::kernel::test
