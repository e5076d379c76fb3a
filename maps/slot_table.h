/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The slot table: which record, if any, belongs to a key. One writer (the daemon), any number of
 * readers (the packet path). A bucket is half a cache line: six 8-bit tags, six priority quartiles
 * and six slots. A key lives in one of two buckets or in the stash bucket behind the last one.
 * Writer rules (userspace/kernel/slot_table.h): record, then slot, then the tag word, each by one
 * plain store; a cleared slot is reused only after a grace period of the readers.
 */
#ifndef EDGESHED_MAPS_SLOT_TABLE_H
#define EDGESHED_MAPS_SLOT_TABLE_H

#include "maps/connection.h"
#include "maps/limits.h"
#include "maps/types.h"

/** tags: byte i (0 to 5) is the tag of slot i, 0 empty; bits 48 + 2i: its priority >> 6.
 * slot: record number, and 12 more bits of the hash above bit 20. */
struct es_bucket {
  __u64 tags;
  __u32 slot[ES_BUCKET_SLOTS];
};
ES_ASSERT_SIZE(struct es_bucket, 32);

#define ES_TAG_BYTES 0x0000ffffffffffffull
#define ES_TAG_ONES 0x0000010101010101ull
#define ES_TAG_HIGH 0x0000808080808080ull
#define ES_RECORD_MASK ((1u << ES_RECORD_BITS) - 1)

/** Where a key may live. tag is 1 to 255, slot_tag stands in the upper bits of a slot. */
struct es_place {
  __u32 bucket[2];
  __u32 slot_tag; /* already shifted by ES_RECORD_BITS */
  __u8 tag;
};

/** Keyed multiply-mix of a key (0.2 ns where SipHash takes 10): the seed is secret, so that remotes
 * cannot aim at a bucket. */
ES_SHARED_INLINE __u64 es_key_hash(__u64 addr_hi, __u64 addr_lo, __u32 port_endpoint, __u64 seed0,
                                   __u64 seed1) {
  __u64 h = (addr_lo ^ seed0) * 0x9e3779b97f4a7c15ull;
  h ^= h >> 32;
  h += (addr_hi ^ seed1) * 0xc2b2ae3d27d4eb4full + port_endpoint;
  h *= 0xd6e8feb86659fd93ull;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ull;
  h ^= h >> 32;
  return h;
}

/** Port and endpoint as es_key_hash takes them. */
ES_SHARED_INLINE __u32 es_port_endpoint(__u16 port, __u8 endpoint) {
  return ((__u32)endpoint << 16) | port;
}

/** The place of a hash in a table of `buckets` buckets (range reduction by multiply-shift). */
ES_SHARED_INLINE struct es_place es_place_of(__u64 hash, __u32 buckets) {
  struct es_place place;
  __u64 second = (hash * 0x9e3779b1u) >> 13;
  place.bucket[0] = (__u32)(((hash & 0xffffffffu) * buckets) >> 32);
  place.bucket[1] = (__u32)(((second & 0xffffffffu) * buckets) >> 32);
  place.slot_tag = (__u32)(hash >> 44) << ES_RECORD_BITS;
  place.tag = (__u8)(hash >> 56);
  if (place.tag == 0) place.tag = 1;
  return place;
}

#endif
