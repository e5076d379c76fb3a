// Damaged frames through all four programs, made from the captures of real games: nothing aborts,
// nothing that cannot be read is dropped, and every packet is in the ledger exactly once.
// EDGESHED_SEED chooses another run.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bpf/fuzz_world.h"
#include "tests/bpf/harness.h"
#include "tests/support/capture.h"
#include "tests/support/packet_builder.h"

namespace edgeshed::test {
namespace {

constexpr int kFrames = 100'000;
constexpr int kFramesPerPlan = 2'000;
/// BPF_PROG_TEST_RUN takes no frame that ends inside the Ethernet header.
constexpr std::size_t kEthernetBytes = 14;

/// What BPF_PROG_TEST_RUN takes as a TC packet: what fits a page with its head and tail room, and
/// since Linux 6.18 only whole IP headers. Other frames go to XDP.
bool tc_takes(const Bytes& frame) {
  if (frame.size() <= kEthernetBytes || frame.size() > 3400) return false;
  const std::uint16_t ethertype = be16_at(frame, 12);
  const std::size_t header_bytes = ethertype == 0x0800 ? 20 : ethertype == 0x86dd ? 40 : 0;
  return frame.size() >= kEthernetBytes + header_bytes;
}

/// Ports that the captures' servers and clients have.
constexpr std::array<std::uint16_t, 6> kServerPorts = {17091, 8303, 27960, 30000, 9999, 9998};
constexpr auto kServers = static_cast<std::uint8_t>(kServerPorts.size());

std::vector<Bytes> load_frames() {
  std::vector<Bytes> frames;
  for (const char* name : {"enet_m0.pcap", "enet_m1.pcap", "teeworlds07.pcap", "openarena.pcap",
                           "minetest.pcap", "gso_frag_rx.pcap", "gso_frag_tx.pcap"}) {
    for (CapturedFrame& frame : read_capture(capture_path(name)).frames)
      frames.push_back(std::move(frame.bytes));
  }
  return frames;
}

/// Changes frames in the ways that parsers get wrong.
class Mutator {
 public:
  Mutator(std::vector<Bytes> frames, Dice& dice) : frames_(std::move(frames)), dice_(dice) {}

  Bytes next() {
    Bytes frame = pick();
    // Most frames get one kind of damage: two often only hide each other.
    for (int rounds = dice_.percent(75) ? 1 : 2; rounds > 0; --rounds) mutate(frame);
    if (frame.size() < kEthernetBytes) frame.resize(kEthernetBytes);
    return frame;
  }

 private:
  const Bytes& pick() { return frames_[dice_.below(frames_.size())]; }

  void mutate(Bytes& frame) {
    switch (dice_.below(11)) {
      case 0:
        return flip_bits(frame);
      case 1:
        return frame.resize(kEthernetBytes + dice_.below(frame.size()));
      case 2:
        return damage_field(frame);
      case 3:
        return splice(frame);
      case 4:
        return insert_tags(frame);
      case 5:
        return insert_options(frame);
      case 6:
        frame = with_extensions(frame);
        return;
      case 7:
      case 8:
        return carry_lane_header(frame);
      case 9:
        if (frame.size() > 15) frame[15] = static_cast<std::uint8_t>(dice_.word());  // TOS
        return;
      default:
        return;  // as captured
    }
  }

  void flip_bits(Bytes& frame) {
    const std::size_t reach =
        dice_.percent(70) ? std::min<std::size_t>(frame.size(), 64) : frame.size();
    for (std::uint32_t n = 1 + dice_.below(8); n > 0; --n)
      frame[dice_.below(reach)] ^= static_cast<std::uint8_t>(1u << dice_.below(8));
  }

  /// One of the bytes that lengths, kinds and fragments stand in, in any of the protocols.
  void damage_field(Bytes& frame) {
    constexpr std::array<std::uint8_t, 18> kOffsets = {12, 13, 14, 16, 17, 18, 19, 20, 21,
                                                       23, 38, 39, 42, 43, 46, 50, 51, 53};
    const std::size_t offset = kOffsets[dice_.below(kOffsets.size())];
    if (offset >= frame.size()) return;
    frame[offset] = static_cast<std::uint8_t>(
        dice_.percent(30) ? dice_.of<std::uint32_t>({0, 0xff, 0x45, 0x20, 1}) : dice_.word());
  }

