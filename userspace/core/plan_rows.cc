// Rows of a plan: rooms first, classes next, then endpoints, whose masks summarise both.
#include "userspace/core/plan_rows.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "userspace/core/numbering.h"

namespace edgeshed::core {
namespace {

constexpr uint8_t kAllLanes = 0xff;
constexpr uint32_t kKeepOne = ES_KEEP_ALL;
/// Retry-after of a refusal when no rung has a longer one: the hold of the controller.
constexpr uint32_t kRetryAfterLeastMs = 1000;

constexpr uint8_t bit(uint32_t lane) { return static_cast<uint8_t>(1u << lane); }

/// What the contract classes mean for the masks, once for all endpoints: a connection of any class
/// may turn up at any endpoint.
struct ClassSummary {
  /// [direction][tier of a lane]: some class has a limit on what that tier becomes under its cap.
  bool limited[ES_DIRECTIONS][ES_TIERS] = {};
  /// [direction][tier of a lane]: bit per tier that it may become under the cap of some class.
  uint8_t reach[ES_DIRECTIONS][ES_TIERS] = {};
};

/// A cap binds what a remote claims; what the server sends keeps the tier of its lane.
uint8_t capped_tier(uint32_t direction, uint8_t tier, uint8_t cap) {
  return direction == ES_IN ? std::max(tier, cap) : tier;
}

/// What the rooms of one endpoint mean for its masks, per direction.
struct RoomSummary {
  uint8_t dropped_by_all = kAllLanes;
  uint8_t touched_by_any = 0;        // lanes that a room sheds, thins or marks
  bool tier_touched[ES_TIERS] = {};  // by a threshold or a level of any room
  bool marked = false;               // by CE in any room
  uint8_t threshold_least[kSheddableTiers] = {255, 255};
  bool governed = false;
};

bool has_limit(const ContractRate& rate) { return rate.packets_per_s > 0 || rate.bytes_per_s > 0; }

ClassSummary summarise_classes(const Model& model) {
  ClassSummary summary;
  for (uint32_t number = 0; number < model.classes.size(); ++number) {
    if (!class_exists(model, number)) continue;
    const ContractClass& contract = model.classes[number];
    for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
      for (uint8_t tier = 0; tier < ES_TIERS; ++tier) {
        const uint8_t capped = capped_tier(direction, tier, contract.tier_cap);
        summary.reach[direction][tier] |= bit(capped);
        summary.limited[direction][tier] |= has_limit(contract.rate[direction][capped]);
      }
    }
  }
  return summary;
}

bool has_governor(const struct es_plan_room& room) {
  return room.stream_cap != 0 || room.room_bytes_per_cpu != ~__u64{0} ||
         room.stream_samples_per_s != 0 || room.stream_bytes_per_s != 0 ||
         room.player_bytes_per_s != 0;
}

uint8_t lanes_touched(const struct es_room_rules& rules) {
  uint8_t lanes = rules.drop_mask | rules.le_mask;
  for (uint32_t lane = 0; lane < ES_LANES; ++lane) {
    if (rules.keep_q16[lane] < ES_KEEP_ALL) lanes |= bit(lane);
    if (lane >= kFirstThinLane && rules.min_interval_jiffies[lane - kFirstThinLane] != 0) {
      lanes |= bit(lane);
    }
  }
  return lanes;
}

RoomSummary summarise_rooms(const Endpoint& endpoint, const PlanRows& rows, uint32_t direction) {
  RoomSummary summary;
  for (const uint16_t number : endpoint.rooms) {
    const struct es_plan_room& room = rows.rooms[number];
    const struct es_room_rules& rules = room.rules[direction];
    summary.dropped_by_all &= rules.drop_mask;
    summary.touched_by_any |= lanes_touched(rules);
    summary.governed |= has_governor(room);
    summary.marked |= rules.ce_q8 != 0;
    for (uint32_t tier = 0; tier < kSheddableTiers; ++tier) {
      summary.tier_touched[tier + 1] |= rules.threshold[tier] != 0 || rules.level[tier].burst != 0;
      summary.threshold_least[tier] =
          std::min<uint8_t>(summary.threshold_least[tier], rules.threshold[tier]);
    }
  }
  return summary;
}

__u8 ce_q8(double share) { return static_cast<__u8>(std::lround(share * 255)); }

void fill_rules(const LadderEffects& effects, uint32_t direction, const PlanTiming& timing,
                struct es_room_rules& rules) {
  rules.ce_q8 = ce_q8(effects.ce_share);
  rules.max_gap_jiffies = jiffies_from_ms(effects.max_gap_ms, timing.hz);
  rules.gap_spread_q8 = static_cast<__u8>(std::lround(effects.gap_spread * 255));
  std::fill(std::begin(rules.keep_q16), std::end(rules.keep_q16), ES_KEEP_ALL);
  for (uint32_t i = 0; i < kThinLanes; ++i) {
    const LaneEffect& lane = effects.lane[i];
    const uint32_t number = kFirstThinLane + i;
    if (lane.paused) rules.drop_mask |= bit(number);
    if (lane.lower_effort) rules.le_mask |= bit(number);
    // A keep of 0 would pause the lane, and lose its guaranteed gap: 2^-16 is the least that does
    // not.
    const auto keep = static_cast<uint32_t>(lane.keep[direction] * kKeepOne);
    rules.keep_q16[number] = lane.paused ? 0 : std::clamp<uint32_t>(keep, 1, kKeepOne);
    rules.min_interval_jiffies[i] = jiffies_from_ms(lane.min_interval_ms, timing.hz);
  }
  for (uint32_t tier = 0; tier < kSheddableTiers; ++tier) {
    rules.threshold[tier] =
        static_cast<__u8>(std::clamp(std::ceil(effects.threshold[tier]), 0.0, 255.0));
  }
}

/// What a server that asks before it sends does itself: shares and intervals of its egress.
void leave_thinning_to_server(struct es_room_rules& rules) {
  for (uint32_t i = 0; i < kThinLanes; ++i) {
    const uint32_t lane = kFirstThinLane + i;
    if ((rules.drop_mask & bit(lane)) == 0) rules.keep_q16[lane] = ES_KEEP_ALL;
    rules.min_interval_jiffies[i] = 0;
  }
}

/// Where a level that the degree asks for began, as es_level.begun has it; 0: long ago.
__u32 begun_of(const struct es_level& before, const struct es_level& level) {
  // Young for long beside the packet that matters, and short beside the 32 bits.
  constexpr uint32_t kYoung = 256 * 256;
  const auto clock = static_cast<__u32>(level.v0);
  if (before.rate_q16 == 0) return clock;
  return before.begun != 0 && clock - before.begun < kYoung ? before.begun : 0;
}

/// The level that the degree asks for. Its burst stays while it is of the right size: debts are
/// clamped to the burst, so that one that follows a rate up and down gives tokens away (the
/// simulator passed 5.8 times a rate that changed 60 times a second).
struct es_level degree_level(double tokens_per_s, const struct es_level& before,
                             const PlanTiming& timing) {
  const struct es_level wanted = level_of({tokens_per_s, 0}, timing.hz);
  const bool stays = before.burst >= wanted.burst && before.burst <= 8 * uint64_t{wanted.burst};
  const uint32_t burst = stays ? before.burst : 2 * wanted.burst;
  struct es_level level = carry_level(before, wanted.rate_q16, burst, timing.now_jiffies);
  if (static_cast<__u32>(level.v0) == 0) ++level.v0;  // 0 would mean "not young"
  level.begun = begun_of(before, level);
  return level;
}

/// The stricter of a room's own level and the degree's, its clock carried.
struct es_level level_in_force(const LevelRate& configured, double tokens_per_s,
                               const struct es_level& before, const PlanTiming& timing) {
  const bool own = configured.tokens_per_s > 0;
  if (tokens_per_s > 0 && (!own || tokens_per_s < configured.tokens_per_s)) {
    return degree_level(tokens_per_s, before, timing);
  }
  const struct es_level wanted = level_of(configured, timing.hz);
  return carry_level(before, wanted.rate_q16, wanted.burst, timing.now_jiffies);
}

/// Index: tier.
using ContractFactors = std::array<double, ES_TIERS>;

ContractFactors contract_factors(const ShardState& shard) {
  const double factor = shard.load_rung > 0 ? kContractFactorShedding : kContractFactorCalm;
  ContractFactors factors = {1, factor, factor};
  for (uint32_t i = 0; i < kSheddableTiers; ++i) {
    if (shard.scarce[i]) factors[i + 1] = kContractFactorScarce;
  }
  return factors;
}

/// What the tick decided about one room beside its shard's rung.
struct RoomExtras {
  bool server_thins = false;
  TierLevels levels = {};
  /// Congestion follows the shard's pressure, and a rung by hand is none.
  double ce_share_most = 1;
};

RoomExtras extras_of(const PlanExtras& extras, std::span<const ShardState> shards, size_t room,
                     uint32_t shard) {
  RoomExtras own;
  own.ce_share_most = shards[shard].effects.ce_share;
  own.server_thins = room < extras.server_thins.size() && extras.server_thins[room] != 0;
  const bool held = room < extras.overrides.size() && extras.overrides[room].holds();
  if (!held && shard < extras.levels.size()) own.levels = extras.levels[shard];
  return own;
}

void fill_room(const Room& room, const LadderEffects& effects, const PlanTiming& timing,
               const RoomExtras& extras, const struct es_plan_room* previous,
               struct es_plan_room& row) {
  struct es_plan_room next = {};
  next.generation = 1;
  set_name_hash(next, name_hash(room.name));
  next.stream_cap = room.stream_cap | (room.closes_streams ? ES_ROOM_CLOSES : 0);
  next.room_bytes_per_cpu =
      room.room_bytes_per_s == 0 ? ~__u64{0} : allowance(room.room_bytes_per_s, timing);
  next.stream_samples_per_s = room.stream_samples_per_s;
  next.stream_bytes_per_s = room.stream_bytes_per_s;
  next.player_bytes_per_s = room.player_bytes_per_s;
  std::fill(std::begin(next.packet_cost), std::end(next.packet_cost), kPacketCost);
  for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
    struct es_room_rules& rules = next.rules[direction];
    fill_rules(effects, direction, timing, rules);
    rules.ce_q8 = std::min(rules.ce_q8, ce_q8(extras.ce_share_most));
    for (uint32_t tier = 0; tier < kSheddableTiers; ++tier) {
      struct es_level before = {0, timing.now_jiffies, 0, 0, 0};
      if (previous != nullptr) before = previous->rules[direction].level[tier];
      const double tokens_per_s = direction == ES_IN ? extras.levels[tier] : 0;
      rules.level[tier] = level_in_force(room.level[direction][tier], tokens_per_s, before, timing);
    }
  }
  if (extras.server_thins) leave_thinning_to_server(next.rules[ES_OUT]);
  row = next;  // last: `previous` may be this row
}

