/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The flows that benchmark packets come from: how a flow's number becomes a remote address and
 * port, and what each CPU draws from. Both sides include it, so that what user space registers is
 * what the generator sends.
 */
#ifndef EDGESHED_TESTS_BENCH_FLOW_TUPLE_H
#define EDGESHED_TESTS_BENCH_FLOW_TUPLE_H

#include "maps/types.h"

#define BENCH_SERVER_PORT 7777 /* host order; endpoint 1 */
#define BENCH_ENDPOINT 1
#define BENCH_CPUS_MAX 64

/** What a CPU draws from: `flows` of them, from number `first` on. A cache line each, so that two
 * CPUs share nothing that the generator added. */
struct bench_generator {
  __u32 random; /* xorshift state, never 0 */
  __u32 first;
  __u32 flows;
  __u32 reserved[13];
};
ES_ASSERT_SIZE(struct bench_generator, 64);

/** Source address of a flow in host order: 32 flows share an address in 11.0.0.0/8. */
ES_SHARED_INLINE __u32 bench_flow_address(__u32 flow) { return 0x0b000000u + (flow >> 5); }

/** Source port of a flow in host order. */
ES_SHARED_INLINE __u16 bench_flow_port(__u32 flow) { return (__u16)(1024 + (flow & 31)); }

#endif
