/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Step four: what becomes of a classified packet. Pure: reads plan and table rows through
 * bpf/tables.h, writes only debts, thinning state and governor windows; compiles natively, where
 * the tests run it beside the real program. Sends, counts and rewrites nothing.
 *
 * Order of refusal: contract -> governor -> ladder (lane, priority, interval, thinning) -> fair
 * share. Critical meets only its own contract: no line below can shed it by load.
 */
#ifndef EDGESHED_BPF_DECIDE_H
#define EDGESHED_BPF_DECIDE_H

#include "bpf/govern.h"
#include "bpf/packet.h"
#include "bpf/quota.h"
#include "bpf/slots.h"
#include "bpf/tables.h"
#include "bpf/thin.h"

#define ES_ECT_MASK 3 /* ECN bits of the traffic class: 1 and 2 are ECT, 3 is CE */

/** Everything a decision reads besides the packet, fetched once. Holds no pointers, so that it can
 * cross into a separately verified function. */
struct es_moment {
  __u64 jiffies;
  __u64 valid_until_jiffies;
  __u32 generation;
  __u32 stash_used;
};

ES_INLINE int plan_valid(const struct es_moment* moment) {
  return moment->jiffies <= moment->valid_until_jiffies;
}

/** A room's rules for one lane, copied out of one plan so that no packet sees two. */
struct es_lane_rules {
  struct es_level level;
  struct es_thin_rule thin;
  __u32 packet_cost, byte_cost_q8;
  __u8 paused, threshold, mark_le, ce_q8;
};

/** Copies the rules of a lane; `tier` is standard or best-effort (critical reads standard's,
 * unused). Returns 0 when the row belongs to another plan. */
ES_INLINE int lane_rules_copy(const struct es_plan_room* room, __u8 direction, __u8 lane, __u8 tier,
                              __u32 generation, struct es_lane_rules* out) {
  const struct es_room_rules* rules = &room->rules[direction & 1];
  __u32 i = lane & 7, t = tier == ES_TIER_best_effort;
  out->level = rules->level[t];
  out->thin.keep_q16 = rules->keep_q16[i];
  out->thin.max_gap_jiffies = rules->max_gap_jiffies;
  out->thin.gap_spread_q8 = rules->gap_spread_q8;
  out->thin.min_interval_jiffies = i >= 4 ? rules->min_interval_jiffies[i & 3] : 0;
  out->paused = (rules->drop_mask >> i) & 1;
  out->mark_le = (rules->le_mask >> i) & 1;
  out->ce_q8 = rules->ce_q8;
  out->threshold = rules->threshold[t];
  out->packet_cost = room->packet_cost[i];
  out->byte_cost_q8 = room->byte_cost_q8[i];
  return ES_READ(room->generation) == generation;
}

/** A connection's own phase (Q16), the same at each of its packets: what began for all connections
 * at once begins for each at another time. Neighbouring ports are far apart (golden ratio). */
ES_INLINE __u32 phase_of(const struct es_packet* packet) {
  __u64 address = packet->remote.addr_hi ^ packet->remote.addr_lo;
  __u32 mixed = (__u32)address ^ (__u32)(address >> 32) ^ packet->remote.port;
  return (mixed * 0x9e3779b1u) >> 16;
}

/** The ladder inside a room: lane, priority, minimum interval, thinning. What a rung does to lanes
 * is meant for best-effort; standard is refused by priority, with a reason, wherever it travels. */
ES_INLINE __u8 ladder_judge(const struct es_lane_rules* rules, const struct es_packet* packet,
                            struct es_thin* thin, __u64 jiffies) {
  int best_effort = packet->tier == ES_TIER_best_effort;
  if (best_effort && rules->paused) return ES_REASON_room_paused;
  if (packet->priority < rules->threshold) return ES_REASON_priority;
  if (!best_effort) return ES_UNDECIDED;
  __u32 own_phase = ES_UNLIKELY(rules->thin.gap_spread_q8) ? phase_of(packet) : 0;
  return thin_judge(thin, rules->thin, (__u16)jiffies, own_phase);
}

