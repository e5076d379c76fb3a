// Rejects of protocol `lane`: the answer on the wire, whom it is sent to, and the caps.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"
#include "tests/support/packet_builder.h"

namespace edgeshed::test {
namespace {

const Flow kV6{.remote = "fd00::2", .local = "fd00::1"};
constexpr std::size_t kUdpHeader = 8;

class RejectTest : public testing::Test {
 protected:
  RejectTest() {
    w_.endpoint({.address = "", .flags = ES_EP_REJECTS})
        .connect("10.0.0.2", 4000)
        .connect("fd00::2", 4000);
    // Standard below priority 255 is refused, which is all of it; voice is paused.
    w_.rules(0, ES_IN).threshold[0] = 255;
    w_.endpoint_row().drop_mask[ES_IN] = 1 << ES_LANE_voice;
    w_.publish();
  }

  static Bytes command(const Flow& flow = {}, std::size_t body = 20) {
    return from_remote(
        flow, lane_payload({.lane = ES_LANE_command, .stream = 77, .sequence = 0x1234}, body));
  }
  void expect_answer(const Verdict& v, const Bytes& request, es_reason reason) {
    EXPECT_EQ(v.action, kXdpTx);
    EXPECT_EQ(reason_name(v.reason), reason_name(reason));
    EXPECT_TRUE(v.rejected);
    EXPECT_EQ(v.rejects_withheld, 0u);
    const ParsedFrame sent = parse_frame(request), answer = parse_frame(v.frame);
    EXPECT_EQ(answer.error, "");
    EXPECT_EQ(answer.src_mac, sent.dst_mac);
    EXPECT_EQ(answer.dst_mac, sent.src_mac);
    EXPECT_EQ(answer.vlan_ids, sent.vlan_ids);
    EXPECT_EQ(answer.src, sent.dst);
    EXPECT_EQ(answer.dst, sent.src);
    EXPECT_EQ(answer.src_port, sent.dst_port);
    EXPECT_EQ(answer.dst_port, sent.src_port);
    EXPECT_EQ(answer.ttl, 64);
    EXPECT_EQ(answer.udp_length, kUdpHeader + EDGESHED_LANE_BYTES);
    EXPECT_EQ(answer.ip_bytes, answer.ip_header_bytes + kUdpHeader + EDGESHED_LANE_BYTES);
    // Not cut to what IP says: who resizes packets may not share a dispatcher, since kernel 6.12.
    // What is behind it is padding, all of it and no more.
    EXPECT_EQ(v.frame.size(), request.size());
    EXPECT_EQ(answer.padding_bytes, sent.padding_bytes + sent.ip_bytes - answer.ip_bytes);
    EXPECT_EQ(answer.ip_checksum,
              answer.ip_version == 4 ? ChecksumState::right : ChecksumState::not_present);
    EXPECT_EQ(answer.udp_checksum,
              answer.ip_version == 4 ? ChecksumState::zero : ChecksumState::right);
    expect_lane_header(answer.payload, sent.payload, reason);
  }
  static void expect_lane_header(const Bytes& answer, const Bytes& request, es_reason reason) {
    ASSERT_EQ(answer.size(), std::size_t{EDGESHED_LANE_BYTES});
    EXPECT_EQ(answer[0], EDGESHED_LANE_MAGIC);
    EXPECT_EQ(answer[1] >> 4, EDGESHED_LANE_VERSION);
    EXPECT_EQ(answer[2] >> 4, EDGESHED_LANE_REJECT);
    EXPECT_EQ(answer[3], reason);
    EXPECT_EQ(be16_at(answer, 4), be16_at(request, 4)) << "stream";
    EXPECT_EQ(be16_at(answer, 8), be16_at(request, 6)) << "ack is the refused sequence";
    EXPECT_EQ(be16_at(answer, 10), 50) << "500 ms";
  }

