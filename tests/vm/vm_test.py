#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of tools/dev vm that need no guest: reading rows, the table, and the comparison."""

import lzma
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import guest  # noqa: E402  (the path is set on the line above)
import kernels  # noqa: E402
import matrix  # noqa: E402
import package_test  # noqa: E402, F401  (that these can be imported is the test)
import traffic  # noqa: E402, F401
import two_cards  # noqa: E402, F401
import verifier_table  # noqa: E402
from common import VmError  # noqa: E402


class Rows(unittest.TestCase):
    def test_reads_rows_and_leaves_out_head_and_console_noise(self):
        output = ("[    1.0] some driver said ok\n"
                  "kernel program insns_processed xlated_bytes jited_bytes result\n"
                  "6.1.0-57 shed_xdp 25 200 123 ok\n"
                  "6.1.0-57 shed_tc 2 16 16 ok\n")
        self.assertEqual(verifier_table.parse_rows(output), {"shed_xdp": 25, "shed_tc": 2})

    def test_unknown_count_is_no_row(self):
        self.assertEqual(verifier_table.parse_rows("6.1 shed_xdp -1 200 123 ok\n"), {})

    def test_series_of_a_release(self):
        self.assertEqual(verifier_table.series_of("6.1.0-57-cloud-amd64"), "6.1")
        self.assertEqual(verifier_table.series_of("6.12.117+deb12-cloud-amd64"), "6.12")


class Table(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / "table.tsv"

    def test_what_is_written_is_read_back_in_order_of_kernels(self):
        table = {"6.12": {"a": 3}, "6.1": {"b": 2, "a": 1}}
        verifier_table.write_table(self.path, table)
        self.assertEqual(verifier_table.read_table(self.path), table)
        rows = self.path.read_text().splitlines()[-3:]
        self.assertEqual(rows, ["6.1\ta\t1", "6.1\tb\t2", "6.12\ta\t3"])

    def test_no_file_is_an_empty_table(self):
        self.assertEqual(verifier_table.read_table(self.path), {})

    def test_broken_line_is_named(self):
        self.path.write_text("6.1\tshed_xdp\tmany\n")
        with self.assertRaisesRegex(VmError, r"table\.tsv:1:"):
            verifier_table.read_table(self.path)


class Compare(unittest.TestCase):
    def problems(self, insns, committed):
        return verifier_table.compare("6.1", {"p": insns}, {"6.1": {"p": committed}}, True)[0]

    def test_growth_up_to_the_limit_passes_and_one_more_fails(self):
        self.assertEqual(self.problems(1200, 1000), [])
        self.assertEqual(len(self.problems(1201, 1000)), 1)
        self.assertIn("1201", self.problems(1201, 1000)[0])

    def test_large_fall_is_a_remark(self):
        problems, remarks = verifier_table.compare("6.1", {"p": 10}, {"6.1": {"p": 100}}, True)
        self.assertEqual((problems, len(remarks)), ([], 1))

    def test_new_and_gone_programs_fail(self):
        problems, _ = verifier_table.compare("6.1", {"new": 1}, {"6.1": {"gone": 1}}, True)
        self.assertEqual(len(problems), 2)

    def test_unknown_kernel_fails_only_where_numbers_are_kept(self):
        self.assertEqual(verifier_table.compare("6.18", {"p": 1}, {}, False)[0], [])
        self.assertEqual(len(verifier_table.compare("6.1", {"p": 1}, {}, True)[0]), 1)


class Image(unittest.TestCase):
    def test_libraries_of_a_program_include_its_loader(self):
        found = guest.shared_libraries("/bin/cat")
        self.assertTrue(any("ld-linux" in name for name in found), found)
        self.assertTrue(any(name.endswith("libc.so.6") for name in found), found)

    def test_modules_come_after_what_they_need(self):
        with tempfile.TemporaryDirectory() as folder:
            home = pathlib.Path(folder)
            (home / "modules/kernel").mkdir(parents=True)
            (home / "modules/modules.builtin").write_text("kernel/net/ipv6.ko\n")
            for name, needs in (("net-failover", "failover"), ("failover", ""),
                                ("virtio_net", "net_failover")):
                content = b"\0depends=" + needs.encode() + b"\0"
                path = home / f"modules/kernel/{name}.ko"
                if name == "failover":
                    path, content = path.with_suffix(".ko.xz"), lzma.compress(content)
                path.write_bytes(content)
            kernel = kernels.Kernel("6.1", home)
            self.assertEqual([name for name, _ in kernel.modules(["virtio_net", "ipv6"])],
                             ["failover", "net_failover", "virtio_net"])
            with self.assertRaisesRegex(VmError, "no module veth"):
                kernel.modules(["veth"])


class Accelerator(unittest.TestCase):
    """A qemu of shell, and a file that stands for the device."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.device = self.folder / "kvm"
        self.device.touch()
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = f"{self.folder}:{path}"

    def chosen(self, script, device=None, limit_s=10):
        program = self.folder / "qemu-system-x86_64"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        guest.accelerator_for.cache_clear()
        self.addCleanup(guest.accelerator_for.cache_clear)
        return guest.accelerator_for("vmlinuz", str(device or self.device), limit_s)

    def test_kvm_where_a_kernel_runs_to_its_end(self):
        self.assertEqual(self.chosen("echo 'Kernel panic - not syncing: VFS: Unable to mount'"), "kvm")

    def test_emulation_where_there_is_no_kvm(self):
        self.assertEqual(self.chosen("exit 9", self.folder / "none"), "tcg")

    def test_emulation_where_kvm_stops_before_the_kernel_does(self):
        self.assertEqual(self.chosen("echo 'KVM internal error. Suberror: 1'; exit 1"), "tcg")
        self.assertEqual(self.chosen("exec sleep 60", limit_s=0.3), "tcg")


class Judging(unittest.TestCase):
    def rows(self, lines, names, in_guest=True):
        """What becomes of console lines."""
        console = guest.Console(lambda name, ended: None)
        for line in lines:
            console.line(line)
        console.stop()
        return [matrix.judge("6.1", matrix.Test(name, [], 5), console.ended.get(name), in_guest)
                for name in names]

    def test_only_a_test_that_ended_with_0_passes(self):
        rows = self.rows(["boot", "EDGESHED_GUEST begin a", "fine", "EDGESHED_GUEST end a 0",
                          "EDGESHED_GUEST begin b", "traffic: lost 3", "EDGESHED_GUEST end b 1",
                          "EDGESHED_GUEST begin c", "Kernel panic - not syncing"],
                         ["a", "b", "c", "d"])
        self.assertEqual([row.passed for row in rows], [True, False, False, False])
        self.assertIn("lost 3", rows[1].detail)
        self.assertIn("Kernel panic", rows[2].detail)
        self.assertIn("stopped before", rows[3].detail)

    def test_a_skip_is_one_on_this_kernel_and_a_failure_in_a_guest(self):
        lines = ["EDGESHED_GUEST begin a", "skipped: needs root", "EDGESHED_GUEST end a 77"]
        self.assertIsNone(self.rows(lines, ["a"], in_guest=False)[0].passed)
        self.assertIs(self.rows(lines, ["a"])[0].passed, False)

    def test_a_mark_that_a_test_prints_in_its_line_ends_only_itself(self):
        rows = self.rows(["EDGESHED_GUEST begin a", "EDGESHED_GUEST end b 0"], ["a", "b"])
        self.assertEqual([row.passed for row in rows], [False, False])


if __name__ == "__main__":
    unittest.main()
