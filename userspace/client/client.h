/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the client library share, and its tests see. Not installed.
 *
 *   session.c   options, memory, how it begins and ends
 *   link.c      the connection to the daemon: dial, welcome, loss
 *   messages.c  one packet in, one packet out, well-formed or not
 *   incoming.c  what each of the daemon's messages does
 *   rooms.c, peers.c   what is registered, and telling it to the daemon (again)
 *   boards.c    mapping the boards, and writing reports
 *   ticks.c     measuring ticks
 *   may_send.c  the question in the send path
 *   events.c    the queue of edgeshed_poll
 */
#ifndef EDGESHED_CLIENT_CLIENT_H
#define EDGESHED_CLIENT_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "userspace/client/edgeshed.h"
#include "userspace/session/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ES_CLIENT_MS_NS 1000000ull
#define ES_CLIENT_S_NS 1000000000ull

#define ES_CLIENT_ROOMS_MAX 1024u
/* Events that wait for edgeshed_poll: 64 KiB of them. */
#define ES_CLIENT_EVENTS_MAX 256u
/* Tick durations that are remembered: one second of up to 1024 ticks. */
#define ES_CLIENT_TICKS_MAX 1024u
/* edgeshed_open and edgeshed_room_open wait no longer than this. */
#define ES_CLIENT_WAIT_MS 200u
/* An absent daemon is looked for this often; one that refused without a time, more rarely. */
#define ES_CLIENT_RETRY_MS 1000u
#define ES_CLIENT_REFUSED_RETRY_MS 10000u
#define ES_CLIENT_RETRY_MAX_MS 60000u
/* A daemon that accepts a connection and then says nothing is given up. */
#define ES_CLIENT_WELCOME_MAX_MS 2000u
/* Bounds of one call: packets read, packets sent. */
#define ES_CLIENT_READS_MAX 256u
#define ES_CLIENT_SENDS_MAX 1024u

#define ES_CLIENT_LIKELY(x) __builtin_expect(!!(x), 1)

/* Words of the boards: each is stored and read by itself, beside another process. */
#define ES_CLIENT_LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define ES_CLIENT_STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)

/** How the daemon stands to us. */
enum es_client_link {
  ES_LINK_ABSENT,   /* no socket */
  ES_LINK_GREETING, /* HELLO was sent */
  ES_LINK_ACCEPTED  /* the boards are mapped */
};

enum es_client_room_state {
  ES_ROOM_FREE,
  ES_ROOM_WANTED,  /* to be asked for */
  ES_ROOM_ASKED,   /* not answered yet */
  ES_ROOM_OPEN,    /* `row` is known */
  ES_ROOM_REFUSED, /* asked for again when the daemon is back */
  ES_ROOM_ENDING,  /* closed before it was answered */
  ES_ROOM_CLOSING  /* `row` is to be closed */
};

/** A room. Its number, which never changes, is its index; its row on the plan board may. */
struct es_client_room {
  enum es_client_room_state state;
  uint32_t row; /* ES_SESSION_NONE: not open */
  uint32_t request;
  uint32_t players;
  char name[ES_SESSION_NAME_BYTES];
};

/* What is known and to be told of a peer: flags. */
enum {
  ES_PEER_USED = 1,
  ES_PEER_TOLD = 2, /* the daemon heard CONNECT */
  ES_PEER_SAY_DISCONNECT = 4,
  ES_PEER_SAY_CONNECT = 8 /* after SAY_DISCONNECT, which is about the number's last use */
};

/** State of one lane that is thinned. */
struct es_client_thin {
  uint32_t passed_ms; /* when the last one went out */
  uint16_t error_q16;
  uint16_t reserved;
};

/** How a lane is thinned; as on the plan board. */
struct es_client_thin_rule {
  uint16_t keep_q16;
  uint16_t min_interval_ms;
  uint32_t max_gap_ms;
};

