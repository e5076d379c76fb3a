/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The reader of the slot table: two buckets, then the stash. Pure; compiles natively.
 * Never writes. A present key is never missed, also while the daemon moves it.
 */
#ifndef EDGESHED_BPF_SLOTS_H
#define EDGESHED_BPF_SLOTS_H

#include "bpf/side.h"
#include "bpf/tables.h"
#include "maps/slot_table.h"

struct es_slot_hit {
  struct es_connection* connection; /* NULL: none, or decided on the slot alone */
  __u32 record;
  __u8 by_slot; /* 1: the slot's priority quartile is below `quartiles` */
};

/** Bytes of `tags` that equal `tag`, as their high bits. May also flag a byte above a true match
 * (borrow): the slot's own tag bits sort that out. */
ES_INLINE __u64 tags_matching(__u64 tags, __u8 tag) {
  __u64 difference = (tags ^ (tag * ES_TAG_ONES)) & ES_TAG_BYTES;
  return (difference - ES_TAG_ONES) & ~difference & ES_TAG_HIGH;
}

ES_INLINE int key_is(const struct es_connection* connection, const struct es_key* key) {
  return connection->key.addr_lo == key->addr_lo && connection->key.addr_hi == key->addr_hi &&
         connection->key.port == key->port && connection->key.endpoint == key->endpoint;
}

/** Looks into one bucket. Returns 1 when the search is over (hit filled in). */
ES_INLINE int bucket_find(__u32 index, const struct es_place* place, const struct es_key* key,
                          __u8 quartiles, struct es_slot_hit* hit) {
  struct es_bucket* bucket = table_bucket(index);
  if (!bucket) return 0;
  __u64 tags = ES_READ(bucket->tags);
  __u64 matches = tags_matching(tags, place->tag);
  ES_ROLLED for (int tried = 0; tried < (int)ES_BUCKET_SLOTS; tried++) {
    if (ES_LIKELY(!matches)) return 0;
    __u64 lowest = matches & -matches;
    /* lowest >> 7 is 2^(8 i); the product's top byte is i. */
    __u64 i = ((lowest >> 7) * 0x0001020304050607ull) >> 56;
    ES_OPAQUE(i);
    if (i >= ES_BUCKET_SLOTS) return 0;
    matches ^= lowest;
    __u32 slot = ES_READ(bucket->slot[i]);
    if ((slot & ~ES_RECORD_MASK) != place->slot_tag) continue;
    if (((tags >> (48 + 2 * i)) & 3) < quartiles) {
      hit->by_slot = 1;
      return 1;
    }
    struct es_connection* connection = table_connection(slot & ES_RECORD_MASK);
    if (!connection || !key_is(connection, key)) continue;
    hit->connection = connection;
    hit->record = slot & ES_RECORD_MASK;
    return 1;
  }
  return 0;
}

/** Finds the connection of a key. `quartiles` 1 to 4: a slot whose priority quartile is below it
 * ends the search without touching the record (a false match of 2^-20 per slot only swaps the fate
 * of one sheddable packet); 0: always down to the record. */
ES_INLINE struct es_slot_hit slots_find(const struct es_key* key, __u8 quartiles,
                                        __u32 stash_used) {
  struct es_slot_hit hit = {0};
  __u32 buckets = es_geometry_of().buckets;
  __u64 hash = es_key_hash(key->addr_hi, key->addr_lo, es_port_endpoint(key->port, key->endpoint),
                           es_geometry_of().seed[0], es_geometry_of().seed[1]);
  struct es_place place = es_place_of(hash, buckets);
  __u32 candidates = ES_UNLIKELY(stash_used) ? 3 : 2;
  ES_ROLLED for (__u32 which = 0; which < candidates; which++) {
    __u32 index = which == 0 ? place.bucket[0] : which == 1 ? place.bucket[1] : buckets;
    if (bucket_find(index, &place, key, quartiles, &hit)) break;
  }
  return hit;
}

#endif
