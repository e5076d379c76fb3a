/* SPDX-License-Identifier: Apache-2.0
 *
 * Peers: a peer's number is its row on the report board. What could not be told at once, because
 * the daemon is absent, the socket full or the room not open, is told later, in the order of
 * numbers. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "userspace/client/client.h"

#define SAY (ES_PEER_SAY_DISCONNECT | ES_PEER_SAY_CONNECT)

/** 0: neither IPv4 nor IPv6. Copied first: a caller's sockaddr need not be aligned for its family.
 */
static int take_address(struct es_session_connect* connect, const struct sockaddr* addr) {
  sa_family_t family;
  memcpy(&family, (const char*)addr + offsetof(struct sockaddr, sa_family), sizeof(family));
  if (family == AF_INET) {
    struct sockaddr_in v4;
    memcpy(&v4, addr, sizeof(v4));
    memset(connect->addr + 10, 0xff, 2);
    memcpy(connect->addr + 12, &v4.sin_addr, 4);
    connect->port = ntohs(v4.sin_port);
    return 1;
  }
  if (family == AF_INET6) {
    struct sockaddr_in6 v6;
    memcpy(&v6, addr, sizeof(v6));
    memcpy(connect->addr, &v6.sin6_addr, 16);
    connect->port = ntohs(v6.sin6_port);
    return 1;
  }
  return 0;
}

/** 0: something of it is not allowed. */
static int take_peer(const edgeshed_session* session, struct es_session_connect* connect,
                     const edgeshed_peer* peer) {
  memset(connect, 0, sizeof(*connect));
  if (!peer || !peer->addr || !take_address(connect, peer->addr)) return 0;
  if (peer->room < 0 || (uint32_t)peer->room >= session->rooms_high) return 0;
  const enum es_client_room_state state = session->room[peer->room].state;
  if (state == ES_ROOM_FREE || state == ES_ROOM_ENDING || state == ES_ROOM_CLOSING) return 0;
  if (peer->priority < 0 || peer->priority > 255) return 0;
  connect->priority = (uint8_t)(peer->priority ? peer->priority : 128);
  /* Anything but 0 goes on as it is: what a weight may be is the daemon's to say. */
  connect->weight = peer->weight == 0 ? 1 : peer->weight;
  connect->player = peer->player;
  return es_client_name(connect->endpoint, peer->endpoint) &&
         es_client_name(connect->contract_class, peer->contract_class);
}

/** What is to be said of a peer, as long as the socket takes it. */
static enum es_client_result tell_peer(edgeshed_session* session, uint32_t number) {
  uint8_t* flags = &session->peer_flags[number];
  if (*flags & ES_PEER_SAY_DISCONNECT) {
    struct es_session_disconnect disconnect = {.row = number};
    const enum es_client_result result =
        es_client_send(session, ES_SESSION_disconnect, 0, &disconnect, sizeof(disconnect));
    if (result != ES_CLIENT_OK) return result;
    *flags &= (uint8_t)~(ES_PEER_SAY_DISCONNECT | ES_PEER_TOLD);
  }
  if (!(*flags & ES_PEER_SAY_CONNECT)) return ES_CLIENT_OK;
  const struct es_client_room* room = &session->room[session->peer[number].room];
  if (room->state != ES_ROOM_OPEN) return ES_CLIENT_OK; /* until peers_room_opened */
  struct es_session_connect* connect = &session->connect[number];
  connect->row = number;
  connect->room = room->row;
  const enum es_client_result result =
      es_client_send(session, ES_SESSION_connect, 0, connect, sizeof(*connect));
  if (result != ES_CLIENT_OK) return result;
  *flags = (uint8_t)((*flags & ~ES_PEER_SAY_CONNECT) | ES_PEER_TOLD);
  return ES_CLIENT_OK;
}

enum es_client_result es_client_peers_tell(edgeshed_session* session, uint32_t* sends_left) {
  for (; session->peer_cursor < session->peers_high; session->peer_cursor++) {
    if (!(session->peer_flags[session->peer_cursor] & SAY)) continue;
    if (!*sends_left) return ES_CLIENT_LATER;
    const enum es_client_result result = tell_peer(session, session->peer_cursor);
    if (result != ES_CLIENT_OK) return result;
    --*sends_left;
  }
  return ES_CLIENT_OK;
}

/** Now if nobody waits before it, otherwise in its turn. */
static void tell_soon(edgeshed_session* session, uint32_t number) {
  if (session->link == ES_LINK_ACCEPTED && !session->full &&
      session->peer_cursor == session->peers_high && tell_peer(session, number) == ES_CLIENT_OK) {
    return;
  }
  if (number < session->peer_cursor) session->peer_cursor = number;
  es_client_tell(session);
}

