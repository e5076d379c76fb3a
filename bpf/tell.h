/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What a game server hears of its players' refusals, whatever their protocol: the first of each
 * connection in a second, as an event that is no sample. The daemon hands it on with the moment to
 * try again. Must not decide, nor answer on the wire: that is bpf/act.h. Pure; compiles natively.
 */
#ifndef EDGESHED_BPF_TELL_H
#define EDGESHED_BPF_TELL_H

#include "bpf/decide.h"

/* Refused on the slot alone, whose connection was not looked at: one in so many is. */
#define ES_TELL_SLOT_EVERY 16

/** A player awaits an answer to standard messages, and a stream's author wants to know that samples
 * are lost, or will be soon. Best-effort is thinned silently. `shed`: packets that this CPU has
 * shed. */
ES_INLINE int is_told(const struct es_packet* packet, __u64 shed) {
  if (packet->direction != ES_IN) return 0;
  if (packet->verdict < ES_VERDICT_drop) return packet->hinted;
  __u8 outcome = es_reason_outcome(packet->reason);
  if (!packet->record)
    return packet->reason == ES_REASON_slot_priority && packet->tier == ES_TIER_standard &&
           !(shed % ES_TELL_SLOT_EVERY);
  if (outcome == ES_OUTCOME_governor) return 1;
  return packet->tier == ES_TIER_standard &&
         (outcome == ES_OUTCOME_ladder || outcome == ES_OUTCOME_fair_share);
}

/** Is the connection's last refusal that was told old enough? Then this one is told, and noted. Of
 * hints each stream has its own note. */
ES_INLINE int tell_due(const struct es_packet* packet, const struct es_moment* moment) {
  if (packet->verdict < ES_VERDICT_drop) return 1;
  struct es_flow_state* state = refused_flow(packet);
  __u32 interval = es_geometry_of().hz * ES_TELL_INTERVAL_MS / 1000;
  if (!state || (__u16)(moment->jiffies - ES_READ(state->refusals.told_jiffies)) < interval)
    return 0;
  ES_WRITE(state->refusals.told_jiffies, (__u16)moment->jiffies);
  return 1;
}

#endif
