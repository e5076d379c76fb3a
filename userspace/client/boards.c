/* SPDX-License-Identifier: Apache-2.0
 *
 * The two boards in shared memory: checked before they are mapped, so that a wrong daemon is one
 * line in edgeshed_problem and never a fault; and the report, written under its seqlock. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/client/client.h"

/* Both boards begin with these words. */
struct board_head {
  uint32_t magic;
  uint32_t version;
  uint32_t rows;
};

static size_t report_size(uint32_t rows) {
  return sizeof(struct es_report_board) + (size_t)rows * sizeof(struct es_board_connection);
}

static size_t plan_size(uint32_t rows) {
  return sizeof(struct es_plan_board) + (size_t)rows * sizeof(struct es_board_room);
}

/** 0: not what it should be, and `problem` says what. */
static int board_is_right(edgeshed_session* session, const char* name, int fd, uint32_t rows,
                          size_t bytes) {
  struct stat status;
  struct board_head head;
  if (fstat(fd, &status) != 0 || status.st_size < (off_t)bytes) {
    es_client_problem(session, "%s: the %s board is too small for %u rows", session->socket, name,
                      rows);
    return 0;
  }
  /* Without the seal its owner could shrink it, and the next access here would be a SIGBUS. */
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) {
    es_client_problem(session, "%s: the %s board is not sealed against shrinking", session->socket,
                      name);
    return 0;
  }
  if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
      head.magic != ES_SESSION_MAGIC || head.rows != rows) {
    es_client_problem(session, "%s: the %s board has a wrong head", session->socket, name);
    return 0;
  }
  if (head.version != ES_SESSION_VERSION) {
    es_client_problem(session, "%s: the %s board has version %u, this library speaks version %u",
                      session->socket, name, head.version, ES_SESSION_VERSION);
    return 0;
  }
  return 1;
}

int es_client_boards_map(edgeshed_session* session, const struct es_session_welcome* welcome,
                         int report_fd, int plan_fd) {
  const uint32_t rows = welcome->rows;
  const uint32_t room_rows = welcome->room_rows;
  if (rows < session->peers_max || rows > ES_SESSION_ROWS_MAX || room_rows == 0 ||
      room_rows > ES_SESSION_ROWS_MAX) {
    es_client_problem(session, "%s: boards of %u and %u rows, asked for %u", session->socket, rows,
                      room_rows, session->peers_max);
    return 0;
  }
  if (!board_is_right(session, "report", report_fd, rows, report_size(rows)) ||
      !board_is_right(session, "plan", plan_fd, room_rows, plan_size(room_rows))) {
    return 0;
  }
  void* report = mmap(NULL, report_size(rows), PROT_READ | PROT_WRITE, MAP_SHARED, report_fd, 0);
  void* plan = mmap(NULL, plan_size(room_rows), PROT_READ, MAP_SHARED, plan_fd, 0);
  if (report == MAP_FAILED || plan == MAP_FAILED) {
    es_client_problem(session, "%s: the boards cannot be mapped: %s", session->socket,
                      strerror(errno));
    if (report != MAP_FAILED) munmap(report, report_size(rows));
    if (plan != MAP_FAILED) munmap(plan, plan_size(room_rows));
    return 0;
  }
  session->report = report;
  session->plan = plan;
  session->report_rows = rows;
  session->plan_rows = room_rows;
  return 1;
}

void es_client_boards_unmap(edgeshed_session* session) {
  if (session->report) munmap(session->report, report_size(session->report_rows));
  if (session->plan) munmap((void*)session->plan, plan_size(session->plan_rows));
  session->report = NULL;
  session->plan = NULL;
}

/* Each word is stored with release order, which on its own keeps it behind the odd `seq`; a fence
 * would do the same, but the thread sanitizer does not know fences. */
#define WRITE(word, value)                               \
  do {                                                   \
    __typeof__(word) written = (value);                  \
    __atomic_store(&(word), &written, __ATOMIC_RELEASE); \
  } while (0)

void es_client_boards_report(edgeshed_session* session, const edgeshed_report_data* data,
                             uint64_t now_ns) {
  session->reports++;
  if (!session->report) return;
  struct es_board_report* report = &session->report->report;
  /* A server that died while it wrote may have left it odd. */
  const uint32_t seq = (ES_CLIENT_LOAD(report->seq) + 1) & ~1u;
  ES_CLIENT_STORE(report->seq, seq + 1);
  WRITE(report->rooms, ES_SESSION_NONE);
  WRITE(report->number, session->reports);
  WRITE(report->reported_ns, now_ns);
  WRITE(report->tick_p99_ms, data->tick_p99_ms);
  WRITE(report->ring_occupancy, data->ring_occupancy);
  WRITE(report->ticks, data->ticks);
  WRITE(report->busy_ns, data->busy_ns);
  WRITE(report->seq, seq + 2);
}
