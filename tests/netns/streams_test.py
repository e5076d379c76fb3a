"""State streams under the governor, end to end: the hint before a limit, the refusal, the stream
that is closed, and opened again by its server. Usage: edgeshed edgeshedd libedgeshed.so."""

import ctypes
import os
import struct
import time
import unittest

from libedgeshed import (EVENT_MESSAGE_REFUSED, EVENT_REFUSED, EVENT_STREAM_HINT, Event, Session)
from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Testbed, drain, game_config,
                     skip_without_root, take_paths, wait_for)

PORT = 7777
SAMPLES_PER_S = 20
CONFIG = game_config(
    host="tick_hz = 60\nstream_hint_ratio = 0.75", protocol="lane", rooms=("lobby", "attic"),
    tables=f"""stream_samples_per_s = {SAMPLES_PER_S}
close_streams = true
[[room]]
name = "attic"
shard = "arena"
""")
LANE_STREAM = 5
CLOSE_S, TOLD_S = 3, 2.2


def sample(stream, sequence=0):
    return struct.pack("!BBBBHHHH", 0xE5, 1 << 4 | 2, LANE_STREAM, 0, stream, sequence, 0, 0) + \
        b"x" * 40


class StreamsTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.config = self.bed.write("edgeshed.toml", CONFIG)
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV, "--enforce")
        self.bed.start_daemon(self.config)
        self.session = Session(LIBRARY, os.path.join(self.bed.folder, "session.sock"), "arena")
        self.addCleanup(self.session.close)
        self.room = self.session.room_open("lobby")
        self.player = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40000)
        self.server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        self.server.setblocking(False)
        self.peer = self.session.connect(self.room, CLIENT_ADDRESS, 40000, player=7)
        wait_for(lambda: len(self.bed.json("dump", "connections")) == 1, "the connection")

    def told(self):
        """(kind, peer, value, code) of the events that wait."""
        found = []
        event = Event()
        while self.session.lib.edgeshed_poll(self.session.handle, ctypes.byref(event)):
            found.append((event.kind, event.peer, event.value, event.code.decode()))
        return found

    def send(self, stream, per_s, seconds):
        """Samples of a stream, evenly. Returns what reached the server, and what it was told."""
        drain(self.server)
        told, sent = [], 0
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            if sent < (time.monotonic() - begin) * per_s:
                self.player.sendto(sample(stream, sent & 0xffff), (SERVER_ADDRESS, PORT))
                sent += 1
            told += self.told()
            time.sleep(0.002)
        time.sleep(0.2)
        return drain(self.server), told + self.told()

    def state(self, stream):
        for one in self.bed.json("dump", "streams"):
            if one["stream"] == stream:
                return "closed" if one["closed"] else "open"
        return None

    # Rule: A4
    def test_a_hint_comes_before_anything_is_lost(self):
        passed, told = self.send(3, 0.5 * SAMPLES_PER_S, 2)
        self.assertGreaterEqual(passed, SAMPLES_PER_S - 2)
        self.assertEqual(told, [])
        passed, told = self.send(4, 0.9 * SAMPLES_PER_S, 3)
        self.assertGreaterEqual(passed, 2.5 * SAMPLES_PER_S)
        self.assertEqual({one for one in told},
                         {(EVENT_STREAM_HINT, self.peer, 4, "stream_near_limit")}, told)
        self.assertLessEqual(len(told), 4, "once a second")

    # Rule: A4, A8
    def test_a_stream_that_is_refused_for_long_is_closed_and_opened_by_its_server(self):
        passed, told = self.send(3, 2 * SAMPLES_PER_S, CLOSE_S + TOLD_S)
        self.assertLessEqual(passed, SAMPLES_PER_S * (CLOSE_S + 2))
        self.assertEqual(self.state(3), "closed")
        refused = [one[3] for one in told if one[0] == EVENT_MESSAGE_REFUSED]
        self.assertEqual(refused[0], "stream_rate")
        self.assertEqual(refused[-1], "stream_closed")
        passed, told = self.send(3, 5, 1.5)
        self.assertEqual(passed, 0, "also at a rate that is allowed")
        passed, _ = self.send(5, 5, 0.5)
        self.assertGreater(passed, 0, "another stream of the same player plays on")
        self.assertEqual(self.session.open_stream(self.peer, 3), 0)
        wait_for(lambda: self.state(3) == "open", "the stream is open")
        passed, told = self.send(3, 5, 1)
        self.assertGreaterEqual(passed, 3)
        self.assertEqual([one for one in told if one[0] == EVENT_MESSAGE_REFUSED], [])

    # Rule: A8
    def test_a_server_closes_a_stream_itself(self):
        self.assertEqual(self.session.close_stream(self.peer, 9), 0)
        wait_for(lambda: self.state(9) == "closed", "a stream that never sent is closed")
        passed, told = self.send(9, 10, 0.5)
        self.assertEqual(passed, 0)
        self.assertIn((EVENT_MESSAGE_REFUSED, self.peer, 9, "stream_closed"), told)
        self.assertEqual(self.session.open_stream(self.peer, 9), 0)
        wait_for(lambda: self.state(9) == "open", "the stream is open")
        passed, _ = self.send(9, 10, 0.5)
        self.assertGreater(passed, 0)

    def test_a_room_that_governs_no_streams_says_so(self):
        attic = self.session.room_open("attic")
        other = self.session.connect(attic, CLIENT_ADDRESS, 40001, player=8)
        wait_for(lambda: len(self.bed.json("dump", "connections")) == 2, "the connection")
        self.assertEqual(self.session.close_stream(other, 1), 0)
        told = []

        def is_refused():
            told.extend(self.told())
            return (EVENT_REFUSED, other, 1, "stream_unmanaged") in told
        wait_for(is_refused, "the order is refused")
        self.assertEqual(self.session.close_stream(99, 1), -1, "no such peer")


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD, LIBRARY = take_paths(3)
    unittest.main(verbosity=2)
