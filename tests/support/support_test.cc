// Tests of the test support itself: builders and readers agree where they should, disagree where a
// field was made wrong, and both agree with bytes captured from real programs.
// Must not test the project: a failure here means that the tests cannot be trusted.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "tests/support/bytes.h"
#include "tests/support/capture.h"
#include "tests/support/enet_decoder.h"
#include "tests/support/enet_messages.h"
#include "tests/support/packet_builder.h"

namespace edgeshed::test {
namespace {

// ---- bytes

TEST(Bytes, CrcAndSumMatchPublishedVectors) {
  const std::string check = "123456789";
  EXPECT_EQ(crc32_ieee(Bytes(check.begin(), check.end())), 0xcbf43926U);
  EXPECT_EQ(crc32_ieee({}), 0U);
  // RFC 1071, section 3.
  EXPECT_EQ(internet_sum(Bytes{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}), 0xddf2);
  EXPECT_EQ(internet_sum(Bytes{0x01}), 0x0100);
}

TEST(Bytes, AccessPastTheEndThrows) {
  Bytes three = {1, 2, 3};
  EXPECT_EQ(be16_at(three, 1), 0x0203);
  EXPECT_THROW(be16_at(three, 2), std::out_of_range);
  EXPECT_THROW(be32_at(three, 0), std::out_of_range);
  EXPECT_THROW(u8_at(three, 3), std::out_of_range);
  EXPECT_THROW(set_be16(three, SIZE_MAX, 0), std::out_of_range);
}

// ---- frames

TEST(PacketBuilder, MatchesAKnownFrameByteForByte) {
  const Bytes frame = Packet()
                          .eth()
                          .ipv4({.src = "10.0.0.2", .dst = "10.0.0.1", .id = 0x1234})
                          .udp(4000, 7777)
                          .payload({0xaa, 0xbb, 0xcc})
                          .build();
  // Checksums worked out apart from this code: sum of the header words, complemented.
  EXPECT_EQ(hex(frame),
            "020000000001020000000002"
            "0800"
            "4500001f1234000040115498"
            "0a0000020a000001"
            "0fa01e61000b"
            "4718"
            "aabbcc");
}

TEST(PacketBuilder, Ipv4RoundTrip) {
  const Bytes body = filler(33);
  const Bytes frame = Packet()
                          .eth()
                          .ipv4({.src = "192.0.2.7", .dst = "198.51.100.9", .tos = 0xb9, .ttl = 3})
                          .udp(1, 65535)
                          .payload(body)
                          .build();
  const ParsedFrame parsed = parse_frame(frame);
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.ethertype, 0x0800);
  EXPECT_EQ(parsed.ip_version, 4);
  EXPECT_EQ(parsed.src, "192.0.2.7");
  EXPECT_EQ(parsed.dst, "198.51.100.9");
  EXPECT_EQ(parsed.dscp, 46);
  EXPECT_EQ(parsed.ecn, 1);
  EXPECT_EQ(parsed.ttl, 3);
  EXPECT_EQ(parsed.protocol, 17);
  EXPECT_EQ(parsed.ip_bytes, 20 + 8 + body.size());
  EXPECT_EQ(parsed.src_port, 1);
  EXPECT_EQ(parsed.dst_port, 65535);
  EXPECT_EQ(parsed.udp_length, 8 + body.size());
  EXPECT_EQ(parsed.ip_checksum, ChecksumState::right);
  EXPECT_EQ(parsed.udp_checksum, ChecksumState::right);
  EXPECT_EQ(parsed.payload, body);
  EXPECT_EQ(parsed.padding_bytes, 0U);
  EXPECT_FALSE(parsed.truncated);
}

TEST(PacketBuilder, Ipv4OptionsMoveThePorts) {
  for (uint8_t words = 0; words <= 10; ++words) {
    const Bytes frame =
        Packet().eth().ipv4({.options_words = words}).udp(4000, 7777).payload(filler(9)).build();
    EXPECT_EQ(frame.size(), 14U + 20 + words * 4U + 8 + 9);
    const ParsedFrame parsed = parse_frame(frame);
    EXPECT_EQ(parsed.ip_header_bytes, 20 + words * 4U);
    EXPECT_EQ(parsed.dst_port, 7777);
    EXPECT_EQ(parsed.ip_checksum, ChecksumState::right);
    EXPECT_EQ(parsed.udp_checksum, ChecksumState::right);
    EXPECT_EQ(parsed.payload, filler(9));
  }
  EXPECT_THROW(Packet().eth().ipv4({.options_words = 11}).build(), std::invalid_argument);
  EXPECT_THROW(Packet().eth().ipv4({.src = "10.0.0.256"}).build(), std::invalid_argument);
}

TEST(PacketBuilder, TagsInAnyDepth) {
  const Bytes single = Packet().eth().vlan(100).ipv4().udp(1, 2).build();
  EXPECT_EQ(be16_at(single, 12), 0x8100);
  EXPECT_EQ(be16_at(single, 14), 100);
  EXPECT_EQ(be16_at(single, 16), 0x0800);
  const ParsedFrame three =
      parse_frame(Packet().eth().vlan(5, 0x9100).qinq(10, 4095).ipv6().udp(1, 2).build());
  EXPECT_EQ(three.vlan_tpids, (std::vector<uint16_t>{0x9100, 0x88a8, 0x8100}));
  EXPECT_EQ(three.vlan_ids, (std::vector<uint16_t>{5, 10, 4095}));
  EXPECT_EQ(three.ethertype, 0x86dd);
  EXPECT_EQ(three.ip_offset, 14U + 12);
  EXPECT_EQ(three.dst_port, 2);
  const Bytes priority = Packet().eth().vlan({.id = 1, .priority = 7}).ipv4().build();
  EXPECT_EQ(be16_at(priority, 14), 0xe001);
}

TEST(PacketBuilder, Ipv6RoundTrip) {
  const Bytes frame = Packet()
                          .eth()
                          .ipv6({.src = "2001:db8::2", .tos = 0x2e, .flow_label = 0xabcde})
                          .udp(4000, 7777)
                          .payload(filler(21))
                          .build();
  EXPECT_EQ(be32_at(frame, 14), 0x62eabcdeU);
  const ParsedFrame parsed = parse_frame(frame);
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.src, "2001:db8::2");
  EXPECT_EQ(parsed.dscp, 11);
  EXPECT_EQ(parsed.ecn, 2);
  EXPECT_EQ(parsed.ip_bytes, 40U + 8 + 21);
  EXPECT_EQ(parsed.ip_checksum, ChecksumState::not_present);
  EXPECT_EQ(parsed.udp_checksum, ChecksumState::right);
  EXPECT_EQ(parsed.payload, filler(21));
}

