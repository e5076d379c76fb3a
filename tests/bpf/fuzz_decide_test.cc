// Random plans, states and packets through the BPF program and through the native build of the same
// decision (native_decide.h): same verdict, reason and row, and the same memory afterwards, byte
// for byte. Packets carry the lane header, so that what is compared is step four alone.
// EDGESHED_SEED chooses another run.
#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bpf/fuzz_world.h"
#include "tests/bpf/harness.h"
#include "tests/bpf/native_decide.h"
#include "userspace/kernel/object.h"
#include "userspace/kernel/slot_table.h"

namespace edgeshed::test {
namespace {

constexpr std::uint64_t kDefaultSeed = 20240617;
constexpr int kPackets = 200'000;

constexpr std::uint16_t kFirstPort = 7000;  // endpoint e is on kFirstPort + e

/// The four programs: name, hook, and which way a packet through it goes.
struct Path {
  const char* program;
  bool tc;
  es_direction direction;
};
constexpr std::array<Path, 4> kPaths = {{{"es_xdp", false, ES_IN},
                                         {"es_tc", true, ES_OUT},
                                         {"es_xdp_srv", false, ES_OUT},
                                         {"es_tc_srv", true, ES_IN}}};

kernel::ObjectOptions object_options() {
  kernel::ObjectOptions options;
  options.map_clock = true;
  options.geometry.endpoints = 4;
  options.geometry.rooms = 8;
  options.geometry.classes = 4;
  options.geometry.connections = 64;
  options.geometry.stream_blocks = 16;
  options.geometry.buckets = 12;  // 72 slots for 64 keys: second choices and the stash are in use
  options.geometry.hz = kHz;
  options.geometry.seed[0] = 0x0123456789abcdef;
  options.geometry.seed[1] = 0xfedcba9876543210;
  return options;
}

struct Remote {
  std::string address;
  std::uint16_t port = 0;
  std::uint8_t endpoint = 0;
};

Remote remote_of(std::uint32_t number) {
  Remote remote;
  remote.address = (number % 3 == 0 ? "fd00::a:" : "10.9.0.") + std::to_string(number % 250);
  remote.port = static_cast<std::uint16_t>(20000 + number);
  remote.endpoint = static_cast<std::uint8_t>(1 + number % 3);
  return remote;
}

/// One packet: what is sent, and what the packet path must make of it before step four.
struct Probe {
  const Path* path = nullptr;
  Bytes frame;
  TcContext context;
  es_packet packet{};
  LaneFields header;
  Remote remote;
};

/// The `classify` group, from the header's fields: docs/lane-header.md in a few lines.
void classify(const LaneFields& header, std::uint16_t lane_tiers, es_packet& packet) {
  packet.lane = ES_LANE_command;
  packet.walk_error = header.magic != EDGESHED_LANE_MAGIC;
  if (packet.walk_error) return;
  const bool out = packet.direction == ES_OUT;
  packet.stream = header.stream;
  packet.numbered = out || (header.flags & EDGESHED_LANE_ACK) != 0;
  packet.number = out ? header.sequence : header.ack;
  packet.lane = header.lane;
  if (header.claim > es_lane_tier(lane_tiers, header.lane))
    packet.lane = header.claim == ES_TIER_standard ? ES_LANE_command : ES_LANE_cosmetic;
  if (header.flags & EDGESHED_LANE_CLOSE) packet.lane = ES_LANE_control;
  if (header.flags & EDGESHED_LANE_JOIN) packet.lane = ES_LANE_join;
  packet.has_stream = header.lane == ES_LANE_stream && packet.lane == ES_LANE_stream;
}

class FuzzDecide : public testing::Test {
 protected:
  FuzzDecide()
      : seed_(seed()),
        dice_(seed_),
        object_((pin(), kernel::Object::load(object_options()))),
        maps_(object_.maps()),
        records_(fill_table()),
        mirror_(maps_),
        chaos_(mirror_, dice_) {
    for (std::size_t i = 0; i < kPaths.size(); ++i) fds_[i] = object_.program_fd(kPaths[i].program);
    chaos_.remember_stash();
  }

  static std::uint64_t seed() {
    const char* text = std::getenv("EDGESHED_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 0) : kDefaultSeed;
  }

  /// Counters are per CPU: programs run on the CPU of their caller.
  static void pin() {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) throw std::runtime_error("cannot pin");
  }

  std::vector<std::uint32_t> fill_table() {
    maps_.control().clock_jiffies = 1'000'000;
    for (std::uint8_t e = 1; e < 4; ++e) maps_.ports()[kFirstPort + e] = e;
    kernel::SlotTable table({.buckets = maps_.buckets(),
                             .connections = maps_.connections(),
                             .connections_in = maps_.connections_in(),
                             .connections_out = maps_.connections_out(),
                             .stash_used = &maps_.control().stash_used,
                             .seed = {maps_.geometry().seed[0], maps_.geometry().seed[1]}},
                            [] {});
    std::vector<std::uint32_t> records;
    for (std::uint32_t i = 0; i < maps_.geometry().connections; ++i) {
      const Remote remote = remote_of(i);
      const auto record = table.insert(key_of(remote.address, remote.port, remote.endpoint), {});
      if (!record) break;
      records.push_back(*record);
    }
    return records;
  }

