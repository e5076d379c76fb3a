/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * One word of the fragment array: what became of a datagram's first fragment, for the later ones.
 * Direct-mapped, overwritten freely: a miss passes as frag_unknown.
 */
#ifndef EDGESHED_MAPS_FRAGMENTS_H
#define EDGESHED_MAPS_FRAGMENTS_H

#include "maps/types.h"

/* Bits 63..44 tag, 43..36 endpoint, 35..32 row, 31..24 reason, 23..22 verdict, 15..0 jiffies. */
#define ES_FRAG_TAG_BITS 20

struct es_fragment_fate {
  __u32 tag; /* ES_FRAG_TAG_BITS bits of the keyed hash of (src, dst, id, proto) */
  __u16 stored_jiffies;
  __u8 endpoint;
  __u8 row;
  __u8 reason;
  __u8 verdict;
};

ES_SHARED_INLINE __u64 es_fragment_pack(struct es_fragment_fate fate) {
  return ((__u64)(fate.tag & ((1u << ES_FRAG_TAG_BITS) - 1)) << 44) | ((__u64)fate.endpoint << 36) |
         ((__u64)(fate.row & 15) << 32) | ((__u64)fate.reason << 24) |
         ((__u64)(fate.verdict & 3) << 22) | fate.stored_jiffies;
}

ES_SHARED_INLINE struct es_fragment_fate es_fragment_unpack(__u64 word) {
  struct es_fragment_fate fate;
  fate.tag = (__u32)(word >> 44);
  fate.stored_jiffies = (__u16)word;
  fate.endpoint = (__u8)(word >> 36);
  fate.row = (word >> 32) & 15;
  fate.reason = (__u8)(word >> 24);
  fate.verdict = (word >> 22) & 3;
  return fate;
}

#endif
