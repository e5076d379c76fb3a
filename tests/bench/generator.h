/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A packet generator in front of the code under test. PROG_TEST_RUN repeats one packet, which would
 * measure one hot connection; this rewrites the source of an IPv4 UDP packet (Ethernet 14, IPv4 20,
 * no options) to a flow drawn anew each time. The IP checksum is left wrong: nothing measured here
 * reads it. Its cost is that of `bench_bare`, which every figure has subtracted.
 */
#ifndef EDGESHED_TESTS_BENCH_GENERATOR_H
#define EDGESHED_TESTS_BENCH_GENERATOR_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>

#include "bpf/side.h"
#include "tests/bench/flow_tuple.h"

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, BENCH_CPUS_MAX);
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, __u32);
  __type(value, struct bench_generator);
} bench_generators SEC(".maps");

/** Rewrites the source. 0: the packet is too short, which fails the benchmark by its verdict. */
ES_INLINE int bench_generate(struct xdp_md* ctx) {
  void* end = (void*)(long)ctx->data_end;
  struct iphdr* ip = (void*)(long)ctx->data + sizeof(struct ethhdr);
  struct udphdr* udp = (void*)(ip + 1);
  __u32 cpu = bpf_get_smp_processor_id();
  struct bench_generator* generator = bpf_map_lookup_elem(&bench_generators, &cpu);
  if (!generator || (void*)(udp + 1) > end) return 0;
  __u32 random = generator->random;
  random ^= random << 13;
  random ^= random >> 17;
  random ^= random << 5;
  generator->random = random;
  __u32 flow = generator->first + (__u32)(((__u64)random * generator->flows) >> 32);
  ip->saddr = __builtin_bswap32(bench_flow_address(flow));
  udp->source = ES_HTONS(bench_flow_port(flow));
  return 1;
}

#endif
