"""Hosts that refuse: a full bpffs, too little memory, a card without native XDP. Each gets one clear
line, and stays as it was. (Without bpffs, or with a read-only one: doctor_test. Maps of another
schema, an upgrade that was killed: upgrade_test. A locked down kernel: a guest of tests/vm.)
Usage: edgeshed edgeshedd."""

import contextlib
import errno
import json
import os
import subprocess
import unittest

from bpfcalls import BPF_OBJ_PIN, bpf_call_number
from testbed import (CLIENT_ADDRESS, DEV, SERVER_ADDRESS, Testbed, game_config, refuse_call, run,
                     skip_without_root, take_paths, wait_for)

MANY = 1 << 20  # 160 MiB of tables
MEMORY_V1, MEMORY_V2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"


@contextlib.contextmanager
def memory_of(mebibytes):
    """A cgroup with that much memory, as the words that put a command into it; None where this
    host hands none out."""
    if os.path.exists(MEMORY_V1 + "/memory.limit_in_bytes"):
        parent, limit = MEMORY_V1, "memory.limit_in_bytes"
    elif os.path.exists(MEMORY_V2 + "/cgroup.subtree_control"):
        parent, limit = MEMORY_V2, "memory.max"
        with contextlib.suppress(OSError), open(parent + "/cgroup.subtree_control", "w",
                                                encoding="ascii") as control:
            control.write("+memory")
    else:
        yield None
        return
    folder = f"{parent}/edgeshed-test-{os.getpid()}"
    os.mkdir(folder)
    try:
        if not os.path.exists(f"{folder}/{limit}"):
            yield None
            return
        with open(f"{folder}/{limit}", "w", encoding="ascii") as file:
            file.write(str(mebibytes << 20))
        yield ("sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$0" "$@"')
    finally:
        os.rmdir(folder)


class HostsTest(unittest.TestCase):
    def setUp(self):
        self.bed = Testbed(EDGESHED, EDGESHEDD)
        self.addCleanup(self.bed.close)
        self.config = self.write_config(64)

    def write_config(self, connections):
        return self.bed.write(f"{connections}.toml", game_config(connections=connections))

    def attach(self, config=None, dev=DEV, **options):
        return self.bed.edgeshed("attach", "--config", config or self.config, "--dev", dev,
                                 **options)

    def shown(self, *command):
        return subprocess.run(["nsenter", f"--net=/run/netns/{self.bed.server_ns}", *command],
                              text=True, capture_output=True, check=True).stdout

    def standing(self):
        """Pins, and what is on the device."""
        pins = [name for name in os.listdir("/sys/fs/bpf")
                if name.startswith(os.path.basename(self.bed.pin_dir))]
        return (pins, self.shown("bpftool", "net", "show", "dev", DEV),
                self.shown("tc", "qdisc", "show", "dev", DEV))

    def loaded(self):
        """Lines of programs and maps that are called as ours are; the kernel frees them later than
        their last user ends."""
        return {line for kind in ("prog", "map") for line in self.shown("bpftool", kind).splitlines()
                if " name es_" in line}

    def assert_refused_and_nothing_changed(self, code, line, config=None, **options):
        before, loaded = self.standing(), self.loaded()
        refused = self.attach(config, check=False, **options)
        self.assertEqual(refused.returncode, code, refused)
        self.assertIn(line, refused.stderr)
        self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
        self.assertEqual(self.standing(), before)
        wait_for(lambda: self.loaded() <= loaded, "nothing stays loaded")

    def test_a_full_bpffs(self):
        """bpffs has no size of its own: it is full when the kernel has no memory for a name. Here
        the kernel says so to each pin."""
        def full():
            refuse_call(bpf_call_number(), errno.ENOSPC, BPF_OBJ_PIN)
        self.assert_refused_and_nothing_changed(1, "No space left on device", before_exec=full)
        self.attach()
        before, loaded = self.standing(), self.loaded()
        refused = self.bed.edgeshed("upgrade", "--again", check=False, before_exec=full)
        self.assertEqual((refused.returncode, refused.stderr.count("\n")), (1, 1), refused)
        self.assertIn("cannot pin", refused.stderr)
        self.assertEqual(self.standing(), before)
        wait_for(lambda: self.loaded() <= loaded, "nothing stays loaded")
        self.assertTrue(self.bed.json("status")["programs_current"])

    def test_no_memory_for_the_tables(self):
        with memory_of(64) as wrapper:
            if wrapper is None:
                self.skipTest("this host hands out no memory cgroup")
            self.assert_refused_and_nothing_changed(
                1, "lower connections_max in [host] of the configuration",
                self.write_config(MANY), wrapper=wrapper)
            self.attach(wrapper=wrapper)  # what fits, fits

    def test_a_kernel_that_is_locked_down(self):
        """XDP and TC programs are not what a lockdown forbids; doctor says what is worth knowing."""
        locked = False
        with contextlib.suppress(OSError), open("/sys/kernel/security/lockdown",
                                                encoding="ascii") as file:
            locked = "[confidentiality]" in file.read()
        if not locked:
            with open("/proc/cmdline", encoding="ascii") as file:
                self.assertNotIn("lockdown=confidentiality", file.read())
            self.skipTest("this kernel is not locked down; one of the guests of tests/vm is")
        self.attach()
        sender = self.bed.udp(self.bed.client_ns, CLIENT_ADDRESS, 40000)
        self.bed.start_daemon(self.config)
        for _ in range(20):
            sender.sendto(b"x" * 64, (SERVER_ADDRESS, 7777))
        wait_for(lambda: sum(cell["packets"] for cell in self.bed.cells()) == 20,
                 "all are counted", 5)
        found = [row for row in json.loads(self.bed.edgeshed("doctor", "--json",
                                                             check=False).stdout)
                 if row["check"] == "lockdown"]
        self.assertEqual([row["level"] for row in found], ["warn"], found)

    def test_a_card_without_native_xdp(self):
        run(["ip", "-n", self.bed.server_ns, "link", "add", "es-plain", "type", "ifb"])
        said = self.attach(dev="es-plain").stdout
        self.assertRegex(said, r"es-plain: XDP (dispatcher \()?generic\)?, TC egress")
        self.assertIn("no native mode", said)
        shown = next(one for one in self.bed.json("status")["interfaces"]
                     if one["dev"] == "es-plain")
        self.assertTrue(shown["generic"], shown)
        self.bed.edgeshed("detach")


if __name__ == "__main__":
    skip_without_root()
    EDGESHED, EDGESHEDD = take_paths(2)
    unittest.main(verbosity=2)
