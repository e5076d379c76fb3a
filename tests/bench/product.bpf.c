/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The product's packet path behind the generator. It is the same code, not a copy: the product's
 * own source is included, and its inlined body gets one more entry point.
 */
#include "bpf/edgeshed.bpf.c"
#include "tests/bench/generator.h"

SEC("xdp.frags") int bench_shed(struct xdp_md* ctx) {
  return bench_generate(ctx) ? shed(ctx, ES_HOOK_XDP, ES_IN) : XDP_ABORTED;
}

/** The baseline: the generator and nothing else. */
SEC("xdp.frags") int bench_bare(struct xdp_md* ctx) {
  return bench_generate(ctx) ? XDP_DROP : XDP_ABORTED;
}
