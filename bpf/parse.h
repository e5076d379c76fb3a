/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Step one: Ethernet, up to two VLAN tags, IPv4 with options, IPv6 with extension headers, UDP and
 * fragments, down to addresses, ports and lengths. Writes es_wire and the `parse` group of
 * es_packet. Contract of the cursor: pos never passes end, and every header is checked before it is
 * read. Must not drop: whatever it cannot read passes under a reason of its own.
 */
#ifndef EDGESHED_BPF_PARSE_H
#define EDGESHED_BPF_PARSE_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include "bpf/hook.h"
#include "bpf/packet.h"
#include "bpf/side.h"
#include "maps/reasons.h"

struct es_cursor {
  void* pos;
  void* end;
};

struct es_vlan_header {
  __be16 tci;
  __be16 next;
};

struct es_fragment_header {
  __u8 next;
  __u8 reserved;
  __be16 offset_flags; /* offset in 8 bytes << 3 | reserved 2 | more */
  __be32 id;
};

/* 8 headers of 2 KiB each do not fit an MTU; more than this passes as malformed. */
#define ES_EXT_BYTES_MAX 4096u
/* Ethernet, two tags, the longest IP part, UDP. */
#define ES_PAYLOAD_OFFSET_MAX (14u + 8u + ES_EXT_BYTES_MAX + 8u)
#define ES_V4_MORE 0x2000u
#define ES_V4_OFFSET 0x1fffu
#define ES_V4_MAPPED_HIGH 0xffff0000ull /* ::ffff:0:0, second word, little-endian load */

/** Takes a header off the cursor, or NULL when the frame ends inside it. */
ES_INLINE void* cursor_take(struct es_cursor* cursor, __u32 length) {
  void* header = cursor->pos;
  if (header + length > cursor->end) return 0;
  cursor->pos = header + length;
  return header;
}

ES_INLINE int is_vlan(__u16 ethertype) {
  return ethertype == ES_HTONS(ETH_P_8021Q) || ethertype == ES_HTONS(ETH_P_8021AD);
}

/** Ethernet and VLAN tags. Returns the inner ethertype (network order) in *ethertype. */
ES_INLINE __u8 parse_link(struct es_cursor* cursor, __u16* ethertype) {
  struct ethhdr* ethernet = cursor_take(cursor, sizeof(*ethernet));
  if (!ethernet) return ES_REASON_malformed_link;
  *ethertype = ethernet->h_proto;
  for (__u32 depth = 0; depth < ES_VLAN_DEPTH_MAX; depth++) {
    if (ES_LIKELY(!is_vlan(*ethertype))) return ES_UNDECIDED;
    struct es_vlan_header* tag = cursor_take(cursor, sizeof(*tag));
    if (!tag) return ES_REASON_malformed_link;
    *ethertype = tag->next;
  }
  return is_vlan(*ethertype) ? ES_REASON_too_deep : ES_UNDECIDED;
}

ES_INLINE __u64 v4_mapped(__be32 address) { return ((__u64)address << 32) | ES_V4_MAPPED_HIGH; }

ES_INLINE __u8 parse_ipv4(struct es_cursor* cursor, struct es_wire* wire,
                          struct es_packet* packet) {
  struct iphdr* ip = cursor_take(cursor, sizeof(*ip));
  if (!ip || ip->version != 4 || ip->ihl < 5) return ES_REASON_malformed_ip;
  __u32 header_bytes = ip->ihl * 4u;
  __u16 fragment = ES_NTOHS(ip->frag_off);
  packet->ip_bytes = ES_NTOHS(ip->tot_len);
  packet->family = 4;
  packet->traffic_class = ip->tos;
  wire->src_hi = wire->dst_hi = 0;
  wire->src_lo = v4_mapped(ip->saddr);
  wire->dst_lo = v4_mapped(ip->daddr);
  if (packet->ip_bytes < header_bytes) return ES_REASON_malformed_ip;
  if (ip->protocol != IPPROTO_UDP) return ES_REASON_not_udp;
  if (ES_UNLIKELY(fragment & (ES_V4_MORE | ES_V4_OFFSET))) {
    packet->fragment = fragment & ES_V4_OFFSET ? ES_FRAG_LATER : ES_FRAG_FIRST;
    wire->fragment_id = ip->id;
  }
  if (header_bytes > sizeof(*ip) && !cursor_take(cursor, header_bytes - sizeof(*ip)))
    return ES_REASON_malformed_ip;
  return ES_UNDECIDED;
}

