/* SPDX-License-Identifier: Apache-2.0
 *
 * A session: its options, its memory, how it begins and ends. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "userspace/client/client.h"

#define DEFAULT_SOCKET "/run/edgeshed/session.sock"
#define DEFAULT_PEERS 1024u

uint64_t es_client_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * ES_CLIENT_S_NS + (uint64_t)now.tv_nsec;
}

int es_client_name(char into[ES_SESSION_NAME_BYTES], const char* name) {
  const size_t bytes = name ? strlen(name) : 0;
  if (bytes >= ES_SESSION_NAME_BYTES) return 0;
  memset(into, 0, ES_SESSION_NAME_BYTES);
  for (size_t i = 0; i < bytes; i++) into[i] = name[i];
  return 1;
}

static void set_socket(edgeshed_session* session, const char* path) {
  if (!path || !*path) path = getenv("EDGESHED_SESSION_SOCKET");
  if (!path || !*path) path = DEFAULT_SOCKET;
  const size_t bytes = strlen(path);
  if (bytes < sizeof(session->socket)) {
    memcpy(session->socket, path, bytes);
    return;
  }
  es_client_problem(session, "the socket's path has %zu bytes, allowed: 1 to %zu", bytes,
                    sizeof(session->socket) - 1);
}

static int allocate(edgeshed_session* session) {
  const size_t peers = session->peers_max;
  session->peer_flags = calloc(peers, sizeof(*session->peer_flags));
  session->peer = calloc(peers, sizeof(*session->peer));
  session->connect = calloc(peers, sizeof(*session->connect));
  session->released = calloc(peers, sizeof(*session->released));
  return session->peer_flags && session->peer && session->connect && session->released;
}

static void release(edgeshed_session* session) {
  free(session->peer_flags);
  free(session->peer);
  free(session->connect);
  free(session->released);
  free(session);
}

/** NULL with errno: the options are not allowed, or memory is out. */
static edgeshed_session* make(const edgeshed_options* options) {
  if (!options || !options->shard || !*options->shard ||
      strlen(options->shard) >= ES_SESSION_NAME_BYTES || options->peers_max > ES_SESSION_ROWS_MAX) {
    errno = EINVAL;
    return NULL;
  }
  edgeshed_session* session = calloc(1, sizeof(*session));
  if (!session) return NULL;
  session->fd = -1;
  session->may_send_all = 1;
  session->waiting_room = ES_SESSION_NONE;
  session->peers_max = options->peers_max ? options->peers_max : DEFAULT_PEERS;
  if (!allocate(session)) {
    release(session);
    errno = ENOMEM;
    return NULL;
  }
  set_socket(session, options->socket);
  session->hello.magic = ES_SESSION_MAGIC;
  session->hello.version = ES_SESSION_VERSION;
  session->hello.flags = options->sends_unasked ? 0 : ES_SESSION_HONOURS_MAY_SEND;
  session->hello.rows = session->peers_max;
  es_client_name(session->hello.shard, options->shard);
  snprintf(session->hello.server, sizeof(session->hello.server), "%s",
           options->server ? options->server : program_invocation_short_name);
  return session;
}

edgeshed_session* edgeshed_open(const edgeshed_options* options) {
  edgeshed_session* session = make(options);
  if (!session) return NULL;
  const uint64_t now_ns = es_client_now_ns();
  es_client_service(session, now_ns);
  while (session->link == ES_LINK_GREETING) {
    if (!es_client_wait(session, now_ns + ES_CLIENT_WAIT_MS * ES_CLIENT_MS_NS, 0)) break;
  }
  return session;
}

void edgeshed_close(edgeshed_session* session) {
  if (!session) return;
  if (session->fd >= 0) close(session->fd);
  es_client_boards_unmap(session);
  release(session);
}

int edgeshed_connected(const edgeshed_session* session) {
  return session->link == ES_LINK_ACCEPTED;
}

const char* edgeshed_problem(const edgeshed_session* session) { return session->problem; }

int edgeshed_fd(const edgeshed_session* session) { return session->fd; }
