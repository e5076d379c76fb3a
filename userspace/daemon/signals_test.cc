// From what is read outside of ticks to the signals of a shard, and what is missing of them.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "userspace/daemon/daemon_world.h"
#include "userspace/daemon/signal_sampler.h"

namespace edgeshed::daemon {
namespace {

using core::PressureSignal;
using core::signal_bit;

constexpr char kSignalsConfig[] = R"(
[host]
connections_max = 64
endpoints_max = 4
rooms_max = 4
classes_max = 4
tick_hz = 60
[cost]
command_us = 1000
[[shard]]
name = "arena"
frame_budget_ms = 20
[[room]]
name = "lobby"
shard = "arena"
[[endpoint]]
name = "game"
address = "any"
port = PORT
protocol = "opaque"
rooms = ["lobby"]
)";

/// A file of the host that a test writes.
struct HostFile {
  HostFile() { close(mkstemp(path.data())); }
  ~HostFile() { std::remove(path.c_str()); }
  void write(const std::string& text) const { std::ofstream(path) << text; }
  void remove() const { std::remove(path.c_str()); }
  std::string path = testing::TempDir() + "edgeshed-signals-XXXXXX";
};

/// A UDP socket of ours on loopback.
struct Socket {
  Socket() : fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  }
  void send(int messages) const {
    for (int i = 0; i < messages; ++i) {
      ::sendto(fd.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    }
  }
  void read_all() const {
    char byte = 0;
    while (::recv(fd.get(), &byte, 1, 0) > 0) {
    }
  }
  std::string port() const { return std::to_string(ntohs(address.sin_port)); }
  kernel::Fd fd;
  sockaddr_in address{};
};

std::string config_of(const std::string& port) {
  std::string text = kSignalsConfig;
  return text.replace(text.find("PORT"), 4, port);
}

struct World : Socket, DaemonWorld {
  World() : DaemonWorld(config_of(port())) {
    softnet.write("1 0 0\n");
    stalls.write("some total=0\n");
    tick();
  }
  /// A sample each 50 ms, a tick after each.
  void sample(int samples = 1) {
    for (int i = 0; i < samples; ++i) {
      now_ns_ += 50'000'000;
      sampler.sample(now_ns_);
      tick();
    }
  }
  const core::ShardSignals& signals() { return box_->latest().shards[0].signals; }
  bool missing(PressureSignal signal) { return (signals().missing & signal_bit(signal)) != 0; }
  bool lost(PressureSignal signal) { return (signals().lost & signal_bit(signal)) != 0; }

  HostFile softnet;
  HostFile stalls;
  SignalSampler sampler{setup_->model, *sessions_, signals_, {softnet.path, stalls.path}};
};

class SignalsTest : public testing::Test, public World {};

TEST_F(SignalsTest, BeforeTheFirstSampleAllOfItIsMissingAndNothingLost) {
  for (std::uint8_t i = 0; i < core::kPressureSignals; ++i) {
    const auto signal = static_cast<PressureSignal>(i);
    const bool ours = signal == PressureSignal::offered_cost;  // its cost is given
    EXPECT_EQ(missing(signal), !ours) << core::pressure_signal_name(signal);
  }
  EXPECT_EQ(signals().lost, 0);
}

TEST_F(SignalsTest, WhatTheHostSaysArrivesPerControlTick) {
  sample(2);
  softnet.write("1 6 c\n");            // 6 and 12 more in 66.7 ms, which is 4 control ticks
  stalls.write("some total=20000\n");  // 20 ms
  sample();
  EXPECT_NEAR(signals().softnet_drops, 6 / 4.0, 0.01);
  EXPECT_NEAR(signals().time_squeezes, 12 / 4.0, 0.01);
  EXPECT_NEAR(signals().psi_cpu_some, 20 / 66.7, 0.01);
  EXPECT_FALSE(missing(PressureSignal::psi_cpu));
  sample();
  EXPECT_EQ(signals().softnet_drops, 0);
  EXPECT_EQ(signals().psi_cpu_some, 0);
}

TEST_F(SignalsTest, AHostWithoutStallsMissesThemAndOneThatHadThemLostThem) {
  sample(3);
  EXPECT_EQ(signals().lost, 0);
  stalls.write("");
  sample();
  EXPECT_TRUE(missing(PressureSignal::psi_cpu));
  EXPECT_TRUE(lost(PressureSignal::psi_cpu));
  EXPECT_EQ(core::sources_in(signals().lost), 1u);
  stalls.write("some total=1000\n");
  sample(2);
  EXPECT_FALSE(missing(PressureSignal::psi_cpu));
  EXPECT_EQ(signals().lost, 0);

  SignalSampler never(setup_->model, *sessions_, signals_, {softnet.path, "/absent"});
  for (int i = 0; i < 3; ++i) {
    now_ns_ += 50'000'000;
    never.sample(now_ns_);
  }
  tick();
  EXPECT_TRUE(missing(PressureSignal::psi_cpu));
  EXPECT_EQ(signals().lost, 0);
}

TEST_F(SignalsTest, ASampleThatIsTooOldIsLost) {
  sample(3);
  tick(40);
  EXPECT_TRUE(missing(PressureSignal::softnet_drops));
  EXPECT_EQ(signals().lost & kHostSignals, kHostSignals);
  EXPECT_EQ(core::sources_in(signals().lost), 3u);
  sample();
  EXPECT_EQ(signals().lost, 0);
}

TEST_F(SignalsTest, WhatStandsInTheSocketPressesBeyondATicksWorth) {
  sample(6);
  EXPECT_FALSE(missing(PressureSignal::receive_queue));
  // A tick's worth is 20 messages of 1 ms: that may wait, however long it does.
  send(18);
  sample(7);
  EXPECT_EQ(signals().receive_queue_ms, 0);
  EXPECT_EQ(box_->latest().shards[0].state.rung, 0);
  // 42 more stand from the sixth sample on, as a tick of 40 ms would.
  send(42);
  sample(5);
  EXPECT_EQ(signals().receive_queue_ms, 0);
  sample();
  EXPECT_NEAR(signals().receive_queue_ms, 40, 8);
  const ShardView& view = box_->latest().shards[0];
  EXPECT_GE(view.state.rung, 4);
  EXPECT_EQ(view.state.cause, core::Cause::receive_queue);
  EXPECT_EQ(view.state.pressed_by, PressureSignal::receive_queue);
  // Read: gone at once.
  read_all();
  sample();
  EXPECT_EQ(signals().receive_queue_ms, 0);
  // Nobody listens any more.
  fd = {};
  sample();
  EXPECT_TRUE(lost(PressureSignal::receive_queue));
}

TEST_F(SignalsTest, ASampleOfAnotherConfigurationSaysNothing) {
  sample(3);
  const core::Model other = model_;
  core::ShardSignals taken;
  const core::ShardMemory law = setup_->law.begin();
  take(signals_.latest(), other, 0, law, now_ns_, taken);
  EXPECT_EQ(taken.missing, kSampledSignals);
  take(signals_.latest(), setup_->model, 7, law, now_ns_, taken);
  EXPECT_EQ(taken.missing, kSampledSignals);
}

TEST_F(SignalsTest, StatusNamesEachWithItsSource) {
  sample(3);
  const std::string text = say(StatusRequest{});
  for (const char* const part :
       {R"("psi_cpu":{"value":0E0,"pressure":0E0,"unit":"share","source":"psi","missing":false)",
        R"("source":"sock_diag")", R"("source":"softnet_stat")", R"("source":"counters")"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

}  // namespace
}  // namespace edgeshed::daemon