/** Passed, and how: congestion experienced on ECN-capable packets, lower effort, or unmarked. */
ES_INLINE __u8 admit_marked(const struct es_lane_rules* rules, const struct es_packet* packet,
                            struct es_cpu_scratch* scratch) {
  __u8 ecn = packet->traffic_class & ES_ECT_MASK;
  if (ES_UNLIKELY(rules->ce_q8) && (ecn == 1 || ecn == 2)) {
    __u32 sum = scratch->ce_error_q8 + rules->ce_q8;
    scratch->ce_error_q8 = sum % 255;
    if (sum >= 255) return ES_REASON_marked_ce;
  }
  if (rules->mark_le && packet->tier == ES_TIER_best_effort) return ES_REASON_marked_le;
  return ES_REASON_admitted;
}

/** Lowers a claim to what is allowed; critical that is lowered counts as demoted. */
ES_INLINE void lower_claim(struct es_packet* packet, __u8 tier) {
  if (packet->tier >= tier) return;
  if (packet->tier == ES_TIER_critical) packet->row = ES_ROW_DEMOTED;
  packet->tier = tier;
}

/** The contract of a connection. Critical beyond it goes on as standard, under standard's contract.
 * ES_UNDECIDED: within. */
ES_INLINE __u8 contract_judge(struct es_packet* packet, struct es_flow_state* state,
                              const struct es_plan_class* row, const struct es_moment* moment) {
  __u32 now = (__u32)moment->jiffies << ES_DEBT_TICK_BITS;
  __u32 tier = packet->tier;
  for (int attempt = 0; attempt < 2; attempt++) {
    ES_OPAQUE(tier);
    tier &= 3;
    if (tier >= ES_TIERS) return ES_REASON_no_record;
    const struct es_limit limit = row->limit[packet->direction & 1][tier];
    if (ES_READ(row->generation) != moment->generation) return ES_REASON_torn_plan;
    if (contract_charge(&state->contract[tier], &limit, packet->segments, packet->ip_bytes, now))
      return ES_UNDECIDED;
    if (tier != ES_TIER_critical) break;
    tier = ES_TIER_standard;
    lower_claim(packet, ES_TIER_standard);
  }
  return ES_REASON_contract;
}

ES_INLINE __u8 fair_share_judge(const struct es_lane_rules* rules, const struct es_packet* packet,
                                struct es_flow_state* state, __u32 weight_inverse_q8,
                                __u64 jiffies) {
  __u64 cost = (__u64)packet->segments * rules->packet_cost +
               (((__u64)packet->ip_bytes * rules->byte_cost_q8) >> 8);
  __u64* debt = &state->level[packet->tier == ES_TIER_best_effort];
  __u32 phase = rules->level.begun ? phase_of(packet) : 0;
  return level_charge(debt, &rules->level, (cost * weight_inverse_q8) >> 8, jiffies, phase)
             ? ES_UNDECIDED
             : ES_REASON_fair_share;
}

/** Is this packet (not a critical one) a player's sample, on which the governor has a word? */
ES_INLINE int is_governed(const struct es_connection* connection, const struct es_packet* packet) {
  return ES_UNLIKELY(packet->has_stream) && packet->direction == ES_IN &&
         connection->key.stream_block;
}