  /// The head of one frame with the tail of another.
  void splice(Bytes& frame) {
    const Bytes& other = pick();
    frame.resize(std::min<std::size_t>(frame.size(), dice_.below(frame.size()) + 1));
    frame.insert(frame.end(), other.begin() + dice_.below(other.size()), other.end());
  }

  void insert_tags(Bytes& frame) {
    if (frame.size() < kEthernetBytes) return;
    for (std::uint32_t n = 1 + dice_.below(4); n > 0; --n) {
      const std::uint8_t high = dice_.percent(60) ? 0x81 : 0x88;
      const std::array<std::uint8_t, 4> tag = {
          high, static_cast<std::uint8_t>(high == 0x81 ? 0 : 0xa8),
          static_cast<std::uint8_t>(dice_.word()), static_cast<std::uint8_t>(dice_.word())};
      frame.insert(frame.begin() + 12, tag.begin(), tag.end());
    }
    if (dice_.percent(20)) frame.resize(kEthernetBytes + dice_.below(20));
  }

  /// IPv4 options; the lengths follow, or one of them does not.
  void insert_options(Bytes& frame) {
    if (frame.size() < 34 || frame[12] != 0x08 || frame[14] != 0x45) return;
    const std::uint32_t words = 1 + dice_.below(10);
    frame.insert(frame.begin() + 34, 4 * words, 1);
    frame[14] = static_cast<std::uint8_t>(0x45 + words);
    if (dice_.percent(80))
      set_be16(frame, 16, static_cast<std::uint16_t>(be16_at(frame, 16) + 4 * words));
    if (dice_.percent(20)) frame.resize(34 + dice_.below(4 * words));
  }

  /// The frame's payload in IPv6, behind a chain of extension headers that may be wrong or deep.
  Bytes with_extensions(const Bytes& frame) {
    const ParsedFrame parsed = parse_frame(frame);
    if (!parsed.has_udp || parsed.ip_version != 4) return frame;
    Packet packet;
    packet.eth().ipv6({.src = "fd00::77:2", .dst = "fd00::77:1"});
    constexpr std::array<Ext, 6> kKinds = {Ext::hop_by_hop, Ext::routing,   Ext::fragment,
                                           Ext::auth,       Ext::dest_opts, Ext::mobility};
    for (std::uint32_t n = dice_.below(dice_.percent(80) ? 4 : 12); n > 0; --n) {
      ExtFields fields{.kind = kKinds[dice_.below(kKinds.size())]};
      fields.words = static_cast<std::uint16_t>(fields.kind == Ext::auth ? 2 + dice_.below(4)
                                                                         : 1 + dice_.below(4));
      if (fields.kind == Ext::fragment) {
        fields.words = 1;
        fields.frag_offset = static_cast<std::uint16_t>(dice_.percent(60) ? 0 : dice_.below(200));
        fields.more_fragments = dice_.percent(50);
        fields.id = dice_.below(16);
      }
      if (dice_.percent(5)) fields.next_header = static_cast<std::uint8_t>(dice_.word());
      if (dice_.percent(5)) fields.length_field = static_cast<std::uint8_t>(dice_.word());
      packet.ext(fields);
    }
    return packet.udp(parsed.src_port, parsed.dst_port).payload(parsed.payload).build();
  }

  /// A lane header where the game's own payload began, whole or nearly.
  void carry_lane_header(Bytes& frame) {
    constexpr std::size_t kPayload = 42;
    if (frame.size() < kPayload + EDGESHED_LANE_BYTES || frame[14] != 0x45) return;
    LaneFields fields{.claim = static_cast<std::uint8_t>(dice_.percent(70) ? 0 : dice_.below(4)),
                      .flags = static_cast<std::uint8_t>(dice_.percent(80) ? 0 : dice_.below(4)),
                      .stream = static_cast<std::uint16_t>(dice_.below(12))};
    if (dice_.percent(40)) fields.lane = static_cast<std::uint8_t>(dice_.below(ES_LANES));
    const Bytes header = lane_payload(fields, 0);
    std::copy(header.begin(), header.end(), frame.begin() + kPayload);
    if (dice_.percent(10)) frame[kPayload + dice_.below(12)] ^= 0x10;
  }

