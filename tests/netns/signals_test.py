"""What the host and a socket say, and what is missing of it. Usage: edgeshed edgeshedd
libedgeshed.so."""

import ctypes
import os
import time
import unittest

from libedgeshed import Session
from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Testbed, drain, skip_without_root,
                     take_paths, wait_for)

PORT = 7777
CONFIG = """
[host]
connections_max = 64
endpoints_max = 4
rooms_max = 4
tick_hz = 60

[cost]
command_us = 1000
snapshot_us = 1000
event_us = 1000

[[shard]]
name = "arena"
frame_budget_ms = 20

[[room]]
name = "lobby"
shard = "arena"

[[endpoint]]
name = "game"
address = "any"
port = 7777
protocol = "dscp"
rooms = ["lobby"]
dscp = { 0 = "snapshot", 8 = "command", 46 = "event" }
"""
TOS = {"snapshot": 0, "command": 8 << 2, "event": 46 << 2}
PER_TICK = 2  # of each of the three, in 1/30 s, at 1 ms each: 6 ms of the server's 33
CALM = {"tick_p99_ms": 6, "busy_ms_per_tick": 6}


def hide_pressure():
    """From here on this process has no pressure stall information, as with psi=0."""
    clone_newns, ms_rec, ms_private = 0x20000, 0x4000, 1 << 18
    libc = ctypes.CDLL(None, use_errno=True)
    failed = (libc.unshare(clone_newns) or
              libc.mount(b"none", b"/", None, ctypes.c_ulong(ms_rec | ms_private), None))
    if not failed and os.path.exists("/proc/pressure"):
        failed = libc.mount(b"none", b"/proc/pressure", b"tmpfs", ctypes.c_ulong(0), None)
    if failed:
        raise OSError(ctypes.get_errno(), "hide /proc/pressure")


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

    def shard(self):
        return self.bed.json("status")["shards"][0]

    def dropped(self):
        found = dict.fromkeys(TOS, 0)
        for cell in self.bed.json("dump", "counters")["endpoints"][0]["in"]["cells"]:
            if cell["verdict"] in ("drop", "reject"):
                found[cell["lane"]] = found.get(cell["lane"], 0) + cell["packets"]
        return found

    # Rule: A1, B1
    def test_a_full_socket_beats_a_calm_report(self):
        self.start()
        self.play(2)
        calm = self.shard()
        self.assertEqual((calm["rung"], calm["report"]), (0, "fresh"), calm)
        self.assertEqual(calm["signals"]["receive_queue"]["value"], 0, calm)
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
        self.play(0.5)
        again = self.shard()
        self.assertEqual(again["signals"]["receive_queue"]["value"], 0, again)
        self.play(1.5)
        self.assertLess(self.shard()["rung"], full["rung"])

        # Nobody listens any more: that is lost, not calm.
        self.server.close()
        self.play(0.2, reads=False)
        gone = self.shard()["signals"]["receive_queue"]
        self.assertEqual((gone["missing"], gone["lost"], gone["pressure"]), (True, True, 0))

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