/** The stream governor's word on a packet; ES_UNDECIDED: no stream, or accepted. */
ES_INLINE __u8 govern_judge(const struct es_connection* connection, struct es_packet* packet,
                            const struct es_plan_room* room, const struct es_moment* moment) {
  if (packet->tier == ES_TIER_critical || !is_governed(connection, packet)) return ES_UNDECIDED;
  struct es_control* control = table_control();
  struct es_govern_moment now = {.jiffies = moment->jiffies,
                                 .hz = es_geometry_of().hz,
                                 .generation = moment->generation,
                                 .plan_valid = plan_valid(moment),
                                 .hint_q8 = control ? ES_READ(control->stream_hint_q8) : 0};
  int word = es_govern_sample(table_stream_block(connection->key.stream_block),
                              table_count_room(packet->room), room, packet, &now);
  packet->hinted = word == ES_GOVERN_HINT;
  return packet->hinted ? ES_UNDECIDED : (__u8)word;
}

/** What a room decides about a packet within its contract: ladder, fair share, marks. */
ES_SUBPROGRAM int judge_room(const struct es_packet* packet, struct es_flow_state* state,
                             const struct es_plan_room* room, const struct es_moment* moment,
                             __u32 weight_inverse_q8) {
  struct es_lane_rules rules;
  struct es_endpoint_counters* count = table_count_endpoint(packet->endpoint);
  if (!lane_rules_copy(room, packet->direction, packet->lane, packet->tier, moment->generation,
                       &rules))
    return ES_REASON_torn_plan;
  if (!count) return ES_REASON_no_record;
  if (packet->tier != ES_TIER_critical) {
    __u8 reason = ladder_judge(&rules, packet, &state->thin[packet->lane & 3], moment->jiffies);
    if (reason != ES_UNDECIDED) return reason;
    reason = fair_share_judge(&rules, packet, state, weight_inverse_q8, moment->jiffies);
    if (reason != ES_UNDECIDED) return reason;
  }
  return admit_marked(&rules, packet, &count->scratch);
}

/** The first two rungs of the ladder, before the state's cache line is touched: what most packets
 * that a room sheds die of. Asked only where neither contract nor governor could refuse, so the
 * reason is the one that the whole way down would give. ES_UNDECIDED: go the whole way (also under
 * a torn plan, which the whole way reports). */
ES_INLINE __u8 refuse_early(const struct es_connection* connection, const struct es_packet* packet,
                            const struct es_plan_room* room, const struct es_plan_class* row,
                            __u32 generation) {
  __u32 direction = packet->direction & 1, best_effort = packet->tier == ES_TIER_best_effort;
  const struct es_limit* limit =
      &row->limit[direction][best_effort ? ES_TIER_best_effort : ES_TIER_standard];
  const struct es_room_rules* rules = &room->rules[direction];
  if (!best_effort && packet->tier != ES_TIER_standard) return ES_UNDECIDED;
  if (is_governed(connection, packet)) return ES_UNDECIDED;
  __u32 paused = best_effort & (rules->drop_mask >> (packet->lane & 7));
  __u32 low = packet->priority < rules->threshold[best_effort];
  if (ES_LIKELY(!(paused | low)) || (limit->packet_cost | limit->byte_cost_q12))
    return ES_UNDECIDED;
  if (ES_READ(row->generation) != generation || ES_READ(room->generation) != generation)
    return ES_UNDECIDED;
  return paused ? ES_REASON_room_paused : ES_REASON_priority;
}

/** Notes how far a player's acknowledgement is behind what it was sent. Only packets that are
 * looked up come by: an acknowledgement of what nobody saw go out is one of the newest, and shows
 * what that is; one that is far from what was seen tells nothing. */
ES_INLINE void watch_acked(const struct es_packet* packet, struct es_ack_watch* acks,
                           const struct es_moment* moment) {
  __u16 sent = ES_READ(acks->sent);
  __u32 lag = (__u16)(sent - packet->number), ahead = (__u16)(packet->number - sent);
  if (sent && ahead && ahead <= ES_ACK_LAG_MAX) ES_WRITE(acks->sent, packet->number);
  if (!sent || lag > ES_ACK_LAG_MAX) lag = 0;
  if (packet->is_time) lag /= ES_ACK_LAG_UNIT_MS;
  __u8 at = (__u8)(moment->jiffies >> ES_ACK_AT_SHIFT);
  ES_WRITE(acks->lag, (__u8)(lag > 255 ? 255 : lag));
  ES_WRITE(acks->acked_at, at ? at : 1);
}

