"""A game server's session from register to release, by libedgeshed; servers that die, hang, lie or
flood. Usage: edgeshed edgeshedd libedgeshed.so."""

import os
import signal
import socket
import struct
import time
import unittest

from libedgeshed import (EVENT_BACK, EVENT_GONE, EVENT_REFUSED, EVENT_ROOM_STATE, EVENT_RUNG,
                         EVENT_SLOW, SESSION_VERSION, Session)
from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Testbed, drain, read, skip_without_root,
                     take_paths, wait_for)

PORT = 7777
CONFIG = """
[host]
connections_max = 256
endpoints_max = 4
rooms_max = 8
tick_hz = 60

[[shard]]
name = "arena"
frame_budget_ms = 20
[[shard]]
name = "other"
frame_budget_ms = 20

[[room]]
name = "lobby"
shard = "arena"
[[room]]
name = "attic"
shard = "other"

[[class]]
name = "player"
[class.critical]
packets_per_s = 200
[class.best_effort]
packets_per_s = 400

[[endpoint]]
name = "game"
address = "any"
port = 7777
protocol = "dscp"
rooms = ["lobby", "attic"]
dscp = { 0 = "snapshot", 46 = "event", 8 = "command" }
"""
TOS_COMMAND = 8 << 2
TOS_SNAPSHOT = 0
TOS_EVENT = 46 << 2


class SessionTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.config = self.bed.write("edgeshed.toml", CONFIG)
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV, "--enforce")
        self.daemon = self.bed.start_daemon(self.config)
        self.session_path = os.path.join(self.bed.folder, "session.sock")

    def session(self, shard="arena", **more):
        session = Session(LIBRARY, self.session_path, shard, **more)
        self.addCleanup(session.close)
        # Who opens one waits for 200 ms; what a busy daemon answers later is read by a tick.
        wait_for(lambda: "not answered yet" not in session.problem or session.tick(), "an answer")
        return session

    def shard(self, name="arena"):
        return next(one for one in self.bed.json("status")["shards"] if one["name"] == name)

    def room(self, name="lobby"):
        return next(one for one in self.bed.json("status")["rooms"] if one["name"] == name)

    def reach(self, session, rung, **report):
        def there():
            session.report(**report)
            return self.shard()["rung"] == rung
        wait_for(there, f"rung {rung}", 15)

    def keep(self, session, seconds, **report):
        """Reports 30 times a second for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            session.report(**report)
            time.sleep(1 / 30)

    def counters(self, direction="in"):
        found = {}
        for cell in self.bed.cells(direction):
            key = cell["lane"], cell["verdict"]
            found[key] = found.get(key, 0) + cell["packets"]
        return found

    # Rule: A3, A8, B3
    def test_register_shed_explain_release(self):
        session = self.session()
        self.assertTrue(session.connected, session.problem)
        room = session.room_open("lobby", 8)
        self.assertGreaterEqual(room, 0)
        snapshots = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40000, TOS_SNAPSHOT)
        events = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40001, TOS_EVENT)
        server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        server.setblocking(False)
        peers = [session.connect(room, CLIENT_ADDRESS, port, contract_class=b"player",
                                 player=port) for port in (40000, 40001)]
        wait_for(lambda: len(self.bed.json("dump", "connections")) == 2, "both are connections")
        status = self.bed.json("status")
        self.assertEqual(status["sessions"][0]["connections"], 2)
        self.assertEqual(status["sessions"][0]["server"], "test")
        self.assertTrue(next(r for r in status["rooms"] if r["name"] == "lobby")["open"])

        # A forced report: rung 3 at 1.3 times the budget.
        self.reach(session, 3, tick_p99_ms=26)
        for _ in range(300):
            snapshots.sendto(b"x" * 100, (SERVER_ADDRESS, PORT))
            events.sendto(b"x" * 100, (SERVER_ADDRESS, PORT))
            session.report(tick_p99_ms=26)
            drain(server)  # or what waits there would press, too
            time.sleep(0.006)
        time.sleep(0.05)
        shed = self.counters()
        self.assertGreater(shed.get(("snapshot", "drop"), 0), 100, shed)
        self.assertEqual(shed.get(("event", "drop"), 0), 0, shed)
        shard = self.shard()
        self.assertEqual((shard["why"], shard["code"], shard["session"]),
                         ("tick_ratio", "shard_pause_lanes", True))
        self.assertIn("tick_ratio below", shard["released_by"])
        wait_for(lambda: (EVENT_RUNG, "shard_pause_lanes", 3, -1) in session.events(), "the event")
        asked = [session.may_send(peers[0]) for _ in range(200)]
        self.assertGreater(asked.count(False), 100)

        # It asks before it sends, so its egress is not thinned a second time.
        for _ in range(100):
            server.sendto(b"y" * 100, (CLIENT_ADDRESS, 40000))
        time.sleep(0.05)
        self.assertEqual(self.counters("out").get(("snapshot", "drop"), 0), 0)

        # Calm again: every rung is left, and the server hears of it.
        self.reach(session, 0, tick_p99_ms=2)
        wait_for(lambda: (EVENT_RUNG, "shard_normal", 0, -1) in session.events(), "the event")
        self.keep(session, 4.5, tick_p99_ms=2)
        room_status = next(r for r in self.bed.json("status")["rooms"] if r["name"] == "lobby")
        self.assertEqual((room_status["rung"], room_status["why"]), (0, "none"))
        self.assertTrue(all(session.may_send(peers[0]) for _ in range(50)))
        text = self.bed.edgeshed("status").stdout
        self.assertIn("SESSION OF SHARD", text)
        self.assertIn("lobby", text)

    # Rule: A8, B4
    def test_players_refusals_are_told_to_their_server(self):
        """Standard that a threshold refuses: the server hears of it once a second for each player,
        with the time to retry; nothing of players who lose nothing."""
        session = self.session()
        room = session.room_open("lobby")
        commands = {port: self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, port, TOS_COMMAND)
                    for port in (40000, 40001)}
        low = session.connect(room, CLIENT_ADDRESS, 40000, priority=10)
        session.connect(room, CLIENT_ADDRESS, 40001, priority=200)
        wait_for(lambda: len(self.bed.json("dump", "connections")) == 2, "both are connections")
        self.reach(session, 5, tick_p99_ms=42)
        told = []
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            for sender in commands.values():
                sender.sendto(b"x" * 60, (SERVER_ADDRESS, PORT))
            session.report(tick_p99_ms=42)
            told += session.refusals()
            time.sleep(1 / 30)
        self.assertEqual({one[0] for one in told}, {low}, told)
        self.assertIn(len(told), (2, 3, 4), told)
        for _, code, retry_ms, _ in told:
            self.assertEqual(code, "room_reject_commands")
            self.assertGreaterEqual(retry_ms, 1000)
            self.assertLessEqual(retry_ms, 30000)

    # Rule: A7
    def test_refusals_are_typed(self):
        session = self.session()
        self.assertEqual(session.room_open("cellar"), -1)
        self.assertEqual(session.room_open("attic"), -1)
        codes = [code for kind, code, _, _ in session.events() if kind == EVENT_REFUSED]
        self.assertEqual(codes, ["placement_room_unknown", "placement_room_of_another_shard"])
        room = session.room_open("lobby")
        session.connect(room, CLIENT_ADDRESS, 1, contract_class=b"nobility")
        wait_for(lambda: (EVENT_REFUSED, "register_class_unknown") in
                 [one[:2] for one in session.events()], "the class is refused")
        second = self.session()
        self.assertFalse(second.connected)
        self.assertIn("has a session on shard", second.problem)
        nowhere = self.session("nowhere")
        self.assertIn("nowhere", nowhere.problem)
        other = self.session("other")
        self.assertTrue(other.connected)
        attic = other.room_open("attic")
        session.connect(room, CLIENT_ADDRESS, 40000)
        wait_for(lambda: len(self.bed.json("dump", "connections")) == 1, "one connection")
        other.connect(attic, CLIENT_ADDRESS, 40000)  # the first session's
        wait_for(lambda: (EVENT_REFUSED, "register_other_session") in
                 [one[:2] for one in other.events()], "another session's connection is refused")

    # Rule: A1
    def test_lies_are_counted_and_leave_the_last_good_state(self):
        session = self.session()
        self.reach(session, 2, tick_p99_ms=21)

        def say(counter, **report):
            """One report, until it is read: the next one takes its place on the board."""
            before = self.shard()[counter]
            session.report(**report)
            wait_for(lambda: self.shard()[counter] > before, (counter, report))
        for report in ({"tick_p99_ms": float("nan")}, {"tick_p99_ms": -5},
                       {"tick_p99_ms": 1, "ring": 50}, {"tick_p99_ms": float("inf")},
                       {"tick_p99_ms": 1, "busy_ms_per_tick": -1}):
            say("reports", tick_p99_ms=21)  # or the last good one would be stale some time
            say("reports_refused", **report)
            self.assertEqual(self.shard()["rung"], 2, report)
        time.sleep(0.1)  # six ticks more: what is refused is so once
        shard = self.shard()
        self.assertEqual((shard["rung"], shard["reports_refused"]), (2, 5))
        wait_for(lambda: any(kind == EVENT_REFUSED and code.startswith("report_")
                             for kind, code, _, _ in session.events()), "the server hears of it")
        self.assertEqual(self.shard("other")["rung"], 0)

    def test_malformed_messages_end_their_session_only(self):
        good = self.session()
        for message in (b"", b"x", b"x" * 512, struct.pack("=HHI", 1, 8, 0),
                        struct.pack("=HHI", 5, 8, 0), struct.pack("=HHI", 99, 8, 0),
                        struct.pack("=HHIII", 1, 152, 0, 0, 0) + bytes(136),
                        struct.pack("=HHIIIII", 1, 152, 0, 0x65536553, SESSION_VERSION, 0, 8) + b"a" * 128):
            bad = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            bad.settimeout(5)
            bad.connect(self.session_path)
            bad.send(message)
            self.assertEqual(bad.recv(512), b"", message[:8])
            bad.close()
        old = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        old.settimeout(5)
        old.connect(self.session_path)
        old.send(struct.pack("=HHIIIII", 1, 152, 7, 0x65536553, 999, 0, 8) +
                 b"arena".ljust(64, b"\0") + bytes(64))
        self.assertIn(b"register_version_mismatch", old.recv(512))
        old.close()
        good.report()
        self.assertTrue(good.connected)
        self.assertEqual(good.events(), [])

    def test_a_stranger_user_is_refused(self):
        os.chmod(self.bed.folder, 0o755)
        pid = os.fork()
        if pid == 0:
            try:
                os.setuid(65534)
                session = Session(LIBRARY, self.session_path, "arena")
                wait_for(lambda: "65534" in session.problem or session.tick(), "a refusal", 5)
                os._exit(0)
            except BaseException:
                os._exit(2)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    # Rule: B1, B10
    def test_dead_and_hung_servers_hurt_only_themselves(self):
        session = self.session()
        other = self.session("other")
        room = session.room_open("lobby")
        session.connect(room, CLIENT_ADDRESS, 40000)
        # Hung: the tick that runs and never ends is seen.
        session.lib.edgeshed_tick_begin(session.handle)
        wait_for(lambda: self.shard()["rung"] == 5, "a tick that never ends", 5)
        self.assertEqual(self.shard()["why"], "running_tick")
        # After 3 s of it the room is unhealthy, which tells players to go elsewhere.
        wait_for(lambda: self.room()["code"] == "room_unhealthy", "the fuse", 6)
        self.assertEqual(self.room()["why"], "tick_fuse")
        other.report(tick_p99_ms=2)
        self.assertEqual(self.shard("other")["rung"], 0)
        # Dead: its connections stay for ten seconds, and are adopted by whoever comes back.
        session.close()
        wait_for(lambda: not any(s["shard"] == "arena" for s in self.bed.json("status")["sessions"]),
                 "the session is over")
        self.assertEqual(len(self.bed.json("dump", "connections")), 1)
        again = self.session()
        room = again.room_open("lobby")
        again.connect(room, CLIENT_ADDRESS, 40001)
        wait_for(lambda: len(self.bed.json("dump", "connections")) == 2, "both are there")
        wait_for(lambda: [one["remote"] for one in self.bed.json("dump", "connections")] ==
                 [f"{CLIENT_ADDRESS}:40001"], "the one that nobody named again is gone", 14)

    def check_throttled(self, slow, other):
        """Replication to the slow one is dropped, and only that."""
        def dropped():
            for port in (slow, other):
                for lane in (TOS_SNAPSHOT, TOS_EVENT):
                    server.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, lane)
                    server.sendto(b"y" * 100, (CLIENT_ADDRESS, port))
            time.sleep(0.05)
            return self.counters("out").get(("snapshot", "drop"), 0)
        server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        wait_for(lambda: dropped() > 0, "the plan looks replication up", 3)
        before = self.counters("out")
        dropped()
        after = self.counters("out")
        gained = {key: after[key] - before.get(key, 0) for key in after}
        self.assertEqual((gained["snapshot", "drop"], gained["snapshot", "pass"]), (1, 1), gained)
        self.assertEqual(gained["event", "pass"], 2, gained)

    # Rule: A1, A2, A5
    def test_slow_consumers_and_room_state(self):
        session = self.session()
        room = session.room_open("lobby")
        peers = [session.connect(room, CLIENT_ADDRESS, 41000 + i) for i in range(4)]
        wait_for(lambda: len(self.bed.json("dump", "connections")) == 4, "four connections")
        for peer in peers:
            session.note_ack(peer, 100, 60, 2_000_000 if peer == peers[0] else 0)
        seen = []

        def stage(value):
            seen.extend(session.events())
            return any(kind == EVENT_SLOW and level == value for kind, _, level, _ in seen)
        wait_for(lambda: stage(2), "throttle")
        self.assertFalse(stage(3), "evict needs its dwell")
        self.check_throttled(41000, 41001)
        wait_for(lambda: stage(3), "evict", 6)
        evicted = next(one for one in seen if one[0] == EVENT_SLOW and one[2] == 3)
        self.assertEqual((evicted[1], evicted[3]), ("consumer_evict", peers[0]))
        self.assertTrue(any(one[:2] == (EVENT_ROOM_STATE, "room_pressure_shedding")
                            for one in seen), seen)
        row = next(r for r in self.bed.json("status")["rooms"] if r["name"] == "lobby")
        self.assertEqual((row["pressure"], row["ack_lag_max"], row["consumers_at_evict"]),
                         ("shedding", 40, 1))
        self.assertEqual(row["code"], "room_evict_slow_consumers")

    # Rule: B10
    def test_the_daemon_comes_back(self):
        session = self.session()
        room = session.room_open("lobby")
        peer = session.connect(room, CLIENT_ADDRESS, 40000, player=7)
        self.reach(session, 3, tick_p99_ms=26)
        self.bed.stop_daemon(self.daemon, signal.SIGKILL)
        seen = []

        def saw(kind):
            session.tick()
            seen.extend(one[0] for one in session.events())
            return kind in seen
        wait_for(lambda: saw(EVENT_GONE), "the library notices")
        self.assertTrue(all(session.may_send(peer) for _ in range(50)))
        daemon = self.bed.start_daemon(self.config)
        self.assertIn("1 await their session", read(daemon.log_path))
        wait_for(lambda: saw(EVENT_BACK), "the library is back", 10)
        status = self.bed.json("status")
        self.assertEqual(status["sessions"][0]["connections"], 1)
        time.sleep(10.5)
        self.assertEqual(len(self.bed.json("dump", "connections")), 1)

    def test_a_server_that_registers_everything_again(self):
        """Whoever names its connections again and again gets nothing by it, and loses nobody."""
        ports = range(40000, 40020)
        flooder = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, ports[0], TOS_SNAPSHOT)
        player = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, ports[1], TOS_EVENT)
        session = self.session(peers_max=4096)
        room = session.room_open("lobby", 20)
        for port in ports:
            session.connect(room, CLIENT_ADDRESS, port, contract_class=b"player")
        # Who sends before the daemon has read of him is a stranger still.
        wait_for(lambda: len(self.bed.json("dump", "connections")) == len(ports),
                 "all are connections")
        begin = time.monotonic()
        rounds = sent = 0
        while time.monotonic() - begin < 2:
            for port in ports:
                self.assertGreaterEqual(
                    session.connect(room, CLIENT_ADDRESS, port, contract_class=b"player"), 0)
            rounds += 1
            for _ in range(100):
                flooder.sendto(b"x" * 60, (SERVER_ADDRESS, PORT))
            player.sendto(b"x" * 60, (SERVER_ADDRESS, PORT))
            sent += 1
            session.report(tick_p99_ms=5)
            time.sleep(0.01)
        took_s = time.monotonic() - begin
        self.assertEqual(len(self.bed.json("dump", "connections")), len(ports))
        mine = self.bed.json("status")["sessions"][0]
        self.assertGreater(mine["registrations"], 10 * len(ports), "it shows")
        self.assertGreater(rounds, 20)
        seen = self.counters()
        lost = self.bed.lost_by_veth()
        self.assertEqual(seen.get(("event", "drop"), 0), 0, "in contract, and nothing was lost")
        self.assertIn(seen.get(("event", "pass")), range(sent - lost, sent + 1))
        # Four times 400/s and a quarter of a second's burst of that, once and not each time.
        self.assertLess(seen[("snapshot", "pass")], 1600 * (took_s + 0.25) + 50)
        self.assertGreater(seen[("snapshot", "drop")], 1000)
        # And one that comes and goes with all of it.
        session.close()
        for _ in range(8):
            session = self.session()
            room = session.room_open("lobby", 20)
            for port in ports:
                session.connect(room, CLIENT_ADDRESS, port, contract_class=b"player")
            session.close()
        self.assertEqual(len(self.bed.json("dump", "connections")), len(ports))
        player.sendto(b"x" * 60, (SERVER_ADDRESS, PORT))
        passed = seen["event", "pass"] + 1
        wait_for(lambda: self.counters().get(("event", "pass")) == passed, "and one more")

    # Rule: A6
    def test_place_answers_without_placing(self):
        session = self.session()
        session.report(tick_p99_ms=2)
        self.bed.edgeshed("place", "--room", "lobby", "--players", "8")
        refused = self.bed.edgeshed("place", "--room", "lobby", "--players", "9999", check=False)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("placement_host_", refused.stdout)
        self.reach(session, 2, tick_p99_ms=21)

        def is_refused():
            session.report(tick_p99_ms=21)  # which counts for a second
            refused = self.bed.edgeshed("place", "--room", "lobby", "--json", check=False)
            return "runtime_shard_over_budget" in refused.stdout
        wait_for(is_refused, "a shard over its budget takes no room")
        session.report(tick_p99_ms=21)
        self.assertEqual(session.room_open("lobby"), -1)


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD, LIBRARY = take_paths(3)
    unittest.main(verbosity=2)
