/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What a game server hears of its players' refusals, whatever their protocol: the first of each
 * connection in a second, as an event that is no sample. The daemon hands it on with the moment to
 * try again. Must not decide, nor answer on the wire: that is bpf/act.h.
 */
#ifndef EDGESHED_BPF_TELL_H
#define EDGESHED_BPF_TELL_H

#include "bpf/count.h"
#include "bpf/decide.h"

/** A player awaits an answer to standard messages, and a stream's author wants to know that samples
 * are lost. Best-effort is thinned silently. */
ES_INLINE int is_told(const struct es_packet* packet) {
  if (packet->verdict < ES_VERDICT_drop || packet->direction != ES_IN || !packet->record) return 0;
  __u8 outcome = es_reason_outcome(packet->reason);
  if (outcome == ES_OUTCOME_governor) return 1;
  return packet->tier == ES_TIER_standard &&
         (outcome == ES_OUTCOME_ladder || outcome == ES_OUTCOME_fair_share);
}

/** Tells of a refusal, if the connection's last one that was told is old enough. */
ES_GLOBAL_SUBPROGRAM int es_tell(const struct es_packet* packet, const struct es_moment* moment) {
  if (!packet || !moment) return 0;
  struct es_flow_state* state = table_flow_in(packet->record - 1);
  __u32 interval = es_geometry_of().hz * ES_TELL_INTERVAL_MS / 1000;
  if (!state || (__u16)(moment->jiffies - ES_READ(state->told_jiffies)) < interval) return 0;
  ES_WRITE(state->told_jiffies, (__u16)moment->jiffies);
  return emit_event(packet, moment->jiffies, moment->generation, 0);
}

#endif
