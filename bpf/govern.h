/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The state-stream governor (model A4): sliding one-second windows per stream, player and room, and
 * the cap on distinct streams. Pure; compiles natively.
 *
 * A window is one word: bits 63..52 the second (mod 4096), 51..26 the count of the second before,
 * 25..0 the count of this one. Estimate = this + before * (rest of the second).
 * Check and charge are two steps: the first scope that would be exceeded rejects, and a rejected
 * sample charges nobody. Two CPUs on one player can so admit one sample each too many.
 */
#ifndef EDGESHED_BPF_GOVERN_H
#define EDGESHED_BPF_GOVERN_H

#include "bpf/packet.h"
#include "bpf/quota.h"
#include "bpf/side.h"
#include "maps/connection.h"
#include "maps/counters.h"
#include "maps/plan.h"
#include "maps/reasons.h"

#define ES_WINDOW_COUNT_BITS 26
#define ES_WINDOW_COUNT_MAX ((1u << ES_WINDOW_COUNT_BITS) - 1)
#define ES_WINDOW_SECOND_MASK 0xfffu

/** A point in time as windows need it: the second and how much of it is left (of hz). */
struct es_window_time {
  __u32 second;
  __u32 left;
  __u32 hz;
};

ES_INLINE struct es_window_time window_time(__u64 jiffies, __u32 hz) {
  struct es_window_time time;
  if (!hz) hz = 1;
  time.second = (__u32)(jiffies / hz);
  time.left = hz - (__u32)(jiffies - (__u64)time.second * hz);
  time.hz = hz;
  return time;
}

/** The window moved on to `time`: counts of passed seconds fall out. */
ES_INLINE __u64 window_roll(__u64 window, struct es_window_time time) {
  __u32 second = time.second & ES_WINDOW_SECOND_MASK;
  __u32 age = (second - (__u32)(window >> 52)) & ES_WINDOW_SECOND_MASK;
  __u64 current = window & ES_WINDOW_COUNT_MAX;
  if (age == 0) return window;
  if (age > 1) current = 0;
  return ((__u64)second << 52) | (current << ES_WINDOW_COUNT_BITS);
}

/** What the last second held, of a rolled window. */
ES_INLINE __u64 window_estimate(__u64 window, struct es_window_time time) {
  __u64 before = (window >> ES_WINDOW_COUNT_BITS) & ES_WINDOW_COUNT_MAX;
  return (window & ES_WINDOW_COUNT_MAX) + before * time.left / time.hz;
}

ES_INLINE int window_exceeds(const __u64* window, __u32 amount, __u32 limit,
                             struct es_window_time time) {
  if (!limit) return 0;
  return window_estimate(window_roll(ES_READ(*window), time), time) + amount > limit;
}

ES_INLINE void window_add(__u64* window, __u32 amount, struct es_window_time time) {
  ES_ROLLED for (int attempt = 0; attempt < ES_CAS_TRIES; attempt++) {
    __u64 old = ES_READ(*window);
    __u64 rolled = window_roll(old, time);
    __u64 current = (rolled & ES_WINDOW_COUNT_MAX) + amount;
    if (current > ES_WINDOW_COUNT_MAX) current = ES_WINDOW_COUNT_MAX;
    if (ES_CAS(window, old, (rolled & ~(__u64)ES_WINDOW_COUNT_MAX) | current)) return;
  }
}

/** Index of a stream's slot: its own, else a free or forgotten one claimed by CAS; ES_STREAM_SLOTS:
 * all are taken. A claimed slot starts with empty windows, and without a refusal. */
ES_INLINE __u32 stream_slot(struct es_stream_block* block, __u16 stream, __u32 usable,
                            __u32 jiffies, __u32 hz) {
  __u32 id = (__u32)stream + 1, spare = ES_STREAM_SLOTS, spare_id = 0;
  ES_ROLLED for (__u32 i = 0; i < ES_STREAM_SLOTS; i++) {
    struct es_stream_slot* slot = &block->slot[i];
    __u32 holder = ES_READ(slot->stream_id);
    if (i >= usable) break;
    int forgotten = es_stream_forgotten(holder, ES_READ(slot->seen_jiffies), jiffies, hz);
    if (holder == id || (holder == (id | ES_STREAM_CLOSED) && !forgotten)) return i;
    if (spare == ES_STREAM_SLOTS && forgotten) {
      spare = i;
      spare_id = holder;
    }
  }
  ES_OPAQUE(spare);
  if (spare >= ES_STREAM_SLOTS) return ES_STREAM_SLOTS;
  struct es_stream_slot* slot = &block->slot[spare];
  if (!ES_CAS(&slot->stream_id, spare_id, id)) return ES_STREAM_SLOTS;
  ES_WRITE(slot->samples_window, 0);
  ES_WRITE(slot->bytes_window, 0);
  ES_WRITE(block->note[spare].refused_jiffies, (__u16)(jiffies - hz - 1));
  return spare;
}

