/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Step six: the ledger. Every packet leaves through count_verdict, once. Rows are per CPU, so an
 * increment is a plain one. Counting never changes a verdict: a missing row counts nothing.
 */
#ifndef EDGESHED_BPF_COUNT_H
#define EDGESHED_BPF_COUNT_H

#include "bpf/decide.h"
#include "bpf/packet.h"
#include "bpf/side.h"
#include "bpf/tables.h"

/** Counts an arrival at an endpoint, before anything is decided: the ledger's other side. Returns
 * how many were seen so far in that direction. */
ES_INLINE __u64 count_seen(struct es_endpoint_counters* count, const struct es_packet* packet) {
  return count->seen[packet->direction & 1]++;
}

/** Writes a sampled event into the ring; dropped silently when the ring is full. */
ES_SUBPROGRAM int emit_event(const struct es_packet* packet, __u64 jiffies, __u32 generation,
                             __u32 sampled_of) {
  struct es_event* event = bpf_ringbuf_reserve(&es_events, sizeof(*event), 0);
  if (!event) return 0;
  __builtin_memset(event, 0, sizeof(*event));
  event->jiffies = jiffies;
  event->remote = packet->remote;
  event->generation = generation;
  event->sampled_of = sampled_of;
  event->ip_bytes = packet->ip_bytes;
  event->room = packet->room;
  event->stream = packet->stream;
  event->direction = packet->direction;
  event->row = packet->row;
  event->tier = packet->tier;
  event->verdict = packet->verdict;
  event->reason = packet->reason;
  event->priority = packet->priority;
  bpf_ringbuf_submit(event, 0);
  return 0;
}

/** One in event_sample_mask + 1 sheds of this CPU and endpoint becomes an event. */
ES_INLINE void count_event(struct es_endpoint_counters* count, const struct es_packet* packet,
                           const struct es_control* control, const struct es_moment* moment) {
  __u32 mask = ES_READ(control->event_sample_mask);
  if (ES_UNLIKELY(!(++count->scratch.events & mask)))
    emit_event(packet, moment->jiffies, moment->generation, mask + 1);
}

/** Counts into the room's ledger what the table decided. */
ES_INLINE void count_room(const struct es_packet* packet) {
  struct es_room_counters* count = table_count_room(packet->room);
  __u32 tier = packet->row == ES_ROW_DEMOTED ? ES_TIERS : packet->tier;
  __u32 outcome = es_reason_outcome(packet->reason), direction = packet->direction & 1;
  ES_OPAQUE(tier);
  ES_OPAQUE(outcome);
  if (!count || tier > ES_TIERS || outcome >= ES_OUTCOMES) return;
  count->cell[direction][tier][outcome]++;
  if (packet->arrived) count->arrivals[direction][packet->lane & 7]++;
}

/** The one exit: counts the packet under its row, reason and verdict. */
ES_INLINE void count_verdict(struct es_endpoint_counters* count, const struct es_packet* packet) {
  __u32 row = packet->row, reason = packet->reason, direction = packet->direction & 1;
  if (!count) return;
  ES_OPAQUE(row);
  ES_OPAQUE(reason);
  if (row >= ES_ROWS || reason >= ES_REASON_COLUMNS) return;
  count->cell[direction][row][reason]++;
  count->bytes[direction][row] += packet->ip_bytes;
  if (packet->verdict >= ES_VERDICT_drop) count->bytes_shed[direction][row] += packet->ip_bytes;
  if (packet->verdict == ES_VERDICT_reject) count->rejected[direction][row]++;
  if (ES_UNLIKELY(packet->shadowed < ES_REASON_COLUMNS))
    count->shadow[direction][packet->shadowed]++;
}

#endif
