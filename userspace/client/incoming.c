/* SPDX-License-Identifier: Apache-2.0
 *
 * What each of the daemon's messages does. Their form is right already; that they make sense (rows,
 * kinds, the order) is checked here, and nonsense ends the session. */
#include "userspace/client/client.h"

/** 0: nonsense. */
static int take_event(edgeshed_session* session, const struct es_session_event* told) {
  const int own =
      told->kind == ES_SESSION_EVENT_daemon_gone || told->kind == ES_SESSION_EVENT_daemon_back;
  if (told->kind == ES_SESSION_EVENT_NONE || told->kind >= ES_SESSION_EVENT_KINDS || own) return 0;
  edgeshed_event event = {.kind = (int)told->kind,
                          .peer = -1,
                          .room = -1,
                          .value = told->value,
                          .player = told->player};
  if (told->room != ES_SESSION_NONE) {
    if (told->room >= session->plan_rows) return 0;
    event.room = es_client_room_of_row(session, told->room);
    /* A room that was closed here while the event was on its way. -1 would mean the shard. */
    if (event.room < 0) return 1;
  }
  if (told->row != ES_SESSION_NONE) {
    if (told->row >= session->report_rows) return 0;
    /* Another player may have got the number while the event was on its way. */
    if (told->row < session->peers_max && (session->peer_flags[told->row] & ES_PEER_USED) &&
        session->connect[told->row].player == told->player) {
      event.peer = (int)told->row;
    }
  }
  es_client_event_code(&event, &told->code);
  es_client_event_push(&session->events, &event);
  return 1;
}

/** 0: nonsense. The packet's descriptors are taken. */
static int take(edgeshed_session* session, const struct es_client_packet* packet) {
  if (packet->message.head.type == ES_SESSION_welcome) {
    if (session->link != ES_LINK_GREETING) {
      es_client_close_fds(packet->fds, packet->fd_count);
      return 0;
    }
    es_client_welcome(session, &packet->message.welcome, packet->fds, packet->fd_count);
    return 1;
  }
  if (session->link != ES_LINK_ACCEPTED) return 0;
  if (packet->message.head.type == ES_SESSION_event) {
    return take_event(session, &packet->message.event);
  }
  return es_client_room_answered(session, &packet->message.room_opened);
}

void es_client_read(edgeshed_session* session) {
  for (uint32_t i = 0; session->fd >= 0 && i < ES_CLIENT_READS_MAX; i++) {
    struct es_client_packet packet;
    if (es_client_receive(session, &packet) != ES_CLIENT_OK) return;
    if (!take(session, &packet)) {
      es_client_problem(session, "%s sent a message that makes no sense (type %u)", session->socket,
                        packet.message.head.type);
      es_client_drop(session, ES_CLIENT_RETRY_MS);
    }
  }
}
