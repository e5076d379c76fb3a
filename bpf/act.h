/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Step five: what is done to a packet besides letting it go or not: DSCP and ECN marks, and the
 * reject of protocol `lane`. Rewrites the IPv4 header checksum by difference; never a payload,
 * never a UDP checksum of a packet that goes on.
 */
#ifndef EDGESHED_BPF_ACT_H
#define EDGESHED_BPF_ACT_H

#include "bpf/decide.h"
#include "bpf/dissect/lane.h"
#include "bpf/hook.h"
#include "bpf/packet.h"
#include "bpf/parse.h"

#define ES_ECN_CE 3u
#define ES_DSCP_LE 1u /* lower effort, RFC 8622 */
#define ES_REJECT_UDP_BYTES (8u + EDGESHED_LANE_BYTES)

ES_INLINE __u32 checksum_fold(__u32 sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  return (sum & 0xffff) + (sum >> 16);
}

/** The IP header again, after classification may have lost track of it; NULL never happens. */
ES_INLINE void* ip_header(void* ctx, const int hook, const struct es_packet* packet, __u32 bytes,
                          void** end) {
  struct es_bounds bounds = hook_bounds(ctx, hook);
  __u32 offset = packet->l3_offset;
  ES_OPAQUE(offset);
  if (offset > sizeof(struct ethhdr) + 4 * ES_VLAN_DEPTH_MAX) return 0;
  void* ip = bounds.data + offset;
  *end = bounds.end;
  return ip + bytes > bounds.end ? 0 : ip;
}

/** Writes the traffic class and, for IPv4, corrects the header checksum (RFC 1624). */
ES_INLINE int act_mark(void* ctx, const int hook, const struct es_packet* packet) {
  __u8 old = packet->traffic_class;
  __u8 fresh =
      packet->reason == ES_REASON_marked_ce ? old | ES_ECN_CE : (__u8)(ES_DSCP_LE << 2) | (old & 3);
  void* end;
  if (packet->family == 4) {
    struct iphdr* ip = ip_header(ctx, hook, packet, sizeof(*ip), &end);
    if (!ip) return 0;
    /* The changed byte is the low one of a big-endian word. */
    __u32 sum = (__u32)(__u16)~ES_NTOHS(ip->check) + (__u16) ~(__u16)old + fresh;
    ip->tos = fresh;
    ip->check = ES_HTONS((__u16)~checksum_fold(sum));
  } else {
    struct ipv6hdr* ip = ip_header(ctx, hook, packet, sizeof(*ip), &end);
    if (!ip) return 0;
    ip->priority = fresh >> 4;
    ip->flow_lbl[0] = (__u8)((fresh << 4) | (ip->flow_lbl[0] & 0x0f));
  }
  return 0;
}

ES_SUBPROGRAM int act_mark_xdp(struct xdp_md* ctx, const struct es_packet* packet) {
  return act_mark(ctx, ES_HOOK_XDP, packet);
}

ES_SUBPROGRAM int act_mark_tc(struct __sk_buff* ctx, const struct es_packet* packet) {
  return act_mark(ctx, ES_HOOK_TC, packet);
}

ES_INLINE void hook_mark(void* ctx, const int hook, const struct es_packet* packet) {
  if (hook == ES_HOOK_XDP)
    act_mark_xdp(ctx, packet);
  else
    act_mark_tc(ctx, packet);
}

/* --- reject ------------------------------------------------------------------------------- */

/** One token of the /24 or /48 per reject and second. Racy on purpose: a cap, not an account. */
ES_INLINE int prefix_allows(const struct es_packet* packet, __u64 jiffies, __u32 most) {
  __u64 prefix = packet->family == 4 ? packet->remote.addr_lo & 0x00ffffffffffffffull
                                     : packet->remote.addr_hi & 0x0000ffffffffffffull;
  __u64 hash =
      es_key_hash(prefix, packet->family, 0, es_geometry_of().seed[0], es_geometry_of().seed[1]);
  __u64* word = ES_ROW(es_rej_prefix, (__u32)hash & (ES_REJECT_PREFIX_SLOTS - 1));
  __u32 second = (__u32)(jiffies / (es_geometry_of().hz ? es_geometry_of().hz : 1));
  if (!word) return 0;
  __u64 value = ES_READ(*word);
  __u32 used = (__u32)(value >> 32) == second ? (__u32)value : 0;
  if (used >= most) return 0;
  ES_WRITE(*word, ((__u64)second << 32) | (used + 1));
  return 1;
}

/** May this refused packet be answered? A cap per connection, per prefix, and per CPU and plan.
 * Samples of streams leave most of it to what a player waits for. */
ES_INLINE int reject_allowed(const struct es_packet* packet, struct es_flow_state* state,
                             const struct es_moment* moment, struct es_cpu_scratch* scratch) {
  int sample = es_reason_outcome(packet->reason) == ES_OUTCOME_governor;
  __u32 interval_ms = sample ? ES_TELL_INTERVAL_MS : ES_REJECT_INTERVAL_MS;
  __u32 interval = es_geometry_of().hz * interval_ms / 1000;
  __u32 most = ES_REJECTS_PER_PREFIX_PER_SECOND / (sample ? 2 : 1);
  struct es_control* control = table_control();
  allowance_roll(scratch, moment->generation);
  if (!control || scratch->rejects >= ES_READ(control->rejects_per_cpu)) return 0;
  if (state && (__u16)(moment->jiffies - ES_READ(state->refusals.reject_jiffies)) < interval)
    return 0;
  if (!prefix_allows(packet, moment->jiffies, most)) return 0;
  scratch->rejects++;
  if (state) ES_WRITE(state->refusals.reject_jiffies, (__u16)moment->jiffies);
  return 1;
}