ES_INLINE int is_extension(__u8 next) {
  return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS ||
         next == IPPROTO_FRAGMENT || next == IPPROTO_AH || next == IPPROTO_MH;
}

/** A walk over IPv6 extension headers. By offsets and copies, not by packet pointers: eight
 * variable pointer moves multiply the verifier's states beyond its limit, and such packets are
 * rare. */
struct es_extension_walk {
  void* ctx;
  __u32 offset; /* of the current header, from the start of the frame */
  __u32 fragment_id;
  __u8 next;
  __u8 fragment;
  __u8 failed;
  __u8 done;
};

ES_INLINE long extension_step(struct es_extension_walk* walk, const int hook) {
  struct es_fragment_header header = {0}; /* its first two bytes are those of every kind */
  __u8 kind = walk->next;
  if (!is_extension(kind)) {
    walk->done = 1;
    return 1;
  }
  if (hook_load(walk->ctx, hook, walk->offset, &header, sizeof(header))) {
    walk->failed = 1;
    return 1;
  }
  __u32 length = header.reserved; /* the length byte of all kinds but the fragment header */
  walk->next = header.next;
  if (kind == IPPROTO_FRAGMENT) {
    __u16 offset_flags = ES_NTOHS(header.offset_flags);
    length = sizeof(header);
    if (offset_flags & 0xfff9) walk->fragment = offset_flags >> 3 ? ES_FRAG_LATER : ES_FRAG_FIRST;
    walk->fragment_id = header.id;
  } else {
    length = kind == IPPROTO_AH ? (length + 2) * 4 : (length + 1) * 8;
  }
  walk->offset += length;
  /* What follows the header of a later fragment is payload. */
  if (walk->fragment == ES_FRAG_LATER) walk->done = 1;
  return walk->done ? 1 : 0;
}

static long extension_step_xdp(__u32 index, struct es_extension_walk* walk) {
  (void)index;
  return extension_step(walk, ES_HOOK_XDP);
}

static long extension_step_tc(__u32 index, struct es_extension_walk* walk) {
  (void)index;
  return extension_step(walk, ES_HOOK_TC);
}

/** Leaves the cursor behind the extension headers. */
ES_INLINE __u8 parse_extensions(void* ctx, const int hook, struct es_cursor* cursor, void* data,
                                struct es_wire* wire, struct es_packet* packet, __u8* next) {
  struct es_extension_walk walk = {
      .ctx = ctx, .offset = packet->l3_offset + sizeof(struct ipv6hdr), .next = *next};
  /* One step more than headers: the last one only sees that no header follows. */
  if (hook == ES_HOOK_XDP)
    bpf_loop(ES_EXT_HEADERS_MAX + 1, extension_step_xdp, &walk, 0);
  else
    bpf_loop(ES_EXT_HEADERS_MAX + 1, extension_step_tc, &walk, 0);
  __u32 offset = walk.offset;
  if (walk.failed || offset > ES_EXT_BYTES_MAX) return ES_REASON_malformed_ip;
  if (!walk.done) return ES_REASON_too_deep;
  *next = walk.next;
  packet->fragment = walk.fragment;
  wire->fragment_id = walk.fragment_id;
  cursor->pos = data + offset;
  return cursor->pos > cursor->end ? ES_REASON_malformed_ip : ES_UNDECIDED;
}