/** What the number's last user noted is not this one's. */
static void clear_row(edgeshed_session* session, uint32_t number) {
  if (!session->report) return;
  struct es_board_connection* row = &session->report->connection[number];
  ES_CLIENT_STORE(row->latest_seq, 0);
  ES_CLIENT_STORE(row->acked_seq, 0);
  ES_CLIENT_STORE(row->buffered_bytes, 0);
  ES_CLIENT_STORE(row->rejects[EDGESHED_REJECT_OVERSIZED], 0);
  ES_CLIENT_STORE(row->rejects[EDGESHED_REJECT_OVER_BUDGET], 0);
}

int edgeshed_connect(edgeshed_session* session, const edgeshed_peer* peer) {
  struct es_session_connect connect;
  if (!take_peer(session, &connect, peer)) {
    errno = EINVAL;
    return -1;
  }
  if (!session->released_count && session->peers_high == session->peers_max) {
    errno = ENOSPC;
    return -1;
  }
  uint32_t number;
  if (session->released_count) {
    number = session->released[--session->released_count];
  } else {
    number = session->peers_high++;
    if (session->peer_cursor == number) session->peer_cursor++;
  }
  session->connect[number] = connect;
  memset(&session->peer[number], 0, sizeof(session->peer[number]));
  session->peer[number].room = (uint32_t)peer->room;
  session->peer_flags[number] |= ES_PEER_USED | ES_PEER_SAY_CONNECT;
  clear_row(session, number);
  tell_soon(session, number);
  return (int)number;
}

static int is_used(const edgeshed_session* session, int number) {
  return number >= 0 && (uint32_t)number < session->peers_high &&
         (session->peer_flags[number] & ES_PEER_USED);
}

void edgeshed_disconnect(edgeshed_session* session, int number) {
  if (!is_used(session, number)) return;
  uint8_t* flags = &session->peer_flags[number];
  *flags &= (uint8_t)~(ES_PEER_USED | ES_PEER_SAY_CONNECT);
  if (*flags & ES_PEER_TOLD) *flags |= ES_PEER_SAY_DISCONNECT;
  session->released[session->released_count++] = (uint32_t)number;
  if (*flags & ES_PEER_SAY_DISCONNECT) tell_soon(session, (uint32_t)number);
}

static int set_stream(edgeshed_session* session, int peer, uint16_t stream, uint8_t closed) {
  if (!is_used(session, peer)) {
    errno = EINVAL;
    return -1;
  }
  struct es_session_stream message = {.row = (uint32_t)peer, .stream = stream, .closed = closed};
  /* After its CONNECT, or the daemon would not know whom this is about. */
  const uint8_t flags = session->peer_flags[peer];
  if (session->link != ES_LINK_ACCEPTED || session->full || !(flags & ES_PEER_TOLD) ||
      (flags & SAY) ||
      es_client_send(session, ES_SESSION_stream, 0, &message, sizeof(message)) != ES_CLIENT_OK) {
    errno = EAGAIN;
    return -1;
  }
  return 0;
}

int edgeshed_stream_close(edgeshed_session* session, int peer, uint16_t stream) {
  return set_stream(session, peer, stream, 1);
}

int edgeshed_stream_open(edgeshed_session* session, int peer, uint16_t stream) {
  return set_stream(session, peer, stream, 0);
}

void edgeshed_note_ack(edgeshed_session* session, int peer, uint32_t latest_seq, uint32_t acked_seq,
                       uint32_t buffered_bytes) {
  if (!session->report || !is_used(session, peer)) return;
  struct es_board_connection* row = &session->report->connection[peer];
  ES_CLIENT_STORE(row->latest_seq, latest_seq);
  ES_CLIENT_STORE(row->acked_seq, acked_seq);
  ES_CLIENT_STORE(row->buffered_bytes, buffered_bytes);
}

void edgeshed_note_reject(edgeshed_session* session, int peer, enum edgeshed_reject reason) {
  if (!session->report || !is_used(session, peer)) return;
  if ((uint32_t)reason > EDGESHED_REJECT_OVER_BUDGET) return;
  uint32_t* rejects = &session->report->connection[peer].rejects[reason];
  /* Only this thread writes it. */
  ES_CLIENT_STORE(*rejects, ES_CLIENT_LOAD(*rejects) + 1);
}

void es_client_peers_room_opened(edgeshed_session* session) { session->peer_cursor = 0; }

void es_client_peers_room_closed(edgeshed_session* session, uint32_t room) {
  for (uint32_t i = 0; i < session->peers_high; i++) {
    if (!(session->peer_flags[i] & ES_PEER_USED) || session->peer[i].room != room) continue;
    session->peer[i].room = ES_SESSION_NONE;
    session->peer_flags[i] &= (uint8_t)~ES_PEER_SAY_CONNECT;
  }
}

void es_client_peers_forget_daemon(edgeshed_session* session) {
  for (uint32_t i = 0; i < session->peers_high; i++) {
    const int used = session->peer_flags[i] & ES_PEER_USED;
    const int has_room = used && session->peer[i].room != ES_SESSION_NONE;
    session->peer_flags[i] =
        (uint8_t)((used ? ES_PEER_USED : 0) | (has_room ? ES_PEER_SAY_CONNECT : 0));
  }
  session->peer_cursor = 0;
}
