/* SPDX-License-Identifier: GPL-2.0-only
 *
 * ENet 1.3: the lane of a datagram is that of its most valuable command, with one exception:
 * acknowledgements beside unreliable data do not make it critical. Reads at most
 * ES_ENET_COMMANDS_MAX command headers; never loops on a zero length; changes nothing.
 * A walk that fails keeps the lane found so far, but not below standard.
 */
#ifndef EDGESHED_BPF_DISSECT_ENET_H
#define EDGESHED_BPF_DISSECT_ENET_H

#include "bpf/hook.h"
#include "bpf/packet.h"
#include "bpf/parse.h"
#include "bpf/side.h"
#include "maps/plan.h"

enum es_enet_command {
  ES_ENET_ACK = 1,
  ES_ENET_CONNECT = 2,
  ES_ENET_VERIFY = 3,
  ES_ENET_DISCONNECT = 4,
  ES_ENET_PING = 5,
  ES_ENET_RELIABLE = 6,
  ES_ENET_UNRELIABLE = 7,
  ES_ENET_FRAGMENT = 8,
  ES_ENET_UNSEQUENCED = 9,
  ES_ENET_BANDWIDTH = 10,
  ES_ENET_THROTTLE = 11,
  ES_ENET_UNRELIABLE_FRAGMENT = 12,
};

#define ES_ENET_COMPRESSED 0x4000u
#define ES_ENET_SENT_TIME 0x8000u
#define ES_ENET_PEER_MASK 0x0fffu /* all ones: no peer yet, so only a CONNECT can follow */
#define ES_ENET_COMMAND_HEAD 4u
#define ES_ENET_UNROLLED 3

/* Fixed bytes of command 0..7 and 8..15, one byte each; 0: no such command. */
#define ES_ENET_SIZES_LOW 0x080604082c300800ull
#define ES_ENET_SIZES_HIGH 0x00000018100c0818ull /* 8: 24, 9: 8, 10: 12, 11: 16, 12: 24 */
#define ES_ENET_LENGTH_AT_6 ((1u << 7) | (1u << 8) | (1u << 9) | (1u << 12))

struct es_enet_walk {
  void* ctx;
  const struct es_plan_endpoint* endpoint;
  __u32 offset; /* of the next command, from the start of the frame */
  __u32 end;    /* of the datagram */
  __u16 lane_tiers;
  __u8 best_lane; /* ES_UNDECIDED: no data command yet */
  __u8 acks;
  __u8 failed;
  __u8 done;
  __u8 in_place;  /* commands read in place */
  __u16 acked_ms; /* of the last ACK: when the command that it answers was sent */
};

/** Keeps the more valuable of two lanes. */
ES_INLINE void enet_offer(struct es_enet_walk* walk, __u8 lane) {
  if (walk->best_lane == ES_UNDECIDED || es_lane_tier(walk->lane_tiers, lane & 7) <
                                             es_lane_tier(walk->lane_tiers, walk->best_lane & 7))
    walk->best_lane = lane;
}

/** The lane of a command that is neither ACK nor invalid. */
ES_INLINE __u8 enet_command_lane(const struct es_enet_walk* walk, __u32 command, __u8 channel) {
  __u32 slot = channel < ES_ENET_CHANNELS - 1 ? channel : ES_ENET_CHANNELS - 1;
  switch (command) {
    case ES_ENET_CONNECT:
    case ES_ENET_VERIFY:
      return ES_LANE_join;
    case ES_ENET_RELIABLE:
      return walk->endpoint->classifier.enet_channel[slot] >> 4;
    case ES_ENET_UNRELIABLE:
    case ES_ENET_UNSEQUENCED:
    case ES_ENET_UNRELIABLE_FRAGMENT:
      return walk->endpoint->classifier.enet_channel[slot] & 15;
    case ES_ENET_FRAGMENT:
      return ES_LANE_command;
    default:
      return ES_LANE_control;
  }
}

/** One command. `head` is its first 8 bytes as loaded (byte i at bit 8 i); the last four may be 0
 * when the datagram ends after four. */
ES_INLINE void enet_command(struct es_enet_walk* walk, __u64 head) {
  __u32 command = head & 15;
  __u64 sizes = command < 8 ? ES_ENET_SIZES_LOW : ES_ENET_SIZES_HIGH;
  __u32 size = (sizes >> (8 * (command & 7))) & 0xff;
  if (!size) {
    walk->failed = walk->done = 1;
    return;
  }
  if (command == ES_ENET_RELIABLE) size += ES_NTOHS((__u16)(head >> 32));
  if ((ES_ENET_LENGTH_AT_6 >> command) & 1) size += ES_NTOHS((__u16)(head >> 48));
  if (walk->offset + size > walk->end) {
    walk->failed = walk->done = 1;
    return;
  }
  walk->offset += size;
  if (command == ES_ENET_ACK) {
    walk->acks = 1;
    walk->acked_ms = ES_NTOHS((__u16)(head >> 48));
  } else {
    enet_offer(walk, enet_command_lane(walk, command, (__u8)(head >> 8)));
  }
  if (walk->offset == walk->end) walk->done = 1;
  if (walk->best_lane != ES_UNDECIDED &&
      es_lane_tier(walk->lane_tiers, walk->best_lane & 7) == ES_TIER_critical)
    walk->done = 1; /* nothing is more valuable */
}

