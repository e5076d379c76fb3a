/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to the daemon: found, greeted, lost, found again. Nothing here waits except
 * es_client_wait, which has a deadline. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "userspace/client/client.h"

void es_client_problem(edgeshed_session* session, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(session->problem, sizeof(session->problem), format, arguments);
  va_end(arguments);
}

void es_client_drop(edgeshed_session* session, uint64_t retry_ms) {
  const int was_accepted = session->link == ES_LINK_ACCEPTED;
  if (session->fd >= 0) close(session->fd);
  session->fd = -1;
  session->link = ES_LINK_ABSENT;
  session->next_try_ns = es_client_now_ns() + retry_ms * ES_CLIENT_MS_NS;
  es_client_boards_unmap(session);
  session->shedding = 0;
  session->may_send_all = 1;
  session->tell_back = 0;
  session->full = 0;
  es_client_rooms_forget_daemon(session);
  es_client_peers_forget_daemon(session);
  if (was_accepted) {
    es_client_event_own(session, EDGESHED_EVENT_DAEMON_GONE, "daemon_gone", session->problem);
  }
}

/** Connects and says hello. */
static void dial(edgeshed_session* session, uint64_t now_ns) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  _Static_assert(sizeof(session->socket) == sizeof(address.sun_path), "a path that fits");
  memcpy(address.sun_path, session->socket, sizeof(address.sun_path));
  session->next_try_ns = now_ns + ES_CLIENT_RETRY_MS * ES_CLIENT_MS_NS;
  if (!address.sun_path[0]) return; /* the path was too long, and edgeshed_open said so */
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || connect(fd, (const struct sockaddr*)&address, sizeof(address)) != 0) {
    es_client_problem(session, "no daemon at %s: %s", session->socket, strerror(errno));
    if (fd >= 0) close(fd);
    return;
  }
  session->fd = fd;
  session->greeted_ns = now_ns;
  session->link = ES_LINK_GREETING;
  es_client_problem(session, "the daemon at %s has not answered yet", session->socket);
  const enum es_client_result result =
      es_client_send(session, ES_SESSION_hello, 0, &session->hello, sizeof(session->hello));
  if (result == ES_CLIENT_LATER) es_client_drop(session, ES_CLIENT_RETRY_MS);
}

static void refused(edgeshed_session* session, const struct es_session_code* code) {
  /* "Do not retry" means until something is changed, and only a later try finds that out. */
  uint64_t retry_ms = code->retry_after_ms ? code->retry_after_ms : ES_CLIENT_REFUSED_RETRY_MS;
  if (retry_ms < ES_CLIENT_RETRY_MS) retry_ms = ES_CLIENT_RETRY_MS;
  if (retry_ms > ES_CLIENT_RETRY_MAX_MS) retry_ms = ES_CLIENT_RETRY_MAX_MS;
  es_client_problem(session, "refused: %s: %s", code->name, code->text);
  es_client_drop(session, retry_ms);
}

void es_client_welcome(edgeshed_session* session, const struct es_session_welcome* welcome,
                       const int* fds, int fd_count) {
  if (welcome->refused.name[0]) {
    es_client_close_fds(fds, fd_count);
    refused(session, &welcome->refused);
    return;
  }
  int mapped = 0;
  if (fd_count == 2) {
    mapped = es_client_boards_map(session, welcome, fds[0], fds[1]);
  } else {
    es_client_problem(session, "%s sent %d boards instead of 2", session->socket, fd_count);
  }
  es_client_close_fds(fds, fd_count);
  if (!mapped) {
    es_client_drop(session, ES_CLIENT_RETRY_MS);
    return;
  }
  session->link = ES_LINK_ACCEPTED;
  session->problem[0] = 0;
  session->tell_back = session->was_accepted;
  session->was_accepted = 1;
  /* In the middle of a tick its expiry is looked at now, and not only when the next one begins. */
  es_client_plan_look(session, es_client_now_ns());
}

void es_client_tell(edgeshed_session* session) {
  uint32_t sends_left = ES_CLIENT_SENDS_MAX;
  if (session->link != ES_LINK_ACCEPTED || session->full) return;
  if (es_client_rooms_tell(session, &sends_left) != ES_CLIENT_OK) return;
  if (es_client_peers_tell(session, &sends_left) != ES_CLIENT_OK) return;
  if (!session->tell_back || !es_client_rooms_settled(session)) return;
  session->tell_back = 0;
  es_client_event_own(session, EDGESHED_EVENT_DAEMON_BACK, "daemon_back",
                      "the daemon is back, and all is registered again");
}

/** What came in, and what is to go out. */
static void exchange(edgeshed_session* session, uint64_t now_ns) {
  session->full = 0;
  es_client_read(session);
  if (session->link == ES_LINK_GREETING &&
      now_ns > session->greeted_ns + ES_CLIENT_WELCOME_MAX_MS * ES_CLIENT_MS_NS) {
    es_client_problem(session, "the daemon at %s did not answer for %u ms", session->socket,
                      ES_CLIENT_WELCOME_MAX_MS);
    es_client_drop(session, ES_CLIENT_RETRY_MS);
  }
  es_client_tell(session);
}

void es_client_service(edgeshed_session* session, uint64_t now_ns) {
  if (session->fd < 0) {
    if (now_ns < session->next_try_ns) return;
    dial(session, now_ns);
    if (session->fd < 0) return;
  }
  exchange(session, now_ns);
}

int es_client_wait(edgeshed_session* session, uint64_t deadline_ns, int writing) {
  const uint64_t now_ns = es_client_now_ns();
  if (session->fd < 0 || now_ns >= deadline_ns) return 0;
  struct pollfd waiting = {.fd = session->fd,
                           .events = (short)(writing ? POLLIN | POLLOUT : POLLIN)};
  /* Rounded up: the last fraction of a millisecond would be spun through. */
  poll(&waiting, 1, (int)((deadline_ns - now_ns + ES_CLIENT_MS_NS - 1) / ES_CLIENT_MS_NS));
  exchange(session, now_ns);
  return session->fd >= 0;
}