TEST(PacketBuilder, Ipv6ChainOfEveryKind) {
  const Bytes frame = Packet()
                          .eth()
                          .ipv6()
                          .ext(Ext::hop_by_hop)
                          .ext(Ext::dest_opts, 3)
                          .ext(Ext::routing, 2)
                          .fragment({.id = 0xdeadbeef})
                          .ext(Ext::auth, 3)
                          .ext(Ext::mobility)
                          .ext(Ext::dest_opts, 256)
                          .udp(4000, 7777)
                          .payload(filler(5))
                          .build();
  const ParsedFrame parsed = parse_frame(frame);
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.ext_headers, (std::vector<uint8_t>{0, 60, 43, 44, 51, 135, 60}));
  EXPECT_EQ(parsed.ip_header_bytes, 40U + 8 * (1 + 3 + 2 + 1 + 3 + 1 + 256));
  EXPECT_EQ(parsed.ip_id, 0xdeadbeefU);
  EXPECT_FALSE(parsed.more_fragments);
  EXPECT_EQ(parsed.dst_port, 7777);
  EXPECT_EQ(parsed.udp_checksum, ChecksumState::right);
  EXPECT_EQ(parsed.payload, filler(5));
  EXPECT_EQ(frame[14 + 6], 0);       // the IPv6 header names hop-by-hop
  EXPECT_EQ(frame[14 + 40 + 1], 0);  // 8 bytes
  EXPECT_EQ(frame[14 + 48 + 1], 2);  // 24 bytes
  EXPECT_EQ(frame[14 + 88], 51);     // the fragment header names the AH
  EXPECT_EQ(frame[14 + 96 + 1], 4);  // AH: 6 words of 4 bytes, less two
  EXPECT_THROW(Packet().ipv6().ext(Ext::auth, 1).build(), std::invalid_argument);
  EXPECT_THROW(Packet().ipv6().ext(Ext::routing, 257).build(), std::invalid_argument);
}

