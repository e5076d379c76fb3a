// Bytes as an endpoint and a frame: 20 bytes say how the endpoint classifies, the rest is what
// arrives. The packet path reads it as both hooks would, and may neither read beyond the frame's
// end, which is the end of the memory, nor contradict itself.
#include <algorithm>
#include <array>

#include "maps/reasons.h"
#include "tests/fuzz/native_dissect.h"
#include "tests/fuzz/target.h"
#include "userspace/core/model.h"

namespace edgeshed::test {
namespace {

constexpr size_t kPatternBytes = 16;
constexpr size_t kHeadBytes = 4 + kPatternBytes;
enum Flag : uint8_t { kOut = 1, kCrc = 2, kOwnTiers = 4, kOwnAddress = 8 };
constexpr uint8_t kProtocols[] = {ES_PROTOCOL_enet, ES_PROTOCOL_lane, ES_PROTOCOL_dscp,
                                  ES_PROTOCOL_match, ES_PROTOCOL_opaque};

struct Input {
  es_plan_endpoint endpoint = {};
  native_frame frame = {};
};

/// The endpoint's rules are the same 16 bytes again and again; lanes are lanes, as a plan has them.
void fill_classifier(es_plan_endpoint& endpoint, const uint8_t* pattern) {
  for (size_t i = 0; i < sizeof(endpoint.classifier.bytes); ++i) {
    endpoint.classifier.bytes[i] = pattern[i % kPatternBytes];
  }
  if (endpoint.protocol == ES_PROTOCOL_match) {
    for (es_match_rule& rule : endpoint.classifier.match) {
      rule.offset &= 0xff;
      rule.lane &= 7;
      rule.value &= rule.mask;
    }
    return;
  }
  for (uint8_t& lanes : endpoint.classifier.bytes) {
    lanes &= endpoint.protocol == ES_PROTOCOL_enet ? 0x77 : 7;
  }
}

Input input_of(const std::array<uint8_t, kHeadBytes>& head, std::span<const uint8_t> bytes) {
  Input input;
  es_plan_endpoint& endpoint = input.endpoint;
  endpoint.protocol = kProtocols[head[0] % std::size(kProtocols)];
  endpoint.flags = (head[1] & kCrc) != 0 ? ES_EP_ENET_CRC : 0;
  if ((head[1] & kOwnAddress) == 0) endpoint.flags |= ES_EP_ANY_ADDRESS;
  endpoint.local_addr_lo = __builtin_bswap64(0x0000ffff0a4d0001ull);  // the captures' server
  endpoint.default_lane = head[3] & 7;
  endpoint.lane_tiers = core::default_lane_tiers();
  for (uint8_t lane = 0; (head[1] & kOwnTiers) != 0 && lane < ES_LANES; ++lane) {
    endpoint.lane_tiers =
        core::with_lane_tier(endpoint.lane_tiers, lane, head[4 + lane] % ES_TIERS);
  }
  fill_classifier(endpoint, head.data() + 4);
  native_frame& frame = input.frame;
  frame.bytes = bytes.data();
  frame.count = static_cast<uint32_t>(bytes.size());
  frame.linear = head[2] == 0 ? frame.count : std::min<uint32_t>(frame.count, head[2]);
  frame.direction = (head[1] & kOut) != 0 ? ES_OUT : ES_IN;
  return input;
}

std::string parse_fault(const native_dissected& out) {
  const es_packet& packet = out.located;
  if (out.reason != ES_UNDECIDED) {
    const bool known = out.reason == ES_REASON_not_udp || out.reason == ES_REASON_malformed_link ||
                       out.reason == ES_REASON_malformed_ip ||
                       out.reason == ES_REASON_malformed_udp || out.reason == ES_REASON_too_deep;
    return known ? "" : "a reason that parse does not have";
  }
  if (out.cursor > out.linear) return "the cursor is beyond the frame";
  if (packet.family != 4 && packet.family != 6) return "no family";
  if (packet.l3_offset < 14 || packet.l3_offset > 22) return "IP where it cannot be";
  if (packet.fragment == ES_FRAG_LATER) return "";
  const uint32_t ip_header = packet.l4_offset - packet.l3_offset;
  if (packet.l4_offset < packet.l3_offset + (packet.family == 4 ? 20 : 40)) return "UDP inside IP";
  if (out.cursor != packet.l4_offset + 8u) return "the cursor is not on the payload";
  const uint32_t datagram = ip_header + 8u + packet.payload_len;
  if (packet.fragment == ES_FRAG_FIRST ? packet.ip_bytes != datagram : packet.ip_bytes < datagram) {
    return "IP and UDP disagree on the length";
  }
  return packet.segments == 1 ? "" : "segments without a train";
}

std::string classify_fault(const native_dissected& out, const es_plan_endpoint& endpoint) {
  const es_packet& packet = out.packet;
  if (packet.lane >= ES_LANES) return "no lane";
  if (endpoint.protocol == ES_PROTOCOL_lane) {
    return packet.walk_error != 0 && packet.lane != ES_LANE_command ? "broken, and not standard"
                                                                    : "";
  }
  if (endpoint.protocol != ES_PROTOCOL_enet) return packet.walk_error != 0 ? "a walk" : "";
  const bool sheds_command =
      es_lane_tier(endpoint.lane_tiers, ES_LANE_command) == ES_TIER_best_effort;
  const bool best_effort = es_lane_tier(endpoint.lane_tiers, packet.lane) == ES_TIER_best_effort;
  return packet.walk_error != 0 && best_effort && !sheds_command ? "broken, and best-effort" : "";
}

/// The short way is taken in the place of the long one, so it says the same.
std::string plain_fault(const native_dissected& out) {
  if (out.is_plain == 0) return "";
  if (out.reason != ES_UNDECIDED || out.found != ES_UNDECIDED) return "plain, but not ours";
  if (native_same_packet(&out.plain, &out.located) == 0) return "described otherwise";
  if (out.plain_lane < 0) return "";
  if (out.packet.walk_error != 0) return "plain, but broken";
  return out.plain_lane == out.packet.lane ? "" : "another lane than the long way's";
}

std::string fault_of(const native_dissected& out, const es_plan_endpoint& endpoint) {
  std::string fault = out.changed != 0 ? "the frame was changed" : parse_fault(out);
  if (fault.empty() && out.found == ES_UNDECIDED) fault = classify_fault(out, endpoint);
  return fault.empty() ? plain_fault(out) : fault;
}

bool agree(const native_dissected& a, const native_dissected& b) {
  return a.reason == b.reason && a.found == b.found && a.is_plain == b.is_plain &&
         a.plain_lane == b.plain_lane && native_same_packet(&a.packet, &b.packet) != 0;
}

}  // namespace

const char* const kTargetName = "dissect";

std::string run_target(std::span<const uint8_t> bytes) {
  std::array<uint8_t, kHeadBytes> head = {};
  const size_t taken = std::min(bytes.size(), head.size());
  std::copy_n(bytes.begin(), taken, head.begin());
  const Input input = input_of(
      head, bytes.subspan(taken, std::min<size_t>(bytes.size() - taken, NATIVE_FRAME_BYTES_MAX)));
  native_dissected xdp;
  native_dissected tc;
  native_dissect_xdp(&input.frame, &input.endpoint, &xdp);
  native_dissect_tc(&input.frame, &input.endpoint, &tc);
  std::string fault = fault_of(xdp, input.endpoint);
  if (!fault.empty()) return "XDP: " + fault;
  fault = fault_of(tc, input.endpoint);
  if (!fault.empty()) return "TC: " + fault;
  const bool whole = input.frame.linear == input.frame.count;
  return !whole || agree(xdp, tc) ? "" : "XDP and TC disagree";
}

}  // namespace edgeshed::test