/** A packet of a connection. */
ES_INLINE __u8 judge_connection(struct es_packet* packet, struct es_connection* connection,
                                __u32 record, const struct es_moment* moment) {
  const __u64 policy_word = ES_READ(*(const __u64*)&connection->policy);
  struct es_policy policy;
  __builtin_memcpy(&policy, &policy_word, sizeof(policy));
  struct es_plan_room* room = table_plan_room(moment->generation, policy.room);
  struct es_plan_class* contract_class =
      table_plan_class(moment->generation, policy.contract_class);
  if (!room || !contract_class) return ES_REASON_no_record;
  packet->record = record + 1;
  packet->room = policy.room;
  packet->priority = policy.priority;
  if (ES_UNLIKELY(policy.flags & ES_CONN_EXEMPT)) return ES_REASON_admitted;

  if (packet->direction == ES_IN) lower_claim(packet, contract_class->tier_cap);
  packet->arrived = 1;
  if (ES_UNLIKELY(policy.flags & ES_CONN_THROTTLED) && packet->direction == ES_OUT &&
      packet->tier == ES_TIER_best_effort)
    return ES_REASON_backpressure_throttle;
  __u8 reason = refuse_early(connection, packet, room, contract_class, moment->generation);
  if (reason != ES_UNDECIDED) return reason;
  struct es_flow_state* state =
      packet->direction == ES_IN ? table_flow_in(record) : table_flow_out(record);
  packet->arrived = 0;
  if (!state) return ES_REASON_no_record;
  flow_seen(state, moment->jiffies);
  if (packet->numbered && packet->direction == ES_IN) {
    struct es_flow_state* out = table_flow_out(record);
    if (out) watch_acked(packet, &out->acks, moment);
  }
  reason = contract_judge(packet, state, contract_class, moment);
  if (reason != ES_UNDECIDED) return reason;
  packet->arrived = 1;
  reason = govern_judge(connection, packet, room, moment);
  if (reason != ES_UNDECIDED) return reason;
  reason = (__u8)judge_room(packet, state, room, moment, policy.weight_inverse_q8);
  if (packet->numbered && packet->direction == ES_OUT &&
      es_reason_verdict(reason) < ES_VERDICT_drop)
    ES_WRITE(state->acks.sent, packet->number ? packet->number : 1);
  return reason;
}

/** Starts a new generation's allowances on this CPU, if the plan moved on. */
ES_INLINE void allowance_roll(struct es_cpu_scratch* scratch, __u32 generation) {
  if (scratch->allowance_generation == generation) return;
  scratch->allowance_generation = generation;
  scratch->handshakes = 0;
  scratch->rejects = 0;
}

/** Handshakes of strangers: refused from rung 4, capped always. The caps are the endpoint's. */
ES_INLINE __u8 judge_join(const struct es_moment* moment, struct es_cpu_scratch* scratch,
                          int refused, __u32 per_cpu) {
  if (refused) return ES_REASON_join_refused;
  allowance_roll(scratch, moment->generation);
  if (plan_valid(moment) && scratch->handshakes >= per_cpu) return ES_REASON_handshake_cap;
  scratch->handshakes++;
  return ES_REASON_stranger;
}

/** What an endpoint's row says to the table stage, copied out of one plan. */
struct es_stranger_rules {
  __u32 handshakes_per_cpu;
  __u16 room;
  __u8 tier_cap, priority, refuse_joins;
  __u8 slot_quartiles; /* of the packet's direction and tier */
};

/** A packet of a remote that is no connection: its claim is capped, it has no contract, it is
 * thinned with all other strangers of this CPU. What the server sends to one is not capped. */
