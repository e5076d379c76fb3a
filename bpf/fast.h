/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The short way: packets without surprises whose lane alone decides them, most of all while a shard
 * is under pressure. The six steps need a packet structure, three calls and a second look-up of the
 * plan row; this way keeps what it knows in registers. It decides nothing of its own: it counts and
 * returns exactly what the six steps would (tests/bpf/fast_test.cc compares them), and whatever is
 * rare goes the long way untouched. What was found out until then is handed on.
 *
 * Without surprises: Ethernet, IPv4 without options and fragments, UDP, the first endpoint of the
 * port. VLAN tags, IPv6, GSO trains and malformed packets are not.
 */
#ifndef EDGESHED_BPF_FAST_H
#define EDGESHED_BPF_FAST_H

#include "bpf/decide.h"
#include "bpf/dissect/enet.h"
#include "bpf/flow.h"
#include "bpf/hook.h"
#include "bpf/parse.h"
#include "maps/lane_header.h"

#define ES_FAST_NO (-1)

struct es_plain_headers {
  struct ethhdr ethernet;
  struct iphdr ip;
  struct udphdr udp;
} __attribute__((packed, aligned(2)));

/** A packet without surprises. Lives in registers; lengths are read again instead of kept, because
 * every register that survives a look-up is 8 bytes more of the frame (160 at most, see README). */
struct es_plain {
  const struct es_plain_headers* headers;
  void* end;
  const struct es_plan_endpoint* row;
  __u32 endpoint; /* 0: not such a packet */
};

ES_INLINE __u32 plain_ip_bytes(const struct es_plain* plain) {
  return ES_NTOHS(plain->headers->ip.tot_len);
}

ES_INLINE __u32 plain_payload_len(const struct es_plain* plain) {
  return ES_NTOHS(plain->headers->udp.len) - (__u32)sizeof(plain->headers->udp);
}

/* Fields that stand side by side are compared at once: every branch less is 0.3 ns. */
#define ES_PLAIN_AT_12 0x00450008u /* ethertype IPv4 | version 4, five words; then comes TOS */
#define ES_PLAIN_AT_12_MASK 0x00ffffffu
#define ES_PLAIN_AT_20 0x11000000u /* more fragments and offset 0 | TTL | UDP */
#define ES_PLAIN_AT_20_MASK 0xff00ff3fu
ES_STATIC_ASSERT(IPPROTO_UDP == 0x11 && ETH_P_IP == 0x0800, "the packed compares");

/** Is this a packet without surprises, and whose? */
ES_INLINE struct es_plain plain_find(void* ctx, const int hook, const __u8 direction,
                                     __u32 generation) {
  struct es_plain none = {0}, plain = {0};
  if (hook == ES_HOOK_TC && ((struct __sk_buff*)ctx)->gso_segs > 1) return none;
  struct es_bounds bounds = hook_open(ctx, hook);
  const struct es_plain_headers* headers = bounds.data;
  if ((void*)(headers + 1) > bounds.end) return none;
  if ((*(__u32*)(bounds.data + 12) & ES_PLAIN_AT_12_MASK) != ES_PLAIN_AT_12) return none;
  if ((*(__u32*)(bounds.data + 20) & ES_PLAIN_AT_20_MASK) != ES_PLAIN_AT_20) return none;
  plain.headers = headers;
  plain.end = bounds.end;
  __u32 udp_bytes = ES_NTOHS(headers->udp.len);
  if (udp_bytes < sizeof(headers->udp)) return none;
  if (udp_bytes + sizeof(headers->ip) > plain_ip_bytes(&plain)) return none;

  __be16 port = direction == ES_IN ? headers->udp.dest : headers->udp.source;
  __u32 number = table_endpoint_of_port(ES_NTOHS(port));
  if (!number) return none;
  plain.row = table_plan_endpoint(generation, number);
  if (!plain.row) return none;
  __be32 local = direction == ES_IN ? headers->ip.daddr : headers->ip.saddr;
  if (!endpoint_owns(plain.row, 0, v4_mapped(local))) return none;
  plain.endpoint = number;
  return plain;
}

/** The lane of a packet with a lane header. */
ES_INLINE int plain_lane_header(const struct es_plain* plain) {
  const struct edgeshed_lane_header* header = (const void*)(plain->headers + 1);
  if (plain_payload_len(plain) < EDGESHED_LANE_BYTES || (void*)(header + 1) > plain->end)
    return ES_FAST_NO;
  __u32 word = *(const __u32*)header; /* magic | version, claim | flags, lane | code */
  if ((word & 0xf0ff) != (EDGESHED_LANE_MAGIC | EDGESHED_LANE_VERSION << 12)) return ES_FAST_NO;
  if ((word >> 20) & (EDGESHED_LANE_JOIN | EDGESHED_LANE_CLOSE)) return ES_FAST_NO;
  __u32 lane = (word >> 16) & 7, claim = (word >> 8) & 3;
  if (claim > es_lane_tier(plain->row->lane_tiers, (__u8)lane)) return ES_FAST_NO;
  return (int)lane;
}

