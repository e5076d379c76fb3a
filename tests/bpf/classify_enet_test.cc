// The lane of an ENet datagram: that of its most valuable command.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"
#include "tests/support/enet_messages.h"

namespace edgeshed::test {
namespace {

/// Channel 0 carries events and snapshots, channel 1 commands and voice, the rest streams.
class EnetTest : public testing::TestWithParam<bool> {
 protected:
  EnetTest() {
    w_.endpoint({.protocol = ES_PROTOCOL_enet,
                 .flags = static_cast<std::uint8_t>(GetParam() ? ES_EP_ENET_CRC : 0)});
    auto& channel = w_.endpoint_row().classifier.enet_channel;
    for (auto& byte : channel) byte = ES_LANE_command << 4 | ES_LANE_stream;
    channel[0] = ES_LANE_event << 4 | ES_LANE_snapshot;
    channel[1] = ES_LANE_command << 4 | ES_LANE_voice;
    w_.publish();
  }

  static EnetDatagram datagram(EnetHeader header = {}) {
    header.crc = GetParam();
    return EnetDatagram(header);
  }
  Verdict verdict(const EnetDatagram& datagram) {
    const Verdict at_tc = w_.tc(to_remote({}, datagram.bytes()));
    const Verdict at_xdp = w_.xdp(from_remote({}, datagram.bytes()));
    EXPECT_EQ(at_tc.row, at_xdp.row) << "the hooks differ";
    EXPECT_EQ(at_tc.walk_error, at_xdp.walk_error) << "the hooks differ";
    return at_xdp;
  }
  void expect_lane(const EnetDatagram& datagram, es_lane lane) {
    const Verdict v = verdict(datagram);
    EXPECT_EQ(v.row, lane) << row_name(v.row) << " for " << hex(datagram.bytes());
    EXPECT_FALSE(v.walk_error) << hex(datagram.bytes());
  }
  void expect_broken(const EnetDatagram& datagram, es_lane lane) {
    const Verdict v = verdict(datagram);
    EXPECT_EQ(v.row, lane) << row_name(v.row) << " for " << hex(datagram.bytes());
    EXPECT_TRUE(v.walk_error) << hex(datagram.bytes());
    EXPECT_EQ(v.action, kXdpPass);
  }

