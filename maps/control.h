/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The control page: what every packet reads first, the heartbeat, and what an adopter must know
 * before it touches anything else. One entry of one mmapable array.
 */
#ifndef EDGESHED_MAPS_CONTROL_H
#define EDGESHED_MAPS_CONTROL_H

#include "maps/limits.h"
#include "maps/types.h"

#define ES_CONTROL_MAGIC 0x65446765u /* "edGe" */

/** Sizes and secrets fixed when the maps were made; the same values are constants in the program.
 * `buckets` excludes the stash bucket, which is bucket number `buckets`. */
struct es_geometry {
  __u32 endpoints;
  __u32 rooms;
  __u32 classes;
  __u32 connections;
  __u32 stream_blocks;
  __u32 buckets;
  __u32 cpus;    /* possible CPUs: rows of the counters */
  __u32 hz;      /* jiffies per second of the kernel */
  __u64 seed[2]; /* secret of the slot table and the fragment array, drawn at load */
};
ES_ASSERT_SIZE(struct es_geometry, 48);

struct es_control {
  /* Line one: read by every packet, written by the daemon once a tick. */
  __u32 generation;        /* of the live plan; its rows stand in copy (generation & 1); 0: none */
  __u32 event_sample_mask; /* an event for one in (mask + 1) sheds per CPU; ~0: none */
  __u64 valid_until_jiffies; /* the plan's expiry (dead-man switch) */
  __u32 bypass;              /* 1: pass everything. Written by the CLI only */
  __u32 stash_used;          /* occupied slots of the stash bucket; 0: it is not looked at */
  __u64 clock_jiffies;       /* the clock when the program was loaded with the map clock */
  __u32 rejects_per_cpu;     /* rejects a CPU may send under this generation */
  __u32 stream_hint_q8;      /* share of a stream's limit from which its author is told; 0: never */
  __u32 reserved_hot[6];

  /* Line two: heartbeat, written by the daemon once a tick. */
  __u64 tick_count;
  __u64 tick_monotonic_ns; /* CLOCK_MONOTONIC at the last publish */
  __u32 tick_rate_hz;
  __u32 daemon_pid;
  __u32 reserved_heartbeat[10];

  /* Line three: written by whoever made the maps; default_enforce by every attach that says so. */
  __u32 magic;
  __u32 schema_version;
  struct es_geometry geometry;
  __u32 default_enforce; /* endpoints that say nothing: 1 enforce, 0 shadow */
  __u32 object_hash;     /* CRC-32 of the object file of the pinned programs; 0: not known */
};
ES_ASSERT_SIZE(struct es_control, 192);

/** The port table: one entry of one mmapable array. Index: local port in host order. */
struct es_ports_page {
  __u8 endpoint[ES_PORTS]; /* number of the first endpoint with that port; 0: not ours */
};
ES_ASSERT_SIZE(struct es_ports_page, 65536);

#endif
