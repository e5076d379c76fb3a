"""Attached early, in force later: the link does not move in between. Usage: edgeshed edgeshedd."""

import json
import os
import subprocess
import time
import unittest

from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Testbed, drain, game_config, run,
                     skip_without_root, take_paths, wait_for)

PORT = 7777
CONFIG = game_config(host='mode = "enforce"', dscp='0 = "snapshot"')


class ArmedTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.config = self.bed.write("edgeshed.toml", CONFIG)

    def in_server(self, *command):
        return subprocess.run(["ip", "netns", "exec", self.bed.server_ns, *command], text=True,
                              capture_output=True, check=True).stdout

    def link(self):
        """What would tell of a link that was reset: carrier changes, and the program's id."""
        changes = int(self.in_server("cat", f"/sys/class/net/{DEV}/carrier_changes"))
        shown = json.loads(self.in_server("ip", "-j", "-d", "link", "show", DEV))[0]
        return changes, shown["xdp"]["prog"]["id"], shown["operstate"]

    def attach(self, *more, check=True):
        return self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV, *more,
                                 check=check)

    def seen_by_host(self):
        return sum(cell["packets"] for cell in
                   self.bed.json("dump", "counters")["host"]["in"]["cells"])

    def dropped(self):
        return sum(cell["packets"] for cell in self.bed.cells() if cell["verdict"] == "drop")

    def play(self, sender, packets):
        for _ in range(packets):
            sender.sendto(b"x" * 64, (SERVER_ADDRESS, PORT))
            time.sleep(0.0005)
        time.sleep(0.1)

    def test_from_armed_to_in_force_and_back(self):
        said = self.attach("--idle").stdout
        self.assertIn("armed: everything passes", said)
        armed = self.link()
        self.assertEqual(armed[2], "UP")
        self.assertTrue(self.bed.json("status")["armed"])
        self.assertIn("armed: no endpoint is registered", self.bed.edgeshed("status").stdout)
        server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        server.setblocking(False)
        sender = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40000)
        before = self.seen_by_host()
        self.play(sender, 200)
        self.assertEqual(drain(server), 200)
        self.assertGreaterEqual(self.seen_by_host() - before, 200)
        self.attach("--idle")  # a second time, as a unit that is restarted does
        self.assertEqual(self.link(), armed)

        daemon = self.bed.start_daemon(self.config)
        self.assertFalse(self.bed.json("status")["armed"])
        self.bed.edgeshed("set", "shard", "arena", "rung", "5", "--for", "60s")
        time.sleep(0.2)
        self.play(sender, 200)
        self.assertGreater(self.dropped(), 150)
        self.assertLess(drain(server), 50)
        self.assertEqual(self.link(), armed)
        self.assertIn("left alone", self.attach().stdout)
        self.assertEqual(self.link(), armed)

        self.bed.stop_daemon(daemon)
        self.assertEqual(self.link(), armed)
        wait_for(lambda: self.bed.json("status")["daemon"]["expired"], "the plan expires")
        self.assertEqual(self.link(), armed)

        # The meter moves when the link does.
        for state in ("down", "up"):
            run(["ip", "-n", self.bed.client_ns, "link", "set", "es-cli", state])
        wait_for(lambda: self.link()[0] == armed[0] + 2, "the carrier is seen to change")
        self.assertEqual(self.link()[1], armed[1])

    def test_idle_is_refused_where_something_is_in_force(self):
        self.attach()
        daemon = self.bed.start_daemon(self.config)
        self.bed.stop_daemon(daemon)
        before = self.link()
        refused = self.attach("--idle", check=False)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("1 ports are registered", refused.stderr)
        self.assertEqual(self.link(), before)
        self.assertEqual(self.attach("--idle", "--enforce", check=False).returncode, 2)
        self.bed.edgeshed("detach")
        self.assertFalse(os.path.exists(self.bed.pin_dir))


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD = take_paths(2)
    unittest.main(verbosity=2)