ES_INLINE void swap_bytes(void* a, void* b, const __u32 bytes) {
  for (__u32 i = 0; i < bytes; i += 2) {
    __u16 *x = a + i, *y = b + i, keep = *x;
    *x = *y;
    *y = keep;
  }
}

/** Sum over the pseudo header, UDP header and lane header of a reject, for IPv6. */
ES_INLINE __u16 reject_checksum_v6(const struct ipv6hdr* ip, const struct udphdr* udp) {
  const __u16* address = (const __u16*)&ip->saddr;
  const __u16* words = (const __u16*)udp;
  __u32 sum = ES_HTONS(IPPROTO_UDP) + ES_HTONS(ES_REJECT_UDP_BYTES);
  for (int i = 0; i < 16; i++) sum += address[i];
  for (__u32 i = 0; i < ES_REJECT_UDP_BYTES / 2; i++) sum += words[i];
  sum = checksum_fold(sum);
  return sum == 0xffff ? 0xffff : (__u16)~sum;
}

ES_INLINE void reject_ip_header(void* ip_start, const struct es_packet* packet) {
  if (packet->family == 4) {
    struct iphdr* ip = ip_start;
    __u32 sum = 0;
    swap_bytes(&ip->saddr, &ip->daddr, 4);
    ip->tot_len = ES_HTONS((__u16)(sizeof(*ip) + ES_REJECT_UDP_BYTES));
    ip->frag_off = 0;
    ip->ttl = 64;
    ip->tos = 0;
    ip->check = 0;
    for (__u32 i = 0; i < sizeof(*ip) / 2; i++) sum += ((__u16*)ip)[i];
    ip->check = (__u16)~checksum_fold(sum);
  } else {
    struct ipv6hdr* ip = ip_start;
    swap_bytes(&ip->saddr, &ip->daddr, 16);
    ip->payload_len = ES_HTONS(ES_REJECT_UDP_BYTES);
    ip->priority = 0;
    ip->flow_lbl[0] &= 0x0f;
    ip->hop_limit = 64;
  }
}

ES_INLINE void reject_payload(struct udphdr* udp, struct edgeshed_lane_header* header,
                              const struct es_packet* packet, __u16 retry_after_10ms) {
  swap_bytes(&udp->source, &udp->dest, 2);
  udp->len = ES_HTONS(ES_REJECT_UDP_BYTES);
  udp->check = 0;
  header->lane_flags = (__u8)((EDGESHED_LANE_REJECT << 4) | packet->lane);
  header->code = packet->reason;
  header->ack = packet->sequence;
  header->sequence = 0;
  header->retry_after_10ms = ES_HTONS(retry_after_10ms);
}

/** Can this request hold its own answer? IPv4 with options and IPv6 with extension headers cannot:
 * the answer would have to carry them back. */
ES_INLINE int reject_fits(const struct es_packet* packet) {
  __u32 ip_bytes = packet->family == 4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
  return packet->l4_offset - packet->l3_offset == (int)ip_bytes &&
         packet->payload_len >= EDGESHED_LANE_BYTES;
}

/** Turns a refused request into its own answer: 12 bytes of payload in a frame as long as it was.
 * The frame is not cut: what is behind the end that IP says is padding, which every receiver takes
 * off, and a program that resizes packets may not join libxdp's dispatcher since kernel 6.12
 * ("Extension program changes packet data, while original does not"). Returns 1 when ready to send,
 * 0 when the headers are not where they were parsed. */
ES_INLINE int reject_build(struct xdp_md* ctx, const struct es_packet* packet,
                           __u16 retry_after_10ms) {
  void* end;
  struct ethhdr* ethernet = (void*)(long)ctx->data;
  if ((void*)(ethernet + 1) > (void*)(long)ctx->data_end) return 0;
  if (packet->family == 4) {
    struct iphdr* ip = ip_header(ctx, ES_HOOK_XDP, packet, sizeof(*ip) + ES_REJECT_UDP_BYTES, &end);
    if (!ip) return 0;
    struct udphdr* udp = (void*)(ip + 1);
    reject_ip_header(ip, packet);
    reject_payload(udp, (void*)(udp + 1), packet, retry_after_10ms);
  } else {
    struct ipv6hdr* ip =
        ip_header(ctx, ES_HOOK_XDP, packet, sizeof(*ip) + ES_REJECT_UDP_BYTES, &end);
    if (!ip) return 0;
    struct udphdr* udp = (void*)(ip + 1);
    reject_ip_header(ip, packet);
    reject_payload(udp, (void*)(udp + 1), packet, retry_after_10ms);
    udp->check = reject_checksum_v6(ip, udp);
  }
  swap_bytes(ethernet->h_source, ethernet->h_dest, ETH_ALEN);
  return 1;
}

/** Answers a refused standard packet or handshake of protocol `lane`, if the caps allow it.
 * Returns 1 when the packet has become the answer: XDP_TX. */
ES_GLOBAL_SUBPROGRAM int es_act_reject(struct xdp_md* ctx, const struct es_packet* packet,
                                       const struct es_moment* moment, __u32 retry_after_10ms) {
  if (!packet || !moment) return 0;
  struct es_endpoint_counters* count = table_count_endpoint(packet->endpoint);
  if (!count) return 0;
  if (!reject_fits(packet)) {
    count->not_rejected[1]++;
    return 0;
  }
  if (!reject_allowed(packet, refused_flow(packet), moment, &count->scratch) ||
      !reject_build(ctx, packet, (__u16)retry_after_10ms)) {
    count->not_rejected[0]++;
    return 0;
  }
  return 1;
}

#endif
