// Random rows for the fuzz of step four (fuzz_decide_test.cc): the maps beside the native side's
// copy of them, and what fills both with plans and states around every limit. Must not run packets.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "maps/plan.h"
#include "tests/bpf/native_decide.h"
#include "userspace/kernel/map_set.h"

namespace edgeshed::test {

inline constexpr std::uint32_t kHz = 250;

/// Dice with the shapes that find limits: mostly ordinary values, now and then an extreme one.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t word() { return engine_(); }
  /// 0 to n - 1.
  std::uint32_t below(std::uint64_t n) { return static_cast<std::uint32_t>(engine_() % n); }
  bool percent(unsigned p) { return below(100) < p; }
  template <typename T>
  T of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  /// `around` give or take `spread`.
  std::uint64_t near(std::uint64_t around, std::uint64_t spread) {
    return around - spread + engine_() % (2 * spread + 1);
  }
  /// Few bits set: a mask that pauses one lane or another, not most of them.
  std::uint8_t sparse_mask() {
    return percent(60) ? 0 : static_cast<std::uint8_t>(word() & word() & word());
  }

 private:
  std::mt19937_64 engine_;
};

/// One map and the native side's copy of it. Changes are made to the copy and put into the map.
template <typename T>
struct Twin {
  explicit Twin(std::span<T> rows) : map(rows), copy(rows.begin(), rows.end()) {}
  T& operator[](std::size_t i) { return copy[i]; }
  void put(std::size_t i) { map[i] = copy[i]; }
  bool same(std::size_t i) const { return std::memcmp(&map[i], &copy[i], sizeof(T)) == 0; }
  /// The first row that differs; empty if none does.
  std::optional<std::size_t> difference() const {
    if (std::memcmp(map.data(), copy.data(), map.size_bytes()) == 0) return std::nullopt;
    std::size_t i = 0;
    while (same(i)) ++i;
    return i;
  }

  std::span<T> map;
  std::vector<T> copy;
};

template <typename T>
std::span<T> both_copies(std::span<T> first) {
  return {first.data(), 2 * first.size()};
}

/// All state that a decision reads or writes, twice.
struct Mirror {
  explicit Mirror(const kernel::MapSet& maps)
      : geometry(maps.geometry()),
        control({&maps.control(), 1}),
        plan_ep(both_copies(maps.plan_endpoints(0))),
        plan_room(both_copies(maps.plan_rooms(0))),
        plan_class(both_copies(maps.plan_classes(0))),
        buckets(maps.buckets()),
        conns(maps.connections()),
        conns_in(maps.connections_in()),
        conns_out(maps.connections_out()),
        streams(maps.streams()),
        count_ep(maps.endpoint_counters()),
        count_room(maps.room_counters()) {
    es_native = {.geometry = geometry,
                 .cpu = static_cast<__u32>(sched_getcpu()),
                 .control = control.copy.data(),
                 .ports = nullptr,
                 .plan_ep = plan_ep.copy.data(),
                 .plan_room = plan_room.copy.data(),
                 .plan_class = plan_class.copy.data(),
                 .buckets = buckets.copy.data(),
                 .conns = conns.copy.data(),
                 .conns_in = conns_in.copy.data(),
                 .conns_out = conns_out.copy.data(),
                 .streams = streams.copy.data(),
                 .count_ep = count_ep.copy.data(),
                 .count_room = count_room.copy.data()};
  }

  /// Which map differs and where; empty: all are the same. `endpoint`: compare only its counters.
  std::string difference(std::optional<std::uint32_t> endpoint) const {
    const auto text = [](const char* map, std::optional<std::size_t> row) {
      return row ? std::string(" ") + map + "[" + std::to_string(*row) + "]" : std::string();
    };
    std::string all =
        text("es_conns", conns.difference()) + text("es_conns_in", conns_in.difference()) +
        text("es_conns_out", conns_out.difference()) + text("es_streams", streams.difference()) +
        text("es_count_room", count_room.difference());
    if (!endpoint) return all + text("es_count_ep", count_ep.difference());
    const std::size_t row = es_native.cpu * geometry.endpoints + *endpoint;
    return count_ep.same(row) ? all : all + text("es_count_ep", row);
  }

