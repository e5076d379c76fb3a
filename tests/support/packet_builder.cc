// Frame building; the reader is frame_reader.cc. See packet_builder.h.
#include "tests/support/packet_builder.h"

#include <arpa/inet.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace edgeshed::test {
namespace {

constexpr uint8_t protocol_tcp = 6;
constexpr uint8_t protocol_udp = 17;
constexpr uint8_t protocol_icmpv6 = 58;
constexpr size_t ext_word_bytes = 8;

// What a layer may look at while it is rendered: its neighbours, and the bytes after it.
struct Context {
  const Packet::Layer* next;  // null at the end
  const Packet::Layer* ip;    // the closest IP layer before this one, or null
  const Bytes& tail;
};

Bytes address_bytes(int family, const std::string& text) {
  Bytes out(family == AF_INET ? 4 : 16);
  if (inet_pton(family, text.c_str(), out.data()) != 1) {
    throw std::invalid_argument("not an IP address: " + text);
  }
  return out;
}

uint16_t ethertype_of(const Packet::Layer* layer) {
  constexpr uint16_t local_experimental = 0x88b5;
  if (layer == nullptr) return local_experimental;
  if (const auto* vlan = std::get_if<VlanFields>(layer)) return vlan->tpid;
  if (std::holds_alternative<Ipv4Fields>(*layer)) return 0x0800;
  if (std::holds_alternative<Ipv6Fields>(*layer)) return 0x86dd;
  if (std::holds_alternative<ArpFields>(*layer)) return 0x0806;
  return local_experimental;
}

uint8_t protocol_of(const Packet::Layer* layer, bool in_ipv6) {
  if (layer == nullptr) return protocol_udp;
  if (const auto* ext = std::get_if<ExtFields>(layer)) return static_cast<uint8_t>(ext->kind);
  if (std::holds_alternative<TcpFields>(*layer)) return protocol_tcp;
  if (std::holds_alternative<IcmpFields>(*layer)) return in_ipv6 ? protocol_icmpv6 : 1;
  if (std::holds_alternative<Ipv4Fields>(*layer)) return 4;
  if (std::holds_alternative<Ipv6Fields>(*layer)) return 41;
  // Raw bytes directly after IP are the rest of a fragmented UDP datagram.
  return protocol_udp;
}

bool is_ipv6(const Packet::Layer* ip) {
  return ip != nullptr && std::holds_alternative<Ipv6Fields>(*ip);
}

// The pseudo-header sum of `ip` for a transport of `size` bytes; 0 without an IP layer.
uint16_t pseudo_sum(const Packet::Layer* ip, uint8_t protocol, size_t size) {
  if (ip == nullptr) return 0;
  Bytes pseudo;
  if (const auto* v4 = std::get_if<Ipv4Fields>(ip)) {
    put_bytes(pseudo, address_bytes(AF_INET, v4->src));
    put_bytes(pseudo, address_bytes(AF_INET, v4->dst));
  } else {
    const auto& v6 = std::get<Ipv6Fields>(*ip);
    put_bytes(pseudo, address_bytes(AF_INET6, v6.src));
    put_bytes(pseudo, address_bytes(AF_INET6, v6.dst));
  }
  put_be32(pseudo, protocol);
  put_be32(pseudo, static_cast<uint32_t>(size));
  return internet_sum(pseudo);
}

// The checksum for `header` (with its own checksum field zero) and what follows it.
uint16_t checksum_over(const Bytes& header, const Bytes& tail, uint16_t start) {
  Bytes all = header;
  put_bytes(all, tail);
  return static_cast<uint16_t>(~internet_sum(all, start));
}

Bytes render(const EthFields& eth, const Context& context) {
  Bytes out;
  put_bytes(out, eth.dst);
  put_bytes(out, eth.src);
  put_be16(out, eth.ethertype.value_or(ethertype_of(context.next)));
  return out;
}

Bytes render(const VlanFields& vlan, const Context& context) {
  // The TPID itself is written as the ethertype of the header before.
  Bytes out;
  put_be16(out, static_cast<uint16_t>(vlan.priority << 13 | (vlan.id & 0x0fff)));
  put_be16(out, vlan.ethertype.value_or(ethertype_of(context.next)));
  return out;
}

Bytes render(const Ipv4Fields& ip, const Context& context) {
  if (ip.options_words > 10) throw std::invalid_argument("IPv4 holds 10 words of options");
  if (ip.frag_offset > 0x1fff) throw std::invalid_argument("IPv4 fragment offset has 13 bits");
  const size_t header_bytes = 20 + size_t{ip.options_words} * 4;
  const auto ihl = ip.ihl.value_or(static_cast<uint8_t>(header_bytes / 4));
  const auto total = static_cast<uint16_t>(header_bytes + context.tail.size());
  Bytes out;
  out.push_back(static_cast<uint8_t>(ip.version << 4 | (ihl & 0x0f)));
  out.push_back(ip.tos);
  put_be16(out, ip.total_length.value_or(total));
  put_be16(out, ip.id);
  put_be16(out, static_cast<uint16_t>((ip.dont_fragment ? 0x4000 : 0) |
                                      (ip.more_fragments ? 0x2000 : 0) | ip.frag_offset));
  out.push_back(ip.ttl);
  out.push_back(ip.protocol.value_or(protocol_of(context.next, false)));
  put_be16(out, 0);
  put_bytes(out, address_bytes(AF_INET, ip.src));
  put_bytes(out, address_bytes(AF_INET, ip.dst));
  out.resize(header_bytes, 0x01);  // option 1 = NOP
  set_be16(out, 10, ip.checksum.value_or(checksum_over(out, {}, 0)));
  return out;
}

Bytes render(const Ipv6Fields& ip, const Context& context) {
  Bytes out;
  put_be32(out, static_cast<uint32_t>(ip.version & 0x0f) << 28 |
                    static_cast<uint32_t>(ip.tos) << 20 | (ip.flow_label & 0xfffff));
  put_be16(out, ip.payload_length.value_or(static_cast<uint16_t>(context.tail.size())));
  out.push_back(ip.next_header.value_or(protocol_of(context.next, true)));
  out.push_back(ip.hop_limit);
  put_bytes(out, address_bytes(AF_INET6, ip.src));
  put_bytes(out, address_bytes(AF_INET6, ip.dst));
  return out;
}

// Fills an options header to `size` with Pad1 and PadN, so that a real stack would accept it too.
void append_pad_options(Bytes& out, size_t size) {
  while (out.size() < size) {
    const size_t left = size - out.size();
    if (left == 1) {
      out.push_back(0);
      return;
    }
    const size_t data_bytes = std::min<size_t>(left - 2, 255);
    out.push_back(1);
    out.push_back(static_cast<uint8_t>(data_bytes));
    out.resize(out.size() + data_bytes, 0);
  }
}

Bytes render(const ExtFields& ext, const Context& context) {
  const bool is_auth = ext.kind == Ext::auth;
  const size_t words_max = is_auth ? 128 : ext.kind == Ext::fragment ? 1 : 256;
  if (ext.words < (is_auth ? 2 : 1) || ext.words > words_max) {
    throw std::invalid_argument("extension header of " + std::to_string(ext.words) + " words");
  }
  if (ext.frag_offset > 0x1fff) throw std::invalid_argument("IPv6 fragment offset has 13 bits");
  const size_t size = ext.words * ext_word_bytes;
  // AH counts 4-byte words less two; the others count 8-byte words less one.
  const size_t length = is_auth ? size / 4 - 2 : size / ext_word_bytes - 1;
  Bytes out;
  out.push_back(ext.next_header.value_or(protocol_of(context.next, is_ipv6(context.ip))));
  out.push_back(ext.length_field.value_or(static_cast<uint8_t>(length)));
  switch (ext.kind) {
    case Ext::fragment:
      put_be16(out, static_cast<uint16_t>(ext.frag_offset << 3 | (ext.more_fragments ? 1 : 0)));
      put_be32(out, ext.id);
      break;
    case Ext::routing:
      put_be16(out, 253 << 8);  // an experimental type with no segments left: to be skipped
      break;
    case Ext::hop_by_hop:
    case Ext::dest_opts:
      append_pad_options(out, size);
      break;
    case Ext::auth:
    case Ext::mobility:
      break;
  }
  out.resize(size, 0);
  return out;
}

Bytes render(const UdpFields& udp, const Context& context) {
  const size_t size = 8 + context.tail.size();
  Bytes out;
  put_be16(out, udp.src_port);
  put_be16(out, udp.dst_port);
  put_be16(out, udp.length.value_or(static_cast<uint16_t>(size)));
  put_be16(out, 0);
  // A receiver sums as many bytes as the length field claims, so a short claim leaves some out.
  const uint16_t claimed = be16_at(out, 4);
  Bytes body = context.tail;
  if (claimed >= 8 && claimed < size) body.resize(claimed - 8U);
  uint16_t right = checksum_over(out, body, pseudo_sum(context.ip, protocol_udp, claimed));
  if (right == 0) right = 0xffff;  // on the wire 0 means "none computed"
  set_be16(out, 6, udp.checksum.value_or(right));
  return out;
}

Bytes render(const TcpFields& tcp, const Context& context) {
  Bytes out;
  put_be16(out, tcp.src_port);
  put_be16(out, tcp.dst_port);
  put_be32(out, tcp.sequence);
  put_be32(out, 0);
  put_be16(out, static_cast<uint16_t>(5 << 12 | tcp.flags));
  put_be16(out, 0xffff);
  put_be32(out, 0);
  const uint16_t start = pseudo_sum(context.ip, protocol_tcp, out.size() + context.tail.size());
  set_be16(out, 16, checksum_over(out, context.tail, start));
  return out;
}

Bytes render(const IcmpFields& icmp, const Context& context) {
  const bool v6 = is_ipv6(context.ip);
  Bytes out;
  put_be16(out, v6 ? 128 << 8 : 8 << 8);
  put_be16(out, 0);
  put_be16(out, icmp.id);
  put_be16(out, icmp.sequence);
  const size_t size = out.size() + context.tail.size();
  const uint16_t start = v6 ? pseudo_sum(context.ip, protocol_icmpv6, size) : uint16_t{0};
  set_be16(out, 2, checksum_over(out, context.tail, start));
  return out;
}

Bytes render(const ArpFields& arp, const Context&) {
  const EthFields ends;
  Bytes out;
  put_be16(out, 1);
  put_be16(out, 0x0800);
  put_be16(out, 6 << 8 | 4);
  put_be16(out, arp.operation);
  put_bytes(out, ends.src);
  put_bytes(out, address_bytes(AF_INET, arp.sender_ip));
  put_bytes(out, MacAddress{});
  put_bytes(out, address_bytes(AF_INET, arp.target_ip));
  return out;
}

Bytes render(const Bytes& raw, const Context&) { return raw; }

}  // namespace

