"""Several interfaces, both faces, and interfaces that go and come back. Usage: edgeshed edgeshedd
refuse_tc.so."""

import os
import time
import unittest

from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Testbed, game_config, read, run,
                     skip_without_root, take_paths, wait_for)

PORT = 7777
CONFIG = game_config(host='mode = "enforce"')
SECOND = "es-two"
ATTACHED = ("native", "dispatcher")
SECOND_SERVER, SECOND_CLIENT = "10.99.2.1", "10.99.2.2"


class InterfacesTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.config = self.bed.write("edgeshed.toml", CONFIG)

    def add_second(self):
        run(["ip", "link", "add", SECOND, "netns", self.bed.server_ns, "type", "veth",
             "peer", "name", "es-cli2", "netns", self.bed.client_ns])
        for name, dev, address in ((self.bed.server_ns, SECOND, SECOND_SERVER),
                                   (self.bed.client_ns, "es-cli2", SECOND_CLIENT)):
            run(["ip", "-n", name, "addr", "add", address + "/24", "dev", dev])
            run(["ip", "-n", name, "link", "set", dev, "up"])

    def counters(self, way="in"):
        found = {}
        for cell in self.bed.cells(way):
            key = cell["lane"], cell["verdict"]
            found[key] = found.get(key, 0) + cell["packets"]
        return found

    def interface(self, dev):
        """Its line in status; in the moment between the kernel and the daemon there is none."""
        return next((one for one in self.bed.json("status")["interfaces"] if one["dev"] == dev),
                    {"mode": None})

    def test_two_interfaces_share_one_set_of_maps(self):
        self.add_second()
        self.bed.write("edgeshed.toml", CONFIG + "".join(
            f'[[interface]]\ndev = "{dev}"\n' for dev in (DEV, SECOND)))
        self.bed.edgeshed("attach", "--config", self.config)
        self.bed.start_daemon(self.config)
        self.bed.edgeshed("set", "shard", "arena", "rung", "5", "--for", "60s")
        time.sleep(0.1)
        for server, client in ((SERVER_ADDRESS, CLIENT_ADDRESS), (SECOND_SERVER, SECOND_CLIENT)):
            sender = self.bed.udp(self.bed.client_ns, client, 40000, 0)
            critical = self.bed.udp(self.bed.client_ns, client, 40001, 46 << 2)
            self.bed.edgeshed("connect", f"{client}:40001", "--endpoint", "game")
            for _ in range(100):
                sender.sendto(b"x" * 64, (server, PORT))
                critical.sendto(b"x" * 64, (server, PORT))
        time.sleep(0.1)
        seen = self.counters()
        self.assertEqual(seen[("snapshot", "drop")] + seen.get(("snapshot", "mark"), 0) +
                         seen.get(("snapshot", "pass"), 0), 200, seen)
        self.assertGreater(seen[("snapshot", "drop")], 180, seen)
        self.assertEqual(seen[("event", "pass")], 200, seen)
        self.bed.edgeshed("detach", "--dev", SECOND)
        self.assertEqual((self.bed.has_xdp(DEV), self.bed.has_xdp(SECOND)), (True, False))
        wait_for(lambda: self.interface(SECOND)["mode"] == "unprotected", "the alarm")
        self.assertIn(self.interface(DEV)["mode"], ATTACHED)
        self.bed.edgeshed("detach")
        self.assertFalse(self.bed.has_xdp(DEV))

    def test_one_bad_interface_attaches_none(self):
        self.bed.write("edgeshed.toml", CONFIG + f'[[interface]]\ndev = "{DEV}"\n'
                       '[[interface]]\ndev = "nowhere"\n')
        refused = self.bed.edgeshed("attach", "--config", self.config, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("nowhere", refused.stderr)
        self.assertFalse(self.bed.has_xdp(DEV))
        self.assertFalse(os.path.exists(self.bed.pin_dir))

    def test_faces_servers_drops_replication_at_xdp(self):
        """DEV is the host's side of a container's veth: the game server is at its other end."""
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV, "--faces", "servers")
        self.bed.start_daemon(self.config)
        server = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, PORT, 0)
        client = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, 40000, 0)
        client.setblocking(False)
        self.bed.edgeshed("connect", f"{SERVER_ADDRESS}:40000", "--endpoint", "game")
        self.bed.edgeshed("set", "shard", "arena", "rung", "3", "--for", "60s")
        time.sleep(0.1)
        for _ in range(400):
            server.sendto(b"x" * 200, (SERVER_ADDRESS, 40000))
            time.sleep(0.0005)
        time.sleep(0.1)
        received = 0
        try:
            while True:
                client.recv(400)
                received += 1
        except BlockingIOError:
            pass
        out = self.counters("out")
        self.assertGreater(out[("snapshot", "drop")], 200, out)
        self.assertEqual(received, 400 - out[("snapshot", "drop")], out)
        self.assertEqual(self.interface(DEV)["faces"], "servers")
        self.bed.edgeshed("detach")

    def test_gone_back_down_and_up(self):
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV)
        daemon = self.bed.start_daemon(self.config)
        for state in ("down", "up"):
            run(["ip", "-n", self.bed.server_ns, "link", "set", DEV, state])
        time.sleep(0.3)
        self.assertTrue(self.bed.has_xdp(DEV))
        self.assertIn(self.interface(DEV)["mode"], ATTACHED)

        run(["ip", "-n", self.bed.server_ns, "link", "del", DEV])
        wait_for(lambda: self.interface(DEV)["mode"] == "absent", "the alarm")
        self.assertIn(f"{DEV}: absent", read(daemon.log_path))
        run(["ip", "link", "add", DEV, "netns", self.bed.server_ns, "type", "veth",
             "peer", "name", "es-cli", "netns", self.bed.client_ns])
        wait_for(lambda: self.bed.has_xdp(DEV), "it is attached again")
        wait_for(lambda: self.interface(DEV)["mode"] in ATTACHED, "status says so")
        self.assertIn("the packet path is on it again", read(daemon.log_path))
        self.bed.edgeshed("detach")

    def test_what_cannot_be_put_back_is_tried_again_now_and_then(self):
        """The kernel refuses for a while, and says nothing when it would not any more."""
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV)
        refusing = self.bed.write("refusing", "")
        self.bed.start_daemon(self.config, lambda: os.environ.update(
            LD_PRELOAD=REFUSE_TC, EDGESHED_REFUSE_TC=DEV, EDGESHED_REFUSE_TC_WHILE=refusing))
        run(["ip", "-n", self.bed.server_ns, "link", "del", DEV])
        wait_for(lambda: self.interface(DEV)["mode"] == "absent", "the alarm")
        self.bed.add_pair(DEV, "es-cli")
        wait_for(lambda: self.interface(DEV)["mode"] == "unprotected", "it cannot be put back")
        time.sleep(1.5)  # the failure's own messages are no reason to try at once
        self.assertEqual(len(read(refusing)), 1)
        os.remove(refusing)
        wait_for(lambda: self.interface(DEV)["mode"] in ATTACHED, "it is put back", 10)
        self.assertTrue(self.bed.has_xdp(DEV))

    def test_half_of_it_taken_off_by_somebody(self):
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV)
        daemon = self.bed.start_daemon(self.config)
        run(["tc", "-n", self.bed.server_ns, "qdisc", "del", "dev", DEV, "clsact"])
        wait_for(lambda: f"{DEV}: unprotected: its TC egress program is gone"
                 in read(daemon.log_path), "the alarm")
        self.assertIn("TC egress program is gone", self.interface(DEV)["why"])
        self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV)
        wait_for(lambda: self.interface(DEV)["egress"], "it is whole again")
        run(["ip", "-n", self.bed.server_ns, "link", "set", DEV, "xdp", "off"])
        wait_for(lambda: f"{DEV}: unprotected: its XDP program is gone" in read(daemon.log_path),
                 "the alarm")
        self.bed.edgeshed("detach")

    def test_moved_to_another_namespace_and_back(self):
        self.add_second()
        self.bed.edgeshed("attach", "--config", self.config, "--dev", SECOND)
        in_dispatcher = self.interface(SECOND)["mode"] == "dispatcher"
        daemon = self.bed.start_daemon(self.config)
        run(["ip", "-n", self.bed.server_ns, "link", "set", SECOND, "netns", self.bed.client_ns])
        wait_for(lambda: self.interface(SECOND)["mode"] == "absent", "the alarm")
        self.assertIn(f"{SECOND}: absent", read(daemon.log_path))
        run(["ip", "-n", self.bed.client_ns, "link", "set", SECOND, "netns", self.bed.server_ns])
        if in_dispatcher:  # which libxdp knows by the number that the interface had
            wait_for(lambda: "libxdp does not know" in self.interface(SECOND).get("why", ""),
                     "the alarm says why")
            run(["ip", "-n", self.bed.server_ns, "link", "set", SECOND, "xdp", "off"])
        run(["ip", "-n", self.bed.server_ns, "link", "set", SECOND, "up"])
        # The move has kept XDP and taken clsact.
        wait_for(lambda: self.interface(SECOND).get("egress"), "it is attached again", 60)
        self.assertIn(self.interface(SECOND)["mode"], ATTACHED)
        run(["ip", "-n", self.bed.server_ns, "addr", "add", SECOND_SERVER + "/24", "dev", SECOND])
        client = self.bed.udp(self.bed.client_ns, SECOND_CLIENT, 40000, 46 << 2)
        server = self.bed.udp(self.bed.server_ns, SECOND_SERVER, PORT, 46 << 2)
        server.settimeout(1)
        before = self.counters("in"), self.counters("out")
        for _ in range(20):
            client.sendto(b"x", (SECOND_SERVER, PORT))
            server.sendto(*server.recvfrom(16))
        after = self.counters("in"), self.counters("out")
        for old, new in zip(before, after):
            self.assertEqual(new[("event", "pass")], old.get(("event", "pass"), 0) + 20)
        self.bed.edgeshed("detach")


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD, REFUSE_TC = take_paths(3)
    unittest.main(verbosity=2)
