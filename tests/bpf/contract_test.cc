// Contracts: how exact they are, what is beyond them, and that resting never counts against anyone.
#include <gtest/gtest.h>

#include "tests/bpf/harness.h"

namespace edgeshed::test {
namespace {

constexpr std::uint8_t kClass = 2;

/// Passed per second of `lane` when 20 packets (or so) are sent each jiffy, after one second.
struct Passed {
  double packets_per_s;
  double bytes_per_s;
};

Passed flood(World& w, std::uint8_t lane, unsigned seconds, const Flow& flow = {}) {
  std::vector<Bytes> frames;
  for (const std::size_t body : {8, 100, 333, 700, 1200})
    frames.push_back(from_remote(flow, lane_payload({.lane = lane}, body)));
  std::uint64_t packets = 0, bytes = 0, sent = 0;
  const unsigned per_jiffy = w.hz() >= 1000 ? 2 : 5;
  for (std::uint32_t jiffy = 0; jiffy < (seconds + 1) * w.hz(); ++jiffy) {
    w.advance_jiffies(1);
    for (unsigned i = 0; i < per_jiffy; ++i) {
      const Bytes& frame = frames[sent++ % frames.size()];
      if (!w.passes(frame) || jiffy < w.hz()) continue;
      ++packets;
      bytes += frame.size() - 14;
    }
  }
  return {static_cast<double>(packets) / seconds, static_cast<double>(bytes) / seconds};
}

class ContractRateTest : public testing::TestWithParam<unsigned> {
 protected:
  World w_{{.hz = GetParam()}};
};

// Rule: B7
TEST_P(ContractRateTest, PacketsPerSecondAreExact) {
  w_.endpoint().connect("10.0.0.2", 4000, {.contract_class = kClass});
  for (const double rate : {20.0, 37.0, 150.0}) {
    w_.contract(kClass).limit[ES_IN][ES_TIER_best_effort] = limit_of(rate, 0, 0.5, w_.hz());
    w_.publish();
    EXPECT_NEAR(flood(w_, ES_LANE_voice, 20).packets_per_s, rate, rate * 0.01) << rate;
  }
}

TEST_P(ContractRateTest, BytesPerSecondAreExact) {
  w_.endpoint().connect("10.0.0.2", 4000, {.contract_class = kClass});
  for (const double rate : {16'000.0, 60'000.0}) {
    w_.contract(kClass).limit[ES_IN][ES_TIER_best_effort] = limit_of(0, rate, 0.5, w_.hz());
    w_.publish();
    EXPECT_NEAR(flood(w_, ES_LANE_voice, 20).bytes_per_s, rate, rate * 0.01) << rate;
  }
}

TEST_P(ContractRateTest, RateIsExactWhile32BitJiffiesWrap) {
  w_.endpoint().connect("10.0.0.2", 4000, {.contract_class = kClass});
  w_.contract(kClass).limit[ES_IN][ES_TIER_standard] = limit_of(50, 0, 0.5, w_.hz());
  w_.publish();
  w_.at_jiffies((1ull << 32) - 8ull * w_.hz());
  EXPECT_NEAR(flood(w_, ES_LANE_command, 20).packets_per_s, 50, 0.5);
}

/// A tier that rests while another sends is never judged over, whatever the rest.
TEST_P(ContractRateTest, RestingTierOfASendingConnectionIsNeverOver) {
  constexpr unsigned kSeconds = 180;
  w_.endpoint();
  for (auto& limit : w_.contract(kClass).limit[ES_IN]) limit = limit_of(4, 0, 1, w_.hz());
  w_.publish();
  const auto flow = [](unsigned i) {
    return Flow{.remote_port = static_cast<std::uint16_t>(2000 + i)};
  };
  for (unsigned i = 1; i <= kSeconds; ++i) {
    w_.connect("10.0.0.2", flow(i).remote_port, {.contract_class = kClass});
    for (int n = 0; n < 8; ++n) w_.passes(lane_in(ES_LANE_voice, flow(i)));
    ASSERT_FALSE(w_.passes(lane_in(ES_LANE_voice, flow(i))));  // its burst is used up
  }
  for (unsigned second = 1; second <= kSeconds; ++second) {
    w_.advance_jiffies(w_.hz());
    for (unsigned i = second; i <= kSeconds; ++i)
      ASSERT_TRUE(w_.passes(lane_in(ES_LANE_command, flow(i)))) << second << " s";
    ASSERT_TRUE(w_.passes(lane_in(ES_LANE_voice, flow(second)))) << second << " s of rest";
    ASSERT_TRUE(w_.passes(lane_in(ES_LANE_event, flow(second)))) << second << " s of rest";
  }
}

TEST_P(ContractRateTest, RestingConnectionIsNeverOverAndStillHasItsContract) {
  w_.endpoint();
  w_.contract(kClass).limit[ES_IN][ES_TIER_best_effort] = limit_of(4, 0, 1, w_.hz());
  w_.publish();
  std::uint16_t port = 2000;
  for (const unsigned tenths :
       {3u,   10u,  50u,   160u,  170u,  300u,  327u,  330u,  400u,  600u,  650u,  656u,
        660u, 700u, 1000u, 1310u, 1320u, 1800u, 2600u, 3270u, 3280u, 6550u, 6560u, 26210u}) {
    const Flow flow{.remote_port = ++port};
    w_.connect("10.0.0.2", port, {.contract_class = kClass});
    for (int n = 0; n < 8; ++n) w_.passes(lane_in(ES_LANE_voice, flow));
    w_.advance_jiffies(tenths * w_.hz() / 10);
    EXPECT_TRUE(w_.passes(lane_in(ES_LANE_voice, flow))) << tenths << " tenths of a second";
    unsigned more = 0;
    for (int n = 0; n < 20; ++n) more += w_.passes(lane_in(ES_LANE_voice, flow));
    EXPECT_LE(more, 4u) << tenths << " tenths of a second";
  }
}

INSTANTIATE_TEST_SUITE_P(Hz, ContractRateTest, testing::Values(100u, 250u, 1000u));

class ContractTest : public testing::Test {
 protected:
  ContractTest() { w_.endpoint().connect("10.0.0.2", 4000, {.contract_class = kClass}); }