  std::vector<Bytes> frames_;
  Dice& dice_;
};

/// A frame that the parser has no cause to call malformed or too deep.
bool is_whole(const ParsedFrame& frame) {
  if (!frame.error.empty() || !frame.has_udp || frame.udp_length < 8) return false;
  const bool fits =
      frame.more_fragments || frame.udp_length <= frame.ip_bytes - frame.ip_header_bytes;
  return fits && frame.vlan_ids.size() <= ES_VLAN_DEPTH_MAX &&
         frame.ext_headers.size() <= ES_EXT_HEADERS_MAX && frame.ip_header_bytes < 4000;
}

class FuzzPackets : public testing::Test {
 protected:
  FuzzPackets() : dice_(seed()), mutator_(load_frames(), dice_) {
    std::cout << "seed " << seed() << "\n";
    // A client's port is the server's own for OpenArena, so 27960 serves both ways.
    for (std::uint8_t number = 1; number <= kServers; ++number) {
      world_.endpoint({.number = number,
                       .port = kServerPorts[number - 1],
                       .address = number % 2 ? "" : "10.77.0.1"});
      for (const std::uint16_t port : {53702, 60518, 53031, 27960, 48760, 44892}) {
        for (const char* address : {"10.77.0.2", "fd00::77:2"})
          world_.connect(address, port,
                         {.endpoint = number, .room = number, .stream_block = number});
      }
    }
  }

