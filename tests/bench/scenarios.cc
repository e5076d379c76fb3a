// Frames and plans: see scenarios.h.
#include "tests/bench/scenarios.h"

#include <algorithm>
#include <iterator>

#include "maps/lane_header.h"
#include "tests/support/enet_messages.h"
#include "tests/support/packet_builder.h"

namespace edgeshed::bench {
namespace {

constexpr unsigned kPayloadBytes = 32;
constexpr std::uint8_t kLane = ES_LANE_snapshot;

test::Bytes frame_of(const test::Bytes& payload) {
  return test::Packet().eth().ipv4().udp(1024, BENCH_SERVER_PORT).payload(payload).build();
}

constexpr std::uint16_t default_lane_tiers() {
  std::uint16_t tiers = 0;
#define X(name, tier, text) tiers |= ES_TIER_##tier << (2 * ES_LANE_##name);
  ES_LANE_LIST(X)
#undef X
  return tiers;
}

}  // namespace

test::Bytes plain_frame() { return frame_of(test::filler(kPayloadBytes)); }

test::Bytes lane_header_frame() {
  test::Bytes payload = {EDGESHED_LANE_MAGIC, EDGESHED_LANE_VERSION << 4 | ES_TIER_best_effort,
                         kLane};
  payload.resize(EDGESHED_LANE_BYTES);
  test::put_bytes(payload, test::filler(kPayloadBytes - EDGESHED_LANE_BYTES));
  return frame_of(payload);
}

test::Bytes enet_frame(unsigned commands) {
  test::EnetDatagram datagram;
  for (unsigned i = 0; i < commands; ++i) {
    datagram.unreliable(0, 1, static_cast<std::uint16_t>(i), 16);
  }
  return frame_of(datagram.bytes());
}

Scenario open_plan(es_protocol protocol) {
  Scenario plan;
  plan.endpoint.generation = plan.room.generation = plan.contract.generation = 1;
  plan.endpoint.protocol = protocol;
  plan.endpoint.flags = ES_EP_ANY_ADDRESS;
  plan.endpoint.default_lane = kLane;
  plan.endpoint.lane_tiers = default_lane_tiers();
  if (protocol == ES_PROTOCOL_dscp) {
    std::ranges::fill(plan.endpoint.classifier.dscp_lane, kLane);
  } else if (protocol == ES_PROTOCOL_enet) {
    std::ranges::fill(plan.endpoint.classifier.enet_channel,
                      static_cast<__u8>(ES_LANE_event << 4 | kLane));
  }
  std::ranges::fill(plan.room.packet_cost, 256);
  for (es_room_rules& rules : plan.room.rules) {
    std::ranges::fill(rules.keep_q16, ES_KEEP_ALL);
  }
  return plan;
}

Scenario class_drop(es_protocol protocol) {
  Scenario plan = open_plan(protocol);
  plan.endpoint.drop_mask[ES_IN] = 1u << kLane;
  return plan;
}

Scenario class_pass(es_protocol protocol) {
  Scenario plan = open_plan(protocol);
  plan.endpoint.pass_mask[ES_IN] = 1u << kLane;
  return plan;
}

Scenario slot_drop(es_protocol protocol) {
  Scenario plan = open_plan(protocol);
  std::ranges::fill(plan.endpoint.slot_quartiles[ES_IN], 4);
  return plan;
}

Scenario table_drop(es_protocol protocol) {
  Scenario plan = open_plan(protocol);
  std::ranges::fill(plan.room.rules[ES_IN].threshold, 255);
  return plan;
}

Scenario table_pass_charged(es_protocol protocol) {
  constexpr __u32 kBurst = ES_BURST_JIFFIES_MAX << ES_DEBT_TICK_BITS;
  Scenario plan = open_plan(protocol);
  std::ranges::fill(plan.contract.limit[ES_IN], es_limit{1, kBurst, 16, kBurst});
  std::ranges::fill(plan.room.packet_cost, 1);
  std::ranges::fill(
      plan.room.rules[ES_IN].level,
      es_level{.v0 = 0, .t0_jiffies = 0, .rate_q16 = 1000u << 16, .burst = 1u << 31, .begun = 0});
  return plan;
}

}  // namespace edgeshed::bench
