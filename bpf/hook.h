/* SPDX-License-Identifier: GPL-2.0-only
 *
 * One adapter per hook under the same names. `hook` is a constant at every call, so each program
 * keeps only its own half. Nothing above this header knows a context type.
 */
#ifndef EDGESHED_BPF_HOOK_H
#define EDGESHED_BPF_HOOK_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include "bpf/packet.h"
#include "bpf/side.h"
#include "maps/maps.bpf.h"

enum es_hook { ES_HOOK_XDP, ES_HOOK_TC };

/* Headers that are read directly; a TC packet whose linear part is shorter is pulled up to this:
 * Ethernet 14 + 2 VLAN tags 8 + IPv6 40 + UDP 8 + ENet 8 + one command 48. */
#define ES_LINEAR_BYTES 128u

struct es_bounds {
  void* data;
  void* end;
};

ES_INLINE struct es_bounds hook_bounds(void* ctx, const int hook) {
  struct es_bounds bounds;
  if (hook == ES_HOOK_XDP) {
    bounds.data = (void*)(long)((struct xdp_md*)ctx)->data;
    bounds.end = (void*)(long)((struct xdp_md*)ctx)->data_end;
  } else {
    bounds.data = (void*)(long)((struct __sk_buff*)ctx)->data;
    bounds.end = (void*)(long)((struct __sk_buff*)ctx)->data_end;
  }
  return bounds;
}

/** The packet's bounds with its headers linear (TC only: XDP's first buffer holds them). */
ES_INLINE struct es_bounds hook_open(void* ctx, const int hook) {
  struct es_bounds bounds = hook_bounds(ctx, hook);
  if (hook == ES_HOOK_TC && ES_UNLIKELY(bounds.data + ES_LINEAR_BYTES > bounds.end)) {
    struct __sk_buff* skb = ctx;
    __u32 linear = (__u32)(bounds.end - bounds.data);
    if (skb->len > linear) {
      bpf_skb_pull_data(skb, skb->len < ES_LINEAR_BYTES ? skb->len : ES_LINEAR_BYTES);
      bounds = hook_bounds(ctx, hook);
    }
  }
  return bounds;
}

/** Copies payload bytes wherever they lie (paged, multi-buffer). 0 on success. */
ES_INLINE long hook_load(void* ctx, const int hook, __u32 offset, void* to, __u32 length) {
  return hook == ES_HOOK_XDP ? bpf_xdp_load_bytes(ctx, offset, to, length)
                             : bpf_skb_load_bytes(ctx, offset, to, length);
}

/** Segments of a GSO train, and the bytes they take on the wire: a train is charged as what it
 * becomes. XDP always sees single packets. */
ES_INLINE void hook_charge(void* ctx, const int hook, struct es_packet* packet) {
  packet->segments = 1;
  if (hook == ES_HOOK_TC) {
    struct __sk_buff* skb = ctx;
    __u32 segments = skb->gso_segs;
    if (segments > 1) {
      packet->segments = (__u16)segments;
      packet->ip_bytes = skb->wire_len - segments * packet->l3_offset;
    }
  }
}

ES_INLINE int hook_return(const int hook, __u8 verdict) {
  if (hook == ES_HOOK_XDP) return verdict == ES_VERDICT_drop ? XDP_DROP : XDP_PASS;
  /* UNSPEC, not OK: filters of others behind this one still see what passes. */
  return verdict == ES_VERDICT_drop ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

#endif
