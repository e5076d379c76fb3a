/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures ticks, and reports at the end of each. */
#include "userspace/client/client.h"

/* One in a hundred of the ring is above its 99th percentile, and the percentile itself. */
#define TOP_MAX (ES_CLIENT_TICKS_MAX / 100 + 1)

void es_client_ticks_ended(struct es_client_ticks* ticks, uint64_t ended_ns) {
  const uint64_t duration_ns = ended_ns - ticks->started_ns;
  const uint64_t slot = ticks->completed++ % ES_CLIENT_TICKS_MAX;
  ticks->ended_ns[slot] = ended_ns;
  ticks->duration_ns[slot] = duration_ns;
  ticks->busy_ns += duration_ns;
  ticks->started_ns = 0;
}

/** Keeps the longest TOP_MAX durations, the longest first. */
static void keep_longest(uint64_t top[TOP_MAX], uint32_t* kept, uint64_t duration_ns) {
  if (*kept == TOP_MAX) {
    if (duration_ns <= top[TOP_MAX - 1]) return;
    --*kept;
  }
  uint32_t at = (*kept)++;
  for (; at > 0 && top[at - 1] < duration_ns; at--) top[at] = top[at - 1];
  top[at] = duration_ns;
}

double es_client_ticks_p99_ms(const struct es_client_ticks* ticks, uint64_t now_ns) {
  uint64_t top[TOP_MAX];
  uint32_t kept = 0;
  uint32_t seen = 0;
  for (; seen < ES_CLIENT_TICKS_MAX && seen < ticks->completed; seen++) {
    const uint64_t slot = (ticks->completed - 1 - seen) % ES_CLIENT_TICKS_MAX;
    if (ticks->ended_ns[slot] + ES_CLIENT_S_NS < now_ns) break;
    keep_longest(top, &kept, ticks->duration_ns[slot]);
  }
  if (!seen) return 0;
  /* Rank ceil(0.99 seen) from below is rank seen / 100 from above, counted from 0. */
  const uint32_t rank = seen / 100;
  return (double)top[rank] / (double)ES_CLIENT_MS_NS;
}

void edgeshed_tick_begin(edgeshed_session* session) {
  const uint64_t now_ns = es_client_now_ns();
  es_client_service(session, now_ns);
  session->ticks.started_ns = now_ns;
  if (session->report) ES_CLIENT_STORE(session->report->tick_started_ns, now_ns);
  es_client_plan_look(session, now_ns);
}

void edgeshed_tick_end(edgeshed_session* session) {
  struct es_client_ticks* ticks = &session->ticks;
  if (!ticks->started_ns) return;
  const uint64_t now_ns = es_client_now_ns();
  es_client_ticks_ended(ticks, now_ns);
  if (session->report) ES_CLIENT_STORE(session->report->tick_started_ns, 0);
  const edgeshed_report_data data = {.tick_p99_ms = es_client_ticks_p99_ms(ticks, now_ns),
                                     .ring_occupancy = session->ring_occupancy,
                                     .ticks = ticks->completed,
                                     .busy_ns = ticks->busy_ns};
  es_client_boards_report(session, &data, now_ns);
  /* Between ticks edgeshed_may_send looks at the plan by itself. */
  session->may_send_all = !session->plan;
}

void edgeshed_set_ring(edgeshed_session* session, double occupancy) {
  session->ring_occupancy = occupancy;
}

void edgeshed_report(edgeshed_session* session, const edgeshed_report_data* report) {
  const uint64_t now_ns = es_client_now_ns();
  es_client_service(session, now_ns);
  es_client_boards_report(session, report, now_ns);
}
