#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of vm_smoke.py that need no guest: reading rows, the table, and the comparison."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import vm_smoke  # noqa: E402  (the path is set on the line above)


class Rows(unittest.TestCase):
    def test_reads_rows_and_leaves_out_head_and_console_noise(self):
        output = ("[    1.0] some driver said ok\n"
                  "kernel program insns_processed xlated_bytes jited_bytes result\n"
                  "6.1.0-57 shed_xdp 25 200 123 ok\n"
                  "6.1.0-57 shed_tc 2 16 16 ok\n")
        self.assertEqual(vm_smoke.parse_rows(output), {"shed_xdp": 25, "shed_tc": 2})

    def test_unknown_count_is_no_row(self):
        self.assertEqual(vm_smoke.parse_rows("6.1 shed_xdp -1 200 123 ok\n"), {})

    def test_series_of_a_release(self):
        self.assertEqual(vm_smoke.series_of("6.1.0-57-cloud-amd64"), "6.1")
        self.assertEqual(vm_smoke.series_of("6.12.117+deb12-cloud-amd64"), "6.12")


class Table(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name) / "table.tsv"

    def test_what_is_written_is_read_back_in_order_of_kernels(self):
        table = {"6.12": {"a": 3}, "6.1": {"b": 2, "a": 1}}
        vm_smoke.write_table(self.path, table)
        self.assertEqual(vm_smoke.read_table(self.path), table)
        rows = self.path.read_text().splitlines()[-3:]
        self.assertEqual(rows, ["6.1\ta\t1", "6.1\tb\t2", "6.12\ta\t3"])

    def test_no_file_is_an_empty_table(self):
        self.assertEqual(vm_smoke.read_table(self.path), {})

    def test_broken_line_is_named(self):
        self.path.write_text("6.1\tshed_xdp\tmany\n")
        with self.assertRaisesRegex(vm_smoke.SmokeError, r"table\.tsv:1:"):
            vm_smoke.read_table(self.path)


class Compare(unittest.TestCase):
    def problems(self, insns, committed):
        return vm_smoke.compare("6.1", {"p": insns}, {"6.1": {"p": committed}}, True)[0]

    def test_growth_up_to_the_limit_passes_and_one_more_fails(self):
        self.assertEqual(self.problems(1250, 1000), [])
        self.assertEqual(len(self.problems(1251, 1000)), 1)
        self.assertIn("1251", self.problems(1251, 1000)[0])

    def test_large_fall_is_a_remark(self):
        problems, remarks = vm_smoke.compare("6.1", {"p": 10}, {"6.1": {"p": 100}}, True)
        self.assertEqual((problems, len(remarks)), ([], 1))

    def test_new_and_gone_programs_fail(self):
        problems, _ = vm_smoke.compare("6.1", {"new": 1}, {"6.1": {"gone": 1}}, True)
        self.assertEqual(len(problems), 2)

    def test_unknown_kernel_fails_only_where_numbers_are_kept(self):
        self.assertEqual(vm_smoke.compare("6.18", {"p": 1}, {}, False)[0], [])
        self.assertEqual(len(vm_smoke.compare("6.1", {"p": 1}, {}, True)[0]), 1)


class Initramfs(unittest.TestCase):
    def test_libraries_of_a_program_include_its_loader(self):
        found = vm_smoke.shared_libraries("/bin/cat")
        self.assertTrue(any("ld-linux" in name for name in found), found)
        self.assertTrue(any(name.endswith("libc.so.6") for name in found), found)


if __name__ == "__main__":
    unittest.main()
