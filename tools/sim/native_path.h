// The packet path's decision, compiled natively over plain memory: bpf/decide.h itself, no copy of
// it. One world at a time and thread.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#include "bpf/packet.h"
#include "maps/connection.h"
#include "maps/control.h"
#include "maps/counters.h"
#include "maps/plan.h"

/// The memory that decisions work on: one CPU, one endpoint (number 1), as the maps are laid out.
struct es_sim_memory {
  struct es_geometry geometry;
  struct es_control* control;
  struct es_plan_endpoint* endpoints; /* 2 * geometry.endpoints */
  struct es_plan_room* rooms;         /* 2 * geometry.rooms */
  struct es_plan_class* classes;      /* 2 * geometry.classes */
  struct es_connection* connections;  /* geometry.connections */
  struct es_flow_state* states_in;
  struct es_flow_state* states_out;
  struct es_endpoint_counters* count_endpoints;
  struct es_room_counters* count_rooms;
};

/// Decides by this memory from now on, in this thread.
void es_sim_use(const struct es_sim_memory* memory);

/// Judges a packet of connection `record`. The caller fills in direction, endpoint, lane, segments
/// and ip_bytes; tier, room, reason, verdict and arrived come back. The slot table is not asked: it
/// would find `record`.
void es_sim_decide(struct es_packet* packet, unsigned record);

#ifdef __cplusplus
}
#endif
