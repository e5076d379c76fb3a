/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Every map of the product: owner, writer, readers, lifetime. Included by the BPF object only; user
 * space finds the maps by the names below. max_entries here are the smallest valid sizes: the
 * loader sets them from the geometry (userspace/kernel/object.cc) before load.
 *
 * All maps are made by `edgeshed attach`, pinned under one bpffs folder, and live until
 * `edgeshed detach`: they outlive the daemon, so a new daemon adopts them.
 * `mmap` in the table means BPF_F_MMAPABLE: user space reads and writes by loads and stores.
 *
 * map            entries                     writer          readers           access
 * es_control     1                           daemon, CLI     packets, daemon   mmap
 * es_ports       1 (a byte per port)         daemon          packets           mmap
 * es_plan_ep     2 copies x endpoints        daemon          packets, dump     mmap
 * es_plan_room   2 copies x rooms            daemon          packets, dump     mmap
 * es_plan_class  2 copies x classes          daemon          packets, dump     mmap
 * es_buckets     buckets + 1 stash           daemon          packets, dump     mmap
 * es_conns       connections                 daemon          packets, dump     mmap
 * es_conns_in    connections                 packets         dump              mmap
 * es_conns_out   connections                 packets         dump              mmap
 * es_streams     stream blocks + 1           packets         dump              mmap
 * es_count_ep    possible CPUs x endpoints   packets         daemon, dump      mmap
 * es_count_room  possible CPUs x rooms       packets         daemon, dump      mmap
 * es_frags       ES_FRAGMENT_SLOTS           packets         packets           kernel only
 * es_rej_prefix  ES_REJECT_PREFIX_SLOTS      packets         packets           kernel only
 * es_events      ring of ES_EVENT_RING_BYTES packets         daemon, dump      ring
 */
#ifndef EDGESHED_MAPS_BPF_H
#define EDGESHED_MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "maps/connection.h"
#include "maps/control.h"
#include "maps/counters.h"
#include "maps/events.h"
#include "maps/limits.h"
#include "maps/plan.h"
#include "maps/slot_table.h"

#define ES_ARRAY(name, value_type, entries, flags) \
  struct {                                         \
    __uint(type, BPF_MAP_TYPE_ARRAY);              \
    __uint(max_entries, entries);                  \
    __uint(map_flags, flags);                      \
    __type(key, __u32);                            \
    __type(value, value_type);                     \
  } name SEC(".maps")

ES_ARRAY(es_control, struct es_control, 1, BPF_F_MMAPABLE);
ES_ARRAY(es_ports, struct es_ports_page, 1, BPF_F_MMAPABLE);
ES_ARRAY(es_plan_ep, struct es_plan_endpoint, 2, BPF_F_MMAPABLE);
ES_ARRAY(es_plan_room, struct es_plan_room, 2, BPF_F_MMAPABLE);
ES_ARRAY(es_plan_class, struct es_plan_class, 2, BPF_F_MMAPABLE);
ES_ARRAY(es_buckets, struct es_bucket, 2, BPF_F_MMAPABLE);
ES_ARRAY(es_conns, struct es_connection, 1, BPF_F_MMAPABLE);
ES_ARRAY(es_conns_in, struct es_flow_state, 1, BPF_F_MMAPABLE);
ES_ARRAY(es_conns_out, struct es_flow_state, 1, BPF_F_MMAPABLE);
ES_ARRAY(es_streams, struct es_stream_block, 1, BPF_F_MMAPABLE);
ES_ARRAY(es_count_ep, struct es_endpoint_counters, 1, BPF_F_MMAPABLE);
ES_ARRAY(es_count_room, struct es_room_counters, 1, BPF_F_MMAPABLE);
ES_ARRAY(es_frags, __u64, ES_FRAGMENT_SLOTS, 0);
ES_ARRAY(es_rej_prefix, __u64, ES_REJECT_PREFIX_SLOTS, 0);

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, ES_EVENT_RING_BYTES);
} es_events SEC(".maps");

#endif
