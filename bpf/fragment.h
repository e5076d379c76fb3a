/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Later fragments share the fate of their datagram's first one. The first stores a word, later ones
 * read it: no insertion into a map, so a flood of fragments evicts only fragments.
 */
#ifndef EDGESHED_BPF_FRAGMENT_H
#define EDGESHED_BPF_FRAGMENT_H

#include "bpf/packet.h"
#include "bpf/tables.h"
#include "maps/fragments.h"

/** Identifies the datagram of a fragment, while its addresses are still at hand. */
ES_INLINE void fragment_identify(const struct es_wire* wire, struct es_packet* packet) {
  packet->fragment_hash =
      es_key_hash(wire->src_hi ^ (wire->dst_lo * 3), wire->src_lo ^ wire->dst_hi, wire->fragment_id,
                  es_geometry_of().seed[1], es_geometry_of().seed[0]);
}

ES_INLINE __u64* fragment_word(__u64 hash) {
  return ES_ROW(es_frags, (__u32)hash & (ES_FRAGMENT_SLOTS - 1));
}

/** Remembers what became of a first fragment. */
ES_INLINE void fragment_store(const struct es_packet* packet, __u64 jiffies) {
  __u64 hash = packet->fragment_hash;
  __u64* word = fragment_word(hash);
  struct es_fragment_fate fate = {.tag = (__u32)(hash >> (64 - ES_FRAG_TAG_BITS)),
                                  .stored_jiffies = (__u16)jiffies,
                                  .endpoint = packet->endpoint,
                                  .row = packet->row,
                                  .reason = packet->reason,
                                  .verdict = packet->verdict};
  if (word) ES_WRITE(*word, es_fragment_pack(fate));
}

/** Gives a later fragment the fate of its first. 0: the first was not seen in time. */
ES_INLINE int fragment_follow(struct es_packet* packet, __u64 jiffies) {
  __u64 hash = packet->fragment_hash;
  __u64* word = fragment_word(hash);
  if (!word) return 0;
  __u64 value = ES_READ(*word);
  struct es_fragment_fate fate = es_fragment_unpack(value);
  __u16 age = (__u16)((__u16)jiffies - fate.stored_jiffies);
  if (!value || fate.tag != (__u32)(hash >> (64 - ES_FRAG_TAG_BITS)) ||
      age > ES_FRAGMENT_SECONDS * es_geometry_of().hz)
    return 0;
  packet->endpoint = fate.endpoint;
  packet->row = fate.row;
  packet->reason = fate.reason;
  packet->verdict = fate.verdict;
  return 1;
}

#endif
