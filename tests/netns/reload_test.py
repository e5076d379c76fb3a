"""A configuration that changes while packets pass. Usage: edgeshed edgeshedd."""

import signal
import threading
import time
import unittest

from testbed import (CLIENT_ADDRESS, CLIENT_DEV, DEV, SERVER_ADDRESS, Testbed, drain, read, run,
                     skip_without_root, take_paths, wait_for)

PORT = 7777
NEIGHBOUR_ADDRESS = "10.99.1.3"
HEAD = """
[host]
connections_max = 256
endpoints_max = 6
rooms_max = 8
classes_max = 4
mode = "enforce"
[[shard]]
name = "arena"
frame_budget_ms = 20
"""
ROOM = '[[room]]\nname = "{}"\nshard = "arena"\n'
CLASS = '[[class]]\nname = "{}"\n[class.best_effort]\npackets_per_s = {}\n'
ENDPOINT = """[[endpoint]]
name = "{}"
address = "any"
port = {}
protocol = "dscp"
rooms = [{}]
dscp = {{ 0 = "snapshot", 46 = "event" }}
"""
# The same names in another order, with names around them, and another rate of the class.
BEFORE = (HEAD + ROOM.format("lobby") + ROOM.format("attic") + CLASS.format("player", 400) +
          ENDPOINT.format("game", PORT, '"lobby", "attic"'))
AFTER = (HEAD + ROOM.format("cellar") + ROOM.format("attic") + ROOM.format("lobby") +
         CLASS.format("guest", 100) + CLASS.format("player", 500) +
         ENDPOINT.format("query", 7778, '"cellar"') +
         ENDPOINT.format("game", PORT, '"attic", "lobby"'))


class ReloadTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.config = self.bed.write("edgeshed.toml", BEFORE)
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV)
        self.daemon = self.bed.start_daemon(self.config)

    def connections(self):
        return {one["remote"]: one for one in self.bed.json("dump", "connections")}

    def cells(self):
        found = {}
        for endpoint in self.bed.json("dump", "counters")["endpoints"]:
            for cell in endpoint["in"]["cells"]:
                found[cell["reason"]] = found.get(cell["reason"], 0) + cell["packets"]
        return found

    def test_names_keep_their_numbers(self):
        for port, room in ((40000, "lobby"), (40001, "attic")):
            self.bed.edgeshed("connect", f"{CLIENT_ADDRESS}:{port}", "--endpoint", "game",
                              "--room", room, "--class", "player")
        before = self.bed.json("dump", "rooms")
        self.bed.write("edgeshed.toml", AFTER)
        answer = self.bed.json("reload")
        self.assertEqual(sorted(answer["added"]), ["class guest", "endpoint query", "room cellar"])
        self.assertEqual((answer["removed"], answer["connections_removed"]), ([], 0))
        after = self.bed.json("dump", "rooms")
        numbers = {room["name"]: room["number"] for room in after}
        for room in before:
            self.assertEqual(numbers[room["name"]], room["number"])
        connections = self.connections()
        self.assertEqual(connections[f"{CLIENT_ADDRESS}:40000"]["room"], "lobby")
        self.assertEqual(connections[f"{CLIENT_ADDRESS}:40001"]["room"], "attic")
        self.assertEqual(connections[f"{CLIENT_ADDRESS}:40001"]["class"], "player")

        # A restart with that file finds the same, and without a daemon the file has the names.
        self.bed.stop_daemon(self.daemon)
        named = self.bed.json("dump", "connections", "--config", self.config)
        self.assertEqual({one["room"] for one in named}, {"lobby", "attic"})
        self.daemon = self.bed.start_daemon(self.config)
        self.assertEqual(self.connections()[f"{CLIENT_ADDRESS}:40000"]["room"], "lobby")

        # What the file lacks goes, and nothing else.
        self.bed.write("edgeshed.toml", BEFORE.replace(ROOM.format("attic"), "")
                       .replace(', "attic"', ""))
        self.daemon.send_signal(signal.SIGHUP)
        wait_for(lambda: "in force from plan generation" in read(self.daemon.log_path), "SIGHUP")
        wait_for(lambda: list(self.connections()) == [f"{CLIENT_ADDRESS}:40000"], "one is left")
        self.assertEqual([e["name"] for e in self.bed.json("dump", "endpoints")], ["game"])

    def test_a_wrong_file_changes_nothing(self):
        generation = self.bed.json("status")["daemon"]["generation"]
        for text, part in ((AFTER.replace("frame_budget_ms", "frame_budget"), "toml:10:"),
                           (AFTER.replace("rooms_max = 8", "rooms_max = 9"), "detach"),
                           (AFTER.replace('"cellar"]', '"kitchen"]'), "no [[room]]"),
                           ("[[", "not valid TOML")):
            self.bed.write("edgeshed.toml", text)
            refused = self.bed.edgeshed("reload", check=False)
            self.assertNotEqual(refused.returncode, 0, text[:40])
            self.assertIn(part, refused.stderr)
            self.assertEqual(len(refused.stderr.strip().splitlines()), 1)
        rooms = {room["name"] for room in self.bed.json("dump", "rooms")}
        self.assertEqual(rooms, {"lobby", "attic"})
        self.assertGreater(self.bed.json("status")["daemon"]["generation"], generation)
        self.assertIn("reload refused, nothing changed", read(self.daemon.log_path))

    def test_under_traffic_no_packet_sees_two_plans(self):
        events = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40000, 46 << 2)
        snapshots = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40001, 0)
        server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        server.setblocking(False)
        for port in (40000, 40001):
            self.bed.edgeshed("connect", f"{CLIENT_ADDRESS}:{port}", "--endpoint", "game",
                              "--room", "lobby", "--class", "player")
        stop = threading.Event()
        sent = [0, 0]

        def send():
            while not stop.is_set():
                events.sendto(b"e" * 64, (SERVER_ADDRESS, PORT))
                snapshots.sendto(b"s" * 64, (SERVER_ADDRESS, PORT))
                sent[0] += 1
                sent[1] += 1
                drain(server)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            generations = []
            for i in range(20):
                self.bed.write("edgeshed.toml", AFTER if i % 2 == 0 else BEFORE)
                generations.append(self.bed.json("reload")["generation"])
        finally:
            stop.set()
            sender.join()
        time.sleep(0.1)
        lost = self.bed.lost_by_veth()  # as quickly as it can: more at once than a ring may hold
        self.assertEqual(generations, sorted(set(generations)))
        cells = self.cells()
        self.assertGreater(sent[0], 5000)
        self.assertEqual(cells.get("torn_plan", 0), 0, cells)
        self.assertEqual(cells.get("no_record", 0), 0, cells)
        counters = self.bed.json("dump", "counters")
        game = next(e for e in counters["endpoints"] if e["name"] == "game")
        seen = {}
        for cell in game["in"]["cells"]:
            seen[cell["lane"]] = seen.get(cell["lane"], 0) + cell["packets"]
            if cell["lane"] == "event":
                self.assertNotEqual(cell["verdict"], "drop", cell)
        self.assertEqual(seen["event"] + seen["snapshot"], sum(sent) - lost)
        for lane, its in zip(("event", "snapshot"), sent):
            self.assertIn(seen[lane], range(its - lost, its + 1), lane)
        # The contract held all along, at 4 times 400 to 500 a second: it never lapsed in between.
        self.assertGreater(cells["contract"], 0)
        self.assertTrue(self.bed.json("status")["ledger_exact"])

    def packets(self, *reasons):
        """What the packet path has counted: of these reasons, or of all."""
        return sum(n for reason, n in self.cells().items() if not reasons or reason in reasons)

    def dropped_of_100(self, sender):
        """In per cent, of what came as far as the packet path."""
        shed = ("room_paused", "lane_paused", "thinned", "min_interval")
        dropped, counted, lost = self.packets(*shed), self.packets(), self.bed.lost_by_veth()
        for _ in range(100):
            sender.sendto(b"s" * 64, (SERVER_ADDRESS, PORT))

        def come():
            return 100 - (self.bed.lost_by_veth() - lost)
        wait_for(lambda: self.packets() - counted >= come(), "all have been decided on")
        return 100 * (self.packets(*shed) - dropped) / come()

    def test_allow_exempts_and_expires(self):
        run(["ip", "-n", self.bed.client_ns, "addr", "add", NEIGHBOUR_ADDRESS + "/24", "dev",
             CLIENT_DEV])
        allowed, neighbour = (self.bed.udp(self.bed.client_ns, address, 40000, 0)
                              for address in (CLIENT_ADDRESS, NEIGHBOUR_ADDRESS))
        for address in (CLIENT_ADDRESS, NEIGHBOUR_ADDRESS):
            self.bed.edgeshed("connect", f"{address}:40000", "--endpoint", "game", "--room", "lobby")
        self.bed.edgeshed("set", "shard", "arena", "rung", "5", "--for", "60s")
        wait_for(lambda: self.dropped_of_100(allowed) > 90, "rung 5 sheds snapshots")
        answer = self.bed.json("allow", CLIENT_ADDRESS, "--for", "1h")
        self.assertEqual(answer["allowed"][0]["address"], CLIENT_ADDRESS)
        wait_for(lambda: self.dropped_of_100(allowed) == 0, "it is exempt")
        for _ in range(3):
            self.assertEqual(self.dropped_of_100(allowed), 0)
            self.assertGreater(self.dropped_of_100(neighbour), 90, "and nobody else")
        # A restarted daemon still honours it.
        self.bed.stop_daemon(self.daemon)
        self.daemon = self.bed.start_daemon(self.config)
        self.bed.edgeshed("set", "shard", "arena", "rung", "5", "--for", "60s")
        wait_for(lambda: self.dropped_of_100(neighbour) > 90, "the rung is in force again")
        self.assertEqual(self.dropped_of_100(allowed), 0)
        self.bed.edgeshed("allow", CLIENT_ADDRESS, "--for", "1s")
        wait_for(lambda: self.dropped_of_100(allowed) > 90, "it has expired")
        wrong = self.bed.edgeshed("allow", "10.0.0", check=False)
        self.assertIn("is no address", wrong.stderr)
        wrong = self.bed.edgeshed("allow", "10.0.0.1", "--for", "soon", check=False)
        self.assertEqual((wrong.returncode, len(wrong.stderr.strip().splitlines())), (2, 1))


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD = take_paths(2)
    unittest.main(verbosity=2)
