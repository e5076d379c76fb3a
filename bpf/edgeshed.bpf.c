/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The packet path: XDP and TC programs for both faces of an interface, from the same six steps.
 * This file is the table of contents; each step is a header of its own.
 */
#include "bpf/act.h"
#include "bpf/classify.h"
#include "bpf/count.h"
#include "bpf/decide.h"
#include "bpf/fast.h"
#include "bpf/flow.h"
#include "bpf/fragment.h"
#include "bpf/hook.h"
#include "bpf/parse.h"
#include "bpf/tell.h"

char LICENSE[] SEC("license") = "GPL";

/** Counts a packet that no endpoint decides in the host's row; it passes. */
ES_SUBPROGRAM int count_host(struct es_packet* packet, __u32 reason) {
  packet->row = ES_ROW_UNCLASSIFIED;
  packet->reason = (__u8)reason;
  packet->verdict = ES_VERDICT_pass;
  packet->shadowed = ES_UNDECIDED;
  struct es_endpoint_counters* host = table_count_endpoint(0);
  if (host) {
    count_seen(host, packet);
    count_verdict(host, packet);
  }
  return 0;
}

/** A later fragment takes the fate of its first: 1 when that is known, and counted. */
ES_SUBPROGRAM int follow_fragment(struct es_packet* packet) {
  struct es_control* control = table_control();
  if (!control || !fragment_follow(packet, table_jiffies(control))) return 0;
  packet->shadowed = ES_UNDECIDED;
  packet->ip_bytes = 0; /* charged with the first fragment, for the whole datagram */
  struct es_endpoint_counters* count = table_count_endpoint(packet->endpoint);
  if (count) {
    count_seen(count, packet);
    count_verdict(count, packet);
  }
  return 1;
}

/** Lets a packet go that no endpoint decides. */
ES_INLINE int pass_unseen(const int hook, struct es_packet* packet, __u8 reason) {
  count_host(packet, reason);
  return hook_return(hook, ES_VERDICT_pass);
}

ES_INLINE int pass_bypassed(const int hook, const __u8 direction) {
  struct es_packet packet = {.direction = direction};
  return pass_unseen(hook, &packet, ES_REASON_bypass);
}

/** Lets a later fragment go the way of its first. */
ES_INLINE int act_on_fragment(void* ctx, const int hook, struct es_packet* packet) {
  if (!follow_fragment(packet)) return pass_unseen(hook, packet, ES_REASON_frag_unknown);
  if (packet->verdict == ES_VERDICT_mark) hook_mark(ctx, hook, packet);
  return hook_return(hook, packet->verdict);
}

/** Is a refused packet one that protocol `lane` answers? Standard ones, handshakes, and samples
 * that the governor refused are: its reason is the hint. */
ES_INLINE int may_answer(const struct es_packet* packet, const struct es_plan_endpoint* endpoint) {
  return packet->verdict == ES_VERDICT_drop && packet->fragment == ES_FRAG_NONE &&
         packet->direction == ES_IN && endpoint->protocol == ES_PROTOCOL_lane &&
         (endpoint->flags & ES_EP_REJECTS) && !packet->walk_error &&
         (packet->tier == ES_TIER_standard || packet->lane == ES_LANE_join ||
          es_reason_outcome(packet->reason) == ES_OUTCOME_governor);
}

/** What the refused one is told: for each another moment, so that they do not return together. */
ES_INLINE __u32 retry_after_10ms(const struct es_plan_endpoint* endpoint, int join) {
  __u32 least = join ? endpoint->retry_join_ms / 10 : endpoint->retry_standard_10ms;
  __u32 spread = join ? endpoint->retry_join_spread_10ms : endpoint->retry_standard_spread_10ms;
  __u32 value = least + (((bpf_get_prandom_u32() & 0xffff) * spread) >> 16);
  return value > 0xffff ? 0xffff : value;
}

/** Writes an event that is no sample: the daemon tells the connection's game server. */
ES_GLOBAL_SUBPROGRAM int es_tell(const struct es_packet* packet, const struct es_moment* moment) {
  if (!packet || !moment || !tell_due(packet, moment)) return 0;
  return emit_event(packet, moment->jiffies, moment->generation, 0);
}

/** Steps one and two in a frame of their own: what the packet is and whose. Leaves packet->endpoint
 * at 0 when it is not ours. Returns ES_UNDECIDED, or the reason to pass it unseen. */
ES_INLINE int locate(void* ctx, const int hook, struct es_packet* packet, __u32 generation) {
  struct es_wire wire = {0};
  struct es_bounds bounds = hook_open(ctx, hook);
  struct es_cursor cursor = {.pos = bounds.data, .end = bounds.end};

  /* 1. parse */
  __u8 reason = parse(ctx, hook, &cursor, bounds.data, &wire, packet);
  if (reason != ES_UNDECIDED) return reason;
  hook_charge(ctx, hook, packet);
  if (ES_UNLIKELY(packet->fragment)) fragment_identify(&wire, packet);
  if (packet->fragment == ES_FRAG_LATER) return ES_UNDECIDED;

  /* 2. flow */
  return flow_find(&wire, packet, generation);
}

