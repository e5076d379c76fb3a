/* SPDX-License-Identifier: GPL-2.0-only
 *
 * An XDP program of somebody else, for the test that EdgeShed shares a dispatcher. Passes all.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("xdp.frags") int somebody_xdp(struct xdp_md* ctx) { return XDP_PASS; }
