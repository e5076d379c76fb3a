// Builds Ethernet frames layer by layer for tests, and reads frames back.
// Lengths, next-header fields and checksums are right unless a field says otherwise, so that a test
// shows only what is special about its packet. Must not include anything of the project: neither
// the builder nor the reader may share a mistake with the parser that they test.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tests/support/bytes.h"

namespace edgeshed::test {

using MacAddress = std::array<uint8_t, 6>;

// In all field structs: a value is that of the field on the wire (so `frag_offset` counts 8-byte
// units), and an unset std::optional means "the right value for the layers that follow".

struct EthFields {
  MacAddress src = {0x02, 0, 0, 0, 0, 0x02};
  MacAddress dst = {0x02, 0, 0, 0, 0, 0x01};
  std::optional<uint16_t> ethertype = std::nullopt;
};

struct VlanFields {
  uint16_t id = 0;         ///< 12 bit
  uint8_t priority = 0;    ///< 3 bit
  uint16_t tpid = 0x8100;  ///< written into the header before this tag
  std::optional<uint16_t> ethertype = std::nullopt;
};

struct Ipv4Fields {
  std::string src = "10.0.0.2";
  std::string dst = "10.0.0.1";
  uint8_t tos = 0;            ///< DSCP in the upper 6 bits, ECN in the lower 2
  uint8_t options_words = 0;  ///< 4-byte words of NOP options, 0 to 10
  uint16_t id = 0;
  uint16_t frag_offset = 0;  ///< 8-byte units
  bool more_fragments = false;
  bool dont_fragment = false;
  uint8_t ttl = 64;
  std::optional<uint8_t> protocol = std::nullopt;
  uint8_t version = 4;
  std::optional<uint8_t> ihl = std::nullopt;            ///< 4-byte words
  std::optional<uint16_t> total_length = std::nullopt;  ///< bytes
  std::optional<uint16_t> checksum = std::nullopt;
};

struct Ipv6Fields {
  std::string src = "fd00::2";
  std::string dst = "fd00::1";
  uint8_t tos = 0;          ///< the traffic class: DSCP in the upper 6 bits, ECN in the lower 2
  uint32_t flow_label = 0;  ///< 20 bit
  uint8_t hop_limit = 64;
  uint8_t version = 6;
  std::optional<uint16_t> payload_length = std::nullopt;  ///< bytes
  std::optional<uint8_t> next_header = std::nullopt;
};

/// IPv6 extension headers; the values are the protocol numbers.
enum class Ext : uint8_t {
  hop_by_hop = 0,
  routing = 43,
  fragment = 44,
  auth = 51,
  dest_opts = 60,
  mobility = 135,
};

struct ExtFields {
  Ext kind = Ext::hop_by_hop;
  /// Whole header in 8-byte words, 1 to 256 (an AH: 2 to 128). A fragment header is always 1.
  uint16_t words = 1;
  // The next three are for Ext::fragment only.
  uint16_t frag_offset = 0;  ///< 8-byte units
  bool more_fragments = false;
  uint32_t id = 0;
  std::optional<uint8_t> next_header = std::nullopt;
  std::optional<uint8_t> length_field = std::nullopt;  ///< 8-byte units - 1 (AH: 4-byte units - 2)
};

/// The fragment part of ExtFields, for Packet::fragment().
struct FragmentFields {
  uint16_t offset = 0;  ///< 8-byte units
  bool more = false;
  uint32_t id = 0;
};

struct UdpFields {
  uint16_t src_port = 0;
  uint16_t dst_port = 0;
  std::optional<uint16_t> length = std::nullopt;    ///< bytes, header included
  std::optional<uint16_t> checksum = std::nullopt;  ///< 0 = the sender computed none
};

/// The overridable part of UdpFields, for Packet::udp().
struct UdpOverrides {
  std::optional<uint16_t> length = std::nullopt;
  std::optional<uint16_t> checksum = std::nullopt;
};

struct TcpFields {
  uint16_t src_port = 0;
  uint16_t dst_port = 0;
  uint8_t flags = 0x02;  ///< SYN
  uint32_t sequence = 1;
};

/// An echo request: ICMP after IPv4, ICMPv6 after IPv6.
struct IcmpFields {
  uint16_t id = 1;
  uint16_t sequence = 1;
};

/// An IPv4-over-Ethernet request (operation 1) or reply (2).
struct ArpFields {
  std::string sender_ip = "10.0.0.2";
  std::string target_ip = "10.0.0.1";
  uint16_t operation = 1;
};

/// A frame under construction. Layers are written in the order of the calls; nothing checks that
/// they make sense together. Throws std::invalid_argument from build() for a value that no frame
/// can hold (a bad address, too many option words).
///
///   Packet().eth().vlan(100).ipv4({.src = "10.0.0.2"}).udp(4000, 7777).payload(filler(20)).build()
class Packet {
 public:
  Packet& eth(const EthFields& fields = {});
  /// One tag; call it again for deeper stacks.
  Packet& vlan(uint16_t id, uint16_t tpid = 0x8100);
  Packet& vlan(const VlanFields& fields);
  /// 802.1ad outside (0x88a8), 802.1Q inside.
  Packet& qinq(uint16_t outer_id, uint16_t inner_id);
  Packet& ipv4(const Ipv4Fields& fields = {});
  Packet& ipv6(const Ipv6Fields& fields = {});
  /// `words`: whole header in 8-byte words; 0 = the shortest that this kind allows.
  Packet& ext(Ext kind, uint16_t words = 0);
  Packet& ext(const ExtFields& fields);
  Packet& fragment(const FragmentFields& fields);
  Packet& udp(uint16_t src_port, uint16_t dst_port, const UdpOverrides& overrides = {});
  Packet& tcp(const TcpFields& fields);
  Packet& icmp(const IcmpFields& fields = {});
  Packet& arp(const ArpFields& fields = {});
  /// Raw bytes. Directly after an IP header they count as UDP: the body of a later fragment.
  Packet& payload(const Bytes& bytes);
  /// Appends zero bytes outside the IP length until the frame has `frame_bytes` (Ethernet minimum:
  /// 60).
  Packet& pad_to(size_t frame_bytes);
  /// Cuts the finished (and padded) frame; the length fields still tell of the whole.
  Packet& truncate_to(size_t frame_bytes);
  Bytes build() const;

