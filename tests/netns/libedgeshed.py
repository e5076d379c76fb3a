"""libedgeshed by ctypes: the very library that game servers link, driven from a test."""

import ctypes
import pathlib
import re
import socket
import struct

(EVENT_RUNG, EVENT_ROOM_STATE, EVENT_REFUSED, EVENT_SLOW, EVENT_GONE, EVENT_BACK,
 EVENT_MESSAGE_REFUSED, EVENT_STREAM_HINT, EVENT_ROOM_RUNG) = range(1, 10)
LANE_SNAPSHOT = 4
WIRE = pathlib.Path(__file__).resolve().parents[2] / "userspace/session/wire.h"
SESSION_VERSION = int(re.search(r"#define ES_SESSION_VERSION (\d+)u", WIRE.read_text())[1])


class Options(ctypes.Structure):
    _fields_ = [("shard", ctypes.c_char_p), ("socket", ctypes.c_char_p),
                ("server", ctypes.c_char_p), ("peers_max", ctypes.c_uint32),
                ("sends_unasked", ctypes.c_int)]


class Peer(ctypes.Structure):
    _fields_ = [("room", ctypes.c_int), ("addr", ctypes.c_char_p), ("endpoint", ctypes.c_char_p),
                ("contract_class", ctypes.c_char_p), ("player", ctypes.c_uint64),
                ("weight", ctypes.c_float), ("priority", ctypes.c_int)]


class Report(ctypes.Structure):
    _fields_ = [("tick_p99_ms", ctypes.c_double), ("ring_occupancy", ctypes.c_double),
                ("ticks", ctypes.c_uint64), ("busy_ns", ctypes.c_uint64)]


class Event(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("peer", ctypes.c_int), ("room", ctypes.c_int),
                ("value", ctypes.c_uint32), ("player", ctypes.c_uint64),
                ("retry_after_ms", ctypes.c_uint32), ("dropped", ctypes.c_uint32),
                ("code", ctypes.c_char * 64), ("text", ctypes.c_char * 160)]


def sockaddr(address, port):
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + \
        socket.inet_aton(address) + bytes(8)


class Session:
    """A game server's session. Everything it does goes through the C library."""

    def __init__(self, library, socket_path, shard, peers_max=0, sends_unasked=False):
        self.lib = ctypes.CDLL(library, use_errno=True)
        for name, result in (("open", ctypes.c_void_p), ("problem", ctypes.c_char_p)):
            getattr(self.lib, "edgeshed_" + name).restype = result
        options = Options(shard=shard.encode(), socket=socket_path.encode(), server=b"test",
                          peers_max=peers_max, sends_unasked=int(sends_unasked))
        self.handle = ctypes.c_void_p(self.lib.edgeshed_open(ctypes.byref(options)))
        if not self.handle:
            raise OSError(ctypes.get_errno(), "edgeshed_open")
        self.ticks = 0

    def close(self):
        if self.handle:
            self.lib.edgeshed_close(self.handle)
            self.handle = None

    @property
    def connected(self):
        return bool(self.lib.edgeshed_connected(self.handle))

    @property
    def problem(self):
        return self.lib.edgeshed_problem(self.handle).decode()

    def room_open(self, name, players=1):
        return self.lib.edgeshed_room_open(self.handle, name.encode(), players)

    def connect(self, room, address, port, **more):
        peer = Peer(room=room, addr=sockaddr(address, port), **more)
        return self.lib.edgeshed_connect(self.handle, ctypes.byref(peer))

    def close_stream(self, peer, stream):
        return self.lib.edgeshed_stream_close(self.handle, peer, stream)

    def open_stream(self, peer, stream):
        return self.lib.edgeshed_stream_open(self.handle, peer, stream)

    def disconnect(self, peer):
        self.lib.edgeshed_disconnect(self.handle, peer)

    def report(self, tick_p99_ms=1.0, ring=0.0, busy_ms_per_tick=1.0, busy_ms=None):
        """busy_ms: over all ticks so far, where they were not all alike."""
        self.ticks += 1
        if busy_ms is None:
            busy_ms = self.ticks * busy_ms_per_tick
        data = Report(tick_p99_ms, ring, self.ticks, int(busy_ms * 1e6))
        self.lib.edgeshed_report(self.handle, ctypes.byref(data))

    def note_ack(self, peer, latest, acked, buffered=0):
        self.lib.edgeshed_note_ack(self.handle, peer, latest, acked, buffered)

    def note_reject(self, peer, reason=1):
        self.lib.edgeshed_note_reject(self.handle, peer, reason)

    def may_send(self, peer, lane=LANE_SNAPSHOT):
        return bool(self.lib.edgeshed_may_send(self.handle, peer, lane))

    def tick(self):
        self.lib.edgeshed_tick_begin(self.handle)
        self.lib.edgeshed_tick_end(self.handle)

    def events(self):
        found = []
        event = Event()
        while self.lib.edgeshed_poll(self.handle, ctypes.byref(event)):
            found.append((event.kind, event.code.decode(), event.value, event.peer))
        return found

    def refusals(self):
        """What players were refused: (peer, code, retry_after_ms, value). Other events are lost."""
        found = []
        event = Event()
        while self.lib.edgeshed_poll(self.handle, ctypes.byref(event)):
            if event.kind == EVENT_MESSAGE_REFUSED:
                found.append((event.peer, event.code.decode(), event.retry_after_ms, event.value))
        return found
