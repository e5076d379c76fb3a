/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The product's packet path with a kernel HASH in the place of the slot table: everything else is
 * the same code. The HASH holds the connection's record itself, which is the best that it can do: a
 * hit needs no second look-up. States stay in arrays apart, as the product has them.
 */
#include "bpf/slots.h"
#include "tests/bench/hash_record.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1); /* set before load */
  __type(key, struct es_key);
  __type(value, struct bench_hash_record);
} bench_hash SEC(".maps");

ES_INLINE struct es_slot_hit hash_find(const struct es_key* key, __u8 quartiles, __u32 stash_used) {
  struct es_slot_hit hit = {0};
  (void)quartiles;
  (void)stash_used;
  struct bench_hash_record* found = bpf_map_lookup_elem(&bench_hash, key);
  if (!found) return hit;
  hit.connection = &found->connection;
  hit.record = found->record;
  return hit;
}

/* bpf/slots.h is guarded: what follows calls this one. */
#define slots_find hash_find
#include "bpf/edgeshed.bpf.c"
#include "tests/bench/generator.h"

SEC("xdp.frags") int bench_shed(struct xdp_md* ctx) {
  return bench_generate(ctx) ? shed(ctx, ES_HOOK_XDP, ES_IN) : XDP_ABORTED;
}
