// The short way (bpf/fast.h) against the six steps: a VLAN tag sends a packet the long way and
// changes nothing else about it, so a packet must be decided and counted alike with and without.
// EDGESHED_SEED chooses another run.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "maps/limits.h"
#include "tests/bpf/fuzz_world.h"
#include "tests/bpf/harness.h"
#include "tests/support/enet_messages.h"
#include "tests/support/packet_builder.h"

namespace edgeshed::test {
namespace {

constexpr int kPackets = 40'000;
constexpr int kPacketsPerPlan = 100;
constexpr std::uint8_t kEndpoints = 5;  // one per protocol

Bytes tagged(Bytes frame) {
  const std::array<std::uint8_t, 4> tag = {0x81, 0x00, 0x00, 0x07};
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

std::uint64_t seed() {
  const char* text = std::getenv("EDGESHED_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 11;
}

class FastTest : public testing::Test {
 protected:
  FastTest() : dice_(seed()) {
    for (std::uint8_t number = 1; number <= kEndpoints; ++number) {
      world_.endpoint({.number = number,
                       .port = static_cast<std::uint16_t>(7000 + number),
                       .address = number % 2 ? "" : "10.0.0.1"});
      world_.connect("10.0.0.2", 4000, {.endpoint = number, .room = number, .stream_block = 1});
    }
  }

  void publish_plan() {
    for (std::uint8_t number = 1; number <= kEndpoints; ++number) {
      es_plan_endpoint& row = world_.endpoint_row(number);
      row.protocol = static_cast<__u8>(number - 1);
      row.flags &= ES_EP_ANY_ADDRESS;
      for (const __u8 flag : {ES_EP_ENET_CRC, ES_EP_REJECTS, ES_EP_SHADOW, ES_EP_REFUSE_JOINS})
        if (dice_.percent(15)) row.flags |= flag;
      for (auto& byte : row.classifier.bytes) byte = static_cast<__u8>(dice_.word());
      if (row.protocol == ES_PROTOCOL_match) row.classifier.match[0].mask = 0;
      row.default_lane = static_cast<__u8>(dice_.below(ES_LANES));
      row.lane_tiers = ES_TIER_best_effort;  // never 0: that is no endpoint to the harness
      for (unsigned lane = 1; lane < ES_LANES; ++lane)
        row.lane_tiers |= static_cast<__u16>(dice_.below(ES_TIERS) << (2 * lane));
      for (const unsigned direction : {ES_IN, ES_OUT}) {
        row.drop_mask[direction] = static_cast<__u8>(dice_.word());
        row.pass_mask[direction] = static_cast<__u8>(dice_.word());
      }
    }
    world_.publish();
    world_.control().event_sample_mask = dice_.of<__u32>({~0u, 0, 3});
    world_.control().valid_until_jiffies =
        dice_.percent(85) ? ~0ull >> 1 : world_.now() - dice_.below(300);
    world_.control().rejects_per_cpu = 0;  // two equal packets would not both be answered
    if (dice_.percent(5)) world_.tear_endpoint(static_cast<__u8>(1 + dice_.below(kEndpoints)));
  }

  Bytes enet_payload(bool crc) {
    EnetHeader header{.crc = crc};
    if (dice_.percent(50)) header.sent_time = dice_.percent(50);
    if (dice_.percent(5)) header.compressed = true;
    EnetDatagram datagram(header);
    for (unsigned n = dice_.percent(80) ? 1 : dice_.below(4); n > 0; --n) {
      const auto channel = static_cast<std::uint8_t>(dice_.word());
      const auto bytes = static_cast<std::uint16_t>(dice_.below(60));
      switch (dice_.below(7)) {
        case 0:
          datagram.ack(channel, 7, 9);
          break;
        case 1:
          datagram.unsequenced(channel, 1, bytes);
          break;
        case 2:
          datagram.ping();
          break;
        case 3:
        case 4:
          datagram.reliable(channel, 1, bytes);
          break;
        default:
          datagram.unreliable(channel, 1, 2, bytes);
      }
    }
    return datagram.bytes();
  }

  Bytes payload(const es_plan_endpoint& row) {
    Bytes bytes = filler(dice_.below(64));
    if (row.protocol == ES_PROTOCOL_enet) {
      bytes = enet_payload((row.flags & ES_EP_ENET_CRC) != 0);
    } else if (row.protocol == ES_PROTOCOL_lane) {
      bytes = lane_payload({.lane = static_cast<std::uint8_t>(dice_.below(ES_LANES)),
                            .claim = static_cast<std::uint8_t>(dice_.below(4)),
                            .flags = static_cast<std::uint8_t>(
                                dice_.percent(80) ? dice_.below(4) << 2 : dice_.below(16)),
                            .stream = static_cast<std::uint16_t>(dice_.below(4))},
                           dice_.below(40));
    }
    // Cut short, longer than its contents, or with a wrong byte near the front.
    if (dice_.percent(6)) bytes.resize(dice_.below(bytes.size() + 1));
    if (dice_.percent(3)) bytes.resize(bytes.size() + 1 + dice_.below(9));
    if (dice_.percent(6) && !bytes.empty())
      bytes[dice_.below(std::min<std::size_t>(bytes.size(), 14))] ^=
          static_cast<std::uint8_t>(1u << dice_.below(8));
    return bytes;
  }

  /// A packet between a remote and an endpoint, most often one without surprises.
  Bytes frame(es_direction direction, std::uint8_t number) {
    Ipv4Fields ip{.tos = static_cast<std::uint8_t>(dice_.word())};
    if (dice_.percent(4)) ip.dst = "10.0.0.9";
    if (dice_.percent(4)) ip.options_words = static_cast<std::uint8_t>(dice_.below(4));
    if (dice_.percent(3)) ip.frag_offset = static_cast<std::uint16_t>(dice_.below(3));
    if (dice_.percent(3)) ip.more_fragments = true;
    if (dice_.percent(30)) ip.dont_fragment = true;
    if (dice_.percent(3)) ip.total_length = static_cast<std::uint16_t>(dice_.below(80));
    if (dice_.percent(2)) ip.protocol = static_cast<std::uint8_t>(dice_.word());
    UdpOverrides udp;
    if (dice_.percent(3)) udp.length = static_cast<std::uint16_t>(dice_.below(80));
    std::uint16_t source = dice_.percent(70) ? 4000 : 4001;
    std::uint16_t target = static_cast<std::uint16_t>(7000 + number);
    if (dice_.percent(2)) target = 6999;
    if (direction == ES_OUT) {
      std::swap(ip.src, ip.dst);
      std::swap(source, target);
    }
    Bytes frame = Packet()
                      .eth()
                      .ipv4(ip)
                      .udp(source, target, udp)
                      .payload(payload(world_.endpoint_row(number)))
                      .build();
    // Options that look like the UDP header that stands behind them.
    if (ip.options_words >= 2)
      std::copy_n(frame.begin() + 34 + 4 * ip.options_words, 8, frame.begin() + 34);
    return frame;
  }

  /// What a run leaves behind.
  struct Traces {
    Verdict verdict;
    es_endpoint_counters row;
    std::vector<es_room_counters> rooms;
    std::vector<es_event> events;
  };

  std::vector<es_room_counters> room_rows() {
    const auto rows = world_.maps().room_counters();
    return {rows.begin(), rows.end()};
  }

  Traces run(Program program, const Bytes& frame, std::uint8_t number) {
    Traces traces{.verdict = world_.run(program, frame),
                  .row = world_.cpu_row(number),
                  .rooms = room_rows(),
                  .events = world_.events()};
    return traces;
  }

  static void expect_equal(const Traces& one, const Traces& other) {
    EXPECT_EQ(one.verdict.action, other.verdict.action);
    EXPECT_EQ(one.verdict.reason, other.verdict.reason);
    EXPECT_EQ(one.verdict.endpoint, other.verdict.endpoint);
    EXPECT_EQ(one.verdict.direction, other.verdict.direction);
    EXPECT_EQ(one.verdict.row, other.verdict.row);
    EXPECT_EQ(one.verdict.bytes, other.verdict.bytes);
    EXPECT_EQ(std::memcmp(&one.row, &other.row, sizeof(one.row)), 0) << "the rows differ";
    EXPECT_EQ(std::memcmp(one.rooms.data(), other.rooms.data(),
                          one.rooms.size() * sizeof(es_room_counters)),
              0)
        << "the rooms differ";
    ASSERT_EQ(one.events.size(), other.events.size());
    for (std::size_t i = 0; i < one.events.size(); ++i)
      EXPECT_EQ(std::memcmp(&one.events[i], &other.events[i], sizeof(es_event)), 0);
  }

  /// `seen`: where in the sampling interval the packet falls. The ledger is put right afterwards.
  void compare(Program program, const Bytes& plain, std::uint8_t number, std::uint64_t seen) {
    es_endpoint_counters& row = world_.cpu_row(number);
    const unsigned direction = direction_of(program);
    const std::uint64_t seen_before = row.seen[direction];
    row.seen[direction] = seen;
    const es_endpoint_counters start = row;
    const std::vector<es_room_counters> rooms = room_rows();
    const Traces fast = run(program, plain, number);
    row = start;
    std::ranges::copy(rooms, world_.maps().room_counters().begin());
    const Traces slow = run(program, tagged(plain), number);
    row.seen[direction] += seen_before - seen;
    expect_equal(fast, slow);
    EXPECT_EQ(fast.verdict.frame.size(), plain.size());
    ++reasons_[reason_name(fast.verdict.reason)];
  }

  static es_direction direction_of(Program program) {
    return program == Program::kTc || program == Program::kXdpServers ? ES_OUT : ES_IN;
  }

  Dice dice_;
  World world_{{.rooms = 8}};
  std::map<std::string_view, unsigned> reasons_;
};

TEST_F(FastTest, ShortAndLongWayAgree) {
  std::cout << "seed " << seed() << "\n";
  for (int i = 0; i < kPackets; ++i) {
    if (i % kPacketsPerPlan == 0) publish_plan();
    const auto program = static_cast<Program>(dice_.below(4));
    const auto number = static_cast<std::uint8_t>(1 + dice_.below(kEndpoints));
    const Bytes plain = frame(direction_of(program), number);
    const std::uint64_t seen = dice_.percent(5) ? 0 : dice_.below(2 * ES_SAMPLE_EVERY);
    compare(program, plain, number, seen);
    if (HasFatalFailure() || HasNonfatalFailure())
      FAIL() << "EDGESHED_SEED=" << seed() << " packet " << i << " program "
             << static_cast<int>(program) << "\n"
             << hex(plain);
  }
  for (const auto& [reason, count] : reasons_) std::cout << reason << " " << count << "\n";
  EXPECT_GE(reasons_["lane_paused"] + reasons_["class_pass"], 10'000u);
  for (const char* reason : {"shadow", "dead_man", "admitted", "stranger", "not_ours", "not_udp",
                             "malformed_ip", "malformed_udp", "torn_plan"})
    EXPECT_GE(reasons_[reason], 20u) << reason << " was hardly tried";
}

}  // namespace
}  // namespace edgeshed::test
