// The room's ledger, sampling of class-decided packets, and sampled events.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"

namespace edgeshed::test {
namespace {

constexpr std::uint16_t kRoom = 3;

std::uint64_t sum_of(const es_room_counters& room, es_direction direction) {
  std::uint64_t sum = 0;
  for (const auto& tier : room.cell[direction])
    for (const std::uint64_t packets : tier) sum += packets;
  return sum;
}

TEST(RoomLedgerTest, CellsOfRoomsAddUpToWhatTheTableDecided) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000, {.room = kRoom, .contract_class = 2, .stream_block = 1});
  w.endpoint_row().stranger_room = 5;
  w.endpoint_row().pass_mask[ES_IN] = 1 << ES_LANE_control;
  w.endpoint_row().drop_mask[ES_IN] = 1 << ES_LANE_cosmetic;
  w.rules(kRoom, ES_IN).keep_q16[ES_LANE_snapshot] = 32768;
  w.rules(kRoom, ES_IN).level[0] = level_of(1, 20, w.now(), w.hz());
  w.room(kRoom).player_bytes_per_s = 1000;
  w.contract(2).limit[ES_IN][ES_TIER_critical] = limit_of(1, 0, 10, w.hz());
  w.contract(2).limit[ES_IN][ES_TIER_best_effort] = limit_of(1, 0, 60, w.hz());
  w.publish();
  std::uint64_t at_table[2] = {};
  for (unsigned i = 0; i < 400; ++i) {
    const auto lane = static_cast<std::uint8_t>(i % 8);
    const bool stranger = i % 3 == 0;
    const Flow flow{.remote_port = static_cast<std::uint16_t>(stranger ? 9 : 4000)};
    const Verdict v = w.xdp(lane_in(lane, flow));
    const bool by_class = v.reason == ES_REASON_class_pass || v.reason == ES_REASON_lane_paused;
    at_table[stranger] += by_class ? 0 : 1;
  }
  EXPECT_EQ(sum_of(w.room_counters(kRoom), ES_IN), at_table[0]);
  EXPECT_EQ(sum_of(w.room_counters(5), ES_IN), at_table[1]);
  EXPECT_EQ(sum_of(w.room_counters(kRoom), ES_OUT), 0u);
  const es_room_counters room = w.room_counters(kRoom);
  for (const es_outcome outcome : {ES_OUTCOME_admitted, ES_OUTCOME_contract, ES_OUTCOME_governor,
                                   ES_OUTCOME_ladder, ES_OUTCOME_fair_share}) {
    std::uint64_t packets = 0;
    for (const auto& tier : room.cell[ES_IN]) packets += tier[outcome];
    EXPECT_GT(packets, 0u) << int{outcome};
  }
}

TEST(RoomLedgerTest, ArrivalsAreWhatIsLeftAfterContracts) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000, {.room = kRoom, .contract_class = 2});
  w.rules(kRoom, ES_IN).drop_mask = 0xff;
  w.contract(2).limit[ES_IN][ES_TIER_best_effort] = limit_of(1, 0, 7, w.hz());
  w.publish();
  for (int i = 0; i < 20; ++i) w.xdp(lane_in(ES_LANE_voice));
  const es_room_counters room = w.room_counters(kRoom);
  EXPECT_EQ(room.arrivals[ES_IN][ES_LANE_voice], 7u);
  EXPECT_EQ(room.cell[ES_IN][ES_TIER_best_effort][ES_OUTCOME_contract], 13u);
  EXPECT_EQ(room.cell[ES_IN][ES_TIER_best_effort][ES_OUTCOME_ladder], 7u);
}