TEST(PacketBuilder, FragmentsHavePortsOnlyInTheFirst) {
  const ParsedFrame first = parse_frame(Packet()
                                            .eth()
                                            .ipv4({.id = 7, .more_fragments = true})
                                            .udp(4000, 7777, {.length = 3008})
                                            .payload(filler(1472))
                                            .build());
  EXPECT_TRUE(first.has_udp);
  EXPECT_EQ(first.udp_length, 3008);
  EXPECT_EQ(first.udp_checksum, ChecksumState::not_knowable);
  EXPECT_EQ(first.payload.size(), 1472U);

  const Bytes rest = filler(100);
  const ParsedFrame later =
      parse_frame(Packet().eth().ipv4({.id = 7, .frag_offset = 185}).payload(rest).build());
  EXPECT_EQ(later.error, "");
  EXPECT_EQ(later.protocol, 17);
  EXPECT_EQ(later.frag_offset, 185);
  EXPECT_FALSE(later.more_fragments);
  EXPECT_FALSE(later.has_udp);
  EXPECT_EQ(later.payload, rest);

  const ParsedFrame later6 = parse_frame(Packet()
                                             .eth()
                                             .ipv6()
                                             .fragment({.offset = 0x1fff, .more = true, .id = 9})
                                             .payload(rest)
                                             .build());
  EXPECT_EQ(later6.error, "");
  EXPECT_EQ(later6.frag_offset, 0x1fff);
  EXPECT_TRUE(later6.more_fragments);
  EXPECT_EQ(later6.ip_id, 9U);
  EXPECT_FALSE(later6.has_udp);
  EXPECT_EQ(later6.payload, rest);
}

TEST(PacketBuilder, ALaterFragmentIsNeverWalkedInto) {
  // Its next-header field names the header that only the first fragment holds.
  const ParsedFrame six =
      parse_frame(Packet()
                      .eth()
                      .ipv6()
                      .ext({.kind = Ext::fragment, .frag_offset = 2, .next_header = uint8_t{60}})
                      .payload(filler(64))
                      .build());
  EXPECT_EQ(six.error, "");
  EXPECT_EQ(six.ext_headers, (std::vector<uint8_t>{44}));
  EXPECT_EQ(six.payload, filler(64));
  // The highest bit of the offset alone.
  const ParsedFrame four =
      parse_frame(Packet().eth().ipv4({.frag_offset = 0x1000}).udp(4000, 7777).build());
  EXPECT_EQ(four.frag_offset, 0x1000);
  EXPECT_FALSE(four.has_udp);
}

TEST(PacketBuilder, AComputedZeroUdpChecksumIsSentAsAllOnes) {
  const auto with = [](uint16_t word) {
    Bytes body;
    put_be16(body, word);
    return Packet().eth().ipv4().udp(4000, 7777).payload(body).build();
  };
  // A body equal to the checksum of the frame without it brings the sum to all ones.
  const Bytes frame = with(be16_at(with(0), 40));
  EXPECT_EQ(be16_at(frame, 40), 0xffff);
  EXPECT_EQ(parse_frame(frame).udp_checksum, ChecksumState::right);
}

TEST(PacketBuilder, PaddingIsNotPayload) {
  for (size_t n = 0; n <= 18; ++n) {
    const Bytes frame = Packet().eth().ipv4().udp(4000, 7777).payload(filler(n)).pad_to(60).build();
    EXPECT_EQ(frame.size(), 60U);
    const ParsedFrame parsed = parse_frame(frame);
    EXPECT_EQ(parsed.payload, filler(n));
    EXPECT_EQ(parsed.padding_bytes, 18 - n);
    EXPECT_EQ(parsed.udp_checksum, ChecksumState::right);
  }
}

TEST(PacketBuilder, OverridesReachTheWire) {
  const Bytes frame = Packet()
                          .eth({.ethertype = 0x0801})
                          .ipv4({.version = 5, .ihl = 4, .total_length = 999, .checksum = 0x1111})
                          .udp(1, 2, {.length = 7, .checksum = 0x2222})
                          .build();
  EXPECT_EQ(be16_at(frame, 12), 0x0801);
  EXPECT_EQ(frame[14], 0x54);
  EXPECT_EQ(be16_at(frame, 16), 999);
  EXPECT_EQ(be16_at(frame, 24), 0x1111);
  EXPECT_EQ(be16_at(frame, 38), 7);
  EXPECT_EQ(be16_at(frame, 40), 0x2222);
  const Bytes six = Packet()
                        .eth()
                        .ipv6({.version = 7, .payload_length = 1, .next_header = 59})
                        .ext({.kind = Ext::routing, .next_header = 99, .length_field = 255})
                        .build();
  EXPECT_EQ(six[14] >> 4, 7);
  EXPECT_EQ(be16_at(six, 18), 1);
  EXPECT_EQ(six[20], 59);
  EXPECT_EQ(six[54], 99);
  EXPECT_EQ(six[55], 255);
}

TEST(PacketBuilder, AShortUdpLengthIsSummedAsAReceiverDoes) {
  const Bytes frame = Packet().eth().ipv4().udp(1, 2, {.length = 12}).payload(filler(10)).build();
  EXPECT_EQ(parse_frame(frame).udp_checksum, ChecksumState::right);
}