/** Notes a refusal; a stream that was refused for long, without a second's pause, is closed. It is
 * remembered like one that plays, or it would be taken for another one. */
ES_INLINE void stream_refused(struct es_stream_slot* slot, struct es_stream_note* note,
                              __u16 stream, __u32 jiffies, __u32 hz) {
  __u32 id = (__u32)stream + 1;
  __u16 now = (__u16)jiffies;
  ES_WRITE(slot->seen_jiffies, jiffies);
  if ((__u16)(now - ES_READ(note->refused_jiffies)) > hz)
    ES_WRITE(note->refused_since_jiffies, now);
  ES_WRITE(note->refused_jiffies, now);
  if ((__u16)(now - ES_READ(note->refused_since_jiffies)) < ES_STREAM_CLOSE_SECONDS * hz) return;
  ES_WRITE(note->refused_since_jiffies, now); /* opened again, it has as long again */
  (void)ES_CAS(&slot->stream_id, id, id | ES_STREAM_CLOSED); /* moved on: another stream's slot */
}

/** A second without a refusal ends a row of them, and keeps the time of the last one from coming
 * around and looking new. */
ES_INLINE void stream_accepted(struct es_stream_note* note, __u32 jiffies, __u32 hz) {
  __u16 now = (__u16)jiffies;
  if ((__u16)(now - ES_READ(note->refused_jiffies)) > hz &&
      (__u16)(now - ES_READ(note->refused_since_jiffies)) > hz)
    ES_WRITE(note->refused_since_jiffies, now);
}

/** Does a window, an accepted sample included, hold more than `hint_q8` of its limit? */
ES_INLINE int window_is_near(const __u64* window, __u32 limit, __u32 hint_q8,
                             struct es_window_time time) {
  return window_exceeds(window, 0, (__u32)(((__u64)limit * hint_q8) >> 8), time);
}

struct es_govern_moment {
  __u64 jiffies;
  __u32 hz;
  __u32 generation;
  __u32 plan_valid; /* 0: the plan has expired */
  __u32 hint_q8;    /* es_control.stream_hint_q8 */
};

/** Starts a new generation's allowance of room bytes on this CPU, if the plan moved on. */
ES_INLINE void room_allowance_roll(struct es_room_counters* count, __u32 generation) {
  if (count->allowance_generation == generation) return;
  count->allowance_generation = generation;
  count->stream_bytes_used = 0;
}

/** What a room allows its streams, copied out of one plan. */
struct es_stream_limits {
  __u64 room_bytes;
  __u32 samples_per_s, bytes_per_s, player_bytes_per_s;
  __u8 cap;
};

ES_INLINE struct es_stream_limits stream_limits_of(const struct es_plan_room* room) {
  struct es_stream_limits limits = {.room_bytes = room->room_bytes_per_cpu,
                                    .samples_per_s = room->stream_samples_per_s,
                                    .bytes_per_s = room->stream_bytes_per_s,
                                    .player_bytes_per_s = room->player_bytes_per_s,
                                    .cap = room->stream_cap};
  return limits;
}

/** The first scope that a sample would exceed, as a reason; ES_UNDECIDED: none. `slot`: NULL when
 * the stream has none. */
ES_INLINE __u8 stream_scope(const struct es_stream_slot* slot, const struct es_stream_block* block,
                            const struct es_room_counters* count,
                            const struct es_stream_limits* limits, const struct es_packet* packet,
                            const struct es_govern_moment* moment, struct es_window_time time) {
  if (slot && window_exceeds(&slot->samples_window, packet->segments, limits->samples_per_s, time))
    return ES_REASON_stream_rate;
  if (slot && window_exceeds(&slot->bytes_window, packet->ip_bytes, limits->bytes_per_s, time))
    return ES_REASON_stream_bytes;
  if (window_exceeds(&block->player_bytes_window, packet->ip_bytes, limits->player_bytes_per_s,
                     time))
    return ES_REASON_player_bytes;
  if (moment->plan_valid && count->stream_bytes_used + packet->ip_bytes > limits->room_bytes)
    return ES_REASON_room_bytes;
  return ES_UNDECIDED;
}

