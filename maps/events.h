/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * A sampled shed, for people and for the daemon's session events. Never one record per drop.
 */
#ifndef EDGESHED_MAPS_EVENTS_H
#define EDGESHED_MAPS_EVENTS_H

#include "maps/connection.h"
#include "maps/types.h"

struct es_event {
  __u64 jiffies;
  struct es_key remote;
  __u32 generation;
  __u32 sampled_of; /* sheds of this CPU and endpoint that this one stands for; 0: no sample, but
                       the first refusal of a connection in a second, for its game server */
  __u32 ip_bytes;
  __u16 room; /* 65535: not known */
  __u16 stream;
  __u8 direction;
  __u8 row; /* enum es_row or lane */
  __u8 tier;
  __u8 verdict;
  __u8 reason;
  __u8 priority;
  __u8 reserved[10];
};
ES_ASSERT_SIZE(struct es_event, 64);

#endif