Packet& Packet::eth(const EthFields& fields) {
  layers_.emplace_back(fields);
  return *this;
}

Packet& Packet::vlan(uint16_t id, uint16_t tpid) { return vlan({.id = id, .tpid = tpid}); }

Packet& Packet::vlan(const VlanFields& fields) {
  layers_.emplace_back(fields);
  return *this;
}

Packet& Packet::qinq(uint16_t outer_id, uint16_t inner_id) {
  return vlan(outer_id, 0x88a8).vlan(inner_id, 0x8100);
}

Packet& Packet::ipv4(const Ipv4Fields& fields) {
  layers_.emplace_back(fields);
  return *this;
}

Packet& Packet::ipv6(const Ipv6Fields& fields) {
  layers_.emplace_back(fields);
  return *this;
}

Packet& Packet::ext(Ext kind, uint16_t words) {
  const uint16_t words_min = kind == Ext::auth ? 2 : 1;
  return ext(ExtFields{.kind = kind, .words = words == 0 ? words_min : words});
}

Packet& Packet::ext(const ExtFields& fields) {
  layers_.emplace_back(fields);
  return *this;
}

Packet& Packet::fragment(const FragmentFields& fields) {
  return ext(ExtFields{.kind = Ext::fragment,
                       .frag_offset = fields.offset,
                       .more_fragments = fields.more,
                       .id = fields.id});
}