  es_geometry geometry;
  Twin<es_control> control;
  Twin<es_plan_endpoint> plan_ep;
  Twin<es_plan_room> plan_room;
  Twin<es_plan_class> plan_class;
  Twin<es_bucket> buckets;
  Twin<es_connection> conns;
  Twin<es_flow_state> conns_in;
  Twin<es_flow_state> conns_out;
  Twin<es_stream_block> streams;
  Twin<es_endpoint_counters> count_ep;
  Twin<es_room_counters> count_room;
};

/// Makes the world's rows random. Each function writes one row of a copy and puts it into the map.
class Chaos {
 public:
  Chaos(Mirror& world, Dice& dice) : world_(world), dice_(dice) {}

  /// Time goes on, mostly by little; the plan changes, expires, or does neither.
  void control() {
    es_control& c = world_.control[0];
    if (dice_.percent(70)) c.clock_jiffies += dice_.below(dice_.percent(80) ? 12 : 2 * kHz);
    if (dice_.percent(2)) c.clock_jiffies += dice_.near(ES_IDLE_RESET_JIFFIES, 2);
    if (dice_.percent(1)) c.clock_jiffies = dice_.of<std::uint64_t>({0xffffff00u, 1u << 16, 300u});
    if (dice_.percent(10)) c.generation++;
    if (dice_.percent(1)) c.generation = dice_.of<std::uint32_t>({0, 1, 0xffffffffu});
    if (dice_.percent(20)) c.stream_hint_q8 = dice_.of<std::uint32_t>({0, 1, 128, 205, 256});
    if (dice_.percent(20)) c.event_sample_mask = dice_.of<std::uint32_t>({~0u, 0, 7, 1023});
    c.valid_until_jiffies =
        dice_.percent(75) ? c.clock_jiffies + dice_.below(500)
                          : c.clock_jiffies - std::min<std::uint64_t>(c.clock_jiffies,
                                                                      dice_.below(kHz + kHz / 4));
    c.stash_used = dice_.percent(90) ? stash_used_ : dice_.below(2);
    world_.control.put(0);
  }
  void remember_stash() { stash_used_ = world_.control[0].stash_used; }

  void endpoint(std::uint32_t number) {
    const std::size_t i = copy() * world_.geometry.endpoints + number;
    es_plan_endpoint& row = world_.plan_ep[i];
    row.protocol = ES_PROTOCOL_lane;
    row.flags = ES_EP_ANY_ADDRESS;
    if (dice_.percent(12)) row.flags |= ES_EP_SHADOW;
    if (dice_.percent(20)) row.flags |= ES_EP_REFUSE_JOINS;
    for (unsigned d = 0; d < ES_DIRECTIONS; ++d) {
      row.drop_mask[d] = dice_.sparse_mask();
      row.pass_mask[d] = dice_.sparse_mask();
      for (auto& quartiles : row.slot_quartiles[d])
        quartiles = dice_.percent(70) ? 0 : static_cast<std::uint8_t>(dice_.below(5));
    }
    row.lane_tiers = 0;
    for (unsigned lane = 0; lane < ES_LANES; ++lane)
      row.lane_tiers |= static_cast<std::uint16_t>(dice_.below(ES_TIERS) << (2 * lane));
    row.stranger_room = room_number();
    row.stranger_tier_cap = static_cast<std::uint8_t>(dice_.below(ES_TIERS));
    row.stranger_priority = static_cast<std::uint8_t>(dice_.word());
    row.handshakes_per_cpu = dice_.percent(30) ? ~0u : dice_.below(5);
    for (unsigned d = 0; d < ES_DIRECTIONS; ++d) row.lane_actions[d] = es_lane_actions_of(&row, d);
    row.generation = generation();
    world_.plan_ep.put(i);
  }