void fill_class(const ContractClass& contract, const ContractFactors& factors, uint32_t hz,
                struct es_plan_class& row) {
  row = {};
  row.generation = 1;
  row.name_hash = contract.name.empty() ? 0 : name_hash(contract.name);
  row.tier_cap = contract.tier_cap;
  for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
    for (uint32_t tier = 0; tier < ES_TIERS; ++tier) {
      row.limit[direction][tier] =
          contract_limit(contract.rate[direction][tier], factors[tier], hz);
    }
  }
}

/// True when some packet of the lane might be shed, limited or marked after a look-up.
bool needs_lookup(const Endpoint& endpoint, const ClassSummary& classes, const RoomSummary& rooms,
                  uint32_t direction, uint8_t lane) {
  const uint8_t tier = es_lane_tier(endpoint.lane_tiers, lane);
  if (lane == ES_LANE_join && direction == ES_IN) return true;  // capped, and refused by rung 4
  if (lane == ES_LANE_stream && direction == ES_IN && rooms.governed) return true;
  if (classes.limited[direction][tier]) return true;
  // Critical that only a cap lowers may go without its CE mark: a mark is advice, a look-up costs.
  if (tier != ES_TIER_critical && rooms.marked) return true;
  // What the tier may become: under the caps of the classes, and for a stranger.
  const uint8_t reach = classes.reach[direction][tier] |
                        bit(capped_tier(direction, tier, endpoint.stranger_tier_cap));
  if (reach == bit(ES_TIER_critical)) return false;
  if ((rooms.touched_by_any & bit(lane)) != 0) return true;
  for (uint8_t reached = ES_TIER_standard; reached < ES_TIERS; ++reached) {
    if ((reach & bit(reached)) != 0 && rooms.tier_touched[reached]) return true;
  }
  return false;
}