  World w_;
};

// Rule: A8
TEST_F(RejectTest, RefusedCommandIsAnsweredInBothFamilies) {
  for (const Flow& flow : {Flow{}, kV6}) {
    const Bytes request = command(flow);
    const Verdict v = w_.xdp(request);
    expect_answer(v, request, ES_REASON_priority);
    EXPECT_EQ(v.row, ES_LANE_command);
    EXPECT_EQ(v.bytes_shed, v.bytes);
    EXPECT_EQ(parse_frame(v.frame).payload[2] & 15, ES_LANE_command);
  }
}

// Rule: A4
TEST_F(RejectTest, ASampleThatTheGovernorRefusesIsAnsweredWithItsReasonAndStream) {
  w_.connect("10.0.0.2", 5000, {.stream_block = 1});
  w_.room(0).stream_samples_per_s = 1;
  w_.room(0).stream_cap = ES_ROOM_CLOSES;
  w_.publish();
  const Bytes sample =
      from_remote({.remote_port = 5000}, lane_payload({.lane = ES_LANE_stream, .stream = 7}, 40));
  EXPECT_EQ(w_.xdp(sample).reason, ES_REASON_admitted);
  expect_answer(w_.xdp(sample), sample, ES_REASON_stream_rate);
  w_.maps().streams()[1].slot[0].stream_id |= ES_STREAM_CLOSED;
  w_.advance_seconds(1);
  w_.publish();
  expect_answer(w_.xdp(sample), sample, ES_REASON_stream_closed);
}

TEST_F(RejectTest, AnswerIsNeverLongerThanTheRequest) {
  for (const Flow& flow : {Flow{}, kV6}) {
    for (std::size_t body = 0; body < 40; ++body) {
      w_.advance_seconds(1);
      const Bytes request = command(flow, body);
      expect_answer(w_.xdp(request), request, ES_REASON_priority);
    }
  }
}

TEST_F(RejectTest, Ipv6ChecksumIsRightForEveryAddress) {
  for (unsigned i = 0; i < 300; ++i) {
    w_.advance_seconds(1);
    const Flow flow{.remote = "fd00:" + std::to_string(i) + "::" + std::to_string(i * 7),
                    .remote_port = static_cast<std::uint16_t>(i * 211),
                    .local = "fd00::1"};
    const Bytes request = command(flow);
    expect_answer(w_.xdp(request), request, ES_REASON_priority);
  }
}

TEST_F(RejectTest, TagsTosAndPaddingOfTheRequestDoNotSpoilTheAnswer) {
  const Bytes payload = lane_payload({.lane = ES_LANE_command}, 30);
  const Bytes tagged = Packet()
                           .eth()
                           .qinq(3, 4)
                           .ipv4({.tos = 0xb9, .id = 99, .dont_fragment = true, .ttl = 1})
                           .udp(4000, 7777)
                           .payload(payload)
                           .build();
  expect_answer(w_.xdp(tagged), tagged, ES_REASON_priority);
  w_.advance_seconds(1);
  const Bytes padded = Packet()
                           .eth()
                           .ipv4()
                           .udp(4000, 7777)
                           .payload(lane_payload({.lane = ES_LANE_command}, 0))
                           .pad_to(60)
                           .build();
  expect_answer(w_.xdp(padded), padded, ES_REASON_priority);
}

TEST_F(RejectTest, RefusedHandshakeOfAStrangerIsAnswered) {
  w_.endpoint_row().flags |= ES_EP_REFUSE_JOINS;
  w_.publish();
  const Bytes request = from_remote(
      {.remote_port = 9}, lane_payload({.flags = EDGESHED_LANE_JOIN, .sequence = 0x1234}));
  expect_answer(w_.xdp(request), request, ES_REASON_join_refused);
}

TEST_F(RejectTest, BestEffortIsDroppedWithoutAnAnswer) {
  const Verdict v = w_.xdp(lane_in(ES_LANE_voice));
  EXPECT_EQ(v.action, kXdpDrop);
  EXPECT_FALSE(v.rejected);
  EXPECT_EQ(v.rejects_withheld, 0u);
}

TEST_F(RejectTest, NobodyIsAnsweredWithoutTheFlagOrAtTheOtherHooks) {
  EXPECT_EQ(w_.tc_servers(command()).action, kTcDrop);
  w_.rules(0, ES_OUT).threshold[0] = 255;
  w_.publish();
  EXPECT_EQ(w_.xdp_servers(lane_out(ES_LANE_command)).action, kXdpDrop);
  w_.endpoint_row().flags &= static_cast<__u8>(~ES_EP_REJECTS);
  w_.publish();
  EXPECT_EQ(w_.xdp(command()).action, kXdpDrop);
  w_.endpoint({.number = 2,
               .port = 7000,
               .protocol = ES_PROTOCOL_opaque,
               .address = "",
               .flags = ES_EP_REJECTS});
  w_.endpoint_row(2).default_lane = ES_LANE_command;
  w_.publish();
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_command, {.local_port = 7000})).action, kXdpDrop);
}

TEST_F(RejectTest, PacketWithoutALaneHeaderIsDroppedWithoutAnAnswer) {
  for (const std::size_t bytes : {0, 4, 11, 40}) {
    const Verdict v = w_.xdp(from_remote({}, filler(bytes)));
    EXPECT_EQ(v.action, kXdpDrop);
    EXPECT_FALSE(v.rejected);
  }
}

TEST_F(RejectTest, FragmentIsDroppedWithoutAnAnswer) {
  const Bytes first = Packet()
                          .eth()
                          .ipv4({.id = 7, .more_fragments = true})
                          .udp(4000, 7777, {.length = 3008})
                          .payload(lane_payload({.lane = ES_LANE_command}, 1460))
                          .build();
  EXPECT_EQ(w_.xdp(first).action, kXdpDrop);
}

