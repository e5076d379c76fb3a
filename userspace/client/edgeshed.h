/* SPDX-License-Identifier: Apache-2.0
 *
 * EdgeShed for game servers. One session is one shard (one tick loop). C99, no dependency.
 *
 * Nothing here ever blocks for long, and nothing depends on the daemon: while it is absent every
 * call succeeds, edgeshed_may_send() says yes, and the session registers itself again when the
 * daemon is back. A session belongs to one thread.
 *
 *   edgeshed_session* s = edgeshed_open(&(edgeshed_options){.shard = "arena"});
 *   int room = edgeshed_room_open(s, "match-1", 16);
 *   int peer = edgeshed_connect(s, &(edgeshed_peer){.room = room, .addr = &address});
 *   for (;;) {
 *     edgeshed_tick_begin(s);
 *     ...
 *     if (edgeshed_may_send(s, peer, EDGESHED_LANE_SNAPSHOT)) send_snapshot();
 *     edgeshed_tick_end(s);
 *     edgeshed_event event;
 *     while (edgeshed_poll(s, &event)) handle(&event);
 *   }
 */
#ifndef EDGESHED_H
#define EDGESHED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sockaddr;

#if defined(__GNUC__)
#define EDGESHED_API __attribute__((visibility("default")))
#else
#define EDGESHED_API
#endif

typedef struct edgeshed_session edgeshed_session;

/** Lanes: the kind of a message. Numbers as on the lane header. */
enum edgeshed_lane {
  EDGESHED_LANE_CONTROL,
  EDGESHED_LANE_JOIN,
  EDGESHED_LANE_COMMAND,
  EDGESHED_LANE_EVENT,
  EDGESHED_LANE_SNAPSHOT,
  EDGESHED_LANE_STREAM,
  EDGESHED_LANE_VOICE,
  EDGESHED_LANE_COSMETIC
};

/** What a session is. Zero means the default. */
typedef struct edgeshed_options {
  const char* shard;  /* name of a [[shard]] of the configuration; required */
  const char* socket; /* NULL: $EDGESHED_SESSION_SOCKET, else /run/edgeshed/session.sock */
  const char* server; /* for status and the log; NULL: the program's name */
  uint32_t peers_max; /* peers at a time, at most 1048576; 0: 1024 */
  /* Nonzero: the server sends without asking edgeshed_may_send(). The packet path then thins its
   * egress; otherwise it leaves that to the server, and only drops what is paused. */
  int sends_unasked;
} edgeshed_options;

/** A player's connection. Zero means the default. */
typedef struct edgeshed_peer {
  int room;                    /* from edgeshed_room_open */
  const struct sockaddr* addr; /* remote address and port: sockaddr_in or sockaddr_in6; required */
  const char* endpoint;        /* name of an [[endpoint]]; NULL: the room's only one */
  const char* contract_class;  /* name of a [[class]]; NULL: no contract */
  uint64_t player;             /* your number, told in events */
  float weight;                /* share relative to others, 0.004 to 256; 0: 1 */
  int priority;                /* 1 to 255, higher is kept longer; 0: 128 */
} edgeshed_peer;

/** A report, for servers that measure their ticks themselves. */
typedef struct edgeshed_report_data {
  double tick_p99_ms;    /* over the last second */
  double ring_occupancy; /* fullest queue, 0 to 1 */
  uint64_t ticks;        /* completed, ever */
  uint64_t busy_ns;      /* spent in them, ever */
} edgeshed_report_data;

enum edgeshed_event_kind {
  EDGESHED_EVENT_RUNG = 1,      /* value: the rung, 0 to 5, of the shard, or of a room that an
                                   operator holds; code shard_draining: open no more rooms, until a
                                   rung's own code comes that this one does not follow at once */
  EDGESHED_EVENT_ROOM_STATE,    /* value: 0 none, 1 watch, 2 throttling, 3 shedding */
  EDGESHED_EVENT_REFUSED,       /* a room, a connection or a report was refused */
  EDGESHED_EVENT_SLOW_CONSUMER, /* value: 1 watch, 2 throttle, 3 evict: close it with 1008 */
  EDGESHED_EVENT_DAEMON_GONE,   /* the daemon is gone: everything may be sent */
  EDGESHED_EVENT_DAEMON_BACK,   /* and is back; all registrations were sent again */
  /* What a player sent was refused by load, at most once a second for each: relay code, text and
   * retry_after_ms. value: the stream, of codes stream_* and *_bytes, else 0. Close the stream, or
   * send less, as `text` says. */
  EDGESHED_EVENT_MESSAGE_REFUSED,
  /* A player's stream comes near a limit of its room, told at most once a second: send less of it
   * before samples are refused. value: the stream. */
  EDGESHED_EVENT_STREAM_HINT,
  /* How far the shedding has come in a room, or (room -1) in each room of this server, by the
   * rooms' own ladder. value: the rung, 0 to 5. It follows what the shard decides and what is in
   * the room, and asks for nothing. */
  EDGESHED_EVENT_ROOM_RUNG
};

