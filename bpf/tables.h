/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Access to the maps by meaning: each function returns one row or NULL. The native build (tests)
 * reads the same rows from plain arrays, so that every header above this one compiles unchanged.
 */
#ifndef EDGESHED_BPF_TABLES_H
#define EDGESHED_BPF_TABLES_H

#include "bpf/side.h"
#include "maps/connection.h"
#include "maps/control.h"
#include "maps/counters.h"
#include "maps/plan.h"
#include "maps/slot_table.h"

#ifdef __bpf__

#include "maps/maps.bpf.h"

/* Knobs: set by the loader before load; constants to the verifier, so dead branches disappear. */
const volatile struct es_geometry knob_geometry = {
    .endpoints = 1, .rooms = 1, .classes = 1, .connections = 1, .buckets = 1, .cpus = 1, .hz = 250};
const volatile __u32 knob_map_clock; /* 1: time is es_control.clock_jiffies (tests, replay) */

#define ES_ROW(map, index)                   \
  ({                                         \
    __u32 row_index = (index);               \
    bpf_map_lookup_elem(&(map), &row_index); \
  })
#define es_geometry_of() knob_geometry

ES_INLINE __u32 table_cpu(void) { return bpf_get_smp_processor_id(); }

/** Jiffies since boot (0.2 ns; a nanosecond clock costs 24). */
ES_INLINE __u64 table_jiffies(const struct es_control* control) {
  return knob_map_clock ? ES_READ(control->clock_jiffies) : bpf_jiffies64();
}

#else /* native */

/** The maps of the native build: plain arrays of the sizes in `geometry`. */
struct es_native_tables {
  struct es_geometry geometry;
  __u32 cpu;
  struct es_control* control;
  struct es_ports_page* ports;
  struct es_plan_endpoint* plan_ep;
  struct es_plan_room* plan_room;
  struct es_plan_class* plan_class;
  struct es_bucket* buckets;
  struct es_connection* conns;
  struct es_flow_state* conns_in;
  struct es_flow_state* conns_out;
  struct es_stream_block* streams;
  struct es_endpoint_counters* count_ep;
  struct es_room_counters* count_room;
};
#ifndef ES_NATIVE_STORAGE
#define ES_NATIVE_STORAGE /* a user with threads says __thread, each with tables of its own */
#endif
extern ES_NATIVE_STORAGE struct es_native_tables es_native;

#define es_geometry_of() es_native.geometry
#define ES_ROW(map, index) es_native_row_##map(index)

ES_INLINE __u32 table_cpu(void) { return es_native.cpu; }
ES_INLINE __u64 table_jiffies(const struct es_control* control) {
  return ES_READ(control->clock_jiffies);
}

#define ES_NATIVE_ROW(map, type, member, entries)            \
  ES_INLINE type* es_native_row_##map(__u32 index) {         \
    return index < (entries) ? &es_native.member[index] : 0; \
  }
ES_NATIVE_ROW(es_control, struct es_control, control, 1)
ES_NATIVE_ROW(es_ports, struct es_ports_page, ports, 1)
ES_NATIVE_ROW(es_plan_ep, struct es_plan_endpoint, plan_ep, 2 * es_native.geometry.endpoints)
ES_NATIVE_ROW(es_plan_room, struct es_plan_room, plan_room, 2 * es_native.geometry.rooms)
ES_NATIVE_ROW(es_plan_class, struct es_plan_class, plan_class, 2 * es_native.geometry.classes)
ES_NATIVE_ROW(es_buckets, struct es_bucket, buckets, es_native.geometry.buckets + 1)
ES_NATIVE_ROW(es_conns, struct es_connection, conns, es_native.geometry.connections)
ES_NATIVE_ROW(es_conns_in, struct es_flow_state, conns_in, es_native.geometry.connections)
ES_NATIVE_ROW(es_conns_out, struct es_flow_state, conns_out, es_native.geometry.connections)
ES_NATIVE_ROW(es_streams, struct es_stream_block, streams, es_native.geometry.stream_blocks + 1)
ES_NATIVE_ROW(es_count_ep, struct es_endpoint_counters, count_ep,
              es_native.geometry.cpus* es_native.geometry.endpoints)
ES_NATIVE_ROW(es_count_room, struct es_room_counters, count_room,
              es_native.geometry.cpus* es_native.geometry.rooms)

#endif /* native */

ES_INLINE struct es_control* table_control(void) { return ES_ROW(es_control, 0); }

/** Number of the first endpoint on a local port (host order); 0: not ours. */
ES_INLINE __u8 table_endpoint_of_port(__u16 port) {
  struct es_ports_page* ports = ES_ROW(es_ports, 0);
  __u32 index = port;
  ES_OPAQUE(index); /* kernel 6.1 does not know that a byte swap of 16 bits stays in 16 bits */
  return ports ? ES_READ(ports->endpoint[index & (ES_PORTS - 1)]) : 0;
}

/* Plan rows: of the copy that belongs to `generation`. The caller compares row->generation. */
ES_INLINE struct es_plan_endpoint* table_plan_endpoint(__u32 generation, __u32 endpoint) {
  return ES_ROW(es_plan_ep, (generation & 1) * es_geometry_of().endpoints + endpoint);
}
ES_INLINE struct es_plan_room* table_plan_room(__u32 generation, __u32 room) {
  return ES_ROW(es_plan_room, (generation & 1) * es_geometry_of().rooms + room);
}
ES_INLINE struct es_plan_class* table_plan_class(__u32 generation, __u32 contract_class) {
  return ES_ROW(es_plan_class, (generation & 1) * es_geometry_of().classes + contract_class);
}

ES_INLINE struct es_bucket* table_bucket(__u32 index) { return ES_ROW(es_buckets, index); }
ES_INLINE struct es_connection* table_connection(__u32 record) { return ES_ROW(es_conns, record); }
ES_INLINE struct es_flow_state* table_flow_in(__u32 record) { return ES_ROW(es_conns_in, record); }
ES_INLINE struct es_flow_state* table_flow_out(__u32 record) {
  return ES_ROW(es_conns_out, record);
}
ES_INLINE struct es_stream_block* table_stream_block(__u32 block) {
  return ES_ROW(es_streams, block);
}

/* Counter rows of this CPU. */
ES_INLINE struct es_endpoint_counters* table_count_endpoint(__u32 endpoint) {
  return ES_ROW(es_count_ep, table_cpu() * es_geometry_of().endpoints + endpoint);
}
ES_INLINE struct es_room_counters* table_count_room(__u32 room) {
  return ES_ROW(es_count_room, table_cpu() * es_geometry_of().rooms + room);
}

#endif
