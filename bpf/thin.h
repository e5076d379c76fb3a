/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Thinning by error diffusion: survivors stay evenly spaced, with a bounded gap and a minimum
 * interval. No dice. Pure; compiles natively.
 */
#ifndef EDGESHED_BPF_THIN_H
#define EDGESHED_BPF_THIN_H

#include "bpf/side.h"
#include "maps/connection.h"
#include "maps/plan.h"
#include "maps/reasons.h"

/** How a lane is thinned: keep 0 (paused) to ES_KEEP_ALL; times in jiffies, 0: none. */
struct es_thin_rule {
  __u16 keep_q16;
  __u16 max_gap_jiffies;
  __u16 min_interval_jiffies;
  __u8 gap_spread_q8; /* as in es_room_rules */
};

/** Adds `share` (Q16) to an error; 1 when it carries over: this one is kept. */
ES_INLINE int diffuse(__u16* error_q16, __u32 share_q16) {
  __u32 sum = *error_q16 + share_q16;
  *error_q16 = (__u16)sum;
  return sum > 0xffff;
}

/** Has a lane been silent for as long as it may? Connections that a cut found alike would all pass
 * max_gap after it, and together again and again: 600 of them made every 24th tick of a server
 * twice as long. So until that long after the cut each waits for a phase of its own, once. */
ES_INLINE int gap_is_over(struct es_thin_rule rule, __u16 gap, __u32 own_phase) {
  __u32 since_cut = ((__u32)rule.max_gap_jiffies * rule.gap_spread_q8) >> 8;
  if (ES_UNLIKELY(rule.gap_spread_q8) && gap > since_cut)
    return own_phase >> 8 < rule.gap_spread_q8;
  return gap >= rule.max_gap_jiffies;
}

/** ES_UNDECIDED: kept. Otherwise the reason of the drop. jiffies are the low 16 bits: after a rest
 * of 2^16 jiffies one packet may be judged as if the rest had been short. own_phase: the
 * connection's (Q16), read only while gaps are spread. */
ES_INLINE __u8 thin_judge(struct es_thin* state, struct es_thin_rule rule, __u16 jiffies,
                          __u32 own_phase) {
  __u16 gap = (__u16)(jiffies - state->passed_jiffies);
  if (ES_LIKELY(rule.keep_q16 == ES_KEEP_ALL && !rule.min_interval_jiffies)) return ES_UNDECIDED;
  if (!rule.keep_q16) return ES_REASON_room_paused;
  if (rule.min_interval_jiffies && gap < rule.min_interval_jiffies) return ES_REASON_min_interval;
  if (rule.keep_q16 != ES_KEEP_ALL && !diffuse(&state->error_q16, rule.keep_q16)) {
    if (!rule.max_gap_jiffies || !gap_is_over(rule, gap, own_phase)) return ES_REASON_thinned;
    /* Passed early, by the bounded gap. The next one begins at a phase of its own: any if nothing
     * was thinned for long, else the last quarter, so that phases which met part again. Any also
     * right after a cut, where some are so kept twice: who rested is not yet spread, and the level
     * refuses one that comes too soon. Taken back a quarter only, they came in waves again. */
    __u32 phase = state->error_q16 = (__u16)(state->error_q16 * 25173u + 13849u);
    __u32 span = gap >= 2 * rule.max_gap_jiffies ? rule.max_gap_jiffies : rule.max_gap_jiffies / 4u;
    state->passed_jiffies = (__u16)(jiffies - ((phase * span) >> 16));
    return ES_UNDECIDED;
  }
  state->passed_jiffies = jiffies;
  return ES_UNDECIDED;
}

#endif