/** The part of a peer that edgeshed_may_send touches. */
struct es_client_peer {
  uint32_t room; /* ES_SESSION_NONE: its room was closed */
  struct es_client_thin thin[ES_BOARD_THIN_LANES];
};

struct es_client_ticks {
  uint64_t started_ns; /* 0: no tick runs */
  uint64_t completed;
  uint64_t busy_ns;
  uint64_t ended_ns[ES_CLIENT_TICKS_MAX];
  uint64_t duration_ns[ES_CLIENT_TICKS_MAX];
};

struct es_client_events {
  uint32_t first;
  uint32_t count;
  uint32_t dropped;
  edgeshed_event event[ES_CLIENT_EVENTS_MAX];
};

struct edgeshed_session {
  /* What edgeshed_may_send reads, in one cache line. */
  int may_send_all; /* 1: nothing has to be looked at */
  int shedding; /* as of the last look at the plan: it is valid, and thins or pauses something */
  uint32_t generation;              /* of the plan, then */
  uint32_t now_ms;                  /* then */
  const struct es_plan_board* plan; /* NULL: none */
  uint8_t* peer_flags;
  struct es_client_peer* peer;

  struct es_report_board* report; /* NULL: none */
  /* As the welcome said: what is mapped, whatever is written into the boards later. */
  uint32_t plan_rows;
  uint32_t report_rows;
  uint64_t reports;
  double ring_occupancy;

  enum es_client_link link;
  int fd; /* -1: none */
  uint32_t requests;
  uint64_t next_try_ns;
  uint64_t greeted_ns;
  int was_accepted; /* once, ever */
  int full;      /* the socket took no more: not tried again before the next tick, report or poll */
  int tell_back; /* DAEMON_BACK is due when all is registered again */

  uint32_t peers_max;
  uint32_t peers_high; /* numbers from here on were never used */
  /* Below it nobody has anything to be told, unless the room is not open. */
  uint32_t peer_cursor;
  uint32_t released_count;
  uint32_t* released; /* numbers that may be used again */
  struct es_session_connect* connect;

  int rooms_unsaid; /* 1: a room is WANTED or CLOSING */
  uint32_t rooms_high;
  uint32_t waiting_room; /* edgeshed_room_open waits for it; ES_SESSION_NONE: none */
  struct es_client_room room[ES_CLIENT_ROOMS_MAX];

  struct es_client_ticks ticks;
  struct es_client_events events;
  struct es_session_hello hello;
  char socket[108];
  char problem[256];
};

/** CLOCK_MONOTONIC. */
uint64_t es_client_now_ns(void);
/** 1: copied; 0: does not fit, `into` is untouched. NULL is the empty name. */
int es_client_name(char into[ES_SESSION_NAME_BYTES], const char* name);

/* ---- link.c ---- */

/** Everything that is due: look for the daemon, read, tell what was not told. Never waits. */
void es_client_service(edgeshed_session* session, uint64_t now_ns);
/** Waits for something to read, or to write if `writing`, until the deadline; then as
 * es_client_service without looking for the daemon. 0: the deadline is over or the daemon gone. */
int es_client_wait(edgeshed_session* session, uint64_t deadline_ns, int writing);
/** The daemon is gone, or wrong, for the reason in `problem`. */
void es_client_drop(edgeshed_session* session, uint64_t retry_ms);
/** Keeps one line for edgeshed_problem. */
__attribute__((format(printf, 2, 3))) void es_client_problem(edgeshed_session* session,
                                                             const char* format, ...);
/** The answer to HELLO; takes the descriptors. */
void es_client_welcome(edgeshed_session* session, const struct es_session_welcome* welcome,
                       const int* fds, int fd_count);
/** Tells what is registered and was not told, as far as the socket takes it. When it is full that
 * is remembered, so that ten thousand connects in one tick do not try ten thousand times. */
void es_client_tell(edgeshed_session* session);

/* ---- messages.c ---- */

