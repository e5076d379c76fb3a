/* SPDX-License-Identifier: Apache-2.0
 *
 * What a game server and the daemon say to each other: messages on a Unix seqpacket socket, and two
 * boards in shared memory. C11 and C++20: compiled by the client library and by the daemon.
 *
 * Socket. One session is one shard. Each packet is one message, a fixed struct that begins with
 * es_session_head; strings are NUL-terminated. The server's first message is HELLO; the answer
 * carries the two boards' descriptors (report board, plan board; SCM_RIGHTS). A message that breaks
 * these rules ends its own session and nothing else.
 *
 * Boards. Both are memfds of the daemon, sealed against shrinking and growing, so that neither side
 * can make the other fault. The report board is written by the server and never trusted; the plan
 * board is written by the daemon and sealed against any other writer.
 */
#ifndef EDGESHED_SESSION_WIRE_H
#define EDGESHED_SESSION_WIRE_H

#include <stdint.h>

#ifdef __cplusplus
#define ES_WIRE_ASSERT_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#else
#define ES_WIRE_ASSERT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#endif

#define ES_SESSION_MAGIC 0x65536553u /* "eSeS" */
/* Raised by any change of this file; the daemon refuses a server of another version. */
#define ES_SESSION_VERSION 3u
#define ES_SESSION_NAME_BYTES 64u
#define ES_SESSION_TEXT_BYTES 160u
/* Rows that a server may ask for: connections of one shard. */
#define ES_SESSION_ROWS_MAX (1u << 20)
#define ES_SESSION_NONE 0xffffffffu

/* type: name, who sends it, text */
#define ES_SESSION_TYPE_LIST(X)                                                              \
  X(hello, server, "first message: which shard, how many rows")                              \
  X(welcome, daemon, "answer to hello; refused says why, and the session ends")              \
  X(room_open, server, "asks for a room to be placed on the shard")                          \
  X(room_opened, daemon, "answer to room_open: the room's row, or a refusal")                \
  X(room_close, server, "the room is over; no answer")                                       \
  X(connect, server, "a remote is a player; idempotent; answered only by a refusal")         \
  X(disconnect, server, "a remote is no player any more; no answer")                         \
  X(stream, server, "a connection's stream is closed or opened; answered only by a refusal") \
  X(event, daemon, "a code: rung changed, connection refused, consumer evicted, ...")

enum es_session_type {
  ES_SESSION_NO_TYPE,
#define X(name, sender, text) ES_SESSION_##name,
  ES_SESSION_TYPE_LIST(X)
#undef X
      ES_SESSION_TYPES,
};

/** First bytes of every message. `bytes`: size of the whole struct. `request`: the server's number
 * for a message that is answered; the answer repeats it. */
struct es_session_head {
  uint16_t type;
  uint16_t bytes;
  uint32_t request;
};
ES_WIRE_ASSERT_SIZE(struct es_session_head, 8);

/* es_session_hello.flags: the server asks edgeshed_may_send() before it sends replication, so the
 * packet path leaves thinning of egress to it. */
#define ES_SESSION_HONOURS_MAY_SEND 1u

struct es_session_hello {
  struct es_session_head head;
  uint32_t magic;
  uint32_t version;
  uint32_t flags;
  uint32_t rows; /* connections at a time, 1 to ES_SESSION_ROWS_MAX */
  char shard[ES_SESSION_NAME_BYTES];
  char server[ES_SESSION_NAME_BYTES]; /* for status and the log; may be empty */
};
ES_WIRE_ASSERT_SIZE(struct es_session_hello, 152);

/** A code as told. `name` empty: accepted. */
struct es_session_code {
  char name[ES_SESSION_NAME_BYTES];
  char text[ES_SESSION_TEXT_BYTES]; /* one line */
  uint32_t retry_after_ms;          /* 0: do not retry */
  uint32_t reserved;
};
ES_WIRE_ASSERT_SIZE(struct es_session_code, 232);

struct es_session_welcome {
  struct es_session_head head;
  uint32_t rows;      /* of the report board */
  uint32_t room_rows; /* of the plan board */
  double frame_budget_ms;
  struct es_session_code refused;
};
ES_WIRE_ASSERT_SIZE(struct es_session_welcome, 256);

struct es_session_room_open {
  struct es_session_head head;
  uint32_t players; /* expected */
  uint32_t reserved;
  char room[ES_SESSION_NAME_BYTES];
};
ES_WIRE_ASSERT_SIZE(struct es_session_room_open, 80);

struct es_session_room_opened {
  struct es_session_head head;
  uint32_t room; /* row of the plan board */
  uint32_t reserved;
  struct es_session_code refused;
};
ES_WIRE_ASSERT_SIZE(struct es_session_room_opened, 248);

struct es_session_room_close {
  struct es_session_head head;
  uint32_t room;
  uint32_t reserved;
};
ES_WIRE_ASSERT_SIZE(struct es_session_room_close, 16);

struct es_session_connect {
  struct es_session_head head;
  uint32_t row;     /* of the report board, chosen by the server: 0 to rows - 1 */
  uint32_t room;    /* as opened */
  uint8_t addr[16]; /* network order; IPv4 is ::ffff:a.b.c.d */
  uint16_t port;    /* host order */
  uint8_t priority; /* 0 to 255, 128 is the middle; higher is kept longer */
  uint8_t reserved;
  float weight;                         /* share relative to 1; 0.004 to 256 */
  uint64_t player;                      /* the server's number, for its own use; told in events */
  char endpoint[ES_SESSION_NAME_BYTES]; /* empty: the room's only one */
  char contract_class[ES_SESSION_NAME_BYTES]; /* empty: no contract */
};
ES_WIRE_ASSERT_SIZE(struct es_session_connect, 176);