  World w_;
};

TEST_P(EnetTest, EveryCommandHasItsLane) {
  expect_lane(datagram().ack(0, 1, 2), ES_LANE_control);
  expect_lane(datagram({.peer_id = 0xfff}).connect(), ES_LANE_join);
  expect_lane(datagram().verify(), ES_LANE_join);
  expect_lane(datagram().disconnect(true), ES_LANE_control);
  expect_lane(datagram().disconnect(false), ES_LANE_control);
  expect_lane(datagram().ping(), ES_LANE_control);
  expect_lane(datagram().reliable(0, 1, 50), ES_LANE_event);
  expect_lane(datagram().reliable(1, 1, 50), ES_LANE_command);
  expect_lane(datagram().unreliable(0, 1, 1, 50), ES_LANE_snapshot);
  expect_lane(datagram().unreliable(1, 1, 1, 50), ES_LANE_voice);
  expect_lane(datagram().fragment({.channel = 0}), ES_LANE_command);
  expect_lane(datagram().unsequenced(1, 1, 50), ES_LANE_voice);
  expect_lane(datagram().bandwidth(), ES_LANE_control);
  expect_lane(datagram().throttle(), ES_LANE_control);
  expect_lane(datagram().unreliable_fragment({.channel = 1}), ES_LANE_voice);
}

TEST_P(EnetTest, ChannelsBeyondTheTableShareItsLastEntry) {
  auto& channel = w_.endpoint_row().classifier.enet_channel;
  channel[ES_ENET_CHANNELS - 2] = ES_LANE_event << 4 | ES_LANE_cosmetic;
  w_.publish();
  expect_lane(datagram().unreliable(ES_ENET_CHANNELS - 2, 1, 1, 9), ES_LANE_cosmetic);
  expect_lane(datagram().unreliable(ES_ENET_CHANNELS - 1, 1, 1, 9), ES_LANE_stream);
  expect_lane(datagram().unreliable(200, 1, 1, 9), ES_LANE_stream);
}

TEST_P(EnetTest, MostValuableCommandDecides) {
  expect_lane(datagram().unreliable(0, 1, 1, 50).reliable(0, 1, 50), ES_LANE_event);
  expect_lane(datagram().reliable(0, 1, 50).unreliable(0, 1, 1, 50), ES_LANE_event);
  expect_lane(datagram().unreliable(0, 1, 1, 50).unsequenced(1, 1, 50), ES_LANE_snapshot);
  expect_lane(datagram().unreliable(0, 1, 1, 50).fragment({}), ES_LANE_command);
  expect_lane(datagram().unreliable(1, 1, 1, 9).unreliable(0, 1, 1, 9).ping(), ES_LANE_control);
  expect_lane(datagram().ack(0, 1, 2).ping(), ES_LANE_control);
}

TEST_P(EnetTest, AcknowledgementsBesideDataDoNotMakeItCritical) {
  expect_lane(datagram().ack(0, 1, 2).unreliable(0, 1, 1, 50), ES_LANE_command);
  expect_lane(datagram().ack(0, 1, 2).ack(0, 2, 2).unsequenced(1, 1, 9), ES_LANE_command);
  expect_lane(datagram().ack(0, 1, 2).reliable(0, 1, 50), ES_LANE_event);
  expect_lane(datagram().ack(0, 1, 2).reliable(1, 1, 50), ES_LANE_command);
}

TEST_P(EnetTest, DatagramOfThirtyTwoCommandsIsWalkedToItsEnd) {
  for (const unsigned count : {3u, 4u, 5u, 31u, 32u}) {
    EnetDatagram acks = datagram();
    for (unsigned i = 0; i < count; ++i) acks.ack(0, static_cast<std::uint16_t>(i), 2);
    expect_lane(acks, ES_LANE_control);
    EnetDatagram last = datagram();
    for (unsigned i = 1; i < count; ++i) last.unreliable(1, 1, static_cast<std::uint16_t>(i), 8);
    expect_lane(EnetDatagram(last).unreliable(0, 1, 1, 8), ES_LANE_voice);
    expect_lane(EnetDatagram(last).reliable(0, 1, 8), ES_LANE_event);
  }
}

TEST_P(EnetTest, CommandBeyondTheThirtySecondIsAWalkError) {
  EnetDatagram many = datagram();
  for (unsigned i = 0; i < 33; ++i) many.ack(0, static_cast<std::uint16_t>(i), 2);
  expect_broken(many, ES_LANE_command);
  EnetDatagram data = datagram();
  for (unsigned i = 0; i < 40; ++i) data.unreliable(1, 1, 1, 4);
  expect_broken(data, ES_LANE_command);
}

TEST_P(EnetTest, TrailingPingIsReadThoughOnlyFourBytesAreLeft) {
  expect_lane(datagram().unreliable(0, 1, 1, 3).ping(), ES_LANE_control);
  EnetDatagram many = datagram();
  for (unsigned i = 0; i < 6; ++i) many.unreliable(0, 1, 1, 3);
  expect_lane(many.ping(), ES_LANE_control);
}

TEST_P(EnetTest, CommandsBeyondTheFirstBufferOfALargeFrameAreRead) {
  const EnetDatagram large = datagram().unreliable(0, 1, 1, 2000).unreliable(1, 1, 1, 4000);
  EXPECT_EQ(w_.xdp(from_remote({}, large.bytes())).row, ES_LANE_snapshot);
  EnetDatagram reliable = large;
  EXPECT_EQ(w_.xdp(from_remote({}, reliable.reliable(0, 1, 3000).bytes())).row, ES_LANE_event);
  EnetDatagram pinged = large;
  EXPECT_EQ(w_.xdp(from_remote({}, pinged.ping().bytes())).row, ES_LANE_control);
}

TEST_P(EnetTest, InvalidCommandIsAWalkErrorAndKeepsWhatWasFound) {
  for (const std::uint8_t command : {0, 13, 14, 15}) {
    const Bytes invalid = {static_cast<std::uint8_t>(0x80 | command), 0xff, 0, 1};
    expect_broken(datagram().raw(invalid), ES_LANE_command);
    expect_broken(datagram().unreliable(0, 1, 1, 50).raw(invalid), ES_LANE_command);
    expect_broken(datagram().ack(0, 1, 2).raw(invalid), ES_LANE_command);
    EXPECT_EQ(verdict(datagram().reliable(0, 1, 50).raw(invalid)).row, ES_LANE_event);
  }
}

TEST_P(EnetTest, CommandThatIsLongerThanTheDatagramIsAWalkError) {
  Bytes cut = EnetDatagram().unreliable(0, 1, 1, 50).bytes();
  cut.erase(cut.begin(), cut.begin() + 2);
  cut.pop_back();
  expect_broken(datagram().raw(cut), ES_LANE_command);
  expect_broken(datagram().raw({0x07, 0, 0}), ES_LANE_command);
  expect_broken(datagram().raw({0x07, 0, 0, 1, 0, 1}), ES_LANE_command);
}

TEST_P(EnetTest, CompressedDatagramIsToldByItsHeaderAlone) {
  const Bytes body = filler(40, 0xee);
  expect_lane(datagram({.sent_time = true, .compressed = true}).raw(body), ES_LANE_command);
  expect_lane(datagram({.sent_time = false, .compressed = true}).raw(body), ES_LANE_stream);
  expect_lane(datagram({.peer_id = 0xfff, .sent_time = true, .compressed = true}).raw(body),
              ES_LANE_join);
}

TEST_P(EnetTest, DatagramTooShortForAHeaderIsAWalkError) {
  for (std::size_t size = 0; size < 4; ++size) {
    const Verdict v = w_.xdp(from_remote({}, Bytes(size, 0)));
    EXPECT_TRUE(v.walk_error) << size;
    EXPECT_EQ(v.row, ES_LANE_command);
    EXPECT_EQ(v.action, kXdpPass);
  }
}

TEST_P(EnetTest, CrcSettingThatIsWrongNeverDrops) {
  World& w = w_;
  w.endpoint_row().drop_mask[ES_IN] = 1 << ES_LANE_snapshot;
  w.publish();
  EnetHeader other;
  other.crc = !GetParam();
  for (unsigned bytes = 1; bytes < 300; bytes += 7) {
    const auto size = static_cast<std::uint16_t>(bytes);
    const Verdict v = w.xdp(from_remote({}, EnetDatagram(other).reliable(0, 1, size).bytes()));
    EXPECT_EQ(v.action, kXdpPass);
  }
}

INSTANTIATE_TEST_SUITE_P(Crc, EnetTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "Crc32" : "Plain"; });

}  // namespace
}  // namespace edgeshed::test
