/* SPDX-License-Identifier: Apache-2.0
 *
 * May this be sent? In a tick, while nothing is shed, one flag answers. The plan's expiry is looked
 * at once a tick, so a dead daemon never sheds for ever. */
#include "userspace/client/client.h"

#define LANES 8u
#define KEEP_ALL 0xffffu
#define FIRST_THINNED_LANE EDGESHED_LANE_SNAPSHOT

static int row_sheds(const struct es_board_room* row) {
  if (!ES_CLIENT_LOAD(row->open)) return 0;
  if (ES_CLIENT_LOAD(row->paused)) return 1;
  for (uint32_t i = 0; i < ES_BOARD_THIN_LANES; i++) {
    if (ES_CLIENT_LOAD(row->keep_q16[i]) != KEEP_ALL) return 1;
    if (ES_CLIENT_LOAD(row->min_interval_ms[i])) return 1;
  }
  return 0;
}

static int any_room_sheds(const edgeshed_session* session) {
  for (uint32_t i = 0; i < session->rooms_high; i++) {
    const uint32_t row = session->room[i].row;
    if (row != ES_SESSION_NONE && row_sheds(&session->plan->room[row])) return 1;
  }
  return 0;
}

void es_client_plan_look(edgeshed_session* session, uint64_t now_ns) {
  const struct es_plan_board* plan = session->plan;
  session->now_ms = (uint32_t)(now_ns / ES_CLIENT_MS_NS);
  session->shedding = 0;
  if (plan) {
    session->generation = ES_CLIENT_LOAD(plan->generation);
    session->shedding = now_ns < ES_CLIENT_LOAD(plan->valid_until_ns) && any_room_sheds(session);
  }
  session->may_send_all = !plan || (session->ticks.started_ns && !session->shedding);
}

/** Outside a tick: the plan is looked at when it is another one, and while it sheds at most once a
 * millisecond. An old plan that does not shed cannot begin to: no need to ask the clock. */
static void look_between_ticks(edgeshed_session* session) {
  const uint32_t generation = ES_CLIENT_LOAD(session->plan->generation);
  if (generation == session->generation && !session->shedding) return;
  const uint64_t now_ns = es_client_now_ns();
  if (generation == session->generation &&
      session->now_ms == (uint32_t)(now_ns / ES_CLIENT_MS_NS)) {
    return;
  }
  es_client_plan_look(session, now_ns);
}

int es_client_thin_judge(struct es_client_thin* state, struct es_client_thin_rule rule,
                         uint32_t now_ms) {
  const uint32_t gap_ms = now_ms - state->passed_ms;
  if (rule.keep_q16 == KEEP_ALL && !rule.min_interval_ms) return 1;
  if (rule.min_interval_ms && gap_ms < rule.min_interval_ms) return 0;
  if (rule.keep_q16 != KEEP_ALL) {
    const uint32_t sum = (uint32_t)state->error_q16 + rule.keep_q16;
    state->error_q16 = (uint16_t)sum;
    if (sum <= 0xffff) {
      if (!rule.max_gap_ms || gap_ms < rule.max_gap_ms) return 0;
      /* Sent early, by the bounded gap. The next one begins at a phase of its own, or all peers,
       * which a cut finds alike, would be sent to together every max_gap from then on. */
      state->error_q16 = (uint16_t)(state->error_q16 * 25173u + 13849u);
      const uint32_t span = gap_ms >= 2 * rule.max_gap_ms ? rule.max_gap_ms : rule.max_gap_ms / 4;
      state->passed_ms = now_ms - (uint32_t)(((uint64_t)state->error_q16 * span) >> 16);
      return 1;
    }
  }
  state->passed_ms = now_ms;
  return 1;
}

static int judge(edgeshed_session* session, int number, enum edgeshed_lane lane) {
  if (!session->ticks.started_ns) {
    look_between_ticks(session);
    if (ES_CLIENT_LIKELY(!session->shedding)) return 1;
  }
  if (number < 0 || (uint32_t)number >= session->peers_high || (uint32_t)lane >= LANES) return 1;
  struct es_client_peer* peer = &session->peer[number];
  if (!(session->peer_flags[number] & ES_PEER_USED) || peer->room == ES_SESSION_NONE) return 1;
  const uint32_t row_number = session->room[peer->room].row;
  if (row_number == ES_SESSION_NONE) return 1;
  const struct es_board_room* row = &session->plan->room[row_number];
  if (!ES_CLIENT_LOAD(row->open)) return 1;
  if ((ES_CLIENT_LOAD(row->paused) >> (uint32_t)lane) & 1u) return 0;
  if (lane < FIRST_THINNED_LANE) return 1;
  const uint32_t i = (uint32_t)(lane - FIRST_THINNED_LANE);
  const struct es_client_thin_rule rule = {
      .keep_q16 = ES_CLIENT_LOAD(row->keep_q16[i]),
      .min_interval_ms = ES_CLIENT_LOAD(row->min_interval_ms[i]),
      .max_gap_ms = ES_CLIENT_LOAD(row->max_gap_ms)};
  return es_client_thin_judge(&peer->thin[i], rule, session->now_ms);
}

int edgeshed_may_send(edgeshed_session* session, int peer, enum edgeshed_lane lane) {
  if (ES_CLIENT_LIKELY(session->may_send_all)) return 1;
  return judge(session, peer, lane);
}