/// Of an endpoint's connections, what keeps the masks from deciding for all.
struct Singled {
  bool exempt = false;     ///< some are never shed
  bool throttled = false;  ///< to some, best-effort is dropped
};

void fill_masks(const Endpoint& endpoint, const ClassSummary& classes, const RoomSummary& rooms,
                uint32_t direction, const Singled& singled, struct es_plan_endpoint& row) {
  const bool sheds_unseen = !singled.exempt;
  for (uint8_t lane = 0; lane < ES_LANES; ++lane) {
    const bool best_effort = es_lane_tier(endpoint.lane_tiers, lane) == ES_TIER_best_effort;
    const bool dropped = (rooms.dropped_by_all & bit(lane)) != 0;
    if (dropped && best_effort && sheds_unseen) {
      row.drop_mask[direction] |= bit(lane);
    } else if (best_effort && singled.throttled && direction == ES_OUT) {
      continue;  // looked up
    } else if (!needs_lookup(endpoint, classes, rooms, direction, lane)) {
      row.pass_mask[direction] |= bit(lane);
    }
  }
  for (uint32_t tier = 0; tier < kSheddableTiers; ++tier) {
    // A contract is charged before the ladder sheds, so its packets must reach their record.
    if (!sheds_unseen || classes.limited[direction][tier + 1]) continue;
    // The slot does not know its class: only what holds under every cap may shed here.
    uint8_t least = rooms.threshold_least[tier];
    if ((classes.reach[direction][tier + 1] & bit(ES_TIER_best_effort)) != 0) {
      least = std::min(least, rooms.threshold_least[kTierBestEffort]);
    }
    row.slot_quartiles[direction][tier] = least >> 6;
  }
}

