/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Counter rows. One row per possible CPU and endpoint (or room), index cpu * rows + number: a row
 * has one writer, so an increment needs no lock. Readers sum over CPUs through mmap.
 * Ledger: seen = sum of cells, and rejected <= the sum of the drop cells of its row.
 */
#ifndef EDGESHED_MAPS_COUNTERS_H
#define EDGESHED_MAPS_COUNTERS_H

#include "maps/connection.h"
#include "maps/lanes.h"
#include "maps/reasons.h"
#include "maps/types.h"

/** What the packet path itself remembers per CPU and endpoint: error diffusion for decisions that
 * have no connection to keep it, and how much of this generation's allowances is used. */
struct es_cpu_scratch {
  __u32 generation; /* last plan that this CPU decided by: shows when a plan took effect */
  __u32 events;     /* sheds since the last sampled event */
  __u32 handshakes; /* of strangers, under allowance_generation */
  __u32 rejects;
  __u32 allowance_generation;
  __u16 dead_man_error_q16;
  __u16 ce_error_q8;
  struct es_thin stranger[ES_DIRECTIONS][4]; /* lane & 3 */
  __u64 reserved[1];
};
ES_ASSERT_SIZE(struct es_cpu_scratch, 64);

/** Row 0 of each CPU is the host: packets of no endpoint. Bytes are charged bytes (IP length). */
struct es_endpoint_counters {
  struct es_cpu_scratch scratch;
  __u64 seen[ES_DIRECTIONS];
  __u64 walk_errors[ES_DIRECTIONS]; /* payloads that broke their protocol; decided all the same */
  __u64 not_rejected[2];            /* rejects withheld: by a cap, by a request too short */
  __u64 reserved[2];
  __u64 bytes[ES_DIRECTIONS][ES_ROWS]; /* seen */
  __u64 bytes_shed[ES_DIRECTIONS][ES_ROWS];
  __u64 rejected[ES_DIRECTIONS][ES_ROWS]; /* dropped, and answered */
  __u64 reserved_row[4];
  __u64 cell[ES_DIRECTIONS][ES_ROWS][ES_REASON_COLUMNS]; /* packets */
  __u64 shadow[ES_DIRECTIONS][ES_REASON_COLUMNS];        /* what shadow mode would have done */
};
ES_ASSERT_SIZE(struct es_endpoint_counters, 7680);

/** Packets of a room that were decided by the table. `sampled` are class-decided packets looked up
 * one in ES_SAMPLE_EVERY: they stand for that many, and are in no cell. */
struct es_room_counters {
  __u32 allowance_generation;
  __u32 reserved;
  __u64 stream_bytes_used; /* of room_bytes_per_cpu, under allowance_generation */
  __u64 stream_bytes;      /* accepted by the governor, ever */
  __u64 reserved_line[5];
  __u64 cell[ES_DIRECTIONS][ES_TIERS + 1][ES_OUTCOMES]; /* tier ES_TIERS: demoted */
  __u64 arrivals[ES_DIRECTIONS][ES_LANES]; /* after contract drops, before ladder drops */
  __u64 sampled[ES_DIRECTIONS][ES_LANES];
};
ES_ASSERT_SIZE(struct es_room_counters, 832);

#endif
