// See native_decide.h. GNU C: the packet path uses statement expressions and designated
// initialisers as clang -target bpf has them.
#include "tests/bpf/native_decide.h"

#include "bpf/decide.h"
#include "bpf/tell.h"

struct es_native_tables es_native;

void es_native_decide(struct es_packet* packet, int sample) {
  const struct es_control* control = table_control();
  struct es_moment moment = moment_now(control, ES_READ(control->generation));
  struct es_plan_endpoint* endpoint = table_plan_endpoint(moment.generation, packet->endpoint);
  struct es_endpoint_counters* count = table_count_endpoint(packet->endpoint);
  __u8 reason = ES_UNDECIDED;
  for (int attempt = 0; attempt < 2; attempt++) {
    reason = judge(packet, endpoint, &moment, sample);
    if (reason != ES_REASON_torn_plan) break;
    moment.generation = ES_READ(control->generation);
    endpoint = table_plan_endpoint(moment.generation, packet->endpoint);
  }
  settle(packet, reason, endpoint->flags, &moment, &count->scratch);
  count->scratch.generation = moment.generation;
}

void es_native_count(const struct es_packet* packet) {
  struct es_endpoint_counters* endpoint = table_count_endpoint(packet->endpoint);
  int direction = packet->direction, shed = packet->verdict == ES_VERDICT_drop;
  endpoint->seen[direction]++;
  endpoint->walk_errors[direction] += packet->walk_error != 0;
  endpoint->bytes[direction][packet->row] += packet->ip_bytes;
  endpoint->cell[direction][packet->row][packet->reason]++;
  if (shed) endpoint->bytes_shed[direction][packet->row] += packet->ip_bytes;
  if (shed) endpoint->scratch.events++;
  const struct es_control* control = table_control();
  struct es_moment moment = moment_now(control, ES_READ(control->generation));
  if (is_told(packet, endpoint->scratch.events)) tell_due(packet, &moment);
  if (packet->shadowed != ES_UNDECIDED) endpoint->shadow[direction][packet->shadowed]++;

  struct es_room_counters* room = packet->room == ES_NO_ROOM ? 0 : table_count_room(packet->room);
  if (!room) return;
  int tier = packet->row == ES_ROW_DEMOTED ? ES_TIERS : packet->tier;
  room->cell[direction][tier][es_reason_outcome(packet->reason)]++;
  if (packet->arrived) room->arrivals[direction][packet->lane]++;
}