ES_INLINE __u8 judge_stranger(struct es_packet* packet, const struct es_stranger_rules* stranger,
                              const struct es_moment* moment, struct es_cpu_scratch* scratch) {
  struct es_plan_room* room = table_plan_room(moment->generation, stranger->room);
  struct es_lane_rules rules;
  if (!room) return ES_REASON_no_record;
  packet->room = stranger->room;
  packet->priority = stranger->priority;
  packet->arrived = 1;
  if (packet->direction == ES_IN) {
    if (packet->lane == ES_LANE_join)
      return judge_join(moment, scratch, stranger->refuse_joins, stranger->handshakes_per_cpu);
    lower_claim(packet, stranger->tier_cap);
  }
  if (!lane_rules_copy(room, packet->direction, packet->lane, packet->tier, moment->generation,
                       &rules))
    return ES_REASON_torn_plan;
  if (packet->tier == ES_TIER_critical) return ES_REASON_stranger;
  struct es_thin* thin = &scratch->stranger[packet->direction & 1][packet->lane & 3];
  __u8 reason = ladder_judge(&rules, packet, thin, moment->jiffies);
  return reason != ES_UNDECIDED ? reason : ES_REASON_stranger;
}

/** Dead-man switch: under an expired plan, what the daemon's load decisions would shed opens
 * linearly over ES_DEAD_MAN_OPEN_SECONDS. Contracts and stream windows stay. */
ES_INLINE __u8 open_if_expired(__u8 reason, const struct es_moment* moment,
                               struct es_cpu_scratch* scratch) {
  __u64 overdue, opening = (__u64)ES_DEAD_MAN_OPEN_SECONDS * es_geometry_of().hz;
  __u8 outcome = es_reason_outcome(reason);
  if (ES_LIKELY(plan_valid(moment))) return reason;
  if (outcome != ES_OUTCOME_ladder && outcome != ES_OUTCOME_fair_share &&
      outcome != ES_OUTCOME_admission)
    return reason;
  overdue = moment->jiffies - moment->valid_until_jiffies;
  if (overdue >= opening ||
      diffuse(&scratch->dead_man_error_q16, (__u32)(overdue * 65536 / opening)))
    return ES_REASON_dead_man;
  return reason;
}

/** Stage one: the endpoint's masks, flat in the number of connections. */
ES_INLINE __u8 judge_lane(const struct es_packet* packet, __u8 drop_mask, __u8 pass_mask) {
  __u8 bit = (__u8)(1u << (packet->lane & 7));
  if (packet->tier == ES_TIER_best_effort && (drop_mask & bit)) return ES_REASON_lane_paused;
  return pass_mask & bit ? ES_REASON_class_pass : ES_UNDECIDED;
}

/** The connection of a key and its record's number, off the common path; NULL: none. */
ES_SUBPROGRAM struct es_connection* connection_of(const struct es_key* key, __u32* record) {
  struct es_control* control = table_control();
  if (!control) return 0;
  struct es_slot_hit hit = slots_find(key, 0, ES_READ(control->stash_used));
  *record = hit.record;
  return hit.connection;
}

/** The state of the connection that a refused packet came from; NULL: a stranger's. Looked up only
 * where the decision did not: on the slot alone. */
ES_INLINE struct es_flow_state* refused_flow(const struct es_packet* packet) {
  __u32 record = packet->record - 1;
  if (!packet->record && !connection_of(&packet->remote, &record)) return 0;
  return table_flow_in(record);
}

/** One in ES_SAMPLE_EVERY class-decided packets is attributed to its room all the same. */
ES_GLOBAL_SUBPROGRAM int es_sample_room(const struct es_packet* packet, __u32 stranger_room) {
  if (!packet) return 0;
  __u32 record = 0;
  struct es_connection* connection = connection_of(&packet->remote, &record);
  __u32 room = connection ? connection->policy.room : stranger_room;
  struct es_room_counters* count = table_count_room(room);
  if (count) count->sampled[packet->direction & 1][packet->lane & 7]++;
  return 0;
}

