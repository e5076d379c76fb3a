"""What an operator orders: rungs by hand, a drain, and the record of both. Usage: edgeshed edgeshedd
libedgeshed.so."""

import json
import os
import signal
import time
import unittest

from libedgeshed import EVENT_REFUSED, EVENT_ROOM_RUNG, EVENT_RUNG, Session
from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Testbed, game_config, read,
                     skip_without_root, take_paths, wait_for)

PORT = 7777
CONFIG = game_config(host='tick_hz = 60\naudit_log = "%s"', rooms=("lobby", "cellar"),
                     tables='[[room]]\nname = "cellar"\nshard = "arena"')
TOS_SNAPSHOT, TOS_EVENT = 0, 46 << 2
LOBBY, CELLAR = 40000, 40001  # ports of a player in each room
PACKETS = 60


class OrdersTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.audit_path = os.path.join(self.bed.folder, "log", "audit.jsonl")
        self.config = self.bed.write("edgeshed.toml", CONFIG % self.audit_path)
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV, "--enforce")
        self.daemon = self.bed.start_daemon(self.config)

    def row(self, kind, name):
        return next(one for one in self.bed.json("status")[kind] if one["name"] == name)

    def audit(self):
        return [json.loads(line) for line in read(self.audit_path).splitlines()]

    def received(self, sockets, server):
        """PACKETS from each socket; {port: how many reached the server}."""
        for _ in range(PACKETS):
            for one in sockets:
                one.sendto(b"x" * 100, (SERVER_ADDRESS, PORT))
        time.sleep(0.05)
        found = {one.getsockname()[1]: 0 for one in sockets}
        try:
            while True:
                found[server.recvfrom(200)[1][1]] += 1
        except BlockingIOError:
            return found

    # Rule: A3
    def test_rungs_by_hand_win_and_expire(self):
        players = [self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, port, TOS_SNAPSHOT)
                   for port in (LOBBY, CELLAR)]
        critical = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40002, TOS_EVENT)
        server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        server.setblocking(False)
        for port, room in ((LOBBY, "lobby"), (CELLAR, "cellar"), (40002, "lobby")):
            self.bed.edgeshed("connect", f"{CLIENT_ADDRESS}:{port}", "--endpoint", "game",
                              "--room", room)
        self.assertEqual(self.received(players, server), {LOBBY: PACKETS, CELLAR: PACKETS})

        # One room alone, until its time is up; critical passes at every rung.
        self.bed.edgeshed("set", "room", "lobby", "rung", "5", "--for", "2s")
        ordered = time.monotonic()
        wait_for(lambda: self.row("rooms", "lobby")["rung"] == 5, "the room is held")
        got = self.received([*players, critical], server)
        self.assertLessEqual(got[LOBBY], 2, "one per max_gap_ms")
        self.assertEqual((got[CELLAR], got[40002]), (PACKETS, PACKETS))
        row = self.row("rooms", "lobby")
        self.assertEqual((row["overridden"], row["why"], row["code"]),
                         (True, "manual", "shard_migrate_or_close"))
        self.assertIn(row["seconds_left"], (1, 2))
        self.assertIn("the override's end in", row["released_by"])
        self.assertEqual(self.row("shards", "arena")["rung"], 0)
        shown = self.bed.edgeshed("status").stdout
        self.assertRegex(shown, r"lobby +arena +no +5 +none +manual +the override's end in \d s")
        wait_for(lambda: not self.row("rooms", "lobby")["overridden"], "it expires", 4)
        self.assertGreaterEqual(time.monotonic() - ordered, 2)
        self.assertEqual(self.received(players, server), {LOBBY: PACKETS, CELLAR: PACKETS})

        # The shard, and a room that is held above it.
        self.bed.edgeshed("set", "shard", "arena", "rung", "5", "--for", "1m")
        wait_for(lambda: self.row("rooms", "lobby")["rung"] > 0, "the shard is held")
        self.bed.edgeshed("set", "room", "lobby", "rung", "0", "--for", "1m")
        wait_for(lambda: self.row("rooms", "lobby")["overridden"], "the room is held")
        time.sleep(0.05)
        got = self.received(players, server)
        self.assertEqual(got[LOBBY], PACKETS)
        self.assertLessEqual(got[CELLAR], 2)
        self.assertEqual((self.row("shards", "arena")["rung"], self.row("rooms", "lobby")["rung"]),
                         (5, 0))
        self.bed.edgeshed("set", "room", "lobby", "rung", "auto")
        self.bed.edgeshed("set", "shard", "arena", "rung", "auto")
        wait_for(lambda: self.row("shards", "arena")["rung"] < 5, "the ladder decides again")
        shard = self.row("shards", "arena")
        self.assertEqual(shard["changes_by_cause"]["manual"], 1)
        self.assertGreaterEqual(shard["changes_by_cause"]["released"], 1)
        by_hand = self.room_changes()
        self.assertEqual((by_hand["manual"], by_hand["manual_ended"]), (2, 2))
        log = read(self.daemon.log_path)
        self.assertIn("room lobby: rung 0 -> 5 (shard_migrate_or_close), forced by an operator", log)

    # Rule: A2, A7
    def test_a_rooms_own_rungs_are_told_and_counted(self):
        """They follow what the shard's rung does to its rooms, and are left a second after it."""
        session = Session(LIBRARY, os.path.join(self.bed.folder, "session.sock"), "arena")
        self.addCleanup(session.close)
        for room in ("lobby", "cellar"):
            self.assertGreaterEqual(session.room_open(room, 8), 0)
        told = []

        def heard(code, rung):
            session.report(tick_p99_ms=1)
            told.extend(session.events())
            return (EVENT_ROOM_RUNG, code, rung, -1) in told
        for shard_rung, code, rung, cause in (
                ("2", "room_drop_low_priority", 2, "best_effort_keep"),
                ("5", "room_reject_commands", 3, "standard_keep")):
            self.bed.edgeshed("set", "shard", "arena", "rung", shard_rung, "--for", "1m")
            wait_for(lambda: heard(code, rung), code)
            row = self.row("rooms", "cellar")
            self.assertEqual((row["rung"], row["code"], row["why"]), (rung, code, cause))
            self.assertEqual(self.room_changes()[cause], 2)
        self.bed.edgeshed("set", "shard", "arena", "rung", "auto")
        wait_for(lambda: heard("room_normal", 0), "all is kept again", 20)
        self.assertEqual(self.row("rooms", "cellar")["rung"], 0)
        self.assertEqual(self.room_changes()["released"], 2)
        self.assertIn("room lobby, cellar: rung 2 -> 3 (room_reject_commands), standard is not "
                      "kept whole; released by: standard is kept whole", read(self.daemon.log_path))

    def room_changes(self):
        return self.bed.json("status")["daemon"]["room_changes_by_cause"]

    # Rule: A6, A7
    def test_a_drain_is_told(self):
        session = Session(LIBRARY, os.path.join(self.bed.folder, "session.sock"), "arena")
        self.addCleanup(session.close)
        self.assertTrue(session.connected, session.problem)
        lobby = session.room_open("lobby", 8)
        seen = []

        def heard(*event):
            session.report()
            seen.extend(session.events())
            return (EVENT_RUNG, *event, -1) in seen
        self.bed.edgeshed("drain", "arena")
        wait_for(lambda: heard("shard_draining", 0), "the server is told")
        self.assertEqual(session.room_open("cellar"), -1)
        self.assertIn((EVENT_REFUSED, "shard_draining"), [one[:2] for one in session.events()])
        refused = self.bed.edgeshed("place", "--room", "cellar", check=False)
        self.assertEqual(refused.returncode, 3)
        self.assertIn("shard_draining (capacity)", refused.stdout)
        self.assertRegex(self.bed.edgeshed("status").stdout, r"arena .* draining")
        self.assertTrue(self.row("rooms", "lobby")["open"])

        self.bed.edgeshed("reload")
        self.assertEqual(self.row("shards", "arena")["placement"], "draining")
        self.assertTrue(session.connected)
        self.bed.edgeshed("set", "room", "lobby", "rung", "3", "--for", "1m")
        wait_for(lambda: heard("shard_pause_lanes", 3), "the room's rung")
        self.assertGreaterEqual(lobby, 0)
        self.assertIn("as before", self.bed.edgeshed("drain", "arena").stdout)

        # A server that comes back hears of it, and may go on with the room that it had.
        session.close()
        session = Session(LIBRARY, os.path.join(self.bed.folder, "session.sock"), "arena")
        self.addCleanup(session.close)
        seen.clear()
        wait_for(lambda: heard("shard_draining", 0), "the server that comes back is told")
        self.assertGreaterEqual(session.room_open("lobby", 8), 0)
        self.bed.edgeshed("drain", "arena", "--off")
        wait_for(lambda: heard("shard_normal", 0), "the server is told of the end")
        self.assertGreaterEqual(session.room_open("cellar"), 0)

    def test_orders_are_on_record(self):
        self.bed.edgeshed("set", "shard", "arena", "rung", "2", "--for", "60s")
        self.bed.edgeshed("drain", "arena")
        self.bed.edgeshed("bypass", "on")
        self.bed.edgeshed("bypass", "off")
        self.bed.edgeshed("allow", CLIENT_ADDRESS, "--for", "1m")
        self.bed.edgeshed("report", "--shard", "arena", "--tick-p99-ms", "1")
        self.bed.edgeshed("reload")
        lines = self.audit()
        self.assertEqual([one["command"] for one in lines],
                         ["set", "drain", "bypass", "bypass", "allow", "reload"])
        self.assertEqual(lines[0]["arguments"],
                         {"kind": "shard", "name": "arena", "rung": 2, "for_s": 60})
        self.assertEqual((lines[2]["arguments"], lines[3]["arguments"]), ({"on": True},
                                                                          {"on": False}))
        for line in lines:
            self.assertEqual((line["uid"], line["result"]), (os.geteuid(), "ok"))
            self.assertGreater(line["pid"], 1)
        self.assertEqual(os.stat(self.audit_path).st_mode & 0o777, 0o640)

        # A signal's reload has no known author; a file that was moved away is made anew.
        os.rename(self.audit_path, self.audit_path + ".1")
        self.daemon.send_signal(signal.SIGHUP)
        wait_for(lambda: os.path.exists(self.audit_path) and self.audit(), "SIGHUP is on record")
        self.assertEqual((self.audit()[0]["command"], self.audit()[0]["uid"]), ("reload", None))

        # A file that takes nothing stops nothing: one warning, and the orders are in the log.
        self.bed.write("edgeshed.toml", CONFIG % "/dev/full")
        self.bed.edgeshed("reload")
        self.bed.edgeshed("set", "room", "lobby", "rung", "1", "--for", "1s")
        self.assertEqual(self.bed.json("status")["daemon"]["audit_lost"], 2)
        log = read(self.daemon.log_path)
        self.assertEqual(log.count("/dev/full: No space left on device"), 1)
        self.assertIn('audit: {"time"', log)

    def test_wrong_orders_are_one_clear_line(self):
        for words, code, part in (
                ("set shard nowhere rung 2 --for 60s", 1, "configured: arena"),
                ("set room nowhere rung 2 --for 60s", 1, "configured: lobby, cellar"),
                ("set room lobby rung 6 --for 60s", 2, "allowed: 0 to 5, or auto"),
                ("set room lobby rung two --for 60s", 2, "allowed: 0 to 5, or auto"),
                ("set room lobby rung 2 --for 0s", 2, "allowed: above 0, up to 24h"),
                ("set room lobby rung 2 --for 2d", 2, "allowed: above 0, up to 24h"),
                ("set room lobby rung 2 --for soon", 2, "is no duration"),
                ("set room lobby rung 2", 2, "--for is missing"),
                ("set room lobby rung auto --for 1m", 2, "--for belongs to a rung"),
                ("set host lobby rung 2 --for 1m", 2, "allowed: shard, room"),
                ("set room lobby keep 2 --for 1m", 2, "allowed: rung"),
                ("drain nowhere", 1, "configured: arena")):
            refused = self.bed.edgeshed(*words.split(), check=False)
            self.assertEqual(refused.returncode, code, words)
            self.assertIn(part, refused.stderr, words)
            self.assertEqual(len(refused.stderr.strip().splitlines()), 1, refused.stderr)
        self.assertEqual(self.row("shards", "arena")["changes"], 0)


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD, LIBRARY = take_paths(3)
    unittest.main(verbosity=2)