uint8_t endpoint_flags(const Model& model, const Endpoint& endpoint, Mode host_mode,
                       std::span<const ShardState> shards, const PlanExtras& extras) {
  // A join is refused only when no room of the endpoint could take it.
  const bool refuse = std::all_of(endpoint.rooms.begin(), endpoint.rooms.end(), [&](uint16_t room) {
    return room_in_force(model, shards, extras.overrides, room).effects.refuse_joins;
  });
  uint32_t flags = 0;
  if (is_shadow(host_mode, endpoint)) flags |= ES_EP_SHADOW;
  if (endpoint.any_address) flags |= ES_EP_ANY_ADDRESS;
  if (endpoint.crc) flags |= ES_EP_ENET_CRC;
  if (endpoint.rejects) flags |= ES_EP_REJECTS;
  if (refuse) flags |= ES_EP_REFUSE_JOINS;
  return static_cast<uint8_t>(flags);
}

__u16 tens_of_ms(double seconds) {
  return static_cast<__u16>(std::clamp(std::ceil(seconds * 100), 0.0, 65535.0));
}

/// Of the rooms of an endpoint the one that asks for most patience.
void fill_retries(const Model& model, const Endpoint& endpoint, std::span<const ShardState> shards,
                  const PlanExtras& extras, struct es_plan_endpoint& row) {
  uint32_t join_ms = kRetryAfterLeastMs;
  RetryAfter standard;
  for (const uint16_t room : endpoint.rooms) {
    const uint32_t shard = model.rooms[room].shard;
    const uint8_t rung = room_in_force(model, shards, extras.overrides, room).rung;
    join_ms = std::max(join_ms, code_info(rung_code(rung)).retry_after_ms);
    if (shard >= extras.retries.size()) continue;
    standard.least_s = std::max(standard.least_s, extras.retries[shard].least_s);
    standard.spread_s = std::max(standard.spread_s, extras.retries[shard].spread_s);
  }
  // Over as long again, and never longer than a player waits.
  const double join_s = std::min(join_ms / 1000.0, kRetryMostS / 2);
  row.retry_join_ms = static_cast<__u32>(join_s * 1000);
  row.retry_join_spread_10ms = tens_of_ms(join_s);
  row.retry_standard_10ms = tens_of_ms(standard.least_s);
  row.retry_standard_spread_10ms = tens_of_ms(standard.spread_s);
}

