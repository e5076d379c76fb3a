/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Quotas on jiffies: contracts (GCRA in 2^-16 jiffy, both limits in one word) and levels (virtual
 * clock in tokens x 256). Pure; compiles natively. Neither reads a clock: time is passed in.
 *
 * Why contracts are times and levels are tokens: a level's rate changes every tick, so its debt
 * must not depend on the rate; a contract's rate changes only with a reload, and as times a packet
 * debt and a byte debt fit one word, are charged by one CAS and never need a refund.
 */
#ifndef EDGESHED_BPF_QUOTA_H
#define EDGESHED_BPF_QUOTA_H

#include "bpf/side.h"
#include "maps/connection.h"
#include "maps/plan.h"

/* After this many lost races a packet is let through uncharged: fail open. */
#define ES_CAS_TRIES 4

/** How far a debt is ahead of the clock: never behind it, never more than a burst. The upper clamp
 * matters: a connection that changes class carries another contract's debt. */
ES_INLINE __u32 debt_ahead(__u32 debt, __u32 now, __u32 burst) {
  __s32 ahead = (__s32)(debt - now);
  if (ahead < 0) return 0;
  return (__u32)ahead > burst ? burst : (__u32)ahead;
}

ES_INLINE __u64 debts_pack(__u32 by_packet, __u32 by_byte) {
  return ((__u64)by_byte << 32) | by_packet;
}

/** Charges packets and bytes to a contract. now is jiffies << 16 (32 bits).
 * Returns 1 when within the contract (and charged), 0 when over (and not charged). */
ES_INLINE int contract_charge(__u64* debts, const struct es_limit* limit, __u32 packets,
                              __u32 bytes, __u32 now) {
  __u64 packet_cost = (__u64)packets * limit->packet_cost;
  __u64 byte_cost = ((__u64)bytes * limit->byte_cost_q12 + 2048) >> 12;
  if (!limit->packet_cost && !limit->byte_cost_q12) return 1;
  ES_ROLLED for (int attempt = 0; attempt < ES_CAS_TRIES; attempt++) {
    __u64 old = ES_READ(*debts);
    __u32 by_packet = debt_ahead((__u32)old, now, limit->packet_burst);
    __u32 by_byte = debt_ahead((__u32)(old >> 32), now, limit->byte_burst);
    if ((limit->packet_cost && by_packet + packet_cost > limit->packet_burst) ||
        (limit->byte_cost_q12 && by_byte + byte_cost > limit->byte_burst)) {
      /* The clamp is kept, or the old contract's debt would have to run out first. */
      __u64 clamped = debts_pack(now + by_packet, now + by_byte);
      if (clamped != old) (void)ES_CAS(debts, old, clamped);
      return 0;
    }
    if (ES_CAS(debts, old,
               debts_pack(now + by_packet + (__u32)packet_cost, now + by_byte + (__u32)byte_cost)))
      return 1;
  }
  return 1;
}

/** Pulls both debts of a contract word up to the clock, so that they never wrap. */
ES_INLINE __u64 contract_refresh(__u64 debts, __u32 now, int idle) {
  __u32 by_packet = (__u32)debts, by_byte = (__u32)(debts >> 32);
  if (idle || (__s32)(by_packet - now) < 0) by_packet = now;
  if (idle || (__s32)(by_byte - now) < 0) by_byte = now;
  return debts_pack(by_packet, by_byte);
}

/** Notes that a flow was seen. Twice in every ES_IDLE_RESET_JIFFIES its contract debts are pulled
 * up to the clock: a debt of a tier that rests while others send must not wrap. */
ES_INLINE void flow_seen(struct es_flow_state* state, __u64 jiffies) {
  __u32 now_jiffies = (__u32)jiffies, now = now_jiffies << ES_DEBT_TICK_BITS;
  __u32 seen = ES_READ(state->seen_jiffies);
  if (ES_LIKELY(seen == now_jiffies)) return;
  if ((seen ^ now_jiffies) & ~(ES_IDLE_RESET_JIFFIES / 2 - 1)) {
    int idle = now_jiffies - seen >= ES_IDLE_RESET_JIFFIES;
    for (int tier = 0; tier < ES_TIERS; tier++) {
      ES_WRITE(state->contract[tier], contract_refresh(ES_READ(state->contract[tier]), now, idle));
    }
  }
  ES_WRITE(state->seen_jiffies, now_jiffies);
}

/** Value of a level's virtual clock, tokens x 256 (control law B7). */
ES_INLINE __u64 level_now(const struct es_level* level, __u64 jiffies) {
  __u64 elapsed = jiffies - level->t0_jiffies;
  if ((__s64)elapsed < 0) elapsed = 0;
  return level->v0 + ((elapsed * level->rate_q16) >> 16);
}

/** What a connection owes to a young level at least: from begun on its packets pass as the level
 * grows, the first one after `phase` (Q16) of its cost. */
ES_INLINE __u64 young_debt(const struct es_level* level, __u64 clock, __u64 old, __u64 cost,
                           __u32 phase) {
  __u64 begin = clock - (__u32)((__u32)clock - level->begun);
  if (old > begin || level->burst < cost) return 0;
  return begin + level->burst - cost + ((cost * phase) >> 16);
}

/** Charges cost (tokens x 256, already divided by the weight) to a level. 1: within, charged. Who
 * sends no faster than the level always passes, once the level is a packet old. */
ES_INLINE int level_charge(__u64* debt, const struct es_level* level, __u64 cost, __u64 jiffies,
                           __u32 phase) {
  __u64 clock = level_now(level, jiffies);
  __u64 limit = clock + level->burst;
  if (!level->burst) return 1;
  ES_ROLLED for (int attempt = 0; attempt < ES_CAS_TRIES; attempt++) {
    __u64 old = ES_READ(*debt);
    __u64 owed = old > clock ? old : clock;
    if (ES_UNLIKELY(level->begun)) {
      __u64 least = young_debt(level, clock, old, cost, phase);
      if (least > owed) owed = least;
    }
    if (owed > limit) owed = limit;
    if (owed + cost > limit) {
      /* The clamp is kept: a debt on a former clock must not outlive it. */
      if (owed < old) (void)ES_CAS(debt, old, owed);
      return 0;
    }
    if (ES_CAS(debt, old, owed + cost)) return 1;
  }
  return 1;
}

#endif
