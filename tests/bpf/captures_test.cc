// What the packet path makes of real games' packets, and of ENet datagrams of every mixture: each
// lane is compared with the one that follows from the independent decoder in tests/support, by the
// rule table below. EDGESHED_SEED chooses another run of the crafted datagrams.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/bpf/fuzz_world.h"
#include "tests/bpf/harness.h"
#include "tests/support/capture.h"
#include "tests/support/enet_decoder.h"
#include "tests/support/enet_messages.h"
#include "tests/support/packet_builder.h"

namespace edgeshed::test {
namespace {

constexpr std::uint16_t kPlainPort = 17091;  // the captures'
constexpr std::uint16_t kCrcPort = 17092;
constexpr int kCrafted = 10'000;
constexpr std::uint16_t kNoPeer = 0xfff;

// --- the rule table ------------------------------------------------------------------------------

std::uint8_t tier_of(const es_plan_endpoint& endpoint, std::uint8_t lane) {
  return (endpoint.lane_tiers >> (2 * lane)) & 3;
}

/// The lane that one command asks for; none: an acknowledgement, which asks for nothing.
std::optional<std::uint8_t> lane_of(const EnetCommand& command, const es_plan_endpoint& endpoint) {
  const __u8 channel_lanes =
      endpoint.classifier.enet_channel[std::min<std::size_t>(command.channel, 63)];
  switch (command.id) {
    case 1:
      return std::nullopt;
    case 2:
    case 3:
      return ES_LANE_join;
    case 6:
      return channel_lanes >> 4;
    case 7:
    case 9:
    case 12:
      return channel_lanes & 15;
    case 8:
      return ES_LANE_command;
    default:
      return ES_LANE_control;
  }
}

/// The lane of a datagram: that of its most valuable command, the first of equal ones. What is
/// broken, or acknowledges something, is at least standard: the command lane.
std::uint8_t expected_lane(const EnetDecoded& datagram, const es_plan_endpoint& endpoint) {
  if (datagram.error == EnetError::short_header) return ES_LANE_command;
  if (datagram.compressed) {
    if (datagram.peer_id == kNoPeer) return ES_LANE_join;
    if (datagram.has_sent_time) return ES_LANE_command;
    return endpoint.classifier.enet_channel[63] & 15;
  }
  std::optional<std::uint8_t> best;
  for (const EnetCommand& command : datagram.commands) {
    const auto lane = lane_of(command, endpoint);
    if (lane && (!best || tier_of(endpoint, *lane) < tier_of(endpoint, *best))) best = lane;
  }
  const bool broken = datagram.error != EnetError::none;
  if (!best) return broken ? ES_LANE_command : ES_LANE_control;
  if (tier_of(endpoint, *best) == ES_TIER_best_effort && (broken || datagram.has(1)))
    return ES_LANE_command;
  return *best;
}

// --- ENet ----------------------------------------------------------------------------------------

struct Hop {
  Program program;
  es_direction direction;
};
constexpr std::array<Hop, 4> kHops = {{{Program::kXdp, ES_IN},
                                       {Program::kTcServers, ES_IN},
                                       {Program::kTc, ES_OUT},
                                       {Program::kXdpServers, ES_OUT}}};

class EnetLanes : public testing::Test {
 protected:
  EnetLanes() {
    world_.endpoint({.number = 1, .port = kPlainPort, .protocol = ES_PROTOCOL_enet, .address = ""});
    world_.endpoint({.number = 2,
                     .port = kCrcPort,
                     .protocol = ES_PROTOCOL_enet,
                     .address = "",
                     .flags = ES_EP_ENET_CRC});
  }

