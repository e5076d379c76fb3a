"""Beside XDP programs of others, by libxdp's dispatcher, and beside another EdgeShed. Where the
kernel has no dispatcher (freplace) only what needs none is tested.
Usage: edgeshed edgeshedd neighbour.bpf.o."""

import os
import re
import shutil
import subprocess
import time
import unittest

from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Testbed, drain, game_config,
                     skip_or_fail, skip_without_root, take_paths, wait_for)

PORT, BLOCKED_PORT = 7777, 9999
CONFIG = game_config(host='mode = "enforce"')
NEIGHBOUR = "somebody_xdp"
OURS = "es_xdp"
HOLDER = "es-hold"
OUR_PRIORITY = 50  # libxdp's own, as the object says nothing


class NeighboursTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The object is loaded once, for a device that no test touches: that is what takes long."""
        cls.bed = Testbed(EDGESHED, EDGESHEDD)
        cls.addClassCleanup(cls.bed.close)
        cls.bed.add_pair(HOLDER, "es-held")
        cls.config = cls.bed.write("edgeshed.toml", CONFIG)
        cls.bed.edgeshed("attach", "--config", cls.config, "--dev", HOLDER)
        cls.bed.start_daemon(cls.config)

    def setUp(self):
        # libxdp keeps pins for a dispatcher, which have to go before the device.
        self.addCleanup(self.tool, "xdp-loader", "unload", DEV, "--all", check=False)
        self.addCleanup(self.bed.edgeshed, "detach", "--dev", DEV, check=False)

    def tool(self, *command, check=True):
        """A command in the server's namespace; `ip netns exec` would hide bpffs."""
        result = subprocess.run(["nsenter", f"--net=/run/netns/{self.bed.server_ns}", *command],
                                text=True, capture_output=True, timeout=60, check=False)
        if check:
            self.assertEqual(result.returncode, 0, (command, result.stdout + result.stderr))
        return result.stdout

    def attach(self, check=True):
        return self.bed.edgeshed("attach", "--config", self.config, "--dev", DEV, check=check)

    def detach(self):
        self.bed.edgeshed("detach", "--dev", DEV)

    def interfaces(self):
        """What the kernel shows; the daemon may still have an older word on a device that is back."""
        return [one for one in self.bed.json("status")["interfaces"] if one["mode"] != "unprotected"]

    def mode(self):
        return next(one["mode"] for one in self.interfaces() if one["dev"] == DEV)

    def attach_to_dispatcher(self):
        self.attach()
        if self.mode() != "dispatcher":
            skip_or_fail(self, f"this kernel has no freplace: attached as {self.mode()}")

    def load_neighbour(self, priority):
        self.tool("xdp-loader", "load", "-m", "native", "-P", str(priority), "-n", NEIGHBOUR,
                  DEV, SOMEBODY)

    def standing(self):
        """[(priority, name, id)] of the programs in the dispatcher, in the order they run."""
        shown = self.tool("xdp-loader", "status", DEV)
        return [(int(priority), name, int(number)) for priority, name, number in
                re.findall(r"=>\s+(\d+)\s+(\S+)\s+(?:\S+\s+)?(\d+)\s+[0-9a-f]{16}", shown)]

    def id_of(self, name):
        return next((number for _, one, number in self.standing() if one == name), None)

    def play(self):
        """Both let packets through, and ours counts them: 20 come."""
        server = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, PORT)
        client = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40000)
        server.setblocking(False)
        for _ in range(20):
            client.sendto(b"x" * 64, (SERVER_ADDRESS, PORT))
        came = []
        wait_for(lambda: came.append(drain(server)) or sum(came) >= 20, f"20 come: {came}", 5)
        for one in (server, client):
            one.close()

    def counted(self):
        return sum(cell["packets"] for cell in self.bed.cells())

    def check_order(self, priority):
        expected = sorted([(priority, NEIGHBOUR), (OUR_PRIORITY, OURS)])
        self.assertEqual([one[:2] for one in self.standing()], expected)

    def check_play(self):
        counted = self.counted()
        self.play()
        self.assertEqual(self.counted(), counted + 20)

    def unload(self, number):
        self.tool("xdp-loader", "unload", DEV, "--id", str(number))

    # Each attach costs the verifier's time, minutes in all under emulation, so that what comes and
    # goes does so in one story for each priority.

    def test_ours_comes_first_the_neighbour_runs_before_it_and_stays(self):
        self.attach_to_dispatcher()
        ours = self.id_of(OURS)
        self.load_neighbour(10)
        self.check_order(10)
        self.assertEqual(self.id_of(OURS), ours, "a neighbour that comes replaces nobody")
        self.check_play()
        time.sleep(1)  # the daemon watches its interfaces, and has to leave the neighbour alone
        self.check_order(10)
        neighbour = self.id_of(NEIGHBOUR)
        self.detach()
        self.assertEqual([one[1:] for one in self.standing()], [(NEIGHBOUR, neighbour)])
        self.unload(neighbour)
        self.assertFalse(self.bed.has_xdp())

    def test_neighbours_come_first_and_go_first(self):
        """The one runs behind ours; the other is xdp-filter, and what it drops ours never sees."""
        self.load_neighbour(90)
        if not self.standing():
            skip_or_fail(self, "this kernel has no freplace: xdp-loader attaches without dispatcher")
        neighbour = self.id_of(NEIGHBOUR)
        self.attach_to_dispatcher()
        ours = self.id_of(OURS)
        self.check_order(90)
        self.assertEqual(self.id_of(NEIGHBOUR), neighbour)
        self.addCleanup(self.tool, "xdp-filter", "unload", DEV, check=False)
        self.tool("xdp-filter", "load", DEV, "-m", "native", "-f", "udp")
        self.tool("xdp-filter", "port", str(BLOCKED_PORT), "-m", "dst", "-p", "udp")
        self.assertEqual([one[1] for one in self.standing()][1:], [OURS, NEIGHBOUR])
        self.check_play()
        self.check_blocked()
        self.tool("xdp-filter", "unload", DEV)
        self.unload(neighbour)
        self.assertEqual([one[1:] for one in self.standing()], [(OURS, ours)])
        self.check_play()
        self.detach()
        self.assertFalse(self.bed.has_xdp())

    def check_blocked(self):
        blocked = self.bed.udp(self.bed.server_ns, SERVER_ADDRESS, BLOCKED_PORT)
        blocked.setblocking(False)
        self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40001).sendto(
            b"x", (SERVER_ADDRESS, BLOCKED_PORT))
        time.sleep(0.2)
        self.assertEqual(drain(blocked), 0)

    def test_second_edgeshed_is_refused_and_the_first_untouched(self):
        self.attach()
        before = self.interfaces()
        first, second = self.bed.pin_dir, self.bed.pin_dir + "-2"
        self.addCleanup(shutil.rmtree, second, ignore_errors=True)
        self.addCleanup(setattr, self.bed, "pin_dir", first)
        self.bed.pin_dir = second
        refused = self.attach(check=False)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertEqual(len(refused.stderr.strip().splitlines()), 1, refused.stderr)
        self.assertIn(f"`edgeshed --pin-dir {first} detach --dev {DEV}`", refused.stderr)
        self.assertFalse(os.path.exists(second), "a refused attach leaves no pins")
        self.bed.edgeshed("detach", check=False)
        self.bed.edgeshed("detach", "--dev", DEV, check=False)
        self.bed.pin_dir = first
        self.assertEqual(self.interfaces(), before)
        self.detach()
        self.assertFalse(self.bed.has_xdp())


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD, SOMEBODY = take_paths(3)
    unittest.main(verbosity=2)
