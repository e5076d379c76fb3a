// See native_path.h. GNU C: the packet path uses statement expressions and designated initialisers
// as clang -target bpf has them.
#define ES_NATIVE_STORAGE __thread
#include "tools/sim/native_path.h"

#include "bpf/decide.h"

__thread struct es_native_tables es_native;

void es_sim_use(const struct es_sim_memory* memory) {
  es_native = (struct es_native_tables){
      .geometry = memory->geometry,
      .control = memory->control,
      .plan_ep = memory->endpoints,
      .plan_room = memory->rooms,
      .plan_class = memory->classes,
      .conns = memory->connections,
      .conns_in = memory->states_in,
      .conns_out = memory->states_out,
      .count_ep = memory->count_endpoints,
      .count_room = memory->count_rooms,
  };
}

void es_sim_decide(struct es_packet* packet, unsigned record) {
  const struct es_control* control = table_control();
  struct es_moment moment = moment_now(control, ES_READ(control->generation));
  const struct es_plan_endpoint* endpoint =
      table_plan_endpoint(moment.generation, packet->endpoint);
  struct es_endpoint_counters* count = table_count_endpoint(packet->endpoint);
  __u8 direction = packet->direction & 1;
  packet->tier = es_lane_tier(endpoint->lane_tiers, packet->lane & 7);
  packet->row = packet->lane;
  packet->room = ES_NO_ROOM;
  packet->arrived = 0;
  __u8 reason = judge_lane(packet, endpoint->drop_mask[direction], endpoint->pass_mask[direction]);
  if (reason != ES_UNDECIDED) {
    packet->arrived = 1;
  } else {
    reason = judge_connection(packet, table_connection(record), record, &moment);
  }
  settle(packet, reason, endpoint->flags, &moment, &count->scratch);
}