TEST(PacketBuilder, OtherProtocols) {
  const ParsedFrame tcp = parse_frame(Packet().eth().ipv4().tcp({.dst_port = 22}).build());
  EXPECT_EQ(tcp.protocol, 6);
  EXPECT_EQ(tcp.payload.size(), 20U);
  EXPECT_EQ(be16_at(tcp.payload, 2), 22);
  EXPECT_FALSE(tcp.has_udp);

  const ParsedFrame icmp = parse_frame(Packet().eth().ipv4().icmp().payload(filler(7)).build());
  EXPECT_EQ(icmp.protocol, 1);
  EXPECT_EQ(internet_sum(icmp.payload), 0xffff);
  const ParsedFrame icmp6 = parse_frame(Packet().eth().ipv6().icmp().build());
  EXPECT_EQ(icmp6.protocol, 58);
  EXPECT_EQ(icmp6.payload[0], 128);

  const ParsedFrame arp = parse_frame(Packet().eth().arp().pad_to(60).build());
  EXPECT_EQ(arp.error, "");
  EXPECT_EQ(arp.ethertype, 0x0806);
  EXPECT_EQ(arp.ip_version, 0);
  EXPECT_EQ(arp.payload.size(), 46U);
  EXPECT_EQ(arp.payload[27], 1);  // the last byte of 10.0.0.1
}

// ---- the reader on bad frames

TEST(FrameReader, SeesEveryBitFlipUnderAChecksum) {
  const Bytes good = Packet().eth().ipv4({.tos = 4}).udp(4000, 7777).payload(filler(24)).build();
  for (size_t offset = 14 + 20; offset < good.size(); ++offset) {
    Bytes bad = good;
    bad[offset] ^= 0x10;
    const ChecksumState state = parse_frame(bad).udp_checksum;
    EXPECT_TRUE(state == ChecksumState::wrong || state == ChecksumState::not_knowable) << offset;
    EXPECT_EQ(parse_frame(bad).ip_checksum, ChecksumState::right);
  }
  for (const size_t offset : {1, 4, 8, 10, 11, 12, 19}) {
    Bytes bad = good;
    bad[14 + offset] ^= 0x01;
    EXPECT_EQ(parse_frame(bad).ip_checksum, ChecksumState::wrong) << offset;
  }
}

TEST(FrameReader, TellsTheKindsOfUdpChecksumApart) {
  const auto state = [](uint16_t checksum) {
    return parse_frame(Packet()
                           .eth()
                           .ipv4({.src = "10.0.0.2", .dst = "10.0.0.1"})
                           .udp(4000, 7777, {.checksum = checksum})
                           .payload(filler(4))
                           .build())
        .udp_checksum;
  };
  EXPECT_EQ(state(0), ChecksumState::zero);
  // 0a00 + 0002 + 0a00 + 0001 + 17 + 12
  EXPECT_EQ(state(0x1420), ChecksumState::pseudo_only);
  EXPECT_EQ(state(0x1421), ChecksumState::wrong);
}

TEST(FrameReader, NamesWhatIsWrong) {
  const auto error = [](const Packet& packet) { return parse_frame(packet.build()).error; };
  EXPECT_EQ(error(Packet().eth().ipv4({.ihl = 4}).udp(1, 2)), "ipv4 ihl");
  EXPECT_EQ(error(Packet().eth().ipv4({.ihl = 15}).udp(1, 2)), "ipv4 ihl");
  EXPECT_EQ(error(Packet().eth().ipv4({.version = 6}).udp(1, 2)), "ip version");
  EXPECT_EQ(error(Packet().eth().ipv4({.total_length = 19}).udp(1, 2)), "ipv4 total length");
  EXPECT_EQ(error(Packet().eth().ipv4({.total_length = 27}).udp(1, 2)), "short udp header");
  EXPECT_EQ(error(Packet().eth().vlan(1).truncate_to(17)), "short vlan tag");
  EXPECT_EQ(error(Packet().eth().ipv6().payload({17})), "short udp header");
  EXPECT_EQ(error(Packet().eth().ipv6().ext(Ext::routing).payload({17}).truncate_to(56)),
            "short extension header");
  EXPECT_EQ(error(Packet().eth().ipv6().ext({.length_field = 9}).udp(1, 2)),
            "extension header length");
}

TEST(FrameReader, SurvivesEveryTruncation) {
  const Packet whole = Packet()
                           .eth()
                           .qinq(1, 2)
                           .ipv6()
                           .ext(Ext::hop_by_hop, 2)
                           .ext(Ext::auth)
                           .udp(1, 2)
                           .payload(filler(30));
  const size_t full = whole.build().size();
  for (size_t n = 0; n < full; ++n) {
    const ParsedFrame parsed = parse_frame(Packet(whole).truncate_to(n).build());
    EXPECT_TRUE(!parsed.error.empty() || parsed.truncated) << n;
  }
  const ParsedFrame cut = parse_frame(Packet(whole).truncate_to(full - 1).build());
  EXPECT_EQ(cut.udp_checksum, ChecksumState::not_knowable);
  EXPECT_EQ(cut.payload, filler(29));
}