ES_INLINE __u8 parse_ipv6(void* ctx, const int hook, struct es_cursor* cursor, void* data,
                          struct es_wire* wire, struct es_packet* packet) {
  struct ipv6hdr* ip = cursor_take(cursor, sizeof(*ip));
  if (!ip || ip->version != 6) return ES_REASON_malformed_ip;
  __u8 next = ip->nexthdr;
  packet->ip_bytes = ES_NTOHS(ip->payload_len) + (__u32)sizeof(*ip);
  packet->family = 6;
  packet->traffic_class = (__u8)((ip->priority << 4) | (ip->flow_lbl[0] >> 4));
  __builtin_memcpy(&wire->src_hi, &ip->saddr, 8);
  __builtin_memcpy(&wire->src_lo, (__u8*)&ip->saddr + 8, 8);
  __builtin_memcpy(&wire->dst_hi, &ip->daddr, 8);
  __builtin_memcpy(&wire->dst_lo, (__u8*)&ip->daddr + 8, 8);
  if (ES_UNLIKELY(is_extension(next))) {
    __u8 reason = parse_extensions(ctx, hook, cursor, data, wire, packet, &next);
    if (reason != ES_UNDECIDED) return reason;
  }
  if (packet->fragment == ES_FRAG_LATER) return ES_UNDECIDED; /* its first says what it is */
  return next == IPPROTO_UDP ? ES_UNDECIDED : ES_REASON_not_udp;
}

/** UDP. Its checksum is neither checked nor patched: on virtual links it is often partial. */
ES_INLINE __u8 parse_udp(struct es_cursor* cursor, struct es_wire* wire, struct es_packet* packet) {
  struct udphdr* udp = cursor_take(cursor, sizeof(*udp));
  if (!udp) return ES_REASON_malformed_udp;
  __u32 length = ES_NTOHS(udp->len);
  __u32 before = packet->l4_offset - packet->l3_offset;
  if (packet->ip_bytes < before + sizeof(*udp)) return ES_REASON_malformed_udp;
  __u32 in_ip = packet->ip_bytes - before;
  wire->src_port = udp->source;
  wire->dst_port = udp->dest;
  if (length < sizeof(*udp)) return ES_REASON_malformed_udp;
  if (packet->fragment == ES_FRAG_FIRST) {
    /* The first fragment stands for the datagram: the quota is charged once, for all of it. */
    packet->ip_bytes = packet->l4_offset - packet->l3_offset + length;
  } else if (length > in_ip) {
    return ES_REASON_malformed_udp;
  }
  packet->payload_len = (__u16)(length - sizeof(*udp));
  return ES_UNDECIDED;
}

/** The whole step. ES_UNDECIDED: an UDP packet, the cursor stands on its payload (of a later
 * fragment: somewhere in the datagram, and there are no ports). */
ES_INLINE __u8 parse(void* ctx, const int hook, struct es_cursor* cursor, void* data,
                     struct es_wire* wire, struct es_packet* packet) {
  __u16 ethertype = 0;
  __u8 reason = parse_link(cursor, &ethertype);
  if (reason != ES_UNDECIDED) return reason;
  packet->l3_offset = (__u16)(cursor->pos - data);
  if (ES_LIKELY(ethertype == ES_HTONS(ETH_P_IP)))
    reason = parse_ipv4(cursor, wire, packet);
  else if (ethertype == ES_HTONS(ETH_P_IPV6))
    reason = parse_ipv6(ctx, hook, cursor, data, wire, packet);
  else
    reason = ES_REASON_not_udp;
  if (reason != ES_UNDECIDED || packet->fragment == ES_FRAG_LATER) return reason;
  packet->l4_offset = (__u16)(cursor->pos - data);
  return parse_udp(cursor, wire, packet);
}

/** A cursor on the payload of a parsed packet, found anew. Empty when it starts beyond the linear
 * part. */
ES_INLINE struct es_cursor payload_cursor(void* ctx, const int hook,
                                          const struct es_packet* packet) {
  struct es_bounds bounds = hook_bounds(ctx, hook);
  __u32 start = packet->l4_offset + (__u32)sizeof(struct udphdr);
  ES_OPAQUE(start);
  if (start > ES_PAYLOAD_OFFSET_MAX) start = ES_PAYLOAD_OFFSET_MAX;
  struct es_cursor cursor = {.pos = bounds.data + start, .end = bounds.end};
  return cursor;
}

#endif