/** Something happened. `code` is the name in `edgeshed codes` (daemon_gone and daemon_back are the
 * library's own); `text` is one line. */
typedef struct edgeshed_event {
  int kind;
  int peer; /* -1: none */
  int room; /* -1: the shard */
  uint32_t value;
  uint64_t player;
  uint32_t retry_after_ms; /* 0: do not retry */
  uint32_t dropped;        /* events lost just before this one: 256 wait, then the oldest goes */
  char code[64];
  char text[160];
} edgeshed_event;

/** Why a gateway rejected something of a client. */
enum edgeshed_reject { EDGESHED_REJECT_OVERSIZED, EDGESHED_REJECT_OVER_BUDGET };

/** Makes a session and tries to reach the daemon; waits for its answer, at most 200 ms. NULL only
 * if `shard` is missing or too long, `peers_max` too large, or memory is out (errno EINVAL,
 * ENOMEM). An absent daemon is no failure: see edgeshed_connected. */
EDGESHED_API edgeshed_session* edgeshed_open(const edgeshed_options* options);
/** Ends it. What was registered stays with the daemon for 10 s. */
EDGESHED_API void edgeshed_close(edgeshed_session* session);

/** 1: the daemon has accepted the session. */
EDGESHED_API int edgeshed_connected(const edgeshed_session* session);
/** Why not: one line; empty if connected. Valid until the next call. */
EDGESHED_API const char* edgeshed_problem(const edgeshed_session* session);
/** The socket to poll for reading, -1 while the daemon is absent. Readable: call edgeshed_poll. It
 * is another one after the daemon was gone: ask again after each EDGESHED_EVENT_DAEMON_GONE and
 * _BACK. Do not close it. */
EDGESHED_API int edgeshed_fd(const edgeshed_session* session);

/** Asks for a room of the configuration to be placed on this shard, for `players` expected players.
 * Waits for the answer, at most 200 ms. Returns the room, or -1 with errno: EBUSY refused (an event
 * says why and when to retry), EINVAL bad name, ENOSPC too many rooms (1024).
 * While the daemon is absent or does not answer the room is accepted; when it is refused later, an
 * event with its number says so, and it is asked for again only after the daemon was gone. */
EDGESHED_API int edgeshed_room_open(edgeshed_session* session, const char* name, uint32_t players);
/** Its number may be given to another room. Its peers stay until edgeshed_disconnect. */
EDGESHED_API void edgeshed_room_close(edgeshed_session* session, int room);

/** Registers a peer. Does not wait: a refusal comes as an event. Returns the peer, or -1 with
 * errno: EINVAL (room, address, priority, a name that is too long), ENOSPC (peers_max). After
 * edgeshed_disconnect its number may be given to another one. */
EDGESHED_API int edgeshed_connect(edgeshed_session* session, const edgeshed_peer* peer);
EDGESHED_API void edgeshed_disconnect(edgeshed_session* session, int peer);

/** Closes a peer's state stream: what the player sends of it is dropped by the host, until it is
 * opened again or was silent for 30 s. Not remembered by the library: 0, or -1 with errno EINVAL
 * (no such peer), EAGAIN (the daemon is absent or busy). A room that governs no streams refuses it
 * by an event, code stream_unmanaged. */
EDGESHED_API int edgeshed_stream_close(edgeshed_session* session, int peer, uint16_t stream);
EDGESHED_API int edgeshed_stream_open(edgeshed_session* session, int peer, uint16_t stream);

/** Around each tick: measures it, and reports at its end. */
EDGESHED_API void edgeshed_tick_begin(edgeshed_session* session);
EDGESHED_API void edgeshed_tick_end(edgeshed_session* session);
/** Occupancy of the fullest queue, 0 to 1, for the next edgeshed_tick_end(). */
EDGESHED_API void edgeshed_set_ring(edgeshed_session* session, double occupancy);
/** Instead of tick_begin and tick_end. */
EDGESHED_API void edgeshed_report(edgeshed_session* session, const edgeshed_report_data* report);

/** How far a client is behind: newest update sent, newest acknowledged, bytes queued towards it. */
EDGESHED_API void edgeshed_note_ack(edgeshed_session* session, int peer, uint32_t latest_seq,
                                    uint32_t acked_seq, uint32_t buffered_bytes);
/** What the game itself rejects of a client. Not what EdgeShed tells it to refuse: joins on rung 4
 * and the like are no sign of load, they are its answer. */
EDGESHED_API void edgeshed_note_reject(edgeshed_session* session, int peer,
                                       enum edgeshed_reject reason);

/** May this be sent to this peer now? 1 yes, 0 skip it (a later one will go out). About a
 * nanosecond while nothing is shed. Unknown peers and lanes: 1. A yes counts as sent. */
EDGESHED_API int edgeshed_may_send(edgeshed_session* session, int peer, enum edgeshed_lane lane);

/** The next event, without waiting. 1: `event` is filled; 0: none. */
EDGESHED_API int edgeshed_poll(edgeshed_session* session, edgeshed_event* event);

#ifdef __cplusplus
}
#endif

#endif
