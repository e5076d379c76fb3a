/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The EdgeShed lane header (maps/lane_header.h): lane, stream and sequence as the sender claims
 * them. The claim is capped later, by the connection's class or the stranger rules.
 */
#ifndef EDGESHED_BPF_DISSECT_LANE_H
#define EDGESHED_BPF_DISSECT_LANE_H

#include "bpf/packet.h"
#include "bpf/parse.h"
#include "maps/lane_header.h"
#include "maps/lanes.h"

/** The header at the cursor, or NULL: too short, another magic, another version. */
ES_INLINE struct edgeshed_lane_header* lane_header_at(struct es_cursor cursor,
                                                      const struct es_packet* packet) {
  struct edgeshed_lane_header* header = cursor.pos;
  if (packet->payload_len < EDGESHED_LANE_BYTES || (void*)(header + 1) > cursor.end) return 0;
  if (header->magic != EDGESHED_LANE_MAGIC) return 0;
  return header->version_tier >> 4 == EDGESHED_LANE_VERSION ? header : 0;
}

/** Lane of a packet with a lane header: what it says, with two exceptions. A join is the join lane.
 * A claim of a less valuable tier than the lane's moves the packet to a lane of that tier. */
ES_INLINE __u8 dissect_lane(struct es_cursor cursor, struct es_packet* packet,
                            const struct es_plan_endpoint* endpoint) {
  struct edgeshed_lane_header* header = lane_header_at(cursor, packet);
  if (!header) {
    packet->walk_error = 1;
    return ES_LANE_command;
  }
  __u8 lane = header->lane_flags & 7, flags = header->lane_flags >> 4;
  __u8 claim = header->version_tier & 3;
  packet->sequence = header->sequence;
  packet->stream = ES_NTOHS(header->stream);
  packet->numbered = packet->direction == ES_OUT || (flags & EDGESHED_LANE_ACK);
  packet->number = ES_NTOHS(packet->direction == ES_OUT ? header->sequence : header->ack);
  if (flags & EDGESHED_LANE_JOIN) return ES_LANE_join;
  if (flags & EDGESHED_LANE_CLOSE) return ES_LANE_control;
  if (claim > es_lane_tier(endpoint->lane_tiers, lane))
    return claim == ES_TIER_standard ? ES_LANE_command : ES_LANE_cosmetic;
  packet->has_stream = lane == ES_LANE_stream; /* a farewell or a handshake is no sample */
  return lane;
}

#endif