/** Stage two: what the masks leave undecided goes to the slot table. Returns a reason. */
ES_GLOBAL_SUBPROGRAM int es_judge_by_table(struct es_packet* packet, const struct es_moment* moment,
                                           const struct es_stranger_rules* stranger) {
  if (!packet || !moment || !stranger) return ES_REASON_no_record;
  struct es_endpoint_counters* count = table_count_endpoint(packet->endpoint);
  if (!count) return ES_REASON_no_record;
  struct es_slot_hit hit =
      slots_find(&packet->remote, stranger->slot_quartiles, moment->stash_used);
  if (hit.by_slot) return ES_REASON_slot_priority;
  if (hit.connection) return judge_connection(packet, hit.connection, hit.record, moment);
  return judge_stranger(packet, stranger, moment, &count->scratch);
}

/** Judges a classified packet under the plan that `moment` names. torn_plan: look again. */
ES_INLINE __u8 judge(struct es_packet* packet, const struct es_plan_endpoint* endpoint,
                     const struct es_moment* moment, int sample) {
  __u8 direction = packet->direction & 1;
  packet->tier = es_lane_tier(endpoint->lane_tiers, packet->lane & 7);
  packet->row = packet->lane;
  packet->room = ES_NO_ROOM;
  packet->arrived = packet->hinted = 0;

  __u8 reason = judge_lane(packet, endpoint->drop_mask[direction], endpoint->pass_mask[direction]);
  __u16 stranger_room = endpoint->stranger_room;
  if (ES_LIKELY(reason != ES_UNDECIDED)) {
    if (ES_READ(endpoint->generation) != moment->generation) return ES_REASON_torn_plan;
    if (ES_UNLIKELY(sample)) es_sample_room(packet, stranger_room);
    return reason;
  }
  struct es_stranger_rules stranger = {
      .room = stranger_room,
      .tier_cap = endpoint->stranger_tier_cap,
      .priority = endpoint->stranger_priority,
      .handshakes_per_cpu = endpoint->handshakes_per_cpu,
      .refuse_joins = (endpoint->flags & ES_EP_REFUSE_JOINS) != 0,
  };
  if (packet->tier != ES_TIER_critical)
    stranger.slot_quartiles =
        endpoint->slot_quartiles[direction][packet->tier == ES_TIER_best_effort];
  if (ES_READ(endpoint->generation) != moment->generation) return ES_REASON_torn_plan;
  return (__u8)es_judge_by_table(packet, moment, &stranger);
}

/** The moment of a packet: the generation it goes by, and until when the live plan holds. */
ES_INLINE struct es_moment moment_now(const struct es_control* control, __u32 generation) {
  struct es_moment moment;
  moment.jiffies = table_jiffies(control);
  moment.valid_until_jiffies = ES_READ(control->valid_until_jiffies);
  moment.generation = generation;
  moment.stash_used = ES_READ(control->stash_used);
  return moment;
}

/** Turns a reason into the packet's fate: the dead-man switch, then shadow mode. */
ES_INLINE void settle(struct es_packet* packet, __u8 reason, __u8 endpoint_flags,
                      const struct es_moment* moment, struct es_cpu_scratch* scratch) {
  __u8 verdict = es_reason_verdict(reason);
  if (verdict == ES_VERDICT_drop) {
    reason = open_if_expired(reason, moment, scratch);
    verdict = es_reason_verdict(reason);
  }
  packet->shadowed = ES_UNDECIDED;
  if (ES_UNLIKELY(endpoint_flags & ES_EP_SHADOW)) {
    packet->hinted = 0;
    if (verdict != ES_VERDICT_pass) {
      packet->shadowed = reason;
      reason = ES_REASON_shadow;
      verdict = ES_VERDICT_pass;
    }
  }
  packet->reason = reason;
  packet->verdict = verdict;
}

#endif