  void room(std::uint32_t number) {
    const std::size_t i = copy() * world_.geometry.rooms + number;
    es_plan_room& row = world_.plan_room[i];
    row.stream_cap = static_cast<std::uint8_t>(dice_.percent(40) ? 0 : dice_.below(10));
    if (dice_.percent(40)) row.stream_cap |= ES_ROOM_CLOSES;
    row.room_bytes_per_cpu = dice_.percent(60) ? ~0ull : dice_.below(4000);
    row.stream_samples_per_s = dice_.percent(50) ? 0 : dice_.below(60);
    row.stream_bytes_per_s = dice_.percent(60) ? 0 : dice_.below(20000);
    row.player_bytes_per_s = dice_.percent(60) ? 0 : dice_.below(40000);
    for (unsigned lane = 0; lane < ES_LANES; ++lane) {
      row.packet_cost[lane] = static_cast<std::uint16_t>(dice_.below(2000));
      row.byte_cost_q8[lane] = static_cast<std::uint16_t>(dice_.below(1000));
    }
    for (es_room_rules& rules : row.rules) room_rules(rules);
    row.generation = generation();
    world_.plan_room.put(i);
  }

  void contract_class(std::uint32_t number) {
    const std::size_t i = copy() * world_.geometry.classes + number;
    es_plan_class& row = world_.plan_class[i];
    row.tier_cap = static_cast<std::uint8_t>(dice_.percent(60) ? 0 : dice_.below(ES_TIERS));
    for (auto& direction : row.limit) {
      for (es_limit& limit : direction) {
        limit.packet_cost = dice_.percent(50) ? 0 : 65536 * kHz / (1 + dice_.below(1000));
        limit.byte_cost_q12 =
            dice_.percent(50)
                ? 0
                : static_cast<__u32>(4096ull * 65536 * kHz / (1000 + dice_.below(100000)));
        limit.packet_burst = burst();
        limit.byte_burst = burst();
      }
    }
    row.generation = generation();
    world_.plan_class.put(i);
  }

  /// Everything about a connection but its key.
  void connection(std::uint32_t record, std::uint16_t stream) {
    es_connection& c = world_.conns[record];
    const es_geometry& size = world_.geometry;
    c.policy.room = room_number();
    c.policy.contract_class =
        static_cast<std::uint8_t>(dice_.percent(99) ? dice_.below(size.classes) : dice_.word());
    c.policy.priority = static_cast<std::uint8_t>(dice_.word());
    c.policy.flags = dice_.percent(6) ? ES_CONN_EXEMPT : 0;
    if (dice_.percent(20)) c.policy.flags |= ES_CONN_THROTTLED;
    c.policy.weight_inverse_q8 =
        static_cast<std::uint16_t>(dice_.percent(60) ? 256 : 1 + dice_.below(65535));
    c.key.stream_block = dice_.percent(97) ? dice_.below(size.stream_blocks + 1) : dice_.below(100);
    const es_plan_room& room =
        world_.plan_room[copy() * size.rooms + std::min<std::uint32_t>(c.policy.room, 7)];
    const es_plan_class& limits =
        world_.plan_class[copy() * size.classes + (c.policy.contract_class & 3)];
    flow(world_.conns_in[record], room.rules[ES_IN], limits.limit[ES_IN]);
    flow(world_.conns_out[record], room.rules[ES_OUT], limits.limit[ES_OUT]);
    world_.conns.put(record);
    world_.conns_in.put(record);
    world_.conns_out.put(record);
    if (c.key.stream_block <= size.stream_blocks) streams(c.key.stream_block, room, stream);
  }