/** Is an accepted stream so near to a limit that its author should hear of it now? Said once a
 * second of each stream. */
ES_INLINE int stream_hints(const struct es_stream_slot* slot, const struct es_stream_block* block,
                           struct es_stream_note* note, const struct es_stream_limits* limits,
                           const struct es_govern_moment* moment, struct es_window_time time) {
  __u32 hint_q8 = moment->hint_q8;
  __u16 now = (__u16)moment->jiffies;
  if (!hint_q8 || (__u16)(now - ES_READ(note->hinted_jiffies)) < time.hz) return 0;
  if (!window_is_near(&slot->samples_window, limits->samples_per_s, hint_q8, time) &&
      !window_is_near(&slot->bytes_window, limits->bytes_per_s, hint_q8, time) &&
      !window_is_near(&block->player_bytes_window, limits->player_bytes_per_s, hint_q8, time))
    return 0;
  ES_WRITE(note->hinted_jiffies, now);
  return 1;
}

/* Accepted, and so near to a limit that its author is told. The room's allowance has no part in it:
 * of a share for one CPU and one plan a single sample may be most. */
#define ES_GOVERN_HINT 0xfeu

/** One sample of a stream through the chain: stream cap, a closed stream, stream rate, stream
 * bytes, player bytes, room bytes. Returns ES_UNDECIDED or ES_GOVERN_HINT when accepted and
 * charged, else the reason of the first scope that it would exceed (or torn_plan). Under an expired
 * plan the room's allowance, which nobody renews, is not enforced. */
ES_GLOBAL_SUBPROGRAM int es_govern_sample(struct es_stream_block* block,
                                          struct es_room_counters* count,
                                          const struct es_plan_room* room,
                                          const struct es_packet* packet,
                                          const struct es_govern_moment* moment) {
  if (!block || !count || !room || !packet || !moment) return ES_UNDECIDED;
  struct es_window_time time = window_time(moment->jiffies, moment->hz);
  __u32 jiffies = (__u32)moment->jiffies;
  struct es_stream_limits limits = stream_limits_of(room);
  if (ES_READ(room->generation) != moment->generation) return ES_REASON_torn_plan;
  __u32 cap = limits.cap & ~ES_ROOM_CLOSES;
  __u32 usable = cap && cap < ES_STREAM_SLOTS ? cap : ES_STREAM_SLOTS;
  __u32 index = stream_slot(block, packet->stream, usable, jiffies, time.hz);
  ES_OPAQUE(index);
  if (index >= ES_STREAM_SLOTS && cap) return ES_REASON_stream_cap;
  struct es_stream_slot* slot = index < ES_STREAM_SLOTS ? &block->slot[index] : 0;
  struct es_stream_note* note = &block->note[index & (ES_STREAM_SLOTS - 1)]; /* only with a slot */
  if (slot && (ES_READ(slot->stream_id) & ES_STREAM_CLOSED)) {
    ES_WRITE(slot->seen_jiffies, jiffies);
    return ES_REASON_stream_closed;
  }
  int closes = limits.cap & ES_ROOM_CLOSES;
  room_allowance_roll(count, moment->generation);
  __u8 reason = stream_scope(slot, block, count, &limits, packet, moment, time);
  if (reason != ES_UNDECIDED) {
    if (slot && closes) stream_refused(slot, note, packet->stream, jiffies, time.hz);
    return reason;
  }

  count->stream_bytes_used += packet->ip_bytes;
  count->stream_bytes += packet->ip_bytes;
  window_add(&block->player_bytes_window, packet->ip_bytes, time);
  if (!slot) return ES_UNDECIDED;
  window_add(&slot->samples_window, packet->segments, time);
  window_add(&slot->bytes_window, packet->ip_bytes, time);
  ES_WRITE(slot->seen_jiffies, jiffies);
  if (closes) stream_accepted(note, jiffies, time.hz);
  return stream_hints(slot, block, note, &limits, moment, time) ? ES_GOVERN_HINT : ES_UNDECIDED;
}

#endif
