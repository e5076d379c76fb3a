/* SPDX-License-Identifier: Apache-2.0
 *
 * Rooms: the server's number stays, the daemon's row is looked up and may be another one each time
 * the daemon is back. */
#include <errno.h>
#include <string.h>

#include "userspace/client/client.h"

static int make_room(edgeshed_session* session, const char* name, uint32_t players) {
  for (uint32_t i = 0; i < ES_CLIENT_ROOMS_MAX; i++) {
    struct es_client_room* room = &session->room[i];
    if (room->state != ES_ROOM_FREE) continue;
    memset(room, 0, sizeof(*room));
    if (!name || !*name || !es_client_name(room->name, name)) {
      errno = EINVAL;
      return -1;
    }
    room->state = ES_ROOM_WANTED;
    room->row = ES_SESSION_NONE;
    room->players = players;
    if (i >= session->rooms_high) session->rooms_high = i + 1;
    session->rooms_unsaid = 1;
    return (int)i;
  }
  errno = ENOSPC;
  return -1;
}

int edgeshed_room_open(edgeshed_session* session, const char* name, uint32_t players) {
  const int number = make_room(session, name, players);
  if (number < 0 || session->link != ES_LINK_ACCEPTED) return number;
  struct es_client_room* room = &session->room[number];
  const uint64_t deadline_ns = es_client_now_ns() + ES_CLIENT_WAIT_MS * ES_CLIENT_MS_NS;
  session->waiting_room = (uint32_t)number;
  es_client_tell(session);
  while (room->state == ES_ROOM_WANTED || room->state == ES_ROOM_ASKED) {
    if (!es_client_wait(session, deadline_ns, room->state == ES_ROOM_WANTED)) break;
  }
  session->waiting_room = ES_SESSION_NONE;
  if (room->state != ES_ROOM_REFUSED) return number;
  room->state = ES_ROOM_FREE;
  errno = EBUSY;
  return -1;
}

void edgeshed_room_close(edgeshed_session* session, int number) {
  if (number < 0 || (uint32_t)number >= session->rooms_high) return;
  struct es_client_room* room = &session->room[number];
  switch (room->state) {
    case ES_ROOM_WANTED:
    case ES_ROOM_REFUSED:
      room->state = ES_ROOM_FREE;
      break;
    case ES_ROOM_ASKED:
      room->state = ES_ROOM_ENDING;
      break;
    case ES_ROOM_OPEN:
      room->state = ES_ROOM_CLOSING;
      session->rooms_unsaid = 1;
      break;
    case ES_ROOM_FREE:
    case ES_ROOM_ENDING:
    case ES_ROOM_CLOSING:
      return;
  }
  es_client_peers_room_closed(session, (uint32_t)number);
  es_client_tell(session);
}

/** One room, as far as something is to be told of it. */
static enum es_client_result tell_room(edgeshed_session* session, struct es_client_room* room) {
  if (room->state == ES_ROOM_WANTED) {
    struct es_session_room_open open = {.players = room->players};
    memcpy(open.room, room->name, sizeof(open.room));
    room->request = ++session->requests;
    const enum es_client_result result =
        es_client_send(session, ES_SESSION_room_open, room->request, &open, sizeof(open));
    if (result == ES_CLIENT_OK) room->state = ES_ROOM_ASKED;
    return result;
  }
  struct es_session_room_close close = {.room = room->row};
  const enum es_client_result result =
      es_client_send(session, ES_SESSION_room_close, 0, &close, sizeof(close));
  if (result == ES_CLIENT_OK) {
    room->state = ES_ROOM_FREE;
    room->row = ES_SESSION_NONE;
  }
  return result;
}

enum es_client_result es_client_rooms_tell(edgeshed_session* session, uint32_t* sends_left) {
  if (!session->rooms_unsaid) return ES_CLIENT_OK;
  for (uint32_t i = 0; i < session->rooms_high; i++) {
    struct es_client_room* room = &session->room[i];
    if (room->state != ES_ROOM_WANTED && room->state != ES_ROOM_CLOSING) continue;
    if (!*sends_left) return ES_CLIENT_LATER;
    const enum es_client_result result = tell_room(session, room);
    if (result != ES_CLIENT_OK) return result;
    --*sends_left;
  }
  session->rooms_unsaid = 0;
  return ES_CLIENT_OK;
}

/** Without it an event of a room that edgeshed_room_open is about to refuse would name a number
 * that the caller never got. */
static int number_to_tell(const edgeshed_session* session, uint32_t number) {
  return number == session->waiting_room ? -1 : (int)number;
}

static void room_refused(edgeshed_session* session, uint32_t number,
                         const struct es_session_code* refused) {
  session->room[number].state = ES_ROOM_REFUSED;
  edgeshed_event event = {
      .kind = EDGESHED_EVENT_REFUSED, .peer = -1, .room = number_to_tell(session, number)};
  es_client_event_code(&event, refused);
  es_client_event_push(&session->events, &event);
}

int es_client_room_answered(edgeshed_session* session,
                            const struct es_session_room_opened* answer) {
  const int refused = answer->refused.name[0] != 0;
  if (!refused && answer->room >= session->plan_rows) return 0;
  for (uint32_t i = 0; i < session->rooms_high; i++) {
    struct es_client_room* room = &session->room[i];
    if (room->state != ES_ROOM_ASKED && room->state != ES_ROOM_ENDING) continue;
    if (room->request != answer->head.request) continue;
    if (room->state == ES_ROOM_ENDING) {
      room->state = refused ? ES_ROOM_FREE : ES_ROOM_CLOSING;
      room->row = refused ? ES_SESSION_NONE : answer->room;
      session->rooms_unsaid = 1;
    } else if (refused) {
      room_refused(session, i, &answer->refused);
    } else {
      room->state = ES_ROOM_OPEN;
      room->row = answer->room;
      es_client_peers_room_opened(session);
    }
    return 1;
  }
  return 0;
}

int es_client_room_of_row(const edgeshed_session* session, uint32_t row) {
  for (uint32_t i = 0; i < session->rooms_high; i++) {
    if (session->room[i].state == ES_ROOM_OPEN && session->room[i].row == row) return (int)i;
  }
  return -1;
}

int es_client_rooms_settled(const edgeshed_session* session) {
  if (session->rooms_unsaid) return 0;
  for (uint32_t i = 0; i < session->rooms_high; i++) {
    if (session->room[i].state == ES_ROOM_ASKED) return 0;
  }
  return 1;
}

void es_client_rooms_forget_daemon(edgeshed_session* session) {
  for (uint32_t i = 0; i < session->rooms_high; i++) {
    struct es_client_room* room = &session->room[i];
    room->row = ES_SESSION_NONE;
    if (room->state == ES_ROOM_ENDING || room->state == ES_ROOM_CLOSING) {
      room->state = ES_ROOM_FREE;
    }
    if (room->state != ES_ROOM_FREE) room->state = ES_ROOM_WANTED;
  }
  session->rooms_unsaid = 1;
}
