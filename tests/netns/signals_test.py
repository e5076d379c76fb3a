"""What the host and a socket say, and what is missing of it. Usage: edgeshed edgeshedd
libedgeshed.so."""

import os
import threading
import time
import unittest

from libedgeshed import Session
from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Pace, Testbed, drain, game_config,
                     hide_pressure, skip_without_root, take_paths, wait_for)

PORT = 7777
CONFIG = game_config(host="tick_hz = 60", tables="""
[cost]
command_us = 1000
snapshot_us = 1000
event_us = 1000
""", dscp='0 = "snapshot", 8 = "command", 46 = "event"')
TOS = {"snapshot": 0, "command": 8 << 2, "event": 46 << 2}
PER_TICK = 2  # of each of the three, in 1/30 s, at 1 ms each: 6 ms of the server's 33
# The same for who is overrun, as long as a message costs twice what the configuration says.
RUSH = {"snapshot": 16, "command": 5, "event": 3}
RUSH_COST_MS = 2
CALM = {"tick_p99_ms": 6, "busy_ms_per_tick": 6}


class Rush:
    """A game that has more to do than it can, at 30 ticks a second: what passes keeps it busy."""

    def __init__(self, session, clients, server):
        self.session, self.server = session, server
        self.clients = dict(zip(TOS, clients))
        self.says, self.per_tick = True, RUSH
        self.busy_ms = self.reported = 0
        self.sent = dict.fromkeys(TOS, 0)
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._play)
        self.thread.start()

    def _play(self):
        pace = Pace(30, catch_up_s=0.2)
        while not self.stopping.is_set():
            for lane, count in self.per_tick.items():
                for _ in range(count):
                    self.clients[lane].sendto(b"x" * 60, (SERVER_ADDRESS, PORT))
                self.sent[lane] += count
            self.busy_ms += RUSH_COST_MS * drain(self.server)
            if self.says:
                self.reported = time.monotonic()
                self.session.report(tick_p99_ms=10, busy_ms=self.busy_ms)
            pace.wait()

    def stop(self):
        self.stopping.set()
        self.thread.join()


class SignalsTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.config = self.bed.write("edgeshed.toml", CONFIG)
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV, "--enforce")

    def start(self, before_exec=None):
        self.bed.start_daemon(self.config, before_exec)
        self.session = Session(LIBRARY, os.path.join(self.bed.folder, "session.sock"), "arena")
        self.addCleanup(self.session.close)
        self.room = self.session.room_open("lobby", 8)
        self.peers = []
        self.clients = []
        for i, tos in enumerate(TOS.values()):
            self.clients.append(self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40000 + i, tos))
            self.peers.append(self.session.connect(self.room, CLIENT_ADDRESS, 40000 + i))
        self.server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        self.server.setblocking(False)
        wait_for(lambda: len(self.bed.json("dump", "connections")) == 3, "all are connections")

    def play(self, seconds, reads=True):
        """A game of 30 ticks a second that says that it is calm, whatever it reads."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for client in self.clients * PER_TICK:
                client.sendto(b"x" * 60, (SERVER_ADDRESS, PORT))
            self.session.report(**CALM)
            if reads:
                drain(self.server)
            time.sleep(1 / 30)

    def play_until(self, condition, what, timeout_s=5, **how):
        def holds():
            self.play(0.05, **how)
            return condition()
        wait_for(holds, what, timeout_s)

    def shard(self):
        return self.bed.json("status")["shards"][0]

    def queue(self):
        return self.shard()["signals"]["receive_queue"]

    def dropped(self):
        found = dict.fromkeys(TOS, 0)
        for cell in self.bed.cells():
            if cell["verdict"] in ("drop", "reject"):
                found[cell["lane"]] = found.get(cell["lane"], 0) + cell["packets"]
        return found

    # Rule: A1, B1
    def test_a_full_socket_beats_a_calm_report(self):
        self.start()
        self.play(2)
        calm = self.shard()
        self.assertEqual((calm["rung"], calm["report"]), (0, "fresh"), calm)
        self.play_until(lambda: self.queue()["value"] == 0, "all is read")
        self.assertEqual(sum(self.dropped().values()), 0)
        for name in ("receive_queue", "softnet_drops", "time_squeeze", "tick", "ack_lag"):
            self.assertFalse(calm["signals"][name]["missing"], (name, calm))

        # It stops to read, and goes on to say that it is calm.
        self.play(1.5, reads=False)
        full = self.shard()
        queue = full["signals"]["receive_queue"]
        self.assertGreater(queue["value"], 2, full)
        self.assertAlmostEqual(queue["pressure"], min(2, (queue["value"] - 0.5) / 1.5), delta=0.01)
        self.assertEqual((queue["source"], queue["unit"]), ("sock_diag", "ticks"))
        self.assertEqual(full["signals"]["tick"]["pressure"], 0, "it reports that it is calm")
        self.assertLess(full["offered_cost_ratio"], 0.5)
        self.assertGreaterEqual(full["rung"], 4, full)
        self.assertEqual((full["why"], full["pressed_by"]), ("receive_queue", "receive_queue"))
        self.assertIn("arena: pressed by receive_queue", self.bed.edgeshed("status").stdout)
        shed = self.dropped()
        self.assertGreater(shed["snapshot"], 0, shed)
        self.assertGreater(shed["command"], 0, shed)
        self.assertEqual(shed["event"], 0, "critical is never shed")

        # It reads again: what pressed is gone at once, what was shed comes back along its ramp.
        self.play_until(lambda: self.queue()["value"] == 0, "all is read again", 1)
        self.play_until(lambda: self.shard()["rung"] < full["rung"], "a rung is left")

        # Nobody listens any more: that is lost, not calm.
        self.server.close()
        self.play_until(lambda: self.queue()["missing"], "nobody listens", reads=False)
        gone = self.queue()
        self.assertEqual((gone["missing"], gone["lost"], gone["pressure"]), (True, True, 0))

    # Rule: B10
    def test_a_server_that_falls_silent(self):
        """It holds for a second what it last heard, and goes on by what it knows of costs: more than
        the configuration says, which only the reports have told."""
        self.start()
        rush = Rush(self.session, self.clients, self.server)
        self.addCleanup(rush.stop)

        def is_overrun():
            shard = self.shard()
            return (shard["offered_cost_ratio"] > 1.2 and shard["rung"] > 0 and
                    self.dropped()["snapshot"] > 100)
        wait_for(is_overrun, "it sheds by what its messages cost")
        said = self.shard()
        self.assertEqual((said["report"], said["signals"]["tick"]["missing"]), ("fresh", False))

        rush.says = False
        states = ["fresh"]
        while states[-1] != "missing":
            shard = self.shard()
            silent_s = time.monotonic() - rush.reported
            self.assertLess(silent_s, 5, states)
            if shard["report"] != states[-1]:
                states.append(shard["report"])
                self.assertGreater(silent_s, len(states) - 1)
            if shard["report"] == "fresh":
                said = shard
            else:
                tick = shard["signals"]["tick"]
                self.assertEqual((tick["missing"], tick["lost"]), (True, True), shard)
            if shard["report"] == "holding":
                self.assertGreaterEqual(shard["rung"], said["rung"], "held")
        self.assertEqual(states, ["fresh", "holding", "missing"])

        # As dear as it was when it last spoke; at what the configuration says all would fit.
        before, dropped = dict(rush.sent), self.dropped()
        time.sleep(1.5)
        shard = self.shard()
        self.assertEqual(shard["report"], "missing")
        self.assertTrue(shard["session"], "silent, and not gone")
        self.assertGreater(shard["offered_cost_ratio"], 1)
        shed = {lane: n - dropped[lane] for lane, n in self.dropped().items()}
        self.assertGreater(shed["snapshot"], 0.3 * (rush.sent["snapshot"] - before["snapshot"]))
        self.assertEqual(shed["event"], 0, "critical is never shed")

        # It speaks again, and has less to do: everything comes back.
        rush.per_tick = dict.fromkeys(TOS, PER_TICK)
        rush.says = True
        wait_for(lambda: self.shard()["report"] == "fresh", "its reports count again", 2)
        self.assertFalse(self.shard()["signals"]["tick"]["lost"])
        wait_for(lambda: self.shard()["rung"] == 0, "every rung is left")

        def is_whole():
            before = self.dropped()
            time.sleep(0.5)
            return self.dropped() == before
        wait_for(is_whole, "nothing is shed any more")

    # Rule: B10
    def test_what_a_host_never_had_is_missing_and_not_lost(self):
        self.start(before_exec=hide_pressure)
        # Players far behind, and two whom the game itself rejects.
        end = time.monotonic() + 1.5
        number = 0
        while time.monotonic() < end:
            number += 1
            for peer in self.peers:
                self.session.note_ack(peer, 20 + number, number)
            for peer in self.peers[:2]:
                self.session.note_reject(peer)
            self.play(1 / 30)
        signals = self.shard()["signals"]
        stalls = signals["psi_cpu"]
        self.assertEqual((stalls["missing"], stalls["lost"], stalls["source"]),
                         (True, False, "psi"))
        text = self.bed.edgeshed("status").stdout
        self.assertRegex(text, r"arena: .*not measured: psi\n")
        # 20 updates, of which 8 are a round trip; 2 of 3 players.
        self.assertEqual(signals["ack_lag"]["value"], 12, signals)
        self.assertAlmostEqual(signals["rejects"]["value"], 2 / 3, 2)
        # Lags and rejects are told, and shed nothing.
        self.assertEqual(self.shard()["rung"], 0)
        self.assertEqual(sum(self.dropped().values()), 0)


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD, LIBRARY = take_paths(3)
    unittest.main(verbosity=2)