/** A command anywhere in the packet, through a copy. */
ES_INLINE long enet_command_copied(struct es_enet_walk* walk, const int hook) {
  __u64 head = 0;
  __u32 left = walk->end - walk->offset;
  __u32 length = left > sizeof(head) ? sizeof(head) : left; /* a last PING is only 4 bytes long */
  if (left < ES_ENET_COMMAND_HEAD || hook_load(walk->ctx, hook, walk->offset, &head, length))
    walk->failed = walk->done = 1;
  else
    enet_command(walk, head);
  return walk->done ? 1 : 0;
}

static long enet_step_xdp(__u32 index, struct es_enet_walk* walk) {
  (void)index;
  return enet_command_copied(walk, ES_HOOK_XDP);
}

static long enet_step_tc(__u32 index, struct es_enet_walk* walk) {
  (void)index;
  return enet_command_copied(walk, ES_HOOK_TC);
}

/** The first commands, read in place: most datagrams hold no more. */
ES_INLINE void enet_walk_linear(struct es_enet_walk* walk, struct es_cursor cursor) {
  for (int i = 0; i < ES_ENET_UNROLLED; i++) {
    __u32 before = walk->offset, size;
    __u64 head;
    if (walk->end - before < ES_ENET_COMMAND_HEAD) {
      walk->failed = walk->done = 1;
      return;
    }
    /* Too close to the end, or beyond the linear part: the copying walk goes on. */
    if (cursor.pos + sizeof(head) > cursor.end) return;
    head = *(__u64*)cursor.pos;
    enet_command(walk, head);
    walk->in_place = (__u8)(i + 1);
    if (walk->done) return;
    size = walk->offset - before;
    ES_OPAQUE(size);
    if (size > 0xfff) return;
    cursor.pos += size;
  }
}

/** What the walk found, as a lane. */
ES_INLINE __u8 enet_result(const struct es_enet_walk* walk) {
  __u8 lane = walk->best_lane;
  if (lane == ES_UNDECIDED) return walk->acks && !walk->failed ? ES_LANE_control : ES_LANE_command;
  if (es_lane_tier(walk->lane_tiers, lane & 7) == ES_TIER_best_effort &&
      (walk->acks || walk->failed))
    return ES_LANE_command;
  return lane;
}

/** The lane of an ENet datagram. Finds the payload anew, so that it can stand in
 * a frame of its own. */
ES_INLINE __u8 dissect_enet(void* ctx, const int hook, struct es_packet* packet,
                            const struct es_plan_endpoint* endpoint) {
  __u32 start = packet->l4_offset + 8, skip;
  struct es_cursor cursor = payload_cursor(ctx, hook, packet);
  __u8* head = cursor.pos;
  struct es_enet_walk walk = {.ctx = ctx, .endpoint = endpoint, .best_lane = ES_UNDECIDED};
  packet->walk_error = 1;
  if (packet->payload_len < 4 || (void*)head + 4 > cursor.end) return ES_LANE_command;
  __u32 flags = ((__u32)head[0] << 8) | head[1];
  __u16 sent_ms = (__u16)((head[2] << 8) | head[3]); /* if its flag says so */
  packet->walk_error = 0;
  if (flags & ES_ENET_COMPRESSED) {
    if ((flags & ES_ENET_PEER_MASK) == ES_ENET_PEER_MASK) return ES_LANE_join;
    return flags & ES_ENET_SENT_TIME ? ES_LANE_command
                                     : endpoint->classifier.enet_channel[ES_ENET_CHANNELS - 1] & 15;
  }
  skip = (flags & ES_ENET_SENT_TIME ? 4 : 2) + (endpoint->flags & ES_EP_ENET_CRC ? 4 : 0);
  walk.lane_tiers = endpoint->lane_tiers;
  walk.offset = start + skip;
  walk.end = start + packet->payload_len;
  cursor.pos += skip;
  if (walk.offset > walk.end)
    walk.failed = walk.done = 1;
  else
    enet_walk_linear(&walk, cursor);
  if (ES_UNLIKELY(!walk.done)) {
    if (hook == ES_HOOK_XDP)
      bpf_loop(ES_ENET_COMMANDS_MAX - walk.in_place, enet_step_xdp, &walk, 0);
    else
      bpf_loop(ES_ENET_COMMANDS_MAX - walk.in_place, enet_step_tc, &walk, 0);
    if (!walk.done) walk.failed = 1; /* more commands than ENet allows */
  }
  packet->walk_error = walk.failed;
  packet->is_time = 1;
  if (packet->direction == ES_OUT) {
    packet->numbered = (flags & ES_ENET_SENT_TIME) != 0;
    packet->number = sent_ms;
  } else {
    packet->numbered = walk.acks;
    packet->number = walk.acked_ms;
  }
  return enet_result(&walk);
}

ES_GLOBAL_SUBPROGRAM int es_dissect_enet_xdp(struct xdp_md* ctx, struct es_packet* packet,
                                             const struct es_plan_endpoint* endpoint) {
  if (!packet || !endpoint) return ES_LANE_command;
  return dissect_enet(ctx, ES_HOOK_XDP, packet, endpoint);
}

ES_GLOBAL_SUBPROGRAM int es_dissect_enet_tc(struct __sk_buff* ctx, struct es_packet* packet,
                                            const struct es_plan_endpoint* endpoint) {
  if (!packet || !endpoint) return ES_LANE_command;
  return dissect_enet(ctx, ES_HOOK_TC, packet, endpoint);
}

#endif
