/* SPDX-License-Identifier: Apache-2.0
 *
 * One packet out, one packet in. A packet that breaks the rules of wire.h drops the session here,
 * so that no other file has to ask whether a message is well-formed. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/client/client.h"

enum es_client_result es_client_send(edgeshed_session* session, enum es_session_type type,
                                     uint32_t request, void* message, size_t bytes) {
  const struct es_session_head head = {
      .type = (uint16_t)type, .bytes = (uint16_t)bytes, .request = request};
  memcpy(message, &head, sizeof(head));
  ssize_t sent;
  do {
    sent = send(session->fd, message, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent == (ssize_t)bytes) return ES_CLIENT_OK;
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) {
    session->full = 1;
    return ES_CLIENT_LATER;
  }
  es_client_problem(session, "the daemon at %s is gone: %s", session->socket,
                    sent < 0 ? strerror(errno) : "a message was cut");
  es_client_drop(session, ES_CLIENT_RETRY_MS);
  return ES_CLIENT_GONE;
}

void es_client_close_fds(const int* fds, int fd_count) {
  for (int i = 0; i < fd_count; i++) close(fds[i]);
}

static void take_fds(struct es_client_packet* packet, struct msghdr* header) {
  packet->fd_count = 0;
  for (struct cmsghdr* part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const int count = (int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    for (int i = 0; i < count && packet->fd_count < ES_CLIENT_FDS_MAX; i++) {
      memcpy(&packet->fds[packet->fd_count++], CMSG_DATA(part) + (size_t)i * sizeof(int),
             sizeof(int));
    }
  }
}

static int terminated(const struct es_session_code* code) {
  return memchr(code->name, 0, sizeof(code->name)) && memchr(code->text, 0, sizeof(code->text));
}

static int well_formed(const struct es_client_packet* packet, size_t bytes) {
  if (bytes < sizeof(packet->message.head) || packet->message.head.bytes != bytes) return 0;
  switch (packet->message.head.type) {
    case ES_SESSION_welcome:
      return bytes == sizeof(packet->message.welcome) &&
             terminated(&packet->message.welcome.refused);
    case ES_SESSION_room_opened:
      return bytes == sizeof(packet->message.room_opened) && !packet->fd_count &&
             terminated(&packet->message.room_opened.refused);
    case ES_SESSION_event:
      return bytes == sizeof(packet->message.event) && !packet->fd_count &&
             terminated(&packet->message.event.code);
    default:
      return 0;
  }
}

enum es_client_result es_client_receive(edgeshed_session* session,
                                        struct es_client_packet* packet) {
  union {
    struct cmsghdr aligned;
    char bytes[CMSG_SPACE(ES_CLIENT_FDS_MAX * sizeof(int))];
  } control;
  struct iovec part = {.iov_base = &packet->message, .iov_len = sizeof(packet->message)};
  struct msghdr header = {.msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = &control,
                          .msg_controllen = sizeof(control)};
  ssize_t bytes;
  do {
    bytes = recvmsg(session->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return ES_CLIENT_LATER;
  if (bytes <= 0) {
    es_client_problem(session, "the daemon at %s is gone: %s", session->socket,
                      bytes < 0 ? strerror(errno) : "it closed the session");
    es_client_drop(session, ES_CLIENT_RETRY_MS);
    return ES_CLIENT_GONE;
  }
  take_fds(packet, &header);
  if (!(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && well_formed(packet, (size_t)bytes)) {
    return ES_CLIENT_OK;
  }
  es_client_close_fds(packet->fds, packet->fd_count);
  es_client_problem(session, "%s speaks something else than version %u of the session protocol",
                    session->socket, ES_SESSION_VERSION);
  es_client_drop(session, ES_CLIENT_RETRY_MS);
  return ES_CLIENT_GONE;
}