  /// What strangers of this CPU and a room have used up.
  void allowances(std::uint32_t endpoint, std::uint32_t room) {
    const std::size_t e = es_native.cpu * world_.geometry.endpoints + endpoint;
    es_cpu_scratch& scratch = world_.count_ep[e].scratch;
    scratch.allowance_generation = generation();
    scratch.handshakes = dice_.below(5);
    scratch.rejects = dice_.below(5);
    scratch.dead_man_error_q16 = static_cast<std::uint16_t>(dice_.word());
    scratch.ce_error_q8 = static_cast<std::uint16_t>(dice_.below(256));
    if (dice_.percent(5)) scratch.events = ~0u;
    for (auto& direction : scratch.stranger)
      for (es_thin& one : direction) thin(one);
    world_.count_ep.put(e);
    const std::size_t r = es_native.cpu * world_.geometry.rooms + room;
    world_.count_room[r].allowance_generation = generation();
    world_.count_room[r].stream_bytes_used = dice_.below(4000);
    world_.count_room.put(r);
  }

  /// The priority quartiles that the slots of all buckets show.
  void quartiles() {
    const std::size_t i = dice_.below(world_.geometry.buckets + 1);
    world_.buckets[i].tags = (world_.buckets[i].tags & ES_TAG_BYTES) | (dice_.word() << 48);
    world_.buckets.put(i);
  }

 private:
  std::uint64_t clock() const { return world_.control.copy[0].clock_jiffies; }
  std::uint32_t copy() const { return world_.control.copy[0].generation & 1; }
  /// The live generation; now and then another one: the row is torn.
  std::uint32_t generation() {
    const std::uint32_t live = world_.control[0].generation;
    return dice_.percent(98) ? live : dice_.of<std::uint32_t>({0, live + 1, live + 2, live - 2});
  }
  std::uint16_t room_number() {
    return static_cast<std::uint16_t>(dice_.percent(99) ? dice_.below(world_.geometry.rooms)
                                                        : dice_.word());
  }
  std::uint32_t burst() {
    return 65536 * (2 + dice_.below(dice_.percent(80) ? 100 : ES_BURST_JIFFIES_MAX - 2));
  }

  void room_rules(es_room_rules& rules) {
    rules.drop_mask = dice_.sparse_mask();
    rules.le_mask = dice_.sparse_mask();
    rules.ce_q8 = static_cast<std::uint8_t>(
        dice_.percent(60) ? 0 : dice_.of<std::uint64_t>({255, dice_.word()}));
    for (auto& threshold : rules.threshold)
      threshold = static_cast<std::uint8_t>(dice_.percent(70) ? 0 : dice_.below(256));
    rules.max_gap_jiffies = static_cast<std::uint16_t>(dice_.percent(50) ? 0 : dice_.below(60));
    rules.gap_spread_q8 = static_cast<std::uint8_t>(dice_.percent(50) ? 0 : dice_.word());
    for (auto& keep : rules.keep_q16) {
      keep = static_cast<std::uint16_t>(dice_.percent(60)   ? ES_KEEP_ALL
                                        : dice_.percent(10) ? 0
                                                            : dice_.word());
    }
    for (auto& interval : rules.min_interval_jiffies)
      interval = static_cast<std::uint16_t>(dice_.percent(70) ? 0 : dice_.below(30));
    for (es_level& level : rules.level) {
      level.burst = dice_.percent(40) ? 0 : dice_.below(100000);
      level.v0 = dice_.percent(98) ? dice_.below(1u << 30) : dice_.word();
      level.t0_jiffies = dice_.near(clock(), 20);
      level.rate_q16 =
          dice_.percent(98) ? static_cast<std::uint64_t>(dice_.below(1u << 30)) : dice_.word();
      level.begun =
          dice_.percent(60) ? 0 : static_cast<std::uint32_t>(level.v0) - dice_.below(1000);
    }
  }

  void thin(es_thin& state) {
    state.error_q16 = static_cast<std::uint16_t>(dice_.word());
    state.passed_jiffies = static_cast<std::uint16_t>(clock() - dice_.below(64));
  }

