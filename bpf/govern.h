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

/** The slot of a stream: its own, else a free or idle one claimed by CAS; NULL: all are taken.
 * A claimed slot starts with empty windows. */
ES_INLINE struct es_stream_slot* stream_slot(struct es_stream_block* block, __u16 stream,
                                             __u32 usable, __u32 jiffies, __u32 hz) {
  __u32 id = (__u32)stream + 1;
  struct es_stream_slot* spare = 0;
  __u32 spare_id = 0;
  ES_ROLLED for (__u32 i = 0; i < ES_STREAM_SLOTS; i++) {
    struct es_stream_slot* slot = &block->slot[i];
    __u32 holder = ES_READ(slot->stream_id);
    if (i >= usable) break;
    if (holder == id) return slot;
    if (!spare &&
        (!holder || jiffies - ES_READ(slot->seen_jiffies) > ES_STREAM_IDLE_SECONDS * hz)) {
      spare = slot;
      spare_id = holder;
    }
  }
  if (!spare || !ES_CAS(&spare->stream_id, spare_id, id)) return 0;
  ES_WRITE(spare->samples_window, 0);
  ES_WRITE(spare->bytes_window, 0);
  return spare;
}

struct es_govern_moment {
  __u64 jiffies;
  __u32 hz;
  __u32 generation;
  __u32 plan_valid; /* 0: the plan has expired */
};

/** Starts a new generation's allowance of room bytes on this CPU, if the plan moved on. */
ES_INLINE void room_allowance_roll(struct es_room_counters* count, __u32 generation) {
  if (count->allowance_generation == generation) return;
  count->allowance_generation = generation;
  count->stream_bytes_used = 0;
}

/** One sample of a stream through the chain: stream cap, stream rate, stream bytes, player bytes,
 * room bytes. Returns ES_UNDECIDED when accepted and charged, else the reason of the first scope
 * that it would exceed (or torn_plan). Under an expired plan the room's allowance, which nobody
 * renews, is not enforced. */
ES_SUBPROGRAM int govern_sample(struct es_stream_block* block, struct es_room_counters* count,
                                const struct es_plan_room* room, const struct es_packet* packet,
                                const struct es_govern_moment* moment) {
  struct es_window_time time = window_time(moment->jiffies, moment->hz);
  __u32 jiffies = (__u32)moment->jiffies;
  if (!block || !count) return ES_UNDECIDED;
  __u64 room_bytes = room->room_bytes_per_cpu;
  __u32 samples_per_s = room->stream_samples_per_s, bytes_per_s = room->stream_bytes_per_s;
  __u32 player_bytes_per_s = room->player_bytes_per_s, cap = room->stream_cap;
  if (ES_READ(room->generation) != moment->generation) return ES_REASON_torn_plan;
  __u32 usable = cap && cap < ES_STREAM_SLOTS ? cap : ES_STREAM_SLOTS;
  struct es_stream_slot* slot = stream_slot(block, packet->stream, usable, jiffies, time.hz);
  if (!slot && cap) return ES_REASON_stream_cap;
  if (slot && window_exceeds(&slot->samples_window, packet->segments, samples_per_s, time))
    return ES_REASON_stream_rate;
  if (slot && window_exceeds(&slot->bytes_window, packet->ip_bytes, bytes_per_s, time))
    return ES_REASON_stream_bytes;
  if (window_exceeds(&block->player_bytes_window, packet->ip_bytes, player_bytes_per_s, time))
    return ES_REASON_player_bytes;
  room_allowance_roll(count, moment->generation);
  if (moment->plan_valid && count->stream_bytes_used + packet->ip_bytes > room_bytes)
    return ES_REASON_room_bytes;

  count->stream_bytes_used += packet->ip_bytes;
  count->stream_bytes += packet->ip_bytes;
  window_add(&block->player_bytes_window, packet->ip_bytes, time);
  if (slot) {
    window_add(&slot->samples_window, packet->segments, time);
    window_add(&slot->bytes_window, packet->ip_bytes, time);
    ES_WRITE(slot->seen_jiffies, jiffies);
  }
  return ES_UNDECIDED;
}

#endif
