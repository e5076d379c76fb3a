/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The EdgeShed lane header: 12 bytes in front of a game's own payload, for people who write their
 * own netcode. Plain C, no dependency beyond <stdint.h>: copy it into a game. docs/lane-header.md
 * explains it. The host reads it and never changes it, except in a reject, which it sends itself.
 */
#ifndef EDGESHED_LANE_HEADER_H
#define EDGESHED_LANE_HEADER_H

#ifdef __bpf__ /* the kernel side has no C library */
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
#else
#include <stdint.h>
#endif

#define EDGESHED_LANE_MAGIC 0xe5
#define EDGESHED_LANE_VERSION 1
#define EDGESHED_LANE_BYTES 12

/* flags */
#define EDGESHED_LANE_JOIN 0x1   /* first packet of a connection */
#define EDGESHED_LANE_CLOSE 0x2  /* last packet of a connection */
#define EDGESHED_LANE_ACK 0x4    /* the ack field holds the newest sequence received */
#define EDGESHED_LANE_REJECT 0x8 /* sent by the host: what you sent was refused */

/** All multi-byte fields in network byte order.
 * version_tier: version << 4 | tier (0 critical, 1 standard, 2 best-effort: a claim, capped by the
 * connection's contract). lane_flags: flags << 4 | lane. In a reject `code` says why (a reason of
 * maps/reasons.h) and `ack` is the sequence of the refused packet. */
struct edgeshed_lane_header {
  uint8_t magic;
  uint8_t version_tier;
  uint8_t lane_flags;
  uint8_t code; /* 0, in a reject the reason */
  uint16_t stream;
  uint16_t sequence;
  uint16_t ack;
  uint16_t retry_after_10ms; /* 0, in a reject how long to wait */
};

#endif
