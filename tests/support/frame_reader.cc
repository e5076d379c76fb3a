// parse_frame: reads an Ethernet frame back, to check marks, rejects and captures. It is lenient:
// what can be read is reported, and `error` tells where it stopped. See packet_builder.h.
#include <arpa/inet.h>

#include <algorithm>

#include "tests/support/packet_builder.h"

namespace edgeshed::test {
namespace {

constexpr uint8_t protocol_udp = 17;

bool is_extension(uint8_t protocol) {
  switch (static_cast<Ext>(protocol)) {
    case Ext::hop_by_hop:
    case Ext::routing:
    case Ext::fragment:
    case Ext::auth:
    case Ext::dest_opts:
    case Ext::mobility:
      return true;
  }
  return false;
}

std::string address_text(int family, ByteView bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(family, bytes.data(), text, sizeof text);
  return text;
}

void set_tos(ParsedFrame& out, uint8_t tos) {
  out.tos = tos;
  out.dscp = static_cast<uint8_t>(tos >> 2);
  out.ecn = tos & 0x03;
}

// Ethernet and its tags. Returns the offset of what follows, 0 after an error.
size_t read_link(ParsedFrame& out, ByteView frame) {
  if (frame.size() < 14) {
    out.error = "short ethernet header";
    return 0;
  }
  std::copy_n(frame.begin(), 6, out.dst_mac.begin());
  std::copy_n(frame.begin() + 6, 6, out.src_mac.begin());
  out.ethertype = be16_at(frame, 12);
  size_t offset = 14;
  while (out.ethertype == 0x8100 || out.ethertype == 0x88a8 || out.ethertype == 0x9100) {
    if (frame.size() - offset < 4) {
      out.error = "short vlan tag";
      return 0;
    }
    out.vlan_tpids.push_back(out.ethertype);
    out.vlan_ids.push_back(be16_at(frame, offset) & 0x0fff);
    out.ethertype = be16_at(frame, offset + 2);
    offset += 4;
  }
  return offset;
}

// Cuts the frame to what the IP length claims, and notes padding or truncation.
ByteView within_ip_length(ParsedFrame& out, ByteView frame) {
  const size_t present = frame.size() - out.ip_offset;
  out.truncated = out.ip_bytes > present;
  out.padding_bytes = out.truncated ? 0 : present - out.ip_bytes;
  return frame.subspan(out.ip_offset, std::min(out.ip_bytes, present));
}

// Returns the IP packet within its length, empty after an error.
ByteView read_ipv4(ParsedFrame& out, ByteView frame) {
  const ByteView ip = frame.subspan(out.ip_offset);
  if (ip.size() < 20) {
    out.error = "short ipv4 header";
    return {};
  }
  if (ip[0] >> 4 != 4) {
    out.error = "ip version";
    return {};
  }
  out.ip_version = 4;
  set_tos(out, ip[1]);
  out.ip_bytes = be16_at(ip, 2);
  out.ip_id = be16_at(ip, 4);
  out.dont_fragment = (ip[6] & 0x40) != 0;
  out.more_fragments = (ip[6] & 0x20) != 0;
  out.frag_offset = be16_at(ip, 6) & 0x1fff;
  out.ttl = ip[8];
  out.protocol = ip[9];
  out.src = address_text(AF_INET, ip.subspan(12, 4));
  out.dst = address_text(AF_INET, ip.subspan(16, 4));
  out.ip_header_bytes = size_t{ip[0] & 0x0fU} * 4;
  if (out.ip_header_bytes < 20 || out.ip_header_bytes > ip.size()) {
    out.error = "ipv4 ihl";
    return {};
  }
  // A header together with its checksum sums to all ones.
  const bool sums = internet_sum(ip.first(out.ip_header_bytes)) == 0xffff;
  out.ip_checksum = sums ? ChecksumState::right : ChecksumState::wrong;
  if (out.ip_bytes < out.ip_header_bytes) {
    out.error = "ipv4 total length";
    return {};
  }
  return within_ip_length(out, frame);
}

// Walks the extension headers of `ip`; false after an error. Stops at a later fragment: what
// follows there is data, whatever its next-header field says.
bool read_extensions(ParsedFrame& out, ByteView ip) {
  while (is_extension(out.protocol) && out.frag_offset == 0) {
    const size_t offset = out.ip_header_bytes;
    if (ip.size() - offset < 8) {
      out.error = "short extension header";
      return false;
    }
    const auto kind = static_cast<Ext>(out.protocol);
    size_t size = (size_t{ip[offset + 1]} + 1) * 8;
    if (kind == Ext::auth) size = (size_t{ip[offset + 1]} + 2) * 4;
    if (kind == Ext::fragment) {
      size = 8;
      out.frag_offset = be16_at(ip, offset + 2) >> 3;
      out.more_fragments = (ip[offset + 3] & 1) != 0;
      out.ip_id = be32_at(ip, offset + 4);
    }
    if (size > ip.size() - offset) {
      out.error = "extension header length";
      return false;
    }
    out.ext_headers.push_back(out.protocol);
    out.protocol = ip[offset];
    out.ip_header_bytes += size;
  }
  return true;
}

// Returns the IP packet within its length, empty after an error.
ByteView read_ipv6(ParsedFrame& out, ByteView frame) {
  const ByteView header = frame.subspan(out.ip_offset);
  if (header.size() < 40) {
    out.error = "short ipv6 header";
    return {};
  }
  if (header[0] >> 4 != 6) {
    out.error = "ip version";
    return {};
  }
  out.ip_version = 6;
  set_tos(out, static_cast<uint8_t>(be16_at(header, 0) >> 4 & 0xff));
  out.ip_bytes = size_t{40} + be16_at(header, 4);
  out.protocol = header[6];
  out.ttl = header[7];
  out.src = address_text(AF_INET6, header.subspan(8, 16));
  out.dst = address_text(AF_INET6, header.subspan(24, 16));
  out.ip_header_bytes = 40;
  const ByteView ip = within_ip_length(out, frame);
  return read_extensions(out, ip) ? ip : ByteView{};
}

ChecksumState udp_checksum_state(const ParsedFrame& out, ByteView ip, ByteView udp) {
  const uint16_t field = be16_at(udp, 6);
  if (field == 0) return ChecksumState::zero;
  const bool is_fragment = out.more_fragments || out.frag_offset != 0;
  if (is_fragment || out.truncated || out.udp_length > udp.size() || out.udp_length < 8) {
    return ChecksumState::not_knowable;
  }
  Bytes pseudo;
  put_bytes(pseudo, out.ip_version == 4 ? ip.subspan(12, 8) : ip.subspan(8, 32));
  put_be16(pseudo, protocol_udp);
  put_be16(pseudo, out.udp_length);
  const uint16_t start = internet_sum(pseudo);
  if (internet_sum(udp.first(out.udp_length), start) == 0xffff) return ChecksumState::right;
  return field == start ? ChecksumState::pseudo_only : ChecksumState::wrong;
}

void read_udp(ParsedFrame& out, ByteView ip) {
  const ByteView udp = ip.subspan(out.ip_header_bytes);
  if (udp.size() < 8) {
    out.error = "short udp header";
    return;
  }
  out.has_udp = true;
  out.src_port = be16_at(udp, 0);
  out.dst_port = be16_at(udp, 2);
  out.udp_length = be16_at(udp, 4);
  out.udp_checksum = udp_checksum_state(out, ip, udp);
  out.payload.assign(udp.begin() + 8, udp.end());
}

}  // namespace

ParsedFrame parse_frame(ByteView frame) {
  ParsedFrame out;
  out.ip_offset = read_link(out, frame);
  if (!out.error.empty()) return out;
  ByteView ip;
  if (out.ethertype == 0x0800) {
    ip = read_ipv4(out, frame);
  } else if (out.ethertype == 0x86dd) {
    ip = read_ipv6(out, frame);
  } else {
    out.payload.assign(frame.begin() + static_cast<std::ptrdiff_t>(out.ip_offset), frame.end());
    return out;
  }
  if (!out.error.empty()) return out;
  if (out.protocol == protocol_udp && out.frag_offset == 0) {
    read_udp(out, ip);
  } else {
    out.payload.assign(ip.begin() + static_cast<std::ptrdiff_t>(out.ip_header_bytes), ip.end());
  }
  return out;
}

}  // namespace edgeshed::test
