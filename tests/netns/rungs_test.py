"""Every rung of the shard ladder on real packets, at both hooks: what passes of each lane, how it is
marked, and the code that says so. Usage: edgeshed edgeshedd."""

import socket
import threading
import time
import unittest

from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Testbed, skip_without_root, take_paths,
                     wait_for)

PORT = 7777
PLAYER, STRANGER = 40000, 50000
DSCP = {"snapshot": 0, "stream": 10, "voice": 18, "cosmetic": 26, "command": 8, "event": 46,
        "join": 48}
CONFIG = f"""
[host]
connections_max = 64
endpoints_max = 4
rooms_max = 4
mode = "enforce"
tick_hz = 60
[[shard]]
name = "arena"
frame_budget_ms = 20
[[room]]
name = "lobby"
shard = "arena"
[[class]]
name = "player"
[[endpoint]]
name = "game"
address = "any"
port = {PORT}
protocol = "dscp"
rooms = ["lobby"]
stranger = {{ handshakes_per_s = 2000 }}
dscp = {{ {", ".join(f'{dscp} = "{lane}"' for lane, dscp in DSCP.items())} }}
"""
ECT0, CE, LOWER_EFFORT = 2, 3, 1
COUNT, SPACING_S = 200, 0.005  # of each lane: a second in all
CODES = ("shard_normal", "shard_thin_snapshots", "shard_reduce_snapshot_rate", "shard_pause_lanes",
         "shard_refuse_joins", "shard_migrate_or_close")
# Of each lane, the share that passes at each rung: (least, most). Where a rung has an interval or a
# gap, 10 or 4 a second of 200.
WHOLE, HALF, NOTHING = (1, 1), (0.48, 0.52), (0, 0)
TEN_PER_S, FOUR_PER_S = (0.03, 0.06), (0.015, 0.03)
KEPT = {
    "snapshot": (WHOLE, HALF, TEN_PER_S, TEN_PER_S, TEN_PER_S, FOUR_PER_S),
    "stream": (WHOLE, WHOLE, HALF, HALF, HALF, NOTHING),
    "voice": (WHOLE, WHOLE, WHOLE, NOTHING, NOTHING, NOTHING),
    "cosmetic": (WHOLE, WHOLE, WHOLE, NOTHING, NOTHING, NOTHING),
    "command": (WHOLE,) * 6,
    "event": (WHOLE,) * 6,
}
BEST_EFFORT = ("snapshot", "stream", "voice", "cosmetic")


class RungsTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        config = self.bed.write("edgeshed.toml", CONFIG)
        self.bed.edgeshed("attach", "--config", config, "--dev", DEV)
        self.bed.start_daemon(config)
        self.bed.edgeshed("connect", f"{CLIENT_ADDRESS}:{PLAYER}", "--endpoint", "game", "--class",
                          "player")
        self.server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        self.player = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, PLAYER)
        self.stranger = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, STRANGER)
        for one in (self.server, self.player):
            one.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
            one.settimeout(0.1)

    def hold(self, rung):
        self.bed.edgeshed("set", "shard", "arena", "rung", str(rung), "--for", "60s")
        wait_for(lambda: self.shard()["rung"] == rung, f"rung {rung}")
        time.sleep(0.05)  # the plan of the next tick

    def shard(self):
        return self.bed.json("status")["shards"][0]

    @staticmethod
    def send(sender, to, lanes, count=COUNT, ecn=ECT0):
        """`count` packets of each lane, evenly over a second; the first byte names the lane."""
        names = list(DSCP)
        due = time.monotonic()
        for _ in range(count):
            for lane in lanes:
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, DSCP[lane] << 2 | ecn)
                sender.sendto(bytes([names.index(lane)]) + b"x" * 60, to)
            due += SPACING_S
            time.sleep(max(0, due - time.monotonic()))

    @staticmethod
    def receive(receiver):
        """What came, per lane: the TOS byte of each packet."""
        names = list(DSCP)
        came = {lane: [] for lane in names}
        while True:
            try:
                data, control, _, _ = receiver.recvmsg(128, 64)
            except TimeoutError:
                return came
            tos = next((value[0] for level, kind, value in control
                        if (level, kind) == (socket.IPPROTO_IP, socket.IP_TOS)), None)
            came[names[data[0]]].append(tos)

    def check_lanes(self, rung, direction, came):
        for lane, bounds in KEPT.items():
            with self.subTest(rung=rung, direction=direction, lane=lane):
                share = len(came[lane]) / COUNT
                least, most = bounds[rung]
                self.assertGreaterEqual(share, least)
                self.assertLessEqual(share, most)

    def check_marks(self, rung, direction, came):
        """Best-effort that passes says lower effort from rung 1 on, what is more than that never.
        Congestion follows the pressure, and a rung by hand is none."""
        for lane in ("command", "event"):
            self.assertEqual({tos >> 2 for tos in came[lane]}, {DSCP[lane]}, (rung, direction))
        passed = [(lane, tos) for lane in BEST_EFFORT for tos in came[lane]]
        with self.subTest(rung=rung, direction=direction, mark="LE"):
            expected = {(lane, LOWER_EFFORT if rung else DSCP[lane]) for lane, _ in passed}
            self.assertEqual({(lane, tos >> 2) for lane, tos in passed}, expected)
        self.assertEqual({tos & 3 for _, tos in passed}, {ECT0}, (rung, direction))

    # Rule: A3, A7, B6, B8
    def test_what_passes_at_each_rung(self):
        for rung in range(6):
            self.hold(rung)
            self.assertEqual(self.shard()["code"], CODES[rung])
            self.assertEqual(self.shard()["why"], "manual")
            both = [threading.Thread(target=self.send, args=(*way, KEPT)) for way in (
                (self.player, (SERVER_ADDRESS, PORT)), (self.server, (CLIENT_ADDRESS, PLAYER)))]
            for one in both:
                one.start()
            for one in both:
                one.join()
            for direction, receiver in (("in", self.server), ("out", self.player)):
                came = self.receive(receiver)
                self.check_lanes(rung, direction, came)
                self.check_marks(rung, direction, came)

    # Rule: B1, B8
    def test_congestion_is_marked_by_the_pressure(self):
        """(tick in budgets, share of ECT packets that is marked): none below a pressure of .7,
        which is .925 budgets, all from 1 on; rung 1 allows half. Critical that nothing limits passes
        unlooked at, and so unmarked."""
        for ratio, share in ((0.9, 0), (0.95, 1 / 3), (1.0, 1), (1.2, 1)):
            report = ("report", "--shard", "arena", "--tick-p99-ms", str(20 * ratio))
            self.bed.edgeshed(*report)
            time.sleep(0.1)
            for sender, receiver, to in (
                    (self.player, self.server, (SERVER_ADDRESS, PORT)),
                    (self.server, self.player, (CLIENT_ADDRESS, PLAYER))):
                for _ in range(2):  # a report is news for a moment only
                    self.bed.edgeshed(*report)
                    self.send(sender, to, ("command",), 30)
                    self.send(sender, to, ("event",), 10, ecn=0)
                came = [tos & 3 for lane in self.receive(receiver).values() for tos in lane]
                self.assertEqual((len(came), came.count(0)), (80, 20), "nothing is lost")
                self.assertAlmostEqual(came.count(CE) / 60, share, delta=0.05, msg=ratio)

    # Rule: A3
    def test_joins_of_strangers_are_refused_from_rung_4_on(self):
        for rung in range(6):
            self.hold(rung)
            self.send(self.stranger, (SERVER_ADDRESS, PORT), ("join",), 20)
            self.send(self.player, (SERVER_ADDRESS, PORT), ("event", "command"), 20)
            came = self.receive(self.server)
            with self.subTest(rung=rung):
                self.assertEqual(len(came["join"]), 0 if rung >= 4 else 20)
                self.assertEqual((len(came["event"]), len(came["command"])), (20, 20))

    # Rule: A2, A3
    def test_commands_of_low_priority_are_refused_at_rung_5_alone(self):
        for rung in (4, 5):
            self.hold(rung)
            self.send(self.stranger, (SERVER_ADDRESS, PORT), ("command",), 20)
            self.send(self.player, (SERVER_ADDRESS, PORT), ("command",), 20)
            came = self.receive(self.server)
            self.assertEqual(len(came["command"]), 20 if rung == 5 else 40, rung)


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD = take_paths(2)
    unittest.main(verbosity=2)