struct es_session_disconnect {
  struct es_session_head head;
  uint32_t row;
  uint32_t reserved;
};
ES_WIRE_ASSERT_SIZE(struct es_session_disconnect, 16);

/** What comes of a closed stream is dropped. */
struct es_session_stream {
  struct es_session_head head;
  uint32_t row;
  uint16_t stream;
  uint8_t closed; /* 1 closed, 0 open */
  uint8_t reserved;
};
ES_WIRE_ASSERT_SIZE(struct es_session_stream, 16);

/* kind: name, text. What an event is about. */
#define ES_SESSION_EVENT_LIST(X)                                                         \
  X(rung, "the shard or a room went to another rung, or drains; value: the rung")        \
  X(room_state,                                                                          \
    "a room's pressure state changed; value: 0 none, 1 watch, 2 throttling, 3 shedding") \
  X(refused, "a connection or a report was refused; value: 0")                           \
  X(slow_consumer,                                                                       \
    "a connection's stage rose; value: 1 watch, 2 throttle, 3 evict (close it, 1008)")   \
  X(daemon_gone, "made by the library: the daemon is gone, everything may be sent")      \
  X(daemon_back, "made by the library: registered again")                                \
  X(message_refused,                                                                     \
    "what a connection sent was refused by load; told once a second; value: the stream") \
  X(stream_hint,                                                                         \
    "a connection's stream comes near a limit; told once a second; value: the "          \
    "stream")                                                                            \
  X(room_rung,                                                                           \
    "a room, or each of a server's, went to another rung of its own ladder; "            \
    "value: the rung")

enum es_session_event_kind {
  ES_SESSION_EVENT_NONE,
#define X(name, text) ES_SESSION_EVENT_##name,
  ES_SESSION_EVENT_LIST(X)
#undef X
      ES_SESSION_EVENT_KINDS,
};

struct es_session_event {
  struct es_session_head head;
  uint32_t kind; /* enum es_session_event_kind */
  uint32_t row;  /* connection; ES_SESSION_NONE: none */
  uint32_t room; /* plan board row; ES_SESSION_NONE: the shard */
  uint32_t value;
  uint64_t player; /* of the connection */
  struct es_session_code code;
};
ES_WIRE_ASSERT_SIZE(struct es_session_event, 264);

/* ---- report board: server -> daemon ---- */

/** What is measured of one connection. Each word is stored by itself; the daemon reads them a few
 * times a second. */
struct es_board_connection {
  uint32_t latest_seq;     /* newest update sent */
  uint32_t acked_seq;      /* newest update that the client acknowledged */
  uint32_t buffered_bytes; /* queued or unacknowledged towards the client */
  uint32_t rejects[2];     /* ever: oversized envelopes, commands over budget */
  uint32_t reserved[3];
};
ES_WIRE_ASSERT_SIZE(struct es_board_connection, 32);

/** A report. `seq` is odd while it is written (seqlock). Times of CLOCK_MONOTONIC. */
struct es_board_report {
  uint32_t seq;
  uint32_t rooms;  /* that run on the shard; ES_SESSION_NONE: as many as were opened */
  uint64_t number; /* of this report: 1 and up */
  uint64_t reported_ns;
  double tick_p99_ms;    /* over the last second */
  double ring_occupancy; /* fullest queue of the server, 0 to 1 */
  uint64_t ticks;        /* completed, ever */
  uint64_t busy_ns;      /* spent in completed ticks, ever */
  uint64_t reserved;
};
ES_WIRE_ASSERT_SIZE(struct es_board_report, 64);

/** The whole board: header, then `rows` connections. */
struct es_report_board {
  /* Written once, by the daemon. */
  uint32_t magic;
  uint32_t version;
  uint32_t rows;
  uint32_t reserved_head[13];
  struct es_board_report report;
  /* When the tick that is running began; 0: none is. Stored by itself, so that a tick that never
   * ends is seen. */
  uint64_t tick_started_ns;
  uint64_t reserved_tick[7];
  struct es_board_connection connection[];
};
ES_WIRE_ASSERT_SIZE(struct es_report_board, 192);

/* ---- plan board: daemon -> server ---- */

#define ES_BOARD_THIN_LANES 4u /* lanes 4 to 7: snapshot, stream, voice, cosmetic */

/** What a room's egress may be sent. Each word is stored by itself. */
struct es_board_room {
  uint8_t paused;                                /* bit per lane 0 to 7: do not send */
  uint8_t rung;                                  /* of the room's ladder, 0 to 5 */
  uint8_t state;                                 /* 0 none, 1 watch, 2 throttling, 3 shedding */
  uint8_t open;                                  /* 1: the room is placed */
  uint32_t retry_after_ms;                       /* to tell a player who is refused */
  uint16_t keep_q16[ES_BOARD_THIN_LANES];        /* share to send: 65535 all */
  uint16_t min_interval_ms[ES_BOARD_THIN_LANES]; /* 0: none */
  uint32_t max_gap_ms; /* a thinned lane goes out after this long; 0: no promise */
  uint32_t reserved[9];
};
ES_WIRE_ASSERT_SIZE(struct es_board_room, 64);

struct es_plan_board {
  uint32_t magic;
  uint32_t version;
  uint32_t rooms;
  uint32_t generation;     /* of the plan, each tick another */
  uint64_t valid_until_ns; /* CLOCK_MONOTONIC: later, everything may be sent */
  uint8_t shard_rung;
  uint8_t refuse_joins;
  uint8_t reserved_flags[6];
  uint64_t reserved_head[4];
  struct es_board_room room[];
};
ES_WIRE_ASSERT_SIZE(struct es_plan_board, 64);

#endif
