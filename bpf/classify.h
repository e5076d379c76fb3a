/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Step three: the lane of a packet, by its endpoint's protocol. One protocol a file in dissect/.
 */
#ifndef EDGESHED_BPF_CLASSIFY_H
#define EDGESHED_BPF_CLASSIFY_H

#include "bpf/dissect/enet.h"
#include "bpf/dissect/lane.h"
#include "bpf/packet.h"
#include "bpf/parse.h"
#include "maps/plan.h"

/** First rule whose masked bytes match; default_lane when none does or the payload is too short. */
ES_INLINE __u8 classify_match(struct es_cursor cursor, const struct es_packet* packet,
                              const struct es_plan_endpoint* endpoint) {
  ES_ROLLED for (__u32 i = 0; i < ES_MATCH_RULES; i++) {
    const struct es_match_rule* rule = &endpoint->classifier.match[i];
    __u32 offset = rule->offset & 0xff;
    __u8* bytes = cursor.pos + offset;
    if (!rule->mask) break;
    if (offset + 4 > packet->payload_len || (void*)(bytes + 4) > cursor.end) continue;
    if ((ES_NTOHL(*(__u32*)bytes) & rule->mask) == rule->value) return rule->lane & 7;
  }
  return endpoint->default_lane;
}

/** Writes the `classify` group of the packet. */
ES_INLINE void classify(void* ctx, const int hook, struct es_packet* packet,
                        const struct es_plan_endpoint* endpoint) {
  switch (endpoint->protocol) {
    case ES_PROTOCOL_enet:
      packet->lane = hook == ES_HOOK_XDP ? es_dissect_enet_xdp(ctx, packet, endpoint)
                                         : es_dissect_enet_tc(ctx, packet, endpoint);
      break;
    case ES_PROTOCOL_lane:
      packet->lane = dissect_lane(payload_cursor(ctx, hook, packet), packet, endpoint);
      break;
    case ES_PROTOCOL_dscp:
      packet->lane = endpoint->classifier.dscp_lane[packet->traffic_class >> 2];
      break;
    case ES_PROTOCOL_match:
      packet->lane = classify_match(payload_cursor(ctx, hook, packet), packet, endpoint);
      break;
    default:
      packet->lane = endpoint->default_lane;
  }
  packet->lane &= 7;
}

#endif