  using Layer = std::variant<EthFields, VlanFields, Ipv4Fields, Ipv6Fields, ExtFields, UdpFields,
                             TcpFields, IcmpFields, ArpFields, Bytes>;

 private:
  std::vector<Layer> layers_;
  std::optional<size_t> pad_to_bytes_;
  std::optional<size_t> truncate_to_bytes_;
};

enum class ChecksumState {
  not_present,   ///< no such header
  zero,          ///< UDP: the sender computed none
  right,         ///< verifies
  pseudo_only,   ///< UDP: only the pseudo-header is summed, as virtual links carry it
  wrong,         ///< present and does not verify
  not_knowable,  ///< a fragment, or the bytes it covers are not all there
};

/// One Ethernet frame, read back. Fields behind the place where reading stopped keep their default.
struct ParsedFrame {
  /// Empty, or why reading stopped. A later fragment is no error: it has no UDP header.
  std::string error;

  MacAddress src_mac = {};
  MacAddress dst_mac = {};
  std::vector<uint16_t> vlan_ids;    ///< outermost first
  std::vector<uint16_t> vlan_tpids;  ///< the TPID of each tag
  uint16_t ethertype = 0;            ///< after all tags

  int ip_version = 0;    ///< 4, 6, or 0 for none
  size_t ip_offset = 0;  ///< bytes from the start of the frame
  std::string src;
  std::string dst;
  uint8_t tos = 0;
  uint8_t dscp = 0;
  uint8_t ecn = 0;
  uint8_t ttl = 0;
  size_t ip_header_bytes = 0;  ///< with options or extension headers
  size_t ip_bytes = 0;         ///< all that the IP length claims, header included
  uint32_t ip_id = 0;
  uint16_t frag_offset = 0;  ///< 8-byte units
  bool more_fragments = false;
  bool dont_fragment = false;
  std::vector<uint8_t> ext_headers;  ///< IPv6 extension headers in order, as protocol numbers
  uint8_t protocol = 0;              ///< the transport
  ChecksumState ip_checksum = ChecksumState::not_present;

  bool has_udp = false;
  uint16_t src_port = 0;
  uint16_t dst_port = 0;
  uint16_t udp_length = 0;  ///< bytes, as the field claims
  ChecksumState udp_checksum = ChecksumState::not_present;

  /// What follows the UDP header (for other protocols and later fragments: the IP header), within
  /// both the IP length and the frame.
  Bytes payload;
  size_t padding_bytes = 0;  ///< bytes of the frame after the end that the IP length claims
  bool truncated = false;    ///< the IP length claims more than the frame has
};

/// Reads any bytes without reading past them; never throws for a bad frame (see `error`).
ParsedFrame parse_frame(ByteView frame);

}  // namespace edgeshed::test