// ---- ENet: builder against decoder

TEST(EnetMessages, MatchKnownBytes) {
  EXPECT_EQ(hex(EnetDatagram({.peer_id = 3}).ack(0, 7, 0x1000).bytes()), "00030100000700071000");
  EXPECT_EQ(hex(EnetDatagram({.peer_id = 0x123, .session = 2}).ping(5).bytes()),
            "a123123485ff0005");
  EXPECT_EQ(hex(EnetDatagram().unreliable(1, 7, 42, 2).bytes()), "000107010007002a00026465");
  EXPECT_EQ(hex(EnetDatagram({.compressed = true}).unsequenced(2, 9, 1).bytes()),
            "4001490200000009000164");
}

TEST(EnetDecoder, ReadsEveryCommandWithItsSize) {
  const Bytes bytes = EnetDatagram()
                          .ack(3, 7, 0x1000)
                          .connect()
                          .verify()
                          .disconnect()
                          .disconnect(false)
                          .ping()
                          .reliable(4, 0x1234, 10)
                          .unreliable(5, 2, 3, 11)
                          .fragment({.channel = 6, .n_bytes = 12})
                          .unsequenced(7, 1, 13)
                          .bandwidth()
                          .throttle()
                          .unreliable_fragment({.channel = 8, .n_bytes = 14})
                          .reliable(9, 1, 0)
                          .bytes();
  const EnetDecoded decoded = decode_enet(bytes);
  ASSERT_EQ(decoded.error, EnetError::none);
  const std::vector<uint8_t> ids = {1, 2, 3, 4, 4, 5, 6, 7, 8, 9, 10, 11, 12, 6};
  const std::vector<size_t> sizes = {8,      48,      44,     8,  8,  4,       6 + 10,
                                     8 + 11, 24 + 12, 8 + 13, 12, 16, 24 + 14, 6};
  const std::string acks = "01110110101101";
  ASSERT_EQ(decoded.commands.size(), ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(decoded.commands[i].id, ids[i]) << i;
    EXPECT_EQ(decoded.commands[i].size, sizes[i]) << i;
    EXPECT_EQ(decoded.commands[i].ack_required, acks[i] == '1') << i;
    EXPECT_EQ(decoded.commands[i].unsequenced, i == 4 || i == 9) << i;
  }
  EXPECT_EQ(decoded.commands[0].acked_seq, 7);
  EXPECT_EQ(decoded.commands[0].echoed_time_ms, 0x1000);
  EXPECT_EQ(decoded.commands[6].channel, 4);
  EXPECT_EQ(decoded.commands[6].reliable_seq, 0x1234);
  EXPECT_EQ(decoded.commands[1].channel, 0xff);
  EXPECT_EQ(decoded.commands.back().offset + 6, bytes.size());
}

TEST(EnetDecoder, ClassIsThatOfTheMostValuableCommand) {
  using Dg = EnetDatagram;
  const auto klass = [](const Dg& datagram) { return decode_enet(datagram.bytes()).klass; };
  EXPECT_EQ(klass(Dg({.peer_id = 0xfff}).connect()), EnetClass::handshake);
  EXPECT_EQ(klass(Dg().ack(255, 1, 2).verify()), EnetClass::handshake);
  EXPECT_EQ(klass(Dg().disconnect()), EnetClass::critical_control);
  EXPECT_EQ(klass(Dg().disconnect(false)), EnetClass::critical_control);
  EXPECT_EQ(klass(Dg().ping()), EnetClass::critical_control);
  EXPECT_EQ(klass(Dg().bandwidth()), EnetClass::critical_control);
  EXPECT_EQ(klass(Dg().throttle()), EnetClass::critical_control);
  EXPECT_EQ(klass(Dg().unreliable(0, 1, 1, 9).ping()), EnetClass::critical_control);
  EXPECT_EQ(klass(Dg().ack(0, 1, 2)), EnetClass::ack_only);
  EXPECT_EQ(klass(Dg().ack(0, 1, 2).ack(1, 1, 2)), EnetClass::ack_only);
  EXPECT_EQ(klass(Dg().ack(0, 1, 2).reliable(0, 1, 9)), EnetClass::reliable);
  EXPECT_EQ(klass(Dg().fragment().reliable(0, 1, 9)), EnetClass::reliable);
  EXPECT_EQ(klass(Dg().ack(0, 1, 2).fragment()), EnetClass::fragment);
  EXPECT_EQ(klass(Dg().unreliable(0, 1, 1, 9).fragment()), EnetClass::fragment);
  EXPECT_EQ(klass(Dg().ack(0, 1, 2).unreliable(0, 1, 1, 9)), EnetClass::ack_and_unreliable);
  EXPECT_EQ(klass(Dg().ack(0, 1, 2).unsequenced(0, 1, 9)), EnetClass::ack_and_unreliable);
  EXPECT_EQ(klass(Dg().unreliable(0, 1, 1, 0)), EnetClass::unreliable_only);
  EXPECT_EQ(klass(Dg().unsequenced(0, 1, 9)), EnetClass::unreliable_only);
  EXPECT_EQ(klass(Dg().unreliable_fragment()), EnetClass::unreliable_only);
}

