/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Stands in for bpf/edgeshed.bpf.c in the tests of userspace/kernel/: the same maps, knobs and
 * program names, programs that pass everything. It loads in a millisecond, and a test of pins does
 * not fail for a reason that lies in the packet path. Decides nothing.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include "maps/maps.bpf.h"

char LICENSE[] SEC("license") = "GPL";

const volatile __u32 knob_map_clock;
const volatile struct es_geometry knob_geometry;

/* Packets by direction, in the host's row: shows that the program runs, on which maps. Looks at the
 * control page as the real ones do, which is how a program is told from another EdgeShed's. */
static __attribute__((always_inline)) void count(const int direction) {
  __u32 only = 0;
  if (!bpf_map_lookup_elem(&es_control, &only)) return;
  __u32 row = bpf_get_smp_processor_id() * knob_geometry.endpoints;
  struct es_endpoint_counters* host = bpf_map_lookup_elem(&es_count_ep, &row);
  if (host) host->seen[direction]++;
}

SEC("xdp.frags") int es_xdp(struct xdp_md* ctx) {
  count(ES_IN);
  return XDP_PASS;
}
SEC("xdp.frags") int es_xdp_srv(struct xdp_md* ctx) {
  count(ES_OUT);
  return XDP_PASS;
}
SEC("tc") int es_tc(struct __sk_buff* skb) {
  count(ES_OUT);
  return TC_ACT_OK;
}
SEC("tc") int es_tc_srv(struct __sk_buff* skb) {
  count(ES_IN);
  return TC_ACT_OK;
}
