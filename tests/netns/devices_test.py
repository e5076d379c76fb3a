"""Devices on top of others: a VLAN, a bond, a bridge. Attaching there works, or the message says
where to attach instead. Usage: edgeshed edgeshedd."""

import subprocess
import time
import unittest

from testbed import (DEV, Testbed, game_config, run, skip_or_fail, skip_without_root, take_paths,
                     wait_for)

PORT = 7777
CONFIG = game_config(host='mode = "enforce"')
SERVER_ON_TOP, CLIENT_ON_TOP = "10.99.4.1", "10.99.4.2"
CLIENT_DEV = "es-cli"
HOLDER = "es-hold"


class DevicesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The object is loaded once, for a device that no test touches: that is what takes long."""
        cls.bed = Testbed(EDGESHED, EDGESHEDD)
        cls.addClassCleanup(cls.bed.close)
        cls.bed.add_pair(HOLDER, "es-held")
        cls.config = cls.bed.write("edgeshed.toml", CONFIG)
        cls.bed.edgeshed("attach", "--config", cls.config, "--dev", HOLDER)
        cls.bed.start_daemon(cls.config)

    def link(self, namespace, *words):
        run(["ip", "-n", namespace, "link", *words])

    def add(self, namespace, dev, *words):
        try:
            self.link(namespace, "add", *words)
        except subprocess.CalledProcessError as error:
            skip_or_fail(self, f"this kernel cannot make it: {error.stderr.decode().strip()}")
        self.addCleanup(self.link, namespace, "del", dev)

    def attach(self, dev, check=True):
        done = self.bed.edgeshed("attach", "--config", self.config, "--dev", dev, check=check)
        if done.returncode == 0:
            self.addCleanup(self.bed.edgeshed, "detach", "--dev", dev, check=False)
        return done

    def interface(self, dev):
        return next(one for one in self.bed.json("status")["interfaces"]
                    if one["dev"] == dev and one["mode"] != "unprotected")

    def counted(self):
        return sum(cell["packets"] for cell in self.bed.cells())

    def bring_up(self, server_dev, client_dev):
        for namespace, dev, address in ((self.bed.server_ns, server_dev, SERVER_ON_TOP),
                                        (self.bed.client_ns, client_dev, CLIENT_ON_TOP)):
            run(["ip", "-n", namespace, "addr", "add", address + "/24", "dev", dev])
            self.addCleanup(subprocess.run, ["ip", "-n", namespace, "addr", "del",
                                             address + "/24", "dev", dev],
                            check=False, capture_output=True)
            self.link(namespace, "set", dev, "up")

    def check_counts(self, server=SERVER_ON_TOP, client=CLIENT_ON_TOP):
        sender = self.bed.udp(self.bed.client_ns, client, 0)
        at_first = self.counted()

        def arrives():
            sender.sendto(b"x" * 64, (server, PORT))
            return self.counted() > at_first
        # The first ones wait for the neighbour's address, or for a port of the bridge to forward.
        wait_for(arrives, "a packet is counted")
        time.sleep(0.3)
        before = self.counted()
        for _ in range(20):
            sender.sendto(b"x" * 64, (server, PORT))
        wait_for(lambda: self.counted() == before + 20, f"20 more than {before} are counted", 5)

    def detach_leaves_nothing(self, dev):
        self.bed.edgeshed("detach", "--dev", dev)
        self.assertFalse(self.bed.has_xdp(dev))
        # The daemon looks a moment after the last change: one that is gone before it has seen that
        # it was taken off on purpose would be put back when its name comes again.
        wait_for(lambda: any(one["dev"] == dev and one["mode"] == "unprotected"
                             for one in self.bed.json("status")["interfaces"]), "it is seen")

    def make_vlan(self):
        for namespace, dev in ((self.bed.server_ns, DEV), (self.bed.client_ns, CLIENT_DEV)):
            self.add(namespace, "es-vlan", "link", dev, "name", "es-vlan", "type", "vlan", "id", "7")
        self.bring_up("es-vlan", "es-vlan")

    def make_bond(self):
        # A card that leaves a bond is down.
        self.addCleanup(self.link, self.bed.server_ns, "set", DEV, "up")
        self.add(self.bed.server_ns, "es-bond", "es-bond", "type", "bond", "mode", "active-backup")
        self.link(self.bed.server_ns, "set", DEV, "down")
        self.link(self.bed.server_ns, "set", DEV, "master", "es-bond")
        self.bring_up("es-bond", CLIENT_DEV)

    def make_bridge(self):
        self.add(self.bed.server_ns, "es-br", "es-br", "type", "bridge")
        self.link(self.bed.server_ns, "set", DEV, "master", "es-br")
        self.bring_up("es-br", CLIENT_DEV)

    def test_card_under_a_vlan_counts_tagged_packets(self):
        self.make_vlan()
        self.attach(DEV)
        self.assertFalse(self.interface(DEV)["generic"])
        self.check_counts()
        self.detach_leaves_nothing(DEV)

    def test_vlan_names_the_card_under_it(self):
        self.make_vlan()
        said = self.attach("es-vlan").stdout
        self.assertIn(f"attach to {DEV} instead", said)
        self.assertTrue(self.interface("es-vlan")["generic"])
        self.check_counts()
        self.detach_leaves_nothing("es-vlan")

    def test_half_of_a_card_under_a_vlan_with_a_program_is_upgraded(self):
        self.make_vlan()
        self.attach(DEV)
        run(["ip", "-n", self.bed.server_ns, "link", "set", DEV, "xdp", "off"])
        self.attach("es-vlan")
        done = self.bed.edgeshed("upgrade", "--again").stdout
        self.assertIn(f"{DEV}: XDP none", done)
        self.assertIn("es-vlan: XDP", done)
        self.detach_leaves_nothing("es-vlan")

    def test_bond_is_native_and_its_card_names_it(self):
        """The kernel refuses a program on a card whose bond has one: the bond hands it down."""
        self.make_bond()
        self.attach("es-bond")
        self.assertFalse(self.interface("es-bond")["generic"])
        refused = self.attach(DEV, check=False)
        self.assertEqual(refused.returncode, 3, refused.stdout + refused.stderr)
        self.assertEqual(len(refused.stderr.strip().splitlines()), 1, refused.stderr)
        self.assertIn("attach to es-bond instead", refused.stderr)
        self.check_counts()
        self.detach_leaves_nothing("es-bond")

    def test_bridge_names_its_cards(self):
        self.make_bridge()
        said = self.attach("es-br").stdout
        self.assertIn(f"attach to {DEV} instead", said)
        self.assertTrue(self.interface("es-br")["generic"])
        self.check_counts()
        self.detach_leaves_nothing("es-br")

    def test_card_of_a_bridge_is_native(self):
        self.make_bridge()
        self.attach(DEV)
        self.assertFalse(self.interface(DEV)["generic"])
        self.check_counts()
        self.detach_leaves_nothing(DEV)


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD = take_paths(2)
    unittest.main(verbosity=2)