  /// Every channel has lanes of its own, of all tiers, and the last one stands for the rest.
  void mix_channels() {
    constexpr std::array<__u8, 6> kReliable = {ES_LANE_event,   ES_LANE_command, ES_LANE_snapshot,
                                               ES_LANE_control, ES_LANE_stream,  ES_LANE_join};
    constexpr std::array<__u8, 5> kUnreliable = {ES_LANE_snapshot, ES_LANE_voice, ES_LANE_event,
                                                 ES_LANE_cosmetic, ES_LANE_command};
    for (const std::uint8_t number : {1, 2}) {
      auto& channels = world_.endpoint_row(number).classifier.enet_channel;
      for (unsigned i = 0; i < ES_ENET_CHANNELS; ++i)
        channels[i] = static_cast<__u8>(kReliable[i % 6] << 4 | kUnreliable[i % 5]);
    }
  }

  /// Checks a frame on both hooks that packets of its direction meet.
  void check(const Bytes& frame, es_direction direction, std::uint8_t number, const char* what) {
    const es_plan_endpoint& row = world_.endpoint_row(number);
    const Bytes payload = parse_frame(frame).payload;
    EnetDecoded decoded = decode_enet(payload, {.crc = number == 2});
    // No datagram of ENet is this short, a compressed one neither.
    if (payload.size() < 4) decoded.error = EnetError::short_header;
    const std::uint8_t expected = expected_lane(decoded, row);
    for (const Hop& hop : kHops) {
      if (hop.direction != direction) continue;
      const Verdict verdict = world_.run(hop.program, frame);
      ASSERT_EQ(verdict.endpoint, number) << what;
      ASSERT_EQ(verdict.direction, direction);
      ASSERT_EQ(row_name(verdict.row), row_name(expected))
          << what << ": " << decoded.klass << " " << decoded.error << ", "
          << decoded.commands.size() << " whole commands, program " << static_cast<int>(hop.program)
          << ", payload " << hex(payload);
      // A walk ends at the first critical command: an error behind it is not met.
      if (!decoded.compressed && tier_of(row, expected) != ES_TIER_critical) {
        ASSERT_EQ(verdict.walk_error, decoded.error != EnetError::none)
            << what << ": " << decoded.error << ", payload " << hex(payload);
      }
    }
    ++classes_[to_string(decoded.klass)];
  }

  void check_capture(const char* file, std::uint16_t client_port, std::uint8_t number) {
    std::size_t frames = 0;
    for (const CapturedFrame& captured : read_capture(capture_path(file)).frames) {
      Bytes frame = captured.bytes;
      const ParsedFrame parsed = parse_frame(frame);
      ASSERT_TRUE(parsed.has_udp);
      const bool in = parsed.dst_port == kPlainPort;
      ASSERT_EQ(in ? parsed.src_port : parsed.dst_port, client_port);
      // The CRC host is another endpoint here.
      if (number == 2) set_be16(frame, parsed.ip_offset + 20 + (in ? 2 : 0), kCrcPort);
      check(frame, in ? ES_IN : ES_OUT, number, file);
      if (HasFatalFailure()) return;
      ++frames;
    }
    std::cout << file << ": " << frames << " frames";
    for (const auto& [name, count] : classes_) std::cout << ", " << name << " " << count;
    std::cout << "\n";
  }