ES_GLOBAL_SUBPROGRAM int es_locate_xdp(struct xdp_md* ctx, struct es_packet* packet,
                                       __u32 generation) {
  return !packet ? ES_REASON_no_record : locate(ctx, ES_HOOK_XDP, packet, generation);
}

ES_GLOBAL_SUBPROGRAM int es_locate_tc(struct __sk_buff* ctx, struct es_packet* packet,
                                      __u32 generation) {
  return !packet ? ES_REASON_no_record : locate(ctx, ES_HOOK_TC, packet, generation);
}

ES_INLINE int shed(void* ctx, const int hook, const __u8 direction) {
  struct es_control* control = table_control();
  if (!control) return hook_return(hook, ES_VERDICT_pass);
  if (ES_UNLIKELY(ES_READ(control->bypass))) return pass_bypassed(hook, direction);
  __u32 generation = ES_READ(control->generation);
  __u8 reason = ES_UNDECIDED;

  /* The short way for most, or at least its first half. */
  struct es_plain plain = plain_find(ctx, hook, direction, generation);
  if (ES_LIKELY(plain.endpoint)) {
    int verdict = plain_shed(&plain, direction, control, generation);
    if (ES_LIKELY(verdict != ES_FAST_NO)) return hook_return(hook, (__u8)verdict);
  }

  /* 1. parse, 2. flow */
  struct es_packet packet = {.direction = direction};
  if (ES_LIKELY(plain.endpoint))
    plain_describe(&plain, &packet);
  else
    reason = (__u8)(hook == ES_HOOK_XDP ? es_locate_xdp(ctx, &packet, generation)
                                        : es_locate_tc(ctx, &packet, generation));
  if (reason != ES_UNDECIDED) return pass_unseen(hook, &packet, reason);
  if (packet.fragment == ES_FRAG_LATER) return act_on_fragment(ctx, hook, &packet);
  struct es_plan_endpoint* endpoint = table_plan_endpoint(generation, packet.endpoint);
  struct es_endpoint_counters* count = table_count_endpoint(packet.endpoint);
  if (!count || !endpoint) return hook_return(hook, ES_VERDICT_pass);
  __u64 seen = count_seen(count, &packet);

  /* 3. classify, 4. decide; once more when the plan changed meanwhile */
  struct es_moment moment = moment_now(control, generation);
  ES_ROLLED for (int attempt = 0; attempt < 2; attempt++) {
    classify(ctx, hook, &packet, endpoint);
    reason = judge(&packet, endpoint, &moment, !(seen & (ES_SAMPLE_EVERY - 1)));
    if (ES_LIKELY(reason != ES_REASON_torn_plan)) break;
    moment.generation = ES_READ(control->generation);
    endpoint = table_plan_endpoint(moment.generation, packet.endpoint);
    if (!endpoint) return hook_return(hook, ES_VERDICT_pass);
  }
  settle(&packet, reason, endpoint->flags, &moment, &count->scratch);

  /* 5. act */
  int sent = 0;
  if (ES_UNLIKELY(packet.verdict == ES_VERDICT_mark)) hook_mark(ctx, hook, &packet);
  if (hook == ES_HOOK_XDP && ES_UNLIKELY(may_answer(&packet, endpoint))) {
    sent = es_act_reject(ctx, &packet, &moment,
                         retry_after_10ms(endpoint, packet.lane == ES_LANE_join));
    if (sent) packet.verdict = ES_VERDICT_reject;
  }
  if (ES_UNLIKELY(packet.fragment)) fragment_store(&packet, moment.jiffies);

  /* 6. count */
  count->scratch.generation = moment.generation;
  if (ES_UNLIKELY(packet.walk_error)) count->walk_errors[direction]++;
  count_verdict(count, &packet);
  if (packet.room != ES_NO_ROOM) count_room(&packet);
  if (packet.verdict >= ES_VERDICT_drop) count_event(count, &packet, control, &moment);
  if (ES_UNLIKELY(is_told(&packet, count->scratch.events))) es_tell(&packet, &moment);
  return sent ? XDP_TX : hook_return(hook, packet.verdict);
}

/* Faces `clients`: remotes are beyond this interface. */
SEC("xdp.frags") int es_xdp(struct xdp_md* ctx) { return shed(ctx, ES_HOOK_XDP, ES_IN); }
SEC("tc") int es_tc(struct __sk_buff* skb) { return shed(skb, ES_HOOK_TC, ES_OUT); }

/* Faces `servers`: game servers are beyond this interface. */
SEC("xdp.frags") int es_xdp_srv(struct xdp_md* ctx) { return shed(ctx, ES_HOOK_XDP, ES_OUT); }
SEC("tc") int es_tc_srv(struct __sk_buff* skb) { return shed(skb, ES_HOOK_TC, ES_IN); }