/** The lane of an ENet datagram that is one command with a player's data, and nothing else. */
ES_INLINE int plain_enet(const struct es_plain* plain) {
  const __u8* head = (const void*)(plain->headers + 1);
  if ((void*)(head + 2) > plain->end) return ES_FAST_NO;
  if (head[0] & (ES_ENET_COMPRESSED >> 8)) return ES_FAST_NO;
  /* The peer, then the sent time if its flag says so, then the endpoint's CRC. */
  ES_STATIC_ASSERT(ES_ENET_SENT_TIME >> 8 == 2 << 6 && ES_EP_ENET_CRC == 4, "flag to bytes");
  __u32 skip = 2 + ((head[0] >> 6) & 2) + (plain->row->flags & ES_EP_ENET_CRC);
  ES_OPAQUE(skip); /* kernel 6.1 loses the bound of 2 to 8 on the way */
  const __u8* at = head + (skip & 15);
  if ((void*)(at + 8) > plain->end) return ES_FAST_NO;
  __u64 command = *(const __u64*)at;
  __u32 slot = (__u8)(command >> 8), kind = command & 15, length;
  if (slot > ES_ENET_CHANNELS - 1) slot = ES_ENET_CHANNELS - 1;
  __u8 lanes = plain->row->classifier.enet_channel[slot];
  if (kind == ES_ENET_UNRELIABLE || kind == ES_ENET_UNSEQUENCED) {
    length = 8 + ES_NTOHS((__u16)(command >> 48));
  } else if (kind == ES_ENET_RELIABLE) {
    length = 6 + ES_NTOHS((__u16)(command >> 32));
    lanes >>= 4;
  } else {
    return ES_FAST_NO;
  }
  return skip + length == plain_payload_len(plain) ? lanes & 7 : ES_FAST_NO;
}

/** The lane, or ES_FAST_NO: only the long way can tell. */
ES_INLINE int plain_classify(const struct es_plain* plain) {
  switch (plain->row->protocol) {
    case ES_PROTOCOL_dscp:
      return plain->row->classifier.dscp_lane[plain->headers->ip.tos >> 2] & 7;
    case ES_PROTOCOL_lane:
      return plain_lane_header(plain);
    case ES_PROTOCOL_enet:
      return plain_enet(plain);
    case ES_PROTOCOL_opaque:
      return plain->row->default_lane & 7;
    default:
      return ES_FAST_NO;
  }
}

/** Decides and counts a packet by its lane alone. Returns the verdict; ES_FAST_NO: nothing
 * is done, the long way decides (also when a sample or an event is due, and under an expired or a
 * torn plan). */
ES_INLINE int plain_shed(const struct es_plain* plain, const __u8 direction,
                         const struct es_control* control, __u32 generation) {
  __u32 actions = plain->row->lane_actions[direction];
  if (!actions) return ES_FAST_NO; /* nothing here goes by the lane alone: look no further */
  int known = plain_classify(plain);
  if (known < 0) return ES_FAST_NO;
  __u32 lane = (__u32)known & 7;
  __u32 action = (actions >> (2 * lane)) & 3;
  struct es_endpoint_counters* count = table_count_endpoint(plain->endpoint);
  if (!action || !count || ES_READ(plain->row->generation) != generation) return ES_FAST_NO;
  __u64 seen = count->seen[direction];
  if (ES_UNLIKELY(!(seen & (ES_SAMPLE_EVERY - 1)))) return ES_FAST_NO;
  ES_OPAQUE(lane);
  lane &= 7;
  if (action == ES_LANE_DROPS) {
    __u32 events = count->scratch.events + 1;
    if (ES_UNLIKELY(!(events & ES_READ(control->event_sample_mask)))) return ES_FAST_NO;
    if (ES_UNLIKELY(table_jiffies(control) > ES_READ(control->valid_until_jiffies)))
      return ES_FAST_NO;
    count->scratch.events = events;
    count->bytes_shed[direction][lane] += plain_ip_bytes(plain);
    count->cell[direction][lane][ES_REASON_lane_paused]++;
  } else {
    count->cell[direction][lane][ES_REASON_class_pass]++;
  }
  count->scratch.generation = generation;
  count->seen[direction] = seen + 1;
  count->bytes[direction][lane] += plain_ip_bytes(plain);
  return action == ES_LANE_DROPS ? ES_VERDICT_drop : ES_VERDICT_pass;
}

/** Writes the `parse` and `flow` groups of a packet that the long way decides. */
ES_INLINE void plain_describe(const struct es_plain* plain, struct es_packet* packet) {
  const struct es_plain_headers* headers = plain->headers;
  int in = packet->direction == ES_IN;
  packet->remote.addr_lo = v4_mapped(in ? headers->ip.saddr : headers->ip.daddr);
  packet->remote.port = in ? headers->udp.source : headers->udp.dest;
  packet->remote.endpoint = packet->endpoint = (__u8)plain->endpoint;
  packet->ip_bytes = plain_ip_bytes(plain);
  packet->segments = 1;
  packet->l3_offset = sizeof(headers->ethernet);
  packet->l4_offset = sizeof(headers->ethernet) + sizeof(headers->ip);
  packet->payload_len = (__u16)plain_payload_len(plain);
  packet->family = 4;
  packet->traffic_class = headers->ip.tos;
}

#endif