Packet& Packet::udp(uint16_t src_port, uint16_t dst_port, const UdpOverrides& overrides) {
  layers_.emplace_back(UdpFields{.src_port = src_port,
                                 .dst_port = dst_port,
                                 .length = overrides.length,
                                 .checksum = overrides.checksum});
  return *this;
}

Packet& Packet::tcp(const TcpFields& fields) {
  layers_.emplace_back(fields);
  return *this;
}

Packet& Packet::icmp(const IcmpFields& fields) {
  layers_.emplace_back(fields);
  return *this;
}

Packet& Packet::arp(const ArpFields& fields) {
  layers_.emplace_back(fields);
  return *this;
}

Packet& Packet::payload(const Bytes& bytes) {
  layers_.emplace_back(bytes);
  return *this;
}

Packet& Packet::pad_to(size_t frame_bytes) {
  pad_to_bytes_ = frame_bytes;
  return *this;
}

Packet& Packet::truncate_to(size_t frame_bytes) {
  truncate_to_bytes_ = frame_bytes;
  return *this;
}

Bytes Packet::build() const {
  // Inside out: every header needs the bytes that follow it for its lengths and checksums.
  Bytes tail;
  for (size_t i = layers_.size(); i-- > 0;) {
    const Layer* ip = nullptr;
    for (size_t j = 0; j < i; ++j) {
      const bool is_ip = std::holds_alternative<Ipv4Fields>(layers_[j]) ||
                         std::holds_alternative<Ipv6Fields>(layers_[j]);
      if (is_ip) ip = &layers_[j];
    }
    const Layer* next = i + 1 < layers_.size() ? &layers_[i + 1] : nullptr;
    const Context context{.next = next, .ip = ip, .tail = tail};
    Bytes bytes = std::visit([&](const auto& layer) { return render(layer, context); }, layers_[i]);
    put_bytes(bytes, tail);
    tail = std::move(bytes);
  }
  if (pad_to_bytes_ && tail.size() < *pad_to_bytes_) tail.resize(*pad_to_bytes_, 0);
  if (truncate_to_bytes_ && tail.size() > *truncate_to_bytes_) tail.resize(*truncate_to_bytes_);
  return tail;
}

}  // namespace edgeshed::test
