#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests on this kernel and in guests with Debian's, and prints kernel x test. Started by
`tools/dev vm`."""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import time

import guest
import kernels
import verifier_table
from common import VmError, last_line, run, say

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SKIPPED = 77
# What is printed of a test that failed.
TAIL_LINES = 60
VERIFIER = "verifier"
# Left out under emulation, where a packet costs some twenty times what it does on hardware; all of it
# runs on this machine by ctest. Three kinds: many thousand packets to compare two paths of one
# program, or of one C file, which no kernel changes; the same at two more rates of ticks; and races
# of two threads, as a virtual CPU that is stopped for milliseconds within a read and its write is
# beyond the error that these allow.
LEFT_OUT = {
    "bpf_test": ("FastTest.ShortAndLongWayAgree", "LaneHeaderTest.EveryLaneIsReadAtBothHooks",
                 "AfterCalm/CutTest.*", "Hz/*/1", "Hz/*/2", "LevelRaceTest.*"),
    "bpf_native_test": ("FuzzDecide.*", "FuzzPackets.*", "Tables/SlotStress.*")}
# Lines that say why, over what comes after them.
TELLING = re.compile(r"Kernel panic.*|AssertionError: .*|^\[  FAILED  \].*|^traffic: .*|"
                     r"^edgeshed_verify_object: .*")


@dataclasses.dataclass
class Test:
    name: str
    command: list
    limit_s: int
    on_host: bool = True
    host_reason: str = ""  # why not on this kernel
    guest: str = ""  # the one guest that plays it; empty: each


@dataclasses.dataclass
class Row:
    kernel: str
    test: str
    passed: bool | None  # None: skipped, `detail` says why
    seconds: float
    detail: str

    def as_json(self):
        return {"kernel": self.kernel, "test": self.test, "pass": self.passed,
                "seconds": round(self.seconds, 1), "detail": self.detail}


def programs(build):
    return {name: build / path for name, path in {
        "edgeshed": "tools/cli/edgeshed", "edgeshedd": "userspace/daemon/edgeshedd",
        "library": "userspace/client/libedgeshed.so", "object": "bpf/edgeshed.bpf.o",
        "verify": "tests/vm/edgeshed_verify_object",
        "bpf_test": "tests/bpf/bpf_test", "bpf_native_test": "tests/bpf/bpf_native_test",
        "kernel_root_test": "tests/kernel/kernel_root_test",
        "neighbour": "tests/kernel/somebody.bpf.o",
        "next_object": "tests/netns/next/next.bpf.o",
        "next": "tests/netns/next/edgeshed_next", "nextd": "tests/netns/next/edgeshedd_next",
        "refuse_tc": "tests/netns/next/libedgeshed_refuse_tc.so",
        "kernel_netns_test": "tests/kernel/kernel_netns_test"}.items()}


def tests_of(build, objects):
    have = {name: str(path) for name, path in programs(build).items()}
    python = [str(guest.find_tool("python3")), "-B"]
    both = [have["edgeshed"], have["edgeshedd"]]
    netns = str(ROOT / "tests/netns")
    return [
        Test(VERIFIER, [have["verify"], *map(str, objects)], 120),
        *(Test(name, [have[name], "--gtest_brief=1",
                      f"--gtest_filter=-{':'.join(LEFT_OUT.get(name, ()))}"], 120)
          for name in ("bpf_test", "bpf_native_test", "kernel_root_test", "kernel_netns_test")),
        Test("traffic", [*python, str(HERE / "two_cards.py"), *both], 120, on_host=False,
             host_reason="needs two cards; the netns tests play it on veth"),
        Test("neighbours", [*python, f"{netns}/neighbours_test.py", *both, have["neighbour"]], 180),
        Test("devices", [*python, f"{netns}/devices_test.py", *both], 180),
        # Those that a dispatcher makes different.
        Test("interfaces", [*python, f"{netns}/interfaces_test.py", *both, have["refuse_tc"],
                            *(f"InterfacesTest.test_{name}" for name in (
                                "moved_to_another_namespace_and_back", "gone_back_down_and_up"))],
             180, guest="6.12"),
        Test("hosts", [*python, f"{netns}/hosts_test.py", *both], 180, guest="6.12"),
        Test("upgrade", [*python, f"{netns}/upgrade_test.py", *both,
                         *(have[name] for name in ("next_object", "next", "nextd", "refuse_tc")),
                         *(f"UpgradeTest.test_{name}" for name in (
                             "there_and_back_under_traffic",
                             "killed_at_any_moment_under_traffic"))], 300, guest="6.1"),
    ]


def judge(kernel, test, ended, in_guest):
    """The row of one test that ended, or that the guest never came to (None)."""
    if ended is None:
        return Row(kernel, test.name, False, 0.0, "the guest stopped before")
    detail = ""
    if ended.status == SKIPPED and not in_guest:
        return Row(kernel, test.name, None, ended.seconds, last_line(ended.output))
    if ended.status == 0:
        skips = re.findall(r"^OK \((skipped=\d+)\)|^\[  SKIPPED \] (\d+ tests?)", ended.output,
                           re.MULTILINE)
        detail = ", ".join(" ".join(filter(None, one)) for one in skips)
        return Row(kernel, test.name, True, ended.seconds, detail)
    telling = [line.strip() for line in ended.output.splitlines() if TELLING.search(line)]
    reason = telling[-1] if telling else last_line(ended.output)
    status = "the guest stopped" if ended.status is None else f"exit status {ended.status}"
    if ended.status == 137 and ended.seconds >= test.limit_s:
        status = f"over {test.limit_s} s"
    return Row(kernel, test.name, False, ended.seconds, f"{status}: {reason}")


class Matrix:
    """Runs the tests on one kernel after the other and keeps the rows."""

    def __init__(self, options, tests, objects):
        self.options, self.tests, self.objects = options, tests, objects
        self.rows, self.verified = [], {}

    def _ended(self, kernel, test, ended, in_guest):
        row = judge(kernel, test, ended, in_guest)
        if test.name == VERIFIER and row.passed:
            self._compare(row, ended.output)
        self.rows.append(row)
        print(f"  {word(row.passed):4} {kernel:8} {test.name:20} {row.seconds:6.1f} s  "
              f"{row.detail}", flush=True)
        if row.passed is False and ended is not None:
            print(f"--- {test.name} on {kernel}, the last lines:")
            print("\n".join(ended.output.splitlines()[-TAIL_LINES:]), flush=True)
            print("---")

    def _compare(self, row, output):
        rows = verifier_table.parse_rows(output)
        series = verifier_table.series_of(row.kernel)
        self.verified[series] = rows
        if not rows:
            row.passed, row.detail = False, "edgeshed_verify_object printed no program"
            return
        row.detail = ", ".join(f"{name} {insns}" for name, insns in sorted(rows.items()))
        if self.options.update:
            return
        problems, remarks = verifier_table.compare(
            series, rows, verifier_table.read_table(self.options.table),
            series in kernels.KERNEL_PACKAGES)
        for remark in remarks:
            say(remark)
        if problems:
            row.passed, row.detail = False, "; ".join(problems)

    def on_host(self):
        release = verifier_table.series_of(os.uname().release)
        for test in self.tests:
            if not test.on_host:
                row = Row(release, test.name, None, 0.0, test.host_reason)
                self.rows.append(row)
                continue
            start = time.monotonic()
            result = run(test.command, test.limit_s)
            self._ended(release, test, guest.Ended(
                result.returncode, time.monotonic() - start, result.stdout), in_guest=False)

    def in_guest(self, series):
        kernel = kernels.fetch(series, self.options.cache)
        tests = [test for test in self.tests if test.guest in ("", series)]
        by_name = {test.name: test for test in tests}
        if not tests:
            self.rows += [Row(series, test.name, None, 0.0, f"played in the guest with {test.guest}")
                          for test in self.tests]
            return
        with tempfile.TemporaryDirectory(prefix="edgeshed-vm-") as scratch:
            archive = self._image(kernel, tests, pathlib.Path(scratch))
            limit_s = min(self.options.guest_limit_s,
                          guest.BOOT_LIMIT_S + sum(test.limit_s for test in tests))
            console = guest.boot(kernel, archive, limit_s, lambda name, ended: self._ended(
                series, by_name[name], ended, in_guest=True))
        for test in self.tests:
            if test not in tests:
                self.rows.append(Row(series, test.name, None, 0.0,
                                     f"played in the guest with {test.guest}"))
            elif test.name not in console.ended:
                self._ended(series, test, None, in_guest=True)
        if not console.ended:
            print("\n".join(console.boot_lines[-TAIL_LINES:]))

    def _image(self, kernel, tests, scratch):
        tree = guest.Tree(scratch / "tree")
        have = programs(self.options.build)
        for name, path in have.items():
            if path.suffix != ".o":
                tree.add_program(path)
        built = self.options.build / "tests"
        for path in [have["object"], *self.objects, *built.rglob("*.bpf.o")]:
            tree.add_file(path)
        tree.add_folder(ROOT / "tests/netns")
        tree.add_folder(ROOT / "tests/vm", ("*.tsv", "*.cc"))
        tree.add_folder(ROOT / "tests/captures")
        tree.add_folder(pathlib.Path("/usr/lib/x86_64-linux-gnu/bpf"))
        modules = kernel.modules(guest.MODULES)
        tree.add_modules(modules)
        tree.write_init(modules, tests)
        archive = scratch / "initramfs.cpio"
        guest.pack(tree.folder, archive, "-R", "0:0")
        return archive


def word(passed):
    return {True: "pass", False: "FAIL", None: "skip"}[passed]


def print_table(rows):
    """kernel x test: one line for each test, one column for each kernel."""
    names = list(dict.fromkeys(row.test for row in rows))
    columns = list(dict.fromkeys(row.kernel for row in rows))
    cells = {(row.test, row.kernel): row for row in rows}
    print("\n" + "test".ljust(22) + "".join(column.rjust(16) for column in columns))
    for name in names:
        line = name.ljust(22)
        for column in columns:
            row = cells.get((name, column))
            line += (f"{word(row.passed)} {row.seconds:6.1f} s" if row else "-").rjust(16)
        print(line)
    totals = [sum(row.seconds for row in rows if row.kernel == column) for column in columns]
    print("all".ljust(22) + "".join(f"{total:.1f} s".rjust(16) for total in totals))
    for row in rows:
        if row.passed is not True:
            print(f"{word(row.passed)}: {row.kernel} {row.test}: {row.detail}")


def chosen_objects(options):
    objects = options.object or sorted((options.build / "bpf").glob("*.bpf.o"))
    if not objects:
        raise VmError(f"no *.bpf.o in {options.build}/bpf: run tools/dev build")
    for path in [*programs(options.build).values(), *objects]:
        if not path.exists():
            raise VmError(f"{path} does not exist: run tools/dev build")
    return [path.resolve() for path in objects]


def play(options):
    objects = chosen_objects(options)
    tests = tests_of(options.build, objects)
    if options.smoke:
        tests = tests[:1]
    if options.test:
        tests = [test for test in tests if test.name in options.test]
        if len(tests) != len(set(options.test)):
            raise VmError(f"unknown --test: allowed are "
                          f"{', '.join(test.name for test in tests_of(options.build, objects))}")
    matrix = Matrix(options, tests, objects)
    if not options.kernel or "host" in options.kernel or options.smoke:
        matrix.on_host()
    for series in options.kernel or sorted(kernels.KERNEL_PACKAGES, key=len):
        if series != "host":
            matrix.in_guest(series)
    print_table(matrix.rows)
    if all(row.passed is None for row in matrix.rows):
        raise VmError("no test was played: the lines above say why")
    if options.json:
        options.json.write_text(
            json.dumps([row.as_json() for row in matrix.rows], indent=1) + "\n")
    failed = any(row.passed is False for row in matrix.rows)
    if options.update and not failed:
        table = verifier_table.read_table(options.table)
        table.update(matrix.verified)
        verifier_table.write_table(options.table, table)
        say(f"wrote {options.table.name} for kernels {', '.join(sorted(matrix.verified))}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(prog="matrix.py", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="only the verifier's work")
    parser.add_argument("--kernel", action="append",
                        choices=[*sorted(kernels.KERNEL_PACKAGES), "host"],
                        help="kernel, may be repeated (all, and this one)")
    parser.add_argument("--test", action="append", help="only this one, may be repeated")
    parser.add_argument("--update", action="store_true", help="rewrite the verifier's table")
    parser.add_argument("--object", action="append", type=pathlib.Path,
                        help="object for the verifier, may be repeated (all of BUILD/bpf)")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows into this file")
    parser.add_argument("--guest-limit-s", type=int, default=900)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "build/vm")
    parser.add_argument("--table", type=pathlib.Path, default=verifier_table.TABLE)
    options = parser.parse_args()
    # As an exception a signal to stop unwinds: the guest is killed, the scratch folder removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    start = time.monotonic()
    try:
        status = play(options)
    except VmError as error:
        print(f"vm: {error}", file=sys.stderr)
        return 1
    say(f"{'passed' if status == 0 else 'failed'} in {time.monotonic() - start:.1f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