TEST(EnetDecoder, CompressedIsJudgedByTheHeaderAlone) {
  const Bytes body = {0x00, 0xff};
  const auto decode = [&body](bool sent_time) {
    return decode_enet(
        EnetDatagram({.sent_time = sent_time, .compressed = true}).raw(body).bytes());
  };
  EXPECT_EQ(decode(true).klass, EnetClass::compressed_sent_time);
  EXPECT_EQ(decode(false).klass, EnetClass::compressed_no_sent_time);
  EXPECT_EQ(decode(false).error, EnetError::none);
  EXPECT_TRUE(decode(true).commands.empty());
}

TEST(EnetDecoder, AnErrorKeepsWhatWasFound) {
  using Dg = EnetDatagram;
  const auto check = [](const Bytes& bytes, EnetError error, std::optional<EnetClass> best) {
    const EnetDecoded decoded = decode_enet(bytes);
    EXPECT_EQ(decoded.klass, EnetClass::invalid);
    EXPECT_EQ(decoded.error, error);
    EXPECT_EQ(decoded.best_class, best);
  };
  check({}, EnetError::short_header, std::nullopt);
  check({0x00}, EnetError::short_header, std::nullopt);
  check({0x80, 0x01, 0x00}, EnetError::short_header, std::nullopt);
  check(Dg().bytes(), EnetError::no_command, std::nullopt);
  for (const uint8_t id : {0, 13, 14, 15}) {
    check(Dg().raw({id, 0, 0, 1}).bytes(), EnetError::bad_command, std::nullopt);
    check(Dg().ping().raw({id}).bytes(), EnetError::bad_command, EnetClass::critical_control);
  }
  check(Dg().ack(0, 1, 2).raw({0x86, 0, 0, 1, 0, 1}).bytes(), EnetError::truncated_command,
        EnetClass::ack_only);
  check(Dg().raw({0x86, 0, 0, 1, 0xff, 0xff}).bytes(), EnetError::truncated_command, std::nullopt);
  check(Dg().reliable(0, 1, 9).raw({0x01}).bytes(), EnetError::truncated_command,
        EnetClass::reliable);
}

TEST(EnetDecoder, EveryCutInsideACommandIsAnError) {
  const Bytes whole = EnetDatagram().ack(0, 1, 2).fragment({.n_bytes = 40}).bytes();
  const size_t header_bytes = 4;
  for (size_t n = 0; n < whole.size(); ++n) {
    const EnetDecoded decoded = decode_enet(ByteView(whole).first(n));
    if (n == header_bytes + 8) {
      EXPECT_EQ(decoded.klass, EnetClass::ack_only);
    } else {
      EXPECT_EQ(decoded.klass, EnetClass::invalid) << n;
    }
  }
}

TEST(EnetDecoder, ThirtyTwoCommandsAreTheLimit) {
  EnetDatagram datagram;
  for (int i = 0; i < 32; ++i) datagram.unreliable(0, 1, 1, 0);
  EXPECT_EQ(decode_enet(datagram.bytes()).klass, EnetClass::unreliable_only);
  datagram.ping();
  const EnetDecoded decoded = decode_enet(datagram.bytes());
  EXPECT_EQ(decoded.error, EnetError::too_many_commands);
  EXPECT_EQ(decoded.commands.size(), 32U);
  EXPECT_EQ(decoded.best_class, EnetClass::unreliable_only);
}

TEST(EnetMessages, SentTimeFollowsTheAckFlagUnlessToldOtherwise) {
  EXPECT_TRUE(decode_enet(EnetDatagram().ping().bytes()).has_sent_time);
  EXPECT_FALSE(decode_enet(EnetDatagram().disconnect(false).bytes()).has_sent_time);
  EXPECT_EQ(decode_enet(EnetDatagram({.sent_time_ms = 0xabcd}).ping().bytes()).sent_time_ms,
            0xabcd);
  const EnetDecoded lie = decode_enet(EnetDatagram({.sent_time = true}).ack(0, 1, 2).bytes());
  EXPECT_TRUE(lie.has_sent_time);
  EXPECT_EQ(lie.klass, EnetClass::ack_only);
}

