/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue of edgeshed_poll. Bounded: of a server that never polls, the oldest events are dropped
 * and counted. The newest are the ones that still say how things stand. */
#include <stdio.h>
#include <string.h>

#include "userspace/client/client.h"

_Static_assert((int)EDGESHED_EVENT_RUNG == (int)ES_SESSION_EVENT_rung, "kinds as on the wire");
_Static_assert((int)EDGESHED_EVENT_SLOW_CONSUMER == (int)ES_SESSION_EVENT_slow_consumer,
               "the same");
_Static_assert((int)EDGESHED_EVENT_DAEMON_BACK == (int)ES_SESSION_EVENT_daemon_back, "the same");
_Static_assert((int)EDGESHED_EVENT_MESSAGE_REFUSED == (int)ES_SESSION_EVENT_message_refused,
               "the same");
_Static_assert((int)EDGESHED_EVENT_STREAM_HINT == (int)ES_SESSION_EVENT_stream_hint, "the same");
_Static_assert((int)EDGESHED_EVENT_ROOM_RUNG == (int)ES_SESSION_EVENT_room_rung, "the same");

void es_client_event_push(struct es_client_events* events, const edgeshed_event* event) {
  if (events->count == ES_CLIENT_EVENTS_MAX) {
    events->dropped++;
    events->first = (events->first + 1) % ES_CLIENT_EVENTS_MAX;
    events->count--;
  }
  events->event[(events->first + events->count++) % ES_CLIENT_EVENTS_MAX] = *event;
}

int es_client_event_pop(struct es_client_events* events, edgeshed_event* event) {
  if (!events->count) return 0;
  *event = events->event[events->first];
  event->dropped = events->dropped;
  events->dropped = 0;
  events->first = (events->first + 1) % ES_CLIENT_EVENTS_MAX;
  events->count--;
  return 1;
}

void es_client_event_own(edgeshed_session* session, enum edgeshed_event_kind kind, const char* code,
                         const char* text) {
  edgeshed_event event = {.kind = kind, .peer = -1, .room = -1};
  snprintf(event.code, sizeof(event.code), "%s", code);
  snprintf(event.text, sizeof(event.text), "%s", text);
  es_client_event_push(&session->events, &event);
}

void es_client_event_code(edgeshed_event* event, const struct es_session_code* code) {
  /* Both strings were checked for their terminating NUL when the message came in. */
  memcpy(event->code, code->name, sizeof(event->code));
  memcpy(event->text, code->text, sizeof(event->text));
  event->retry_after_ms = code->retry_after_ms;
}

int edgeshed_poll(edgeshed_session* session, edgeshed_event* event) {
  if (!session->events.count) es_client_service(session, es_client_now_ns());
  return es_client_event_pop(&session->events, event);
}
