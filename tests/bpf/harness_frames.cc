// Keys, frames and limits of harness.h.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tests/bpf/harness.h"
#include "tests/support/packet_builder.h"

namespace edgeshed::test {

// --- keys and frames ---------------------------------------------------------------------------

es_key key_of(const std::string& address, std::uint16_t port, std::uint8_t endpoint) {
  es_key key{};
  std::uint8_t bytes[16] = {};
  if (address.find(':') == std::string::npos) {
    bytes[10] = bytes[11] = 0xff;
    if (inet_pton(AF_INET, address.c_str(), bytes + 12) != 1)
      throw std::invalid_argument("not an address: " + address);
  } else if (inet_pton(AF_INET6, address.c_str(), bytes) != 1) {
    throw std::invalid_argument("not an address: " + address);
  }
  std::memcpy(&key.addr_hi, bytes, 8);
  std::memcpy(&key.addr_lo, bytes + 8, 8);
  key.port = htons(port);
  key.endpoint = endpoint;
  return key;
}

namespace {

Bytes udp_frame(const std::string& src, std::uint16_t src_port, const std::string& dst,
                std::uint16_t dst_port, std::uint8_t tos, const Bytes& payload) {
  Packet packet;
  packet.eth();
  if (src.find(':') == std::string::npos)
    packet.ipv4({.src = src, .dst = dst, .tos = tos});
  else
    packet.ipv6({.src = src, .dst = dst, .tos = tos});
  return packet.udp(src_port, dst_port).payload(payload).build();
}

}  // namespace

Bytes from_remote(const Flow& flow, const Bytes& payload) {
  return udp_frame(flow.remote, flow.remote_port, flow.local, flow.local_port, flow.tos, payload);
}

Bytes to_remote(const Flow& flow, const Bytes& payload) {
  return udp_frame(flow.local, flow.local_port, flow.remote, flow.remote_port, flow.tos, payload);
}

Bytes lane_payload(const LaneFields& fields, std::size_t body_bytes) {
  Bytes bytes;
  bytes.push_back(fields.magic);
  bytes.push_back(static_cast<std::uint8_t>(fields.version << 4 | fields.claim));
  bytes.push_back(static_cast<std::uint8_t>(fields.flags << 4 | fields.lane));
  bytes.push_back(0);
  put_be16(bytes, fields.stream);
  put_be16(bytes, fields.sequence);
  put_be16(bytes, fields.ack);
  put_be16(bytes, 0);
  put_bytes(bytes, filler(body_bytes));
  return bytes;
}

es_limit limit_of(double packets_per_s, double bytes_per_s, double burst_s, std::uint32_t hz) {
  const double jiffy = 65536.0;
  es_limit limit{};
  if (packets_per_s > 0) {
    limit.packet_cost = static_cast<__u32>(jiffy * hz / packets_per_s);
    limit.packet_burst = static_cast<__u32>(
        std::max(jiffy * burst_s * hz, 2 * jiffy + static_cast<double>(limit.packet_cost)));
  }
  if (bytes_per_s > 0) {
    limit.byte_cost_q12 = static_cast<__u32>(4096 * jiffy * hz / bytes_per_s);
    const double packet = 1500.0 * limit.byte_cost_q12 / 4096;
    limit.byte_burst = static_cast<__u32>(std::max(jiffy * burst_s * hz, 2 * jiffy + packet));
  }
  return limit;
}

es_limit limit_of_nothing() {
  return {.packet_cost = 65536, .packet_burst = 65535, .byte_cost_q12 = 0, .byte_burst = 0};
}

es_level level_of(double tokens_per_s, double burst_tokens, std::uint64_t jiffies,
                  std::uint32_t hz) {
  return {.v0 = 1'000'000,
          .t0_jiffies = jiffies,
          .rate_q16 = static_cast<__u64>(tokens_per_s * 256 * 65536 / hz),
          .burst = static_cast<__u32>(burst_tokens * 256),
          .begun = 0};
}

Bytes lane_in(std::uint8_t lane, const Flow& flow) {
  return from_remote(flow, lane_payload({.lane = lane}));
}

Bytes lane_out(std::uint8_t lane, const Flow& flow) {
  return to_remote(flow, lane_payload({.lane = lane}));
}

}  // namespace edgeshed::test