TEST_F(RejectTest, RequestWithOptionsOrExtensionHeadersIsNotAnsweredAndNotCharged) {
  const Bytes payload = lane_payload({.lane = ES_LANE_command});
  const Bytes v4 =
      Packet().eth().ipv4({.options_words = 1}).udp(4000, 7777).payload(payload).build();
  const Verdict v = w_.xdp(v4);
  EXPECT_EQ(v.action, kXdpDrop);
  EXPECT_FALSE(v.rejected);
  EXPECT_EQ(v.rejects_withheld, 1u);
  EXPECT_EQ(v.frame, v4);
  const Bytes v6 =
      Packet().eth().ipv6().ext(Ext::dest_opts).udp(4000, 7777).payload(payload).build();
  EXPECT_EQ(w_.xdp(v6).action, kXdpDrop);
  EXPECT_EQ(w_.xdp(command()).action, kXdpTx) << "what was not sent used up the cap";
}

TEST_F(RejectTest, WithheldForACapAndForTheRequestAreCountedApart) {
  w_.xdp(command());
  w_.xdp(command());  // within 100 ms
  EXPECT_EQ(w_.endpoint_counters().not_rejected[0], 1u);
  EXPECT_EQ(w_.endpoint_counters().not_rejected[1], 0u);
  w_.advance_seconds(1);
  const Bytes payload = lane_payload({.lane = ES_LANE_command});
  w_.xdp(Packet().eth().ipv4({.options_words = 1}).udp(4000, 7777).payload(payload).build());
  EXPECT_EQ(w_.endpoint_counters().not_rejected[0], 1u);
  EXPECT_EQ(w_.endpoint_counters().not_rejected[1], 1u);
}

TEST_F(RejectTest, ConnectionGetsOneInAHundredMilliseconds) {
  const std::uint32_t interval = w_.hz() / 10;
  for (std::uint32_t jiffy = 0; jiffy < 4 * interval; ++jiffy) {
    const Verdict v = w_.xdp(command());
    EXPECT_EQ(v.action, jiffy % interval == 0 ? kXdpTx : kXdpDrop) << jiffy;
    EXPECT_EQ(v.rejects_withheld, jiffy % interval == 0 ? 0u : 1u) << jiffy;
    w_.advance_jiffies(1);
  }
}

/// Requests of strangers in one second; how many are answered.
unsigned answered(World& w, const std::vector<std::string>& remotes, const std::string& local) {
  unsigned count = 0;
  for (const std::string& remote : remotes) {
    const Flow flow{.remote = remote, .remote_port = 9, .local = local};
    count += w.action(Program::kXdp, lane_in(ES_LANE_command, flow)) == kXdpTx;
  }
  return count;
}

TEST_F(RejectTest, PrefixIsCappedPerSecond) {
  std::vector<std::string> v4, v4_neighbours, v6, v6_neighbours;
  for (unsigned i = 1; i <= 100; ++i) {
    v4.push_back("192.0.2." + std::to_string(i));
    v4_neighbours.push_back("192.0.3." + std::to_string(i));
    v6.push_back("2001:db8:1:" + std::to_string(i) + "::1");
    v6_neighbours.push_back("2001:db8:2:" + std::to_string(i) + "::1");
  }
  w_.at_jiffies(4'000'000 * std::uint64_t{w_.hz()});
  for (int second = 0; second < 3; ++second) {
    EXPECT_EQ(answered(w_, v4, "10.0.0.1"), ES_REJECTS_PER_PREFIX_PER_SECOND);
    EXPECT_EQ(answered(w_, v4_neighbours, "10.0.0.1"), ES_REJECTS_PER_PREFIX_PER_SECOND);
    EXPECT_EQ(answered(w_, v6, "fd00::1"), ES_REJECTS_PER_PREFIX_PER_SECOND);
    EXPECT_EQ(answered(w_, v6_neighbours, "fd00::1"), ES_REJECTS_PER_PREFIX_PER_SECOND);
    w_.advance_seconds(1);
  }
}

TEST_F(RejectTest, CpuIsCappedPerGeneration) {
  w_.control().rejects_per_cpu = 3;
  std::vector<std::string> remotes;
  remotes.reserve(10);
  for (unsigned i = 0; i < 10; ++i) remotes.push_back("192.0." + std::to_string(i) + ".1");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(answered(w_, remotes, "10.0.0.1"), 3u);
    w_.publish();
  }
  w_.control().rejects_per_cpu = 0;
  EXPECT_EQ(answered(w_, remotes, "10.0.0.1"), 0u);
}

}  // namespace
}  // namespace edgeshed::test
