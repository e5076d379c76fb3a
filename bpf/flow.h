/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Step two: which endpoint a packet belongs to, and who its remote is. Which address is local
 * depends only on the direction, so both faces share this code.
 */
#ifndef EDGESHED_BPF_FLOW_H
#define EDGESHED_BPF_FLOW_H

#include "bpf/packet.h"
#include "bpf/tables.h"
#include "maps/limits.h"

/** Does the row own this local address? */
ES_INLINE int endpoint_owns(const struct es_plan_endpoint* row, __u64 local_hi, __u64 local_lo) {
  return (row->flags & ES_EP_ANY_ADDRESS) ||
         (row->local_addr_lo == local_lo && row->local_addr_hi == local_hi);
}

/** Finds the endpoint of a packet in the plan of `generation`: fills in endpoint and remote and
 * returns ES_UNDECIDED, or the reason why nobody decides it. */
ES_INLINE __u8 flow_find(const struct es_wire* wire, struct es_packet* packet, __u32 generation) {
  int in = packet->direction == ES_IN;
  __u64 local_hi = in ? wire->dst_hi : wire->src_hi;
  __u64 local_lo = in ? wire->dst_lo : wire->src_lo;
  __u8 number = table_endpoint_of_port(ES_NTOHS(in ? wire->dst_port : wire->src_port));
  ES_ROLLED for (__u32 i = 0; i < ES_SAME_PORT_MAX; i++) {
    if (!number) break;
    struct es_plan_endpoint* row = table_plan_endpoint(generation, number);
    if (!row) break;
    if (ES_LIKELY(endpoint_owns(row, local_hi, local_lo))) {
      packet->endpoint = number;
      packet->remote.addr_hi = in ? wire->src_hi : wire->dst_hi;
      packet->remote.addr_lo = in ? wire->src_lo : wire->dst_lo;
      packet->remote.port = in ? wire->src_port : wire->dst_port;
      packet->remote.endpoint = number;
      return ES_UNDECIDED;
    }
    number = row->next_same_port;
  }
  return generation ? ES_REASON_not_ours : ES_REASON_no_plan;
}

#endif