TEST(EnetMessages, CrcVerifiesWithTheRightConnectIdOnly) {
  const Bytes bytes =
      EnetDatagram({.crc = true, .connect_id = 0xcafe0001}).reliable(0, 1, 30).bytes();
  EXPECT_TRUE(enet_crc_is_right(bytes, 0xcafe0001));
  EXPECT_FALSE(enet_crc_is_right(bytes, 0));
  Bytes flipped = bytes;
  flipped.back() ^= 1;
  EXPECT_FALSE(enet_crc_is_right(flipped, 0xcafe0001));
  EXPECT_FALSE(
      enet_crc_is_right(EnetDatagram({.crc = true, .crc_value = 0x12345678}).ping().bytes(), 0));
  EXPECT_EQ(decode_enet(bytes, {.crc = true}).klass, EnetClass::reliable);
  EXPECT_EQ(
      *decode_enet(EnetDatagram({.crc = true, .crc_value = 5}).ping().bytes(), {.crc = true}).crc,
      5U);
  EXPECT_EQ(enet_connect_id(EnetDatagram().verify(0x55667788).bytes(), {}), 0x55667788U);
}

TEST(EnetMessages, ConnectSizesWithAndWithoutCrc) {
  const Bytes plain = EnetDatagram({.peer_id = 0xfff}).connect().bytes();
  EXPECT_EQ(plain.size(), 52U);
  EXPECT_EQ(be16_at(plain, 4), 0x82ff);
  const Bytes checked = EnetDatagram({.peer_id = 0xfff, .crc = true}).connect().bytes();
  EXPECT_EQ(checked.size(), 56U);
  EXPECT_EQ(be16_at(checked, 8), 0x82ff);
}

// ---- captures

TEST(Captures, AllReadWhole) {
  const std::map<std::string, size_t> frames = {{"enet_m0.pcap", 657},     {"enet_m1.pcap", 683},
                                                {"teeworlds07.pcap", 552}, {"openarena.pcap", 1651},
                                                {"minetest.pcap", 705},    {"gso_frag_rx.pcap", 4},
                                                {"gso_frag_tx.pcap", 4}};
  for (const auto& [name, count] : frames) {
    const Capture capture = read_capture(capture_path(name));
    EXPECT_EQ(capture.link_type, 1) << name;
    EXPECT_EQ(capture.frames.size(), count) << name;
    int64_t before_ns = 0;
    for (const CapturedFrame& frame : capture.frames) {
      ASSERT_EQ(frame.bytes.size(), frame.wire_bytes) << name;
      ASSERT_GE(frame.time_ns, before_ns) << name;
      before_ns = frame.time_ns;
      const ParsedFrame parsed = parse_frame(frame.bytes);
      ASSERT_EQ(parsed.error, "") << name << " " << hex(frame.bytes);
      ASSERT_NE(parsed.ip_checksum, ChecksumState::wrong) << name;
      ASSERT_NE(parsed.udp_checksum, ChecksumState::wrong) << name;
    }
    // Seconds since the epoch, not some other unit: between 2020 and 2100.
    EXPECT_GT(before_ns, 1'577'836'800'000'000'000) << name;
    EXPECT_LT(before_ns, 4'102'444'800'000'000'000) << name;
  }
}

/// A classic capture of one frame of 20 bytes, which says that it had `wire_bytes`.
Bytes capture_bytes(uint8_t wire_bytes) {
  Bytes file(24 + 16 + 20);
  const Bytes head = {0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0};
  std::copy(head.begin(), head.end(), file.begin());
  file[17] = file[20] = 1;  // snap length 256, Ethernet
  file[32] = 20;
  file[36] = wire_bytes;
  return file;
}

TEST(Captures, OfBytesAreReadAsFilesAre) {
  const Capture capture = parse_capture(capture_bytes(60), "x.pcap");
  ASSERT_EQ(capture.frames.size(), 1u);
  EXPECT_EQ(capture.frames[0].bytes.size(), 20u);
  EXPECT_EQ(capture.frames[0].wire_bytes, 60u);
  EXPECT_EQ(capture.snap_bytes, 256u);
  EXPECT_THROW(parse_capture({}, "x.pcap"), std::runtime_error);
}

TEST(Captures, WhatCannotBeIsRefused) {
  EXPECT_THROW(parse_capture(capture_bytes(19), "x.pcap"), std::runtime_error)
      << "more captured than there was";
  // pcapng has times of 64 bits: this one counts seconds, 2^63 - 2^32 of them.
  Bytes late;
  for (const uint32_t word : {0x0a0d0d0au, 28u, 0x1a2b3c4du, 1u,          ~0u,
                              ~0u,         28u,  // file
                              1u,          32u, 1u,          65535u,      0x10009u,
                              0u,          0u,  32u,  // interface, in seconds
                              6u,          36u, 0u,          0x7fffffffu, 0u,
                              2u,          2u,  0xcdabu,     36u}) {  // frame
    for (int shift = 0; shift < 32; shift += 8) late.push_back(static_cast<uint8_t>(word >> shift));
  }
  EXPECT_THROW(parse_capture(late, "x.pcapng"), std::runtime_error);
}