  static std::uint64_t seed() {
    const char* text = std::getenv("EDGESHED_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 0) : 7;
  }

  /// Another plan: endpoint n has protocol n + turn, and every room sheds something.
  void publish_plan(unsigned turn) {
    for (std::uint8_t number = 1; number <= kServers; ++number) {
      es_plan_endpoint& row = world_.endpoint_row(number);
      row.protocol = static_cast<__u8>((number + turn) % ES_PROTOCOLS);
      row.flags = static_cast<__u8>((row.flags & ES_EP_ANY_ADDRESS) | ES_EP_REJECTS);
      if (dice_.percent(50)) row.flags |= ES_EP_ENET_CRC;
      if (dice_.percent(10)) row.flags |= ES_EP_SHADOW;
      if (dice_.percent(30)) row.flags |= ES_EP_REFUSE_JOINS;
      row.default_lane = static_cast<__u8>(dice_.below(ES_LANES));
      for (auto& byte : row.classifier.bytes) byte = static_cast<__u8>(dice_.word() & 0x77);
      for (auto& rule : row.classifier.match)
        rule = {.offset = static_cast<__u16>(dice_.below(300)),
                .lane = static_cast<__u8>(dice_.below(ES_LANES)),
                .reserved = 0,
                .mask = dice_.percent(20) ? 0 : 1u << dice_.below(32),
                .value = 0};
      if (row.protocol == ES_PROTOCOL_enet)
        std::fill_n(row.classifier.enet_channel, ES_ENET_CHANNELS,
                    static_cast<__u8>(ES_LANE_event << 4 | ES_LANE_snapshot));
      shed_something(number);
    }
    world_.publish();
  }

  void shed_something(std::uint32_t room) {
    for (const es_direction direction : {ES_IN, ES_OUT}) {
      es_room_rules& rules = world_.rules(room, direction);
      rules.ce_q8 = static_cast<__u8>(dice_.word());
      rules.le_mask = static_cast<__u8>(dice_.word());
      rules.drop_mask = dice_.sparse_mask();
      for (auto& keep : rules.keep_q16)
        keep = static_cast<__u16>(dice_.percent(50) ? ES_KEEP_ALL : dice_.word());
      for (auto& threshold : rules.threshold)
        threshold = static_cast<__u8>(dice_.percent(70) ? 0 : dice_.word());
    }
  }

  TcContext random_train(const Bytes& frame) {
    if (dice_.percent(70)) return {};
    return {.gso_segs = dice_.below(40),
            .wire_len = static_cast<std::uint32_t>(frame.size()) + dice_.below(30000)};
  }

  void check(Program program, const Bytes& frame, const Verdict& verdict) {
    const bool tc = program == Program::kTc || program == Program::kTcServers;
    ASSERT_LT(verdict.reason, ES_REASONS) << "counted nowhere, or more than once";
    const bool drop = es_reason_verdict(verdict.reason) == ES_VERDICT_drop;
    if (verdict.rejected) {
      ASSERT_EQ(program, Program::kXdp);
      ASSERT_EQ(verdict.action, kXdpTx);
      ASSERT_EQ(world_.endpoint_row(verdict.endpoint).protocol, ES_PROTOCOL_lane);
      ASSERT_TRUE(drop);
      ASSERT_LE(verdict.frame.size(), frame.size());
    } else if (tc) {
      ASSERT_EQ(verdict.action, drop ? kTcDrop : kTcPass);
    } else {
      ASSERT_EQ(verdict.action, drop ? kXdpDrop : kXdpPass);
    }
    if (!verdict.rejected && es_reason_verdict(verdict.reason) == ES_VERDICT_pass) {
      ASSERT_EQ(verdict.frame, frame) << "a packet that passed was changed";
    }
    const ParsedFrame parsed = parse_frame(frame);
    if (is_whole(parsed)) {
      ASSERT_TRUE(verdict.reason < ES_REASON_malformed_link || verdict.reason > ES_REASON_too_deep);
    }
    // What the independent reader finds no UDP in is nobody's, unless it is a later fragment.
    if (!parsed.has_udp && parsed.frag_offset == 0) {
      ASSERT_EQ(verdict.endpoint, 0);
      ASSERT_EQ(verdict.row, ES_ROW_UNCLASSIFIED);
      ASSERT_FALSE(drop);
    }
  }

  Dice dice_;
  Mutator mutator_;
  World world_{{.rooms = 8}};
};

TEST_F(FuzzPackets, NothingAbortsAndEveryFrameIsCountedOnce) {
  std::map<std::string_view, unsigned> seen;
  unsigned answered = 0, walk_errors = 0;
  for (int i = 0; i < kFrames; ++i) {
    if (i % kFramesPerPlan == 0) publish_plan(static_cast<unsigned>(i / kFramesPerPlan));
    world_.advance_jiffies(dice_.below(30));
    const Bytes frame = mutator_.next();
    auto program = static_cast<Program>(dice_.below(4));
    if (program == Program::kTc && !tc_takes(frame)) program = Program::kXdpServers;
    if (program == Program::kTcServers && !tc_takes(frame)) program = Program::kXdp;
    const Verdict verdict = world_.run(program, frame, random_train(frame));
    check(program, frame, verdict);
    if (HasFatalFailure() || HasNonfatalFailure()) {
      FAIL() << "EDGESHED_SEED=" << seed() << " frame " << i << " program "
             << static_cast<int>(program) << " " << testing::PrintToString(verdict) << "\n"
             << hex(frame);
    }
    ++seen[reason_name(verdict.reason)];
    answered += verdict.rejected;
    walk_errors += verdict.walk_error;
    if (i % kFramesPerPlan == 0) world_.events();
  }
  for (const auto& [reason, count] : seen) std::cout << reason << " " << count << "\n";
  std::cout << "answered " << answered << ", walk errors " << walk_errors << "\n";
  for (const char* reason :
       {"not_udp", "not_ours", "malformed_link", "malformed_ip", "malformed_udp", "too_deep",
        "frag_unknown", "admitted", "stranger", "thinned", "marked_ce", "marked_le", "shadow"})
    EXPECT_GE(seen[reason], 50u) << reason << " was hardly tried";
  EXPECT_GE(answered, 5u);
  EXPECT_GE(walk_errors, 50u);
}

}  // namespace
}  // namespace edgeshed::test