  std::map<std::string, unsigned> classes_;
  World world_;
};

TEST_F(EnetLanes, OfThePlainCapture) {
  world_.publish();
  check_capture("enet_m0.pcap", 53702, 1);
  EXPECT_GE(classes_.size(), 6u);
}

TEST_F(EnetLanes, OfTheCaptureWithCrc) {
  world_.publish();
  check_capture("enet_m1.pcap", 60518, 2);
  EXPECT_GE(classes_.size(), 6u);
}

TEST_F(EnetLanes, OfBothCapturesWithLanesOfAllTiersOnTheChannels) {
  mix_channels();
  world_.publish();
  check_capture("enet_m0.pcap", 53702, 1);
  check_capture("enet_m1.pcap", 60518, 2);
}

void add_random_command(EnetDatagram& datagram, Dice& dice) {
  const auto channel = static_cast<std::uint8_t>(dice.percent(80) ? dice.below(6) : dice.word());
  const auto bytes =
      static_cast<std::uint16_t>(dice.percent(80) ? dice.below(30) : dice.below(300));
  const EnetFragment fragment{.channel = channel, .n_bytes = bytes};
  switch (dice.below(20)) {
    case 0:
      return void(datagram.connect());
    case 1:
      return void(datagram.verify());
    case 2:
      return void(datagram.disconnect(dice.percent(50)));
    case 3:
      return void(datagram.ping());
    case 4:
      return void(datagram.bandwidth());
    case 5:
      return void(datagram.throttle());
    case 6:
    case 7:
      return void(datagram.reliable(channel, 1, bytes));
    case 8:
      return void(datagram.fragment(fragment));
    case 9:
    case 10:
    case 11:
    case 12:
      return void(datagram.ack(channel, 1, 1));
    case 13:
      return void(datagram.unreliable_fragment(fragment));
    case 14:
    case 15:
      return void(datagram.unsequenced(channel, 1, bytes));
    default:
      return void(datagram.unreliable(channel, 1, 1, bytes));
  }
}

/// Mostly what ENet could send; a tenth compressed, a fifth broken in one way or another.
Bytes random_datagram(Dice& dice, bool crc) {
  EnetHeader header{.peer_id = static_cast<std::uint16_t>(dice.below(100)), .crc = crc};
  if (dice.percent(10)) header.peer_id = kNoPeer;
  if (dice.percent(30)) header.sent_time = dice.percent(50);
  EnetDatagram datagram(header);
  if (dice.percent(10)) {
    header.compressed = true;
    header.sent_time = dice.percent(50);
    return EnetDatagram(header).raw(filler(dice.below(60))).bytes();
  }
  const unsigned kinds = dice.percent(30) ? 1 : 2;
  std::uint32_t commands = dice.percent(95) ? dice.below(7) : dice.below(42);
  // Runs of the cheap kinds: a datagram of 32 random commands always has a critical one.
  for (; commands > 0; --commands) {
    if (kinds == 1) datagram.unreliable(static_cast<std::uint8_t>(dice.below(2)), 1, 1, 2);
    if (kinds == 2) add_random_command(datagram, dice);
  }
  if (dice.percent(5)) datagram.raw({static_cast<std::uint8_t>(dice.word()), 0, 0, 1});
  Bytes bytes = datagram.bytes();
  if (dice.percent(10)) bytes.resize(dice.below(bytes.size()) + 1);
  return bytes;
}

TEST_F(EnetLanes, OfCraftedMixtures) {
  const char* text = std::getenv("EDGESHED_SEED");
  const std::uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : 11;
  std::cout << "seed " << seed << "\n";
  Dice dice(seed);
  mix_channels();
  world_.publish();
  for (int i = 0; i < kCrafted; ++i) {
    const std::uint8_t number = dice.percent(50) ? 1 : 2;
    const Flow flow{.remote = "10.77.0.2",
                    .local = "10.77.0.1",
                    .local_port = number == 1 ? kPlainPort : kCrcPort};
    const Bytes payload = random_datagram(dice, number == 2);
    const bool in = dice.percent(50);
    check(in ? from_remote(flow, payload) : to_remote(flow, payload), in ? ES_IN : ES_OUT, number,
          "crafted");
    if (HasFatalFailure()) FAIL() << "EDGESHED_SEED=" << seed << " datagram " << i;
  }
  for (const auto& [name, count] : classes_) std::cout << name << " " << count << "\n";
  EXPECT_EQ(classes_.size(), 10u) << "not every class of datagram was tried";
}

/// ENet sends at most 32 commands in a datagram: more of them are an error, wherever the walk is.
TEST_F(EnetLanes, OfDatagramsAroundTheLimitOfCommands) {
  world_.publish();
  for (int commands = 28; commands < 42; ++commands) {
    EnetDatagram datagram;
    for (int i = 0; i < commands; ++i) datagram.unreliable(0, 1, 1, 4);
    check(from_remote({.local_port = kPlainPort}, datagram.bytes()), ES_IN, 1,
          std::to_string(commands).c_str());
    if (HasFatalFailure()) return;
  }
}

/// A last command that promises more than there is counts for nothing: else four bytes would buy
/// the lane of a handshake.
TEST_F(EnetLanes, OfDatagramsThatEndInsideACommand) {
  world_.publish();
  Bytes connect = EnetDatagram().unreliable(0, 1, 1, 4).connect().bytes();
  Bytes reliable = EnetDatagram().unreliable(0, 1, 1, 4).reliable(0, 1, 100).bytes();
  for (Bytes* bytes : {&connect, &reliable}) {
    while (bytes->size() > 4) {
      bytes->pop_back();
      check(from_remote({.local_port = kPlainPort}, *bytes), ES_IN, 1, "cut");
      if (HasFatalFailure()) return;
    }
  }
}

/// A last RELIABLE with no or one byte of data is shorter than the eight bytes that the head of any
/// other command with data has.
TEST_F(EnetLanes, OfDatagramsThatEndInAShortReliable) {
  mix_channels();
  world_.publish();
  for (const std::uint16_t data_bytes : {0, 1, 2, 3}) {
    for (const int before : {0, 1, 3, 6}) {
      EnetDatagram datagram;
      for (int i = 0; i < before; ++i) datagram.unreliable(0, 1, 1, 4);
      datagram.reliable(1, 1, data_bytes);
      check(from_remote({.local_port = kPlainPort}, datagram.bytes()), ES_IN, 1, "short reliable");
      if (HasFatalFailure()) return;
    }
  }
}

// --- the other captures --------------------------------------------------------------------------

struct GameCapture {
  const char* file;
  std::uint16_t port;
  std::size_t to_server, to_client;  // tests/captures/README.md
};

class OtherGames : public testing::TestWithParam<GameCapture> {
 protected:
  static std::uint64_t seen(const World& world, std::uint8_t number) {
    const es_endpoint_counters row = world.endpoint_counters(number);
    return row.seen[ES_IN] + row.seen[ES_OUT];
  }