  std::uint32_t debt(std::uint32_t burst_q16) {
    const std::uint32_t now = static_cast<std::uint32_t>(clock()) << ES_DEBT_TICK_BITS;
    if (dice_.percent(10)) return static_cast<std::uint32_t>(dice_.word());
    if (dice_.percent(20)) return now - dice_.below(1u << 24);
    return static_cast<std::uint32_t>(now + dice_.word() % (burst_q16 + burst_q16 / 8 + 1));
  }

  void flow(es_flow_state& state, const es_room_rules& rules, const es_limit* limits) {
    for (unsigned tier = 0; tier < ES_TIERS; ++tier) {
      const es_limit& limit = limits[tier];
      state.contract[tier] =
          (static_cast<std::uint64_t>(debt(limit.byte_burst)) << 32) | debt(limit.packet_burst);
    }
    for (unsigned i = 0; i < 2; ++i) {
      const es_level& level = rules.level[i];
      const auto elapsed = static_cast<std::int64_t>(clock() - level.t0_jiffies);
      const std::uint64_t now =
          level.v0 +
          ((static_cast<std::uint64_t>(std::max<std::int64_t>(elapsed, 0)) * level.rate_q16) >> 16);
      state.level[i] =
          dice_.percent(95) ? dice_.near(now + level.burst / 2, level.burst + 1) : dice_.word();
    }
    for (es_thin& one : state.thin) thin(one);
    const std::uint32_t rest =
        dice_.percent(70)
            ? dice_.below(10)
            : dice_.of<std::uint32_t>({ES_IDLE_RESET_JIFFIES - 1, ES_IDLE_RESET_JIFFIES,
                                       ES_IDLE_RESET_JIFFIES / 2, 1u << 31, dice_.below(40000)});
    state.seen_jiffies = static_cast<std::uint32_t>(clock()) - rest;
  }

  /// A sliding window whose counts are around `limit`.
  std::uint64_t window(std::uint64_t limit) {
    const std::uint64_t second = clock() / kHz - dice_.below(dice_.percent(80) ? 2 : 5);
    const std::uint64_t top = dice_.percent(99) ? limit + 2 : 1u << 26;
    return ((second & 0xfff) << 52) | (dice_.word() % top << 26) | dice_.word() % top;
  }

  void streams(std::uint32_t block, const es_plan_room& room, std::uint16_t stream) {
    es_stream_block& row = world_.streams[block];
    row.player_bytes_window = window(room.player_bytes_per_s);
    const bool crowded = dice_.percent(25);  // by streams that play, and none of them is this one
    for (es_stream_slot& slot : row.slot) {
      slot.stream_id = dice_.percent(40) ? 0 : dice_.percent(40) ? stream + 1u : 1 + dice_.below(9);
      const bool closed = slot.stream_id != 0 && dice_.percent(15);
      if (closed) slot.stream_id |= ES_STREAM_CLOSED;
      const std::uint64_t kept = closed ? ES_STREAM_REOPEN_SECONDS : ES_STREAM_IDLE_SECONDS;
      const std::uint64_t rest =
          dice_.percent(80) ? dice_.below(3 * kept * kHz / 2) : dice_.near(kept * kHz, 1);
      slot.seen_jiffies = static_cast<std::uint32_t>(clock() - (crowded ? 0 : rest));
      if (crowded) slot.stream_id = stream + 2u + dice_.below(9);
      slot.samples_window = window(room.stream_samples_per_s);
      slot.bytes_window = window(room.stream_bytes_per_s);
    }
    for (es_stream_note& note : row.note) {
      const auto ago = [&](std::uint32_t most) {
        return static_cast<std::uint16_t>(clock() - dice_.below(most));
      };
      note.hinted_jiffies = ago(2 * kHz);
      note.refused_jiffies = ago(3 * kHz / 2);
      note.refused_since_jiffies = ago(2 * ES_STREAM_CLOSE_SECONDS * kHz);
    }
    world_.streams.put(block);
  }

  Mirror& world_;
  Dice& dice_;
  std::uint32_t stash_used_ = 0;
};

}  // namespace edgeshed::test