enum es_client_result {
  ES_CLIENT_OK,
  ES_CLIENT_LATER, /* nothing there, or no space: try again */
  ES_CLIENT_GONE   /* the session was dropped */
};

#define ES_CLIENT_FDS_MAX 4

/** A packet of the daemon. */
struct es_client_packet {
  union {
    struct es_session_head head;
    struct es_session_welcome welcome;
    struct es_session_room_opened room_opened;
    struct es_session_event event;
  } message;
  int fds[ES_CLIENT_FDS_MAX];
  int fd_count;
};

/** Sends a message, whose head's type it fills together with its size. */
enum es_client_result es_client_send(edgeshed_session* session, enum es_session_type type,
                                     uint32_t request, void* message, size_t bytes);
/** Receives one. OK: it is well-formed, and the caller owns its descriptors. */
enum es_client_result es_client_receive(edgeshed_session* session, struct es_client_packet* packet);
void es_client_close_fds(const int* fds, int fd_count);

/* ---- incoming.c ---- */

/** Reads what the daemon has sent; at most ES_CLIENT_READS_MAX messages. */
void es_client_read(edgeshed_session* session);

/* ---- rooms.c, peers.c ---- */

void es_client_rooms_forget_daemon(edgeshed_session* session);
/** LATER: the socket is full. `sends_left` is counted down. */
enum es_client_result es_client_rooms_tell(edgeshed_session* session, uint32_t* sends_left);
/** The answer to ROOM_OPEN. 0: it answers nothing that was asked. */
int es_client_room_answered(edgeshed_session* session, const struct es_session_room_opened* answer);
/** The room of a row of the plan board; -1: none. */
int es_client_room_of_row(const edgeshed_session* session, uint32_t row);
/** 1: every room was asked for and answered. */
int es_client_rooms_settled(const edgeshed_session* session);

void es_client_peers_forget_daemon(edgeshed_session* session);
enum es_client_result es_client_peers_tell(edgeshed_session* session, uint32_t* sends_left);
/** A room opened: its peers can be told. */
void es_client_peers_room_opened(edgeshed_session* session);
void es_client_peers_room_closed(edgeshed_session* session, uint32_t room);

/* ---- boards.c ---- */

/** Maps both. 0: they are not what the welcome says, `problem` tells what; nothing is mapped. The
 * descriptors stay the caller's. */
int es_client_boards_map(edgeshed_session* session, const struct es_session_welcome* welcome,
                         int report_fd, int plan_fd);
void es_client_boards_unmap(edgeshed_session* session);
/** Writes a report under the seqlock; without a board, nothing. */
void es_client_boards_report(edgeshed_session* session, const edgeshed_report_data* data,
                             uint64_t now_ns);

/* ---- ticks.c ---- */

void es_client_ticks_ended(struct es_client_ticks* ticks, uint64_t ended_ns);
/** Nearest rank, over the ticks that ended within the second before now; 0: none did. */
double es_client_ticks_p99_ms(const struct es_client_ticks* ticks, uint64_t now_ns);

/* ---- may_send.c ---- */

/** Looks at the plan: is it valid, does it shed? Once a tick. */
void es_client_plan_look(edgeshed_session* session, uint64_t now_ns);
/** 1: goes out. Error diffusion, minimum interval and bounded gap as in bpf/thin.h. */
int es_client_thin_judge(struct es_client_thin* state, struct es_client_thin_rule rule,
                         uint32_t now_ms);

/* ---- events.c ---- */

/** Queues one; when the queue is full the oldest is dropped and counted. */
void es_client_event_push(struct es_client_events* events, const edgeshed_event* event);
int es_client_event_pop(struct es_client_events* events, edgeshed_event* event);
/** Queues one of the library's own. */
void es_client_event_own(edgeshed_session* session, enum edgeshed_event_kind kind, const char* code,
                         const char* text);
/** Fills the code, the text and the time to retry. */
void es_client_event_code(edgeshed_event* event, const struct es_session_code* code);

#ifdef __cplusplus
}
#endif

#endif