  /// Writes every row of both copies once, so that nothing starts as zeroes only.
  void shuffle_all() {
    for (int copy = 0; copy < 2; ++copy) {
      mirror_.control[0].generation++;
      mirror_.control.put(0);
      for (std::uint32_t i = 1; i < mirror_.geometry.endpoints; ++i) chaos_.endpoint(i);
      for (std::uint32_t i = 0; i < mirror_.geometry.rooms; ++i) chaos_.room(i);
      for (std::uint32_t i = 0; i < mirror_.geometry.classes; ++i) chaos_.contract_class(i);
    }
  }

  Probe make_probe(std::uint32_t number) {
    Probe probe;
    probe.path = &kPaths[dice_.below(kPaths.size())];
    probe.remote = remote_of(number);
    if (dice_.percent(5)) probe.remote.endpoint = static_cast<std::uint8_t>(1 + dice_.below(3));
    LaneFields& header = probe.header;
    header.lane = static_cast<std::uint8_t>(dice_.below(ES_LANES));
    if (dice_.percent(40)) header.lane = ES_LANE_stream;
    header.claim = static_cast<std::uint8_t>(dice_.percent(60) ? 0 : dice_.below(4));
    if (dice_.percent(8)) header.flags |= EDGESHED_LANE_JOIN;
    if (dice_.percent(4)) header.flags |= EDGESHED_LANE_CLOSE;
    header.stream = static_cast<std::uint16_t>(dice_.percent(90) ? dice_.below(9) : dice_.word());
    header.sequence = static_cast<std::uint16_t>(dice_.word());
    if (dice_.percent(40)) header.flags |= EDGESHED_LANE_ACK;
    header.ack = static_cast<std::uint16_t>(dice_.percent(50) ? dice_.below(300) : dice_.word());
    if (dice_.percent(2)) header.magic = 0;

    const bool v6 = probe.remote.address.find(':') != std::string::npos;
    const Flow flow{.remote = probe.remote.address,
                    .remote_port = probe.remote.port,
                    .local = v6 ? "fd00::1" : "10.0.0.1",
                    .local_port = static_cast<std::uint16_t>(kFirstPort + probe.remote.endpoint),
                    .tos = static_cast<std::uint8_t>(dice_.word())};
    const Bytes payload =
        lane_payload(header, dice_.percent(80) ? dice_.below(100) : dice_.below(1300));
    probe.frame =
        probe.path->direction == ES_IN ? from_remote(flow, payload) : to_remote(flow, payload);
    describe(probe, flow);
    return probe;
  }

  /// The flow and parse groups; a TC packet may be a train of segments.
  void describe(Probe& probe, const Flow& flow) {
    es_packet& packet = probe.packet;
    packet.direction = static_cast<__u8>(probe.path->direction);
    packet.endpoint = probe.remote.endpoint;
    packet.remote = key_of(probe.remote.address, probe.remote.port, probe.remote.endpoint);
    packet.traffic_class = flow.tos;
    packet.segments = 1;
    packet.ip_bytes = static_cast<__u32>(probe.frame.size()) - 14;
    if (!probe.path->tc || dice_.percent(70)) return;
    probe.context.gso_segs = dice_.below(dice_.percent(80) ? 5 : 64);
    probe.context.wire_len = static_cast<std::uint32_t>(probe.frame.size()) + dice_.below(20000);
    if (probe.context.gso_segs < 2) return;
    packet.segments = static_cast<__u16>(probe.context.gso_segs);
    packet.ip_bytes = probe.context.wire_len - packet.segments * 14;
  }

  void shuffle(const Probe& probe, std::uint32_t record) {
    const std::uint8_t endpoint = probe.packet.endpoint;
    chaos_.control();
    if (dice_.percent(40)) chaos_.endpoint(endpoint);
    if (dice_.percent(40)) chaos_.room(dice_.below(mirror_.geometry.rooms));
    if (dice_.percent(30)) chaos_.contract_class(dice_.below(mirror_.geometry.classes));
    if (dice_.percent(50)) chaos_.connection(record, probe.header.stream);
    if (dice_.percent(20)) chaos_.allowances(endpoint, dice_.below(mirror_.geometry.rooms));
    if (dice_.percent(10)) chaos_.quartiles();
  }

  int run(const Probe& probe) {
    __sk_buff skb{};
    skb.gso_segs = probe.context.gso_segs;
    skb.wire_len = probe.context.wire_len;
    LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = probe.frame.data(),
                .data_size_in = static_cast<__u32>(probe.frame.size()));
    if (probe.path->tc) {
      options.ctx_in = &skb;
      options.ctx_size_in = sizeof(skb);
    }
    const int error = bpf_prog_test_run_opts(fds_[probe.path - kPaths.data()], &options);
    if (error != 0) throw std::runtime_error(std::string("PROG_RUN: ") + std::strerror(-error));
    return static_cast<int>(options.retval);
  }