TEST(SampleTest, OneInManyClassDecidedPacketsIsAttributedToItsRoom) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000, {.room = kRoom});
  w.endpoint_row().stranger_room = 5;
  w.endpoint_row().pass_mask[ES_IN] = 1 << ES_LANE_voice;
  w.endpoint_row().drop_mask[ES_OUT] = 1 << ES_LANE_snapshot;
  w.publish();
  for (unsigned i = 0; i < 10 * ES_SAMPLE_EVERY; ++i) {
    w.passes(lane_in(ES_LANE_voice));
    w.action(Program::kTc, lane_out(ES_LANE_snapshot));
  }
  EXPECT_EQ(w.room_counters(kRoom).sampled[ES_IN][ES_LANE_voice], 10u);
  EXPECT_EQ(w.room_counters(kRoom).sampled[ES_OUT][ES_LANE_snapshot], 10u);
  EXPECT_EQ(sum_of(w.room_counters(kRoom), ES_IN), 0u);
  for (unsigned i = 0; i < 10 * ES_SAMPLE_EVERY; ++i)
    w.passes(lane_in(ES_LANE_voice, {.remote_port = 9}));
  EXPECT_EQ(w.room_counters(5).sampled[ES_IN][ES_LANE_voice], 10u);
}

TEST(EventTest, ShedMakesAnEventThatTellsWhoAndWhy) {
  World w;
  w.endpoint().connect("10.0.0.2", 4000, {.room = kRoom, .priority = 77});
  w.rules(kRoom, ES_IN).drop_mask = 1 << ES_LANE_stream;
  w.publish();
  w.control().event_sample_mask = 0;
  const Bytes frame = from_remote({}, lane_payload({.lane = ES_LANE_stream, .stream = 0x1234}));
  w.xdp(frame);
  w.xdp(lane_in(ES_LANE_event));
  const auto events = w.events();
  ASSERT_EQ(events.size(), 1u);
  const es_event& event = events[0];
  const es_key key = key_of("10.0.0.2", 4000);
  EXPECT_EQ(event.jiffies, w.now());
  EXPECT_EQ(event.remote.addr_lo, key.addr_lo);
  EXPECT_EQ(event.remote.port, key.port);
  EXPECT_EQ(event.remote.endpoint, 1);
  EXPECT_EQ(event.generation, w.generation());
  EXPECT_EQ(event.sampled_of, 1u);
  EXPECT_EQ(event.ip_bytes, frame.size() - 14);
  EXPECT_EQ(event.room, kRoom);
  EXPECT_EQ(event.stream, 0x1234);
  EXPECT_EQ(event.direction, ES_IN);
  EXPECT_EQ(event.row, ES_LANE_stream);
  EXPECT_EQ(event.tier, ES_TIER_best_effort);
  EXPECT_EQ(event.verdict, ES_VERDICT_drop);
  EXPECT_EQ(event.reason, ES_REASON_room_paused);
  EXPECT_EQ(event.priority, 77);
}

TEST(EventTest, OneInMaskPlusOneShedsMakesAnEvent) {
  World w;
  w.endpoint();
  w.endpoint_row().drop_mask[ES_IN] = 1 << ES_LANE_voice;
  w.publish();
  w.control().event_sample_mask = 7;
  for (int i = 0; i < 80; ++i) w.passes(lane_in(ES_LANE_voice));
  const auto events = w.events();
  EXPECT_EQ(events.size(), 10u);
  for (const es_event& event : events) EXPECT_EQ(event.sampled_of, 8u);
  w.control().event_sample_mask = ~0u;
  for (int i = 0; i < 80; ++i) w.passes(lane_in(ES_LANE_voice));
  EXPECT_TRUE(w.events().empty());
}

TEST(EventTest, RejectedPacketsEventSaysSo) {
  World w;
  w.endpoint({.flags = ES_EP_REJECTS});
  w.rules(0, ES_IN).threshold[0] = 255;
  w.publish();
  w.control().event_sample_mask = 0;
  EXPECT_EQ(w.xdp(lane_in(ES_LANE_command)).action, kXdpTx);
  const auto events = w.events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].verdict, ES_VERDICT_reject);
  EXPECT_EQ(events[0].room, 0);
}

TEST(AppliedTest, CountersShowTheGenerationThatDecided) {
  World w;
  w.endpoint().publish(41);
  w.xdp(lane_in(ES_LANE_voice));
  EXPECT_EQ(w.cpu_row().scratch.generation, 41u);
  w.publish(42);
  EXPECT_EQ(w.cpu_row().scratch.generation, 41u);
  w.xdp(lane_in(ES_LANE_voice));
  EXPECT_EQ(w.cpu_row().scratch.generation, 42u);
}

}  // namespace
}  // namespace edgeshed::test
