/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The generator in front of a program that others built: it goes on by a tail call with a constant
 * index, which the kernel makes a direct jump. Slot 0 is the program under test (xdp-filter), slot
 * 1 is `filter_bare`, so that the baseline pays the same jump.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "tests/bench/generator.h"

struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __uint(max_entries, 2);
  __type(key, __u32);
  __type(value, __u32);
} filter_next SEC(".maps");

char LICENSE[] SEC("license") = "GPL";

/* Without .frags: xdp-filter takes no multi-buffer packets, and both ends of a tail call agree. */
SEC("xdp") int filter_bare(struct xdp_md* ctx) {
  (void)ctx;
  return XDP_DROP;
}

SEC("xdp") int bench_filter(struct xdp_md* ctx) {
  if (bench_generate(ctx)) bpf_tail_call(ctx, &filter_next, 0);
  return XDP_ABORTED;
}

SEC("xdp") int bench_filter_bare(struct xdp_md* ctx) {
  if (bench_generate(ctx)) bpf_tail_call(ctx, &filter_next, 1);
  return XDP_ABORTED;
}