  /// The native side of a packet. Returns the action that the hook must return.
  int decide(Probe& probe) {
    es_packet& packet = probe.packet;
    const std::size_t seen_row =
        es_native.cpu * mirror_.geometry.endpoints + std::size_t{packet.endpoint};
    const bool sample = mirror_.count_ep[seen_row].seen[packet.direction] % ES_SAMPLE_EVERY == 0;
    const std::size_t row = (mirror_.control[0].generation & 1) * mirror_.geometry.endpoints +
                            std::size_t{packet.endpoint};
    classify(probe.header, mirror_.plan_ep[row].lane_tiers, packet);
    es_native_decide(&packet, sample);
    es_native_count(&packet);
    const bool drop = packet.verdict == ES_VERDICT_drop;
    if (probe.path->tc) return drop ? kTcDrop : kTcPass;
    return drop ? kXdpDrop : kXdpPass;
  }

  std::string describe_failure(const Probe& probe, std::uint32_t record) const {
    const es_packet& p = probe.packet;
    const std::uint32_t copy = mirror_.control.copy[0].generation & 1;
    const auto bytes = [](const auto& row) {
      return hex({reinterpret_cast<const std::uint8_t*>(&row), sizeof(row)});
    };
    std::ostringstream out;
    out << "EDGESHED_SEED=" << seed_ << " " << probe.path->program << " record " << record
        << "\nnative: reason " << reason_name(p.reason) << " row " << row_name(p.row) << " tier "
        << int{p.tier} << " room " << p.room << " lane " << int{p.lane} << " stream " << p.stream
        << " segments " << p.segments << " ip_bytes " << p.ip_bytes << "\nframe "
        << hex(probe.frame) << "\ncontrol " << bytes(mirror_.control.copy[0]) << "\nendpoint "
        << bytes(mirror_.plan_ep.copy[copy * mirror_.geometry.endpoints + p.endpoint]);
    if (p.room < mirror_.geometry.rooms)
      out << "\nroom " << bytes(mirror_.plan_room.copy[copy * mirror_.geometry.rooms + p.room]);
    const es_connection& c = mirror_.conns.copy[record];
    out << "\nclass "
        << bytes(mirror_.plan_class
                     .copy[copy * mirror_.geometry.classes + (c.policy.contract_class & 3)])
        << "\nnative connection " << bytes(c) << "\nprogram's        "
        << bytes(mirror_.conns.map[record]) << "\nnative in "
        << bytes(mirror_.conns_in.copy[record]) << "\nprogram's "
        << bytes(mirror_.conns_in.map[record]) << "\nnative out "
        << bytes(mirror_.conns_out.copy[record]) << "\nprogram's  "
        << bytes(mirror_.conns_out.map[record]);
    return out.str();
  }

  std::uint64_t seed_;
  Dice dice_;
  kernel::Object object_;
  kernel::MapSet maps_;
  std::vector<std::uint32_t> records_;
  Mirror mirror_;
  Chaos chaos_;
  std::array<int, 4> fds_{};
};

/// Reasons that step four never gives to a packet that it is asked about.
bool belongs_to_other_steps(unsigned reason) {
  return (reason >= ES_REASON_not_ours && reason <= ES_REASON_bypass) ||
         reason == ES_REASON_no_plan ||
         (reason >= ES_REASON_malformed_link && reason <= ES_REASON_frag_unknown);
}

TEST_F(FuzzDecide, NativeAndProgramAgreeByteForByte) {
  std::cout << "seed " << seed_ << "\n";
  std::array<unsigned, ES_REASONS> seen{};
  shuffle_all();
  ASSERT_GE(records_.size(), 60u);
  for (int i = 0; i < kPackets; ++i) {
    // A quarter are strangers: numbers that no connection has.
    const std::uint32_t number = dice_.below(records_.size() * 4 / 3);
    const std::uint32_t record = records_[std::min<std::size_t>(number, records_.size() - 1)];
    Probe probe = make_probe(number);
    shuffle(probe, record);
    const int expected = decide(probe);
    const int action = run(probe);
    std::string difference = mirror_.difference(
        i % 512 == 0 ? std::nullopt : std::optional<std::uint32_t>(probe.packet.endpoint));
    if (action != expected) difference += " action " + std::to_string(action);
    ASSERT_EQ(difference, "") << "packet " << i << " " << describe_failure(probe, record);
    ++seen[probe.packet.reason];
  }
  EXPECT_EQ(mirror_.difference(std::nullopt), "");
  for (unsigned reason = 0; reason < ES_REASONS; ++reason) {
    if (belongs_to_other_steps(reason)) continue;
    EXPECT_GE(seen[reason], 20u) << "hardly tried: "
                                 << reason_name(static_cast<std::uint8_t>(reason));
  }
}

}  // namespace
}  // namespace edgeshed::test