  es_limit& limit(es_tier tier, es_direction direction = ES_IN) {
    return w_.contract(kClass).limit[direction][tier];
  }

  World w_;
};

TEST_F(ContractTest, BurstPassesAndThenTheContractRefuses) {
  limit(ES_TIER_best_effort) = limit_of(10, 0, 1, w_.hz());
  w_.publish();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(w_.xdp(lane_in(ES_LANE_voice)).reason, ES_REASON_admitted);
  const Verdict v = w_.xdp(lane_in(ES_LANE_voice));
  EXPECT_EQ(v.reason, ES_REASON_contract);
  EXPECT_EQ(v.action, kXdpDrop);
  EXPECT_EQ(v.row, ES_LANE_voice);
  EXPECT_EQ(w_.tc(lane_out(ES_LANE_voice)).reason, ES_REASON_admitted);
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_command)).reason, ES_REASON_admitted);
}

// Rule: B11
TEST_F(ContractTest, CriticalBeyondItsContractIsDemotedAndThenHasStandards) {
  limit(ES_TIER_critical) = limit_of(10, 0, 1, w_.hz());
  limit(ES_TIER_standard) = limit_of(5, 0, 1, w_.hz());
  w_.publish();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(w_.xdp(lane_in(ES_LANE_event)).row, ES_LANE_event);
  for (int i = 0; i < 5; ++i) {
    const Verdict v = w_.xdp(lane_in(ES_LANE_event));
    EXPECT_EQ(v.row, ES_ROW_DEMOTED);
    EXPECT_EQ(v.reason, ES_REASON_admitted);
  }
  const Verdict beyond = w_.xdp(lane_in(ES_LANE_event));
  EXPECT_EQ(beyond.row, ES_ROW_DEMOTED);
  EXPECT_EQ(beyond.reason, ES_REASON_contract);
  EXPECT_EQ(beyond.action, kXdpDrop);
  EXPECT_EQ(w_.room_counters(0).cell[ES_IN][ES_TIERS][ES_OUTCOME_contract], 1u);
}

TEST_F(ContractTest, DemotedCriticalIsShedLikeStandard) {
  limit(ES_TIER_critical) = limit_of_nothing();
  w_.rules(0, ES_IN).threshold[0] = 200;
  w_.publish();
  const Verdict v = w_.xdp(lane_in(ES_LANE_event));
  EXPECT_EQ(v.row, ES_ROW_DEMOTED);
  EXPECT_EQ(v.reason, ES_REASON_priority);
}

TEST_F(ContractTest, ClaimAboveTheClassesCapIsDemoted) {
  w_.contract(kClass).tier_cap = ES_TIER_standard;
  w_.rules(0, ES_IN).threshold[0] = 200;
  w_.publish();
  const Verdict in = w_.xdp(lane_in(ES_LANE_event));
  EXPECT_EQ(in.row, ES_ROW_DEMOTED);
  EXPECT_EQ(in.reason, ES_REASON_priority);
  EXPECT_EQ(w_.tc(lane_out(ES_LANE_event)).row, ES_LANE_event);  // the server's own word counts
}

