"""The life of an installation: attach, run, shed, die, adopt, detach. Usage: edgeshed edgeshedd."""

import os
import signal
import struct
import subprocess
import time
import unittest

from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Testbed, deny_io_uring, drain,
                     game_config, read, skip_without_root, take_paths, wait_for)

PORT = 7777
CONFIG = game_config(host="tick_hz = 60", tables="""
[[class]]
name = "thrifty"
[class.best_effort]
packets_per_s = 10
""", connections=256)
TOS_SNAPSHOT = 0  # DSCP 0
TOS_EVENT = 46 << 2


def cells(counters, way="in"):
    """{(lane, reason): packets} of the one endpoint."""
    return {(cell["lane"], cell["reason"]): cell["packets"]
            for cell in counters["endpoints"][0][way]["cells"]}


def dropped(counters, lane):
    return sum(cell["packets"] for cell in counters["endpoints"][0]["in"]["cells"]
               if cell["lane"] == lane and cell["verdict"] == "drop")


class LifecycleTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.config = self.bed.write("edgeshed.toml", CONFIG)

    def attach(self, *more):
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV, *more)

    def players(self):
        """The server's socket, and a client's for snapshots and for events, from one port each."""
        server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        server.setblocking(False)
        snapshots = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40000, TOS_SNAPSHOT)
        events = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40001, TOS_EVENT)
        for port in (40000, 40001):
            self.bed.edgeshed("connect", f"{CLIENT_ADDRESS}:{port}", "--endpoint", "game")
        return server, snapshots, events

    def play(self, *senders, packets=300):
        """Each sender sends `packets`, one a millisecond or so."""
        for _ in range(packets):
            for sender in senders:
                sender.sendto(b"x" * 100, (SERVER_ADDRESS, PORT))
            time.sleep(0.001)
        time.sleep(0.05)

    def burst(self, sender, packets):
        for _ in range(packets):
            sender.sendto(b"x" * 100, (SERVER_ADDRESS, PORT))
        time.sleep(0.1)

    def force_rung(self, tick_p99_ms, rung):
        def reached():
            self.bed.edgeshed("report", "--shard", "arena", "--tick-p99-ms", str(tick_p99_ms))
            return self.bed.json("status")["shards"][0]["rung"] == rung
        wait_for(reached, f"rung {rung}")

    def counters(self):
        return self.bed.json("dump", "counters")

    def test_lo_is_refused(self):
        result = self.bed.edgeshed("attach", "--config", self.config, "--dev", "lo", check=False)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        self.assertFalse(os.path.exists(self.bed.pin_dir))

    def test_wrong_config_changes_nothing(self):
        wrong = self.bed.write("wrong.toml", CONFIG.replace('"arena"\nframe', '"arena"\nfrane'))
        result = self.bed.edgeshed("attach", "--config", wrong, "--dev", DEV, check=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("wrong.toml:", result.stderr)
        self.assertFalse(os.path.exists(self.bed.pin_dir))
        self.assertFalse(self.bed.has_xdp())

        self.attach()
        with self.assertRaisesRegex(AssertionError, "(?s)exit 2.*wrong.toml"):
            self.bed.start_daemon(wrong)
        self.assertEqual(self.bed.json("status")["daemon"]["generation"], 0)

    def test_daemon_needs_attach_first(self):
        with self.assertRaisesRegex(AssertionError, "(?s)exit 1.*edgeshed attach"):
            self.bed.start_daemon(self.config)

    def test_denied_io_uring_is_named(self):
        self.attach()
        with self.assertRaisesRegex(AssertionError, "(?s)exit 4.*io_uring is not available.*seccomp"):
            self.bed.start_daemon(self.config, before_exec=deny_io_uring)

    def test_without_privilege(self):
        os.chmod(self.bed.folder, 0o755)
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")

        def refused(*command):
            result = self.bed.edgeshed(*command, check=False, wrapper=nobody)
            self.assertEqual(result.returncode, 4, (command, result.stderr))

        refused("attach", "--config", self.config, "--dev", DEV)
        self.attach()
        self.bed.start_daemon(self.config)
        refused("dump", "plan")
        refused("bypass", "on")
        refused("report", "--shard", "arena", "--tick-p99-ms", "1")
        self.bed.edgeshed("report", "--shard", "arena", "--tick-p99-ms", "1")

    def test_shed_die_adopt_detach(self):
        self.attach("--enforce")
        daemon = self.bed.start_daemon(self.config)
        self.check_second_daemon_is_refused()
        server, snapshots, events = self.players()

        # Calm: everything passes.
        self.play(snapshots, events)
        calm = self.counters()
        self.assertEqual(dropped(calm, "snapshot"), 0, cells(calm))
        self.assertEqual(self.received(server), 600)

        # Rung 3 by a report of 1.3 times the budget: snapshots are thinned, events are not.
        self.force_rung(26, 3)
        self.play(snapshots, events)
        shed = self.counters()
        self.assertGreater(dropped(shed, "snapshot"), 200, cells(shed))
        self.assertEqual(dropped(shed, "event"), 0, cells(shed))
        self.assertEqual(self.received(server), 600 - dropped(shed, "snapshot"))
        shard = self.bed.json("status")["shards"][0]
        self.assertEqual((shard["why"], shard["code"]), ("tick_ratio", "shard_pause_lanes"))
        self.assertIn("tick_ratio below", shard["released_by"])
        self.assertTrue(self.bed.json("status")["ledger_exact"])

        # Sheds are sampled, one in 1024.
        self.burst(snapshots, 3000)
        self.assertEqual(self.bed.json("dump", "events")[0]["endpoint"], "game")
        shed = self.counters()
        self.received(server)

        self.check_dead_man_opens(daemon, server, snapshots, dropped(shed, "snapshot"))
        self.check_adoption_and_detach()

    def received(self, server):
        return drain(server)

    def check_second_daemon_is_refused(self):
        with self.assertRaisesRegex(AssertionError, "(?s)exit 3.*another edgeshedd"):
            self.bed.start_daemon(self.config)
        self.assertTrue(self.bed.json("status")["daemon"]["running"])

    def check_dead_man_opens(self, daemon, server, snapshots, dropped_before):
        # A contract holds without a daemon; what the ladder shed comes back.
        thrifty = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40002, TOS_SNAPSHOT)
        self.bed.edgeshed("connect", f"{CLIENT_ADDRESS}:40002", "--endpoint", "game", "--class",
                          "thrifty")
        self.force_rung(26, 3)
        self.bed.stop_daemon(daemon, signal.SIGKILL)
        wait_for(lambda: self.bed.json("status")["daemon"]["expired"], "the plan expires", 2)
        time.sleep(1.3)
        self.play(snapshots, packets=200)
        open_again = self.counters()
        self.assertEqual(dropped(open_again, "snapshot"), dropped_before, cells(open_again))
        self.assertEqual(self.received(server), 200)
        status = self.bed.json("status")
        self.assertEqual((status["daemon"]["running"], status["shards"]), (False, []))
        self.assertEqual(status["endpoints"][0]["name"], "#1")
        self.play(thrifty)
        self.assertGreater(cells(self.counters()).get(("snapshot", "contract"), 0), 100)

    def check_adoption_and_detach(self):
        generation = self.bed.json("status")["daemon"]["generation"]
        daemon = self.bed.start_daemon(self.config)
        self.assertIn("3 connections adopted", read(daemon.log_path))
        self.assertGreater(self.bed.json("status")["daemon"]["generation"], generation)
        self.bed.edgeshed("disconnect", f"{CLIENT_ADDRESS}:40002", "--endpoint", "game")
        self.assertEqual(len(self.bed.json("dump", "connections")), 2)
        self.assertEqual(self.bed.stop_daemon(daemon), 0)
        self.assertTrue(self.bed.has_xdp())

        self.bed.edgeshed("detach")
        self.assertFalse(self.bed.has_xdp())
        self.assertFalse(os.path.exists(self.bed.pin_dir))
        qdiscs = subprocess.run(["ip", "netns", "exec", self.bed.server_ns, "tc", "qdisc", "show"],
                                text=True, capture_output=True, check=True).stdout
        self.assertNotIn("clsact", qdiscs)

    def test_shadow_is_the_default_and_bypass_needs_no_daemon(self):
        self.attach()
        daemon = self.bed.start_daemon(self.config)
        server, snapshots, _ = self.players()
        self.assertEqual(self.bed.json("status")["endpoints"][0]["mode"], "shadow")
        self.force_rung(26, 3)
        self.play(snapshots)
        self.assertEqual(self.received(server), 300)
        self.assertGreater(cells(self.counters()).get(("snapshot", "shadow"), 0), 200)

        # attach again, to the same interface, only changes what endpoints do that say nothing.
        self.attach("--enforce")
        wait_for(lambda: self.bed.json("status")["endpoints"][0]["mode"] == "enforce", "enforce")
        self.bed.stop_daemon(daemon)
        self.bed.edgeshed("bypass", "on")
        self.play(snapshots, packets=50)
        bypassed = sum(packets for (_, reason), packets in self.all_cells() if reason == "bypass")
        # The kernel says a word of its own now and then (neighbours, routers).
        self.assertIn(bypassed, range(50, 56))
        self.bed.edgeshed("bypass", "off")

    def all_cells(self):
        counters = self.counters()
        for owner in (*counters["endpoints"], counters["host"]):
            for cell in owner["in"]["cells"]:
                yield (cell["lane"], cell["reason"]), cell["packets"]

    def test_run_attaches_and_is_the_daemon(self):
        run = subprocess.Popen(
            self.bed.inside(self.bed.edgeshed_path, "run", "--config", self.config, "--dev", DEV),
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.bed.daemons.append(run)
        wait_for(lambda: self.bed.json("status")["daemon"]["running"], "the daemon answers")
        self.assertTrue(self.bed.has_xdp())
        run.send_signal(signal.SIGTERM)
        said, log = run.communicate(timeout=10)
        self.assertEqual(run.returncode, 0)
        self.assertIn(f"{DEV}: XDP", said)
        self.assertIn("stopping", log)
        self.assertTrue(self.bed.has_xdp())

    # Rule: A2, A4
    def test_streams_are_dumped(self):
        config = self.bed.write("streams.toml", CONFIG.replace('protocol = "dscp"',
                                                               'protocol = "lane"')
                                .replace('dscp = { 0 = "snapshot", 46 = "event" }', "")
                                .replace('name = "lobby"', 'name = "lobby"\nstream_cap = 2'))
        self.bed.edgeshed("attach", "--config", config, "--dev", DEV, "--enforce")
        daemon = self.bed.start_daemon(config)
        player = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40000)
        self.bed.edgeshed("connect", f"{CLIENT_ADDRESS}:40000", "--endpoint", "game")
        for stream in (3, 3, 7, 9):  # the third one is beyond the cap
            header = struct.pack("!BBBBHHHH", 0xE5, 1 << 4 | 2, 5, 0, stream, 1, 0, 0)
            player.sendto(header + b"x" * 40, (SERVER_ADDRESS, PORT))
        def room():
            return self.bed.json("status")["rooms"][0]
        wait_for(lambda: room()["why"] == "governor_rejects", "the room ladder's first rung")
        self.assertEqual(room()["code"], "room_downsample_streams")
        for _ in range(2):  # with the daemon, and without
            streams = self.bed.json("dump", "streams", "--config", config)
            self.assertEqual(sorted(one["stream"] for one in streams), [3, 7])
            three = next(one for one in streams if one["stream"] == 3)
            self.assertEqual(three["samples"]["this_second"] + three["samples"]["second_before"], 2)
            self.assertEqual(three["room"], "lobby")
            self.bed.stop_daemon(daemon)
        self.assertEqual(cells(self.counters()).get(("stream", "stream_cap")), 1)

    def test_bad_messages_end_their_own_connection_only(self):
        self.attach()
        self.bed.start_daemon(self.config)
        good = self.bed.control_socket()
        for message in (b"{", b"[]", b'{"command":"dance"}', b"x" * 70000,
                        b'{"command":"status","extra":1}', b"[" * 1000):
            bad = self.bed.control_socket()
            bad.send(message)
            self.assertIn(b'"ok":false', bad.recv(65536))
            self.assertEqual(bad.recv(65536), b"", message[:20])  # closed
        for message in (b'{"command":"report","shard":"arena","tick_p99_ms":-1}',
                        b'{"command":"report","shard":"arena","tick_p99_ms":1e999}',
                        b'{"command":"report","shard":"arena","tick_p99_ms":1,"ring":1.5}',
                        b'{"command":"report","shard":"nowhere","tick_p99_ms":1}'):
            good.send(message)
            self.assertIn(b'"ok":false', good.recv(65536), message)
        good.send(b'{"command":"status"}')
        self.assertIn(b'"ok":true', good.recv(65536))
        daemon = self.bed.json("status")["daemon"]
        self.assertEqual((daemon["reports"], daemon["reports_refused"]), (0, 4))
        self.assertEqual(daemon["messages_malformed"], 5)  # the long one never reached the parser


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD = take_paths(2)
    unittest.main(verbosity=2)