  /// Runs the capture on XDP one way and TC the other; returns how many packets each lane got.
  std::map<std::string_view, std::size_t> run(World& world) {
    std::map<std::string_view, std::size_t> lanes;
    std::size_t frames = 0, in_v4 = 0, out_v4 = 0;
    for (const CapturedFrame& captured : read_capture(capture_path(GetParam().file)).frames) {
      const ParsedFrame parsed = parse_frame(captured.bytes);
      const bool to_server = parsed.dst == "10.77.0.1" || parsed.dst == "ff02::1";
      const Verdict verdict = to_server ? world.xdp(captured.bytes) : world.tc(captured.bytes);
      EXPECT_EQ(verdict.action, to_server ? kXdpPass : kTcPass);
      EXPECT_NE(verdict.reason, kNoReason) << "not counted";
      EXPECT_EQ(verdict.frame, captured.bytes);
      if (verdict.endpoint == 1) ++lanes[row_name(verdict.row)];
      if (parsed.ip_version == 4) {
        EXPECT_EQ(verdict.endpoint, 1) << hex(captured.bytes);
        ++(to_server ? in_v4 : out_v4);
      }
      ++frames;
    }
    EXPECT_EQ(in_v4, GetParam().to_server);
    EXPECT_EQ(out_v4, GetParam().to_client);
    EXPECT_EQ(seen(world, 0) + seen(world, 1), frames) << "a packet was lost or counted twice";
    return lanes;
  }
};

TEST_P(OtherGames, AsOpaque) {
  World world;
  world.endpoint({.port = GetParam().port,
                  .protocol = ES_PROTOCOL_opaque,
                  .address = "",
                  .default_lane = ES_LANE_stream});
  world.publish();
  const auto lanes = run(world);
  EXPECT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes.count("stream"), 1u);
}

/// Two rules: Quake's connectionless packets, and the first two bytes of Luanti's protocol id.
TEST_P(OtherGames, AsMatch) {
  World world;
  world.endpoint({.port = GetParam().port,
                  .protocol = ES_PROTOCOL_match,
                  .address = "",
                  .default_lane = ES_LANE_snapshot});
  auto& rules = world.endpoint_row().classifier.match;
  rules[0] = {.offset = 0, .lane = ES_LANE_join, .reserved = 0, .mask = ~0u, .value = 0xffffffff};
  rules[1] = {
      .offset = 0, .lane = ES_LANE_event, .reserved = 0, .mask = 0xffff0000, .value = 0x4f450000};
  world.publish();
  std::map<std::string_view, std::size_t> expected;
  for (const CapturedFrame& captured : read_capture(capture_path(GetParam().file)).frames) {
    const ParsedFrame parsed = parse_frame(captured.bytes);
    const bool to_server = parsed.dst == "10.77.0.1" || parsed.dst == "ff02::1";
    if ((to_server ? parsed.dst_port : parsed.src_port) != GetParam().port) continue;
    const std::uint32_t word = parsed.payload.size() < 4 ? 0 : be32_at(parsed.payload, 0);
    ++expected[word == 0xffffffff ? "join" : word >> 16 == 0x4f45 ? "event" : "snapshot"];
  }
  EXPECT_EQ(run(world), expected);
}

INSTANTIATE_TEST_SUITE_P(Captures, OtherGames,
                         testing::Values(GameCapture{"teeworlds07.pcap", 8303, 231, 296},
                                         GameCapture{"openarena.pcap", 27960, 951, 700},
                                         GameCapture{"minetest.pcap", 30000, 353, 352}),
                         [](const auto& game) {
                           const std::string file = game.param.file;
                           return file.substr(0, file.find('.'));
                         });

// --- fragments -----------------------------------------------------------------------------------

class Fragments : public testing::Test {
 protected:
  Fragments() : frames_(read_capture(capture_path("gso_frag_rx.pcap")).frames) {
    for (const std::uint8_t number : {1, 2}) {
      world_.endpoint({.number = number,
                       .port = static_cast<std::uint16_t>(number == 1 ? 9999 : 9998),
                       .protocol = ES_PROTOCOL_opaque,
                       .address = "",
                       .default_lane = ES_LANE_snapshot});
    }
    world_.publish();
  }