TEST_F(ContractTest, StandardUnderABestEffortCapFollowsBestEffortRules) {
  w_.contract(kClass).tier_cap = ES_TIER_best_effort;
  w_.rules(0, ES_IN).threshold[1] = 200;
  w_.publish();
  const Verdict command = w_.xdp(lane_in(ES_LANE_command));
  EXPECT_EQ(command.row, ES_LANE_command);
  EXPECT_EQ(command.reason, ES_REASON_priority);
  EXPECT_EQ(w_.xdp(lane_in(ES_LANE_event)).row, ES_ROW_DEMOTED);
}

TEST_F(ContractTest, ClaimOfAStrangerAboveTheCapIsDemoted) {
  w_.endpoint_row().stranger_tier_cap = ES_TIER_standard;
  w_.rules(0, ES_IN).threshold[0] = 1;
  w_.publish();
  const Flow stranger{.remote_port = 9};
  const Verdict in = w_.xdp(lane_in(ES_LANE_event, stranger));
  EXPECT_EQ(in.row, ES_ROW_DEMOTED);
  EXPECT_EQ(in.reason, ES_REASON_priority);
  const Verdict out = w_.tc(lane_out(ES_LANE_event, stranger));
  EXPECT_EQ(out.row, ES_LANE_event);
  EXPECT_EQ(out.reason, ES_REASON_stranger);
}

TEST_F(ContractTest, TrainIsChargedAllItsSegments) {
  limit(ES_TIER_best_effort, ES_OUT) = limit_of(10, 0, 1, w_.hz());
  w_.publish();
  const Bytes train = to_remote({}, lane_payload({.lane = ES_LANE_snapshot}, 988));
  const TcContext context{.gso_segs = 4, .wire_len = 4 * (42 + 250)};
  EXPECT_EQ(w_.tc(train, context).action, kTcPass);
  EXPECT_EQ(w_.tc(train, context).action, kTcPass);
  EXPECT_EQ(w_.tc(train, context).reason, ES_REASON_contract);  // 8 + 4 > 10
  EXPECT_EQ(w_.tc(lane_out(ES_LANE_snapshot)).action, kTcPass);
  EXPECT_EQ(w_.tc(lane_out(ES_LANE_snapshot)).action, kTcPass);
  EXPECT_EQ(w_.tc(lane_out(ES_LANE_snapshot)).reason, ES_REASON_contract);
}

TEST_F(ContractTest, CostOfALongTrainDoesNotWrap) {
  limit(ES_TIER_best_effort, ES_OUT) = limit_of(1, 0, 2, w_.hz());
  w_.publish();
  // 65536 * 250 * 264 = 2^32 + 30 million: as a 32-bit sum less than two packets.
  const Bytes train = to_remote({}, lane_payload({.lane = ES_LANE_snapshot}, 2000));
  const Verdict v = w_.tc(train, {.gso_segs = 264, .wire_len = 264 * 100});
  EXPECT_EQ(v.reason, ES_REASON_contract);
}

TEST_F(ContractTest, DebtOfAFormerClassNeverExceedsTheNewBurst) {
  w_.contract(5).limit[ES_IN][ES_TIER_best_effort] = limit_of(1, 0, 20, w_.hz());
  limit(ES_TIER_best_effort) = limit_of(100, 0, 0.1, w_.hz());
  w_.connect("10.0.0.2", 4001, {.contract_class = 5}).publish();
  const Flow flow{.remote_port = 4001};
  while (w_.passes(lane_in(ES_LANE_voice, flow))) {
  }
  w_.table().set_policy(
      w_.last_record(),
      {.room = 0, .contract_class = kClass, .priority = 128, .flags = 0, .weight_inverse_q8 = 256});
  unsigned passed = 0;
  for (std::uint32_t jiffy = 0; jiffy < w_.hz(); ++jiffy) {
    w_.advance_jiffies(1);
    passed += w_.passes(lane_in(ES_LANE_voice, flow));
  }
  EXPECT_GE(passed, 80u);  // 100 a second, less what the new burst of 0.1 s may still owe
}

TEST_F(ContractTest, RefusedPacketIsNotCharged) {
  limit(ES_TIER_best_effort) = limit_of(0, 10'000, 0.1, w_.hz());
  w_.publish();
  const Bytes large = from_remote({}, lane_payload({.lane = ES_LANE_voice}, 1400));
  const Bytes small = from_remote({}, lane_payload({.lane = ES_LANE_voice}, 0));
  EXPECT_TRUE(w_.passes(large));
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(w_.passes(large));
  w_.advance_jiffies(3);
  EXPECT_TRUE(w_.passes(small));
}

}  // namespace
}  // namespace edgeshed::test