TEST(Captures, ErrorsNameTheFile) {
  try {
    read_capture("/nonexistent/none.pcap");
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/none.pcap"), std::string::npos);
  }
}

// Both ENet sessions; `crc` tells which.
struct EnetSession {
  const char* file;
  bool crc;
  size_t datagrams;
};

class EnetCapture : public testing::TestWithParam<EnetSession> {};

TEST_P(EnetCapture, DecodesWholeAndKeepsTheSentTimeRule) {
  size_t datagrams = 0;
  std::set<uint8_t> seen;
  for (const CapturedFrame& frame : read_capture(capture_path(GetParam().file)).frames) {
    const ParsedFrame parsed = parse_frame(frame.bytes);
    ASSERT_TRUE(parsed.has_udp);
    const EnetDecoded decoded = decode_enet(parsed.payload, {.crc = GetParam().crc});
    ASSERT_EQ(decoded.error, EnetError::none) << hex(parsed.payload);
    ASSERT_FALSE(decoded.compressed);
    ASSERT_EQ(decoded.has_sent_time, decoded.has_ack_required()) << hex(parsed.payload);
    ASSERT_EQ(decoded.has(1), decoded.commands.front().id == 1) << "ACKs come first";
    for (const EnetCommand& command : decoded.commands) seen.insert(command.id);
    ++datagrams;
  }
  EXPECT_EQ(datagrams, GetParam().datagrams);
  EXPECT_EQ(seen, (std::set<uint8_t>{1, 2, 3, 5, 6, 7, 8, 9, 10, 12}));
}

TEST_P(EnetCapture, FailsWhenReadWithTheWrongCrcSetting) {
  size_t invalid = 0;
  for (const CapturedFrame& frame : read_capture(capture_path(GetParam().file)).frames) {
    const ParsedFrame parsed = parse_frame(frame.bytes);
    const EnetDecoded decoded = decode_enet(parsed.payload, {.crc = !GetParam().crc});
    if (decoded.klass == EnetClass::invalid) ++invalid;
  }
  EXPECT_GT(invalid, GetParam().datagrams / 2);
}

INSTANTIATE_TEST_SUITE_P(Sessions, EnetCapture,
                         testing::Values(EnetSession{"enet_m0.pcap", false, 657},
                                         EnetSession{"enet_m1.pcap", true, 683}),
                         [](const auto& test) { return test.param.crc ? "crc" : "plain"; });

TEST(Captures, EnetCrcVerifiesInEveryDatagram) {
  uint32_t connect_id = 0;
  size_t seeded = 0;
  for (const CapturedFrame& frame : read_capture(capture_path("enet_m1.pcap")).frames) {
    const Bytes payload = parse_frame(frame.bytes).payload;
    const EnetDecoded decoded = decode_enet(payload, {.crc = true});
    if (const auto id = enet_connect_id(payload, {.crc = true})) connect_id = *id;
    const bool connected = decoded.peer_id != 0xfff;
    ASSERT_TRUE(enet_crc_is_right(payload, connected ? connect_id : 0)) << hex(payload);
    if (connected) ++seeded;
  }
  EXPECT_NE(connect_id, 0U);
  EXPECT_EQ(seeded, 682U);  // all but the CONNECT
}

TEST(Captures, GsoAndFragments) {
  for (const char* name : {"gso_frag_rx.pcap", "gso_frag_tx.pcap"}) {
    const Capture capture = read_capture(capture_path(name));
    ASSERT_EQ(capture.frames.size(), 4U);
    std::vector<ParsedFrame> parsed;
    parsed.reserve(capture.frames.size());
    for (const CapturedFrame& frame : capture.frames) parsed.push_back(parse_frame(frame.bytes));
    EXPECT_TRUE(parsed[0].has_udp && parsed[0].more_fragments);
    EXPECT_EQ(parsed[0].udp_length, 3008);
    EXPECT_EQ(parsed[1].frag_offset, 185);
    EXPECT_EQ(parsed[2].frag_offset, 370);
    EXPECT_FALSE(parsed[1].has_udp || parsed[2].has_udp || parsed[2].more_fragments);
    EXPECT_EQ(parsed[0].payload.size() + parsed[1].payload.size() + parsed[2].payload.size(),
              3000U);
    EXPECT_EQ(parsed[3].payload.size(), 6000U);
    EXPECT_EQ(parsed[3].udp_checksum, ChecksumState::pseudo_only);
  }
}

}  // namespace
}  // namespace edgeshed::test