void fill_endpoint(const Model& model, const Endpoint& endpoint, std::span<const ShardState> shards,
                   const PlanTiming& timing, const PlanExtras& extras, const ClassSummary& classes,
                   PlanRows& rows) {
  const Mode host_mode = extras.host_mode == Mode::unset ? model.host.mode : extras.host_mode;
  const size_t index = endpoint.number - size_t{1};
  const uint32_t allowed = index < extras.exempt.size() ? extras.exempt[index] : 0;
  const uint32_t throttled = index < extras.throttled.size() ? extras.throttled[index] : 0;
  const Singled singled = {endpoint.exempt_connections + allowed != 0, throttled != 0};
  struct es_plan_endpoint& row = rows.endpoints[endpoint.number];
  row = {};
  row.generation = 1;
  row.protocol = endpoint.protocol;
  row.name_hash = name_hash(endpoint.name);
  row.flags = endpoint_flags(model, endpoint, host_mode, shards, extras);
  row.next_same_port = endpoint.next_same_port;
  row.default_lane = endpoint.default_lane;
  row.local_addr_hi = endpoint.address.hi;
  row.local_addr_lo = endpoint.address.lo;
  row.lane_tiers = endpoint.lane_tiers;
  row.stranger_room = endpoint.stranger_room;
  row.stranger_tier_cap = endpoint.stranger_tier_cap;
  row.stranger_priority = endpoint.stranger_priority;
  row.handshakes_per_cpu = static_cast<__u32>(allowance(endpoint.handshakes_per_s, timing));
  fill_retries(model, endpoint, shards, extras, row);
  row.classifier = endpoint.classifier;
  for (uint32_t direction = 0; direction < ES_DIRECTIONS; ++direction) {
    fill_masks(endpoint, classes, summarise_rooms(endpoint, rows, direction), direction, singled,
               row);
  }
}

}  // namespace

RoomInForce room_in_force(const Model& model, std::span<const ShardState> shards,
                          std::span<const RoomOverride> overrides, size_t room) {
  if (room < overrides.size() && overrides[room].holds()) {
    return {overrides[room].rung, model.law.ladder[overrides[room].rung]};
  }
  const ShardState& shard = shards[model.rooms[room].shard];
  return {shard.rung, shard.effects};
}

void fill_plan_rows(const Model& model, std::span<const ShardState> shards,
                    const PlanTiming& timing, std::span<const struct es_plan_room> previous,
                    PlanRows& rows, const PlanExtras& extras) {
  assert(shards.size() == model.shards.size());
  assert(model.rooms.size() <= rows.rooms.size());
  assert(model.classes.size() <= rows.classes.size());
  assert(model.endpoints.size() < rows.endpoints.size());

  for (size_t i = 0; i < rows.rooms.size(); ++i) {
    if (i >= model.rooms.size() || !exists(model.rooms[i])) {
      rows.rooms[i] = {};
      continue;
    }
    const bool known = i < previous.size() && previous[i].generation != 0;
    const uint32_t shard = model.rooms[i].shard;
    const RoomInForce room = room_in_force(model, shards, extras.overrides, i);
    fill_room(model.rooms[i], room.effects, timing, extras_of(extras, shards, i, shard),
              known ? &previous[i] : nullptr, rows.rooms[i]);
  }

  // Classes belong to no shard: the shard that is worst off makes the contract stand.
  ContractFactors factors = {1, kContractFactorCalm, kContractFactorCalm};
  for (const ShardState& shard : shards) {
    const ContractFactors own = contract_factors(shard);
    for (uint32_t tier = 0; tier < ES_TIERS; ++tier) {
      factors[tier] = std::min(factors[tier], own[tier]);
    }
  }
  for (size_t i = 0; i < rows.classes.size(); ++i) {
    if (i < model.classes.size() && class_exists(model, static_cast<uint32_t>(i))) {
      fill_class(model.classes[i], factors, timing.hz, rows.classes[i]);
    } else {
      rows.classes[i] = {};
    }
  }

  std::fill(rows.endpoints.begin(), rows.endpoints.end(), es_plan_endpoint{});
  const ClassSummary classes = summarise_classes(model);
  for (const Endpoint& endpoint : model.endpoints) {
    if (!exists(endpoint)) continue;
    fill_endpoint(model, endpoint, shards, timing, extras, classes, rows);
  }
}

void fill_ports_page(const Model& model, struct es_ports_page& page) {
  page = {};
  for (const Endpoint& endpoint : model.endpoints) {
    if (!exists(endpoint)) continue;
    page.endpoint[endpoint.port] = first_endpoint_of_port(model, endpoint.port);
  }
}

}  // namespace edgeshed::core