  /// All but the first are judged by their first.
  void expect_one_fate(Program program, std::uint8_t reason) {
    const Verdict first = world_.run(program, frames_.at(0).bytes);
    EXPECT_EQ(first.endpoint, 1);
    EXPECT_EQ(reason_name(first.reason), reason_name(reason));
    EXPECT_EQ(first.bytes, 3028u) << "the first stands for the whole datagram";
    for (const std::size_t i : {1u, 2u}) {
      const Verdict later = world_.run(program, frames_.at(i).bytes);
      EXPECT_EQ(later.action, first.action);
      EXPECT_EQ(later.endpoint, first.endpoint);
      EXPECT_EQ(row_name(later.row), row_name(first.row));
      EXPECT_EQ(reason_name(later.reason), reason_name(first.reason));
    }
  }

  std::vector<CapturedFrame> frames_;
  World world_;
};

TEST_F(Fragments, FollowTheirFirst) {
  ASSERT_EQ(frames_.size(), 4u);
  for (const Program program : {Program::kXdp, Program::kTcServers}) {
    expect_one_fate(program, ES_REASON_stranger);
    world_.endpoint_row(1).drop_mask[ES_IN] = 1 << ES_LANE_snapshot;
    world_.publish();
    expect_one_fate(program, ES_REASON_lane_paused);
    world_.endpoint_row(1).drop_mask[ES_IN] = 0;
    world_.publish();
  }
}

TEST_F(Fragments, WithoutTheirFirstPass) {
  for (const std::size_t i : {1u, 2u})
    EXPECT_EQ(world_.xdp(frames_.at(i).bytes).reason, ES_REASON_frag_unknown);
}

TEST_F(Fragments, APacketLargerThanOneBufferIsWhole) {
  const Verdict verdict = world_.xdp(frames_.at(3).bytes);
  EXPECT_EQ(verdict.endpoint, 2);
  EXPECT_EQ(verdict.bytes, 6028u);
  EXPECT_EQ(verdict.action, kXdpPass);
}

}  // namespace
}  // namespace edgeshed::test
