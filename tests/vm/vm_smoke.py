#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads the BPF objects on the host kernel and in guests, and compares the verifier's work with
the committed table verifier_table.tsv. Started by `tools/dev vm --smoke`."""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = HERE / "verifier_table.tsv"
TABLE_HEAD = ["kernel", "program", "insns_processed"]

# Debian's kernels for virtual machines: small, and BTF and the drivers of a guest are built in.
KERNEL_PACKAGES = {"6.1": "linux-image-cloud-amd64", "6.12": "linux-image-6.12-cloud-amd64"}

# How much more work than the committed number is still taken for noise of compiler updates.
GROWTH_ALLOWED_PERCENT = 25
GUEST_TIMEOUT_S = 120
GUEST_MEMORY_MIB = 1024
FETCH_TIMEOUT_S = 300
LOAD_TIMEOUT_S = 60

EXIT_MARK = "EDGESHED_GUEST_EXIT="

GUEST_INIT = """#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t bpf bpf /sys/fs/bpf
# The object is checked as the kernel runs it in production: compiled.
echo 1 > /proc/sys/net/core/bpf_jit_enable
/bin/edgeshed_verify_object {objects} 2>&1
echo "{mark}$?"
# Without this the last lines may still be in the serial port when the machine stops.
sleep 0.2
poweroff -f
"""


class SmokeError(Exception):
    """One clear line for the person who started this."""


def say(text):
    print(f"vm: {text}", flush=True)


def run(command, timeout_s, **options):
    try:
        return subprocess.run(command, timeout=timeout_s, check=False, text=True,
                              errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options)
    except FileNotFoundError as error:
        raise SmokeError(f"{command[0]} is not installed: run tools/dev deps") from error
    except subprocess.TimeoutExpired as error:
        # What a guest had on its console when it hung is the only trace of why.
        print((error.stdout or b"").decode(errors="replace").rstrip("\n"), file=sys.stderr)
        raise SmokeError(f"'{' '.join(map(str, command[:3]))} ...' took over {timeout_s} s and "
                         "was stopped") from error


# --- kernels ---------------------------------------------------------------------------------


def image_package(series):
    """The package with the image: the one that the meta package of the series depends on."""
    meta = KERNEL_PACKAGES[series]
    for attempt in ("as it is", "after apt-get update"):
        if attempt == "after apt-get update":
            say("package lists are missing: apt-get update")
            run(["apt-get", "update", "-qq"], FETCH_TIMEOUT_S)
        listing = run(["apt-cache", "depends", meta], LOAD_TIMEOUT_S).stdout
        found = re.search(r"^\s*Depends: (linux-image-\S+)$", listing, re.MULTILINE)
        if found:
            return found.group(1)
    raise SmokeError(f"apt knows no package {meta} with kernel {series}: enable the main section "
                     "of Debian 12 in the apt sources, then run apt-get update")


def fetch_kernel(series, cache):
    """Returns the path of a kernel image, fetched once and unpacked, never installed."""
    home = cache / f"kernel-{series}"
    image = home / "vmlinuz"
    if image.exists():
        return image
    package = image_package(series)
    say(f"fetching {package}")
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        # The sandbox user of apt may not write here; what is fetched is checked all the same.
        result = run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package],
                     FETCH_TIMEOUT_S, cwd=scratch)
        debs = list(pathlib.Path(scratch).glob("*.deb"))
        if result.returncode != 0 or not debs:
            raise SmokeError(f"cannot fetch {package}: {last_line(result.stdout)}: check the "
                             "network and the apt sources, then run apt-get update")
        unpacked = pathlib.Path(scratch) / "unpacked"
        result = run(["dpkg-deb", "-x", str(debs[0]), str(unpacked)], LOAD_TIMEOUT_S)
        images = list(unpacked.glob("boot/vmlinuz-*"))
        if result.returncode != 0 or not images:
            raise SmokeError(f"{debs[0].name} holds no boot/vmlinuz-*: {last_line(result.stdout)}")
        # Renamed last: a run that was stopped half-way leaves no half image behind.
        images[0].rename(image)
    return image


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"


# --- guest -----------------------------------------------------------------------------------


def shared_libraries(binary):
    """Full paths of the loader and of all libraries that the binary needs."""
    result = run(["ldd", str(binary)], LOAD_TIMEOUT_S)
    if result.returncode != 0 or "not found" in result.stdout:
        raise SmokeError(f"{binary}: ldd cannot name its libraries: {last_line(result.stdout)}")
    return sorted(set(re.findall(r"(/\S+)(?= \(0x)", result.stdout)))


def write_initramfs(tree, verifier, objects, archive):
    for folder in ("bin", "proc", "sys", "dev", "obj"):
        (tree / folder).mkdir(parents=True)
    busybox = shutil.which("busybox")
    if busybox is None:
        raise SmokeError("busybox is not installed: run tools/dev deps")
    shutil.copy2(busybox, tree / "bin/busybox")
    for applet in ("sh", "mount", "echo", "sleep", "poweroff"):
        (tree / "bin" / applet).symlink_to("busybox")
    shutil.copy2(verifier, tree / "bin/edgeshed_verify_object")
    for library in shared_libraries(verifier):
        target = tree / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library, target)
    for item in objects:
        shutil.copy2(item, tree / "obj" / item.name)
    init = tree / "init"
    init.write_text(GUEST_INIT.format(
        mark=EXIT_MARK, objects=" ".join(f"/obj/{item.name}" for item in objects)))
    init.chmod(0o755)
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    with open(archive, "wb") as out:
        result = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], cwd=tree,
                                input=names.encode(), stdout=out, stderr=subprocess.PIPE,
                                timeout=LOAD_TIMEOUT_S, check=False)
    if result.returncode != 0:
        raise SmokeError(f"cpio cannot write the initramfs: {result.stderr.decode().strip()}")


def run_guest(series, verifier, objects, cache):
    image = fetch_kernel(series, cache)
    say(f"booting kernel {series}")
    with tempfile.TemporaryDirectory(prefix="edgeshed-vm-") as scratch:
        archive = pathlib.Path(scratch) / "initramfs.cpio"
        write_initramfs(pathlib.Path(scratch) / "tree", verifier, objects, archive)
        accelerator = "kvm" if os.access("/dev/kvm", os.R_OK | os.W_OK) else "tcg"
        # panic=-1 with -no-reboot: a guest that panics ends qemu at once, not at the timeout.
        result = run(["qemu-system-x86_64", "-accel", accelerator, "-cpu", "max", "-smp", "1",
                      "-m", str(GUEST_MEMORY_MIB), "-nodefaults", "-nic", "none",
                      "-display", "none", "-serial", "stdio", "-no-reboot",
                      "-kernel", str(image), "-initrd", str(archive),
                      "-append", "console=ttyS0 quiet loglevel=2 panic=-1"], GUEST_TIMEOUT_S)
    output = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc|\r", "", result.stdout)
    mark = re.search(rf"^{EXIT_MARK}(\d+)$", output, re.MULTILINE)
    if mark is None:
        print(output.rstrip("\n"))
        panic = re.search(r"Kernel panic.*", output)
        raise SmokeError(f"the {series} guest stopped before it was done: "
                         f"{panic.group(0) if panic else last_line(output)}: "
                         "the lines above are its console")
    return int(mark.group(1)), output[:mark.start()]


# --- table -----------------------------------------------------------------------------------


def parse_rows(output):
    """{program: insns} of what edgeshed_verify_object printed, other lines left out."""
    rows = {}
    for line in output.splitlines():
        fields = line.split()
        if len(fields) == 6 and fields[5] == "ok" and all(f.isdigit() for f in fields[2:5]):
            rows[fields[1]] = int(fields[2])
    return rows


def series_of(release):
    return ".".join(release.split(".")[:2])


def read_table(path):
    """{kernel series: {program: insns}}"""
    table = {}
    if not path.exists():
        return table
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        fields = line.split("\t")
        if not line or line.startswith("#") or fields == TABLE_HEAD:
            continue
        if len(fields) != 3 or not fields[2].isdigit():
            raise SmokeError(f"{path.name}:{number}: '{line}' is not 'kernel<TAB>program<TAB>"
                             "number': repair it, or rewrite with tools/dev vm --smoke --update")
        table.setdefault(fields[0], {})[fields[1]] = int(fields[2])
    return table


def write_table(path, table):
    lines = ["# Instructions that the verifier processed for each program, by kernel series.",
             "# Written by tools/dev vm --smoke --update; more than "
             f"{GROWTH_ALLOWED_PERCENT} % over a number fails.", "\t".join(TABLE_HEAD)]
    for series in sorted(table, key=lambda s: [int(part) for part in s.split(".")]):
        lines += [f"{series}\t{program}\t{table[series][program]}"
                  for program in sorted(table[series])]
    path.write_text("\n".join(lines) + "\n")


def compare(series, rows, table, must_be_known):
    """Returns (problems, remarks), each a list of clear lines."""
    known = table.get(series)
    fix = "run tools/dev vm --smoke --update and commit the table"
    if known is None and not must_be_known:
        return [], [f"kernel {series} has no numbers in the table: loaded, not compared"]
    problems, remarks = [], []
    for program, insns in sorted(rows.items()):
        committed = (known or {}).get(program)
        if committed is None:
            problems.append(f"kernel {series}: {program} has no number in the table: {fix}")
        elif insns * 100 > committed * (100 + GROWTH_ALLOWED_PERCENT):
            problems.append(
                f"kernel {series}: {program} takes the verifier {insns} instructions, the table "
                f"has {committed}, at most {GROWTH_ALLOWED_PERCENT} % over it is allowed: make "
                f"the program simpler, or if the cost is meant {fix}")
        elif insns * (100 + GROWTH_ALLOWED_PERCENT) < committed * 100:
            remarks.append(f"kernel {series}: {program} went down from {committed} to {insns} "
                           f"instructions: {fix}")
    for program in sorted(set(known or {}) - set(rows)):
        problems.append(f"kernel {series}: {program} is in the table but not in the object: {fix}")
    return problems, remarks


# --- command ---------------------------------------------------------------------------------


def verify_host(verifier, objects):
    result = run([str(verifier), *map(str, objects)], LOAD_TIMEOUT_S)
    return result.returncode, result.stdout


def checked_rows(where, status, output):
    print(output.rstrip("\n"), flush=True)
    if status != 0:
        raise SmokeError(f"{where} does not take the object (exit status {status}): "
                         "the reason is above")
    rows = parse_rows(output)
    if not rows:
        raise SmokeError(f"{where}: edgeshed_verify_object printed no program")
    return rows


def smoke(options):
    objects = options.object or sorted((options.build / "bpf").glob("*.bpf.o"))
    verifier = options.build / "tests/vm/edgeshed_verify_object"
    for path in [verifier, *objects]:
        if not path.exists():
            raise SmokeError(f"{path} does not exist: run tools/dev build")
    if not objects:
        raise SmokeError(f"no *.bpf.o in {options.build}/bpf: run tools/dev build")
    if len({path.name for path in objects}) != len(objects):
        raise SmokeError("two objects have the same file name: give each --object another name")

    host_series = series_of(os.uname().release)
    measured = {host_series: checked_rows("this kernel", *verify_host(verifier, objects))}
    for series in options.kernel or ["6.1"]:
        status, output = run_guest(series, verifier, objects, options.cache)
        measured[series] = checked_rows(f"the {series} guest", status, output)

    table = read_table(options.table)
    if options.update:
        table.update(measured)
        write_table(options.table, table)
        say(f"wrote {options.table.name} for kernels {', '.join(sorted(measured))}")
        return 0
    problems = []
    for series, rows in measured.items():
        found, remarks = compare(series, rows, table, series in KERNEL_PACKAGES)
        problems += found
        for remark in remarks:
            say(remark)
    for problem in problems:
        print(f"vm: {problem}", file=sys.stderr)
    return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(prog="vm_smoke.py", description=__doc__)
    parser.add_argument("--kernel", action="append", choices=sorted(KERNEL_PACKAGES),
                        help="series of the guest kernel, may be repeated (6.1)")
    parser.add_argument("--update", action="store_true", help="rewrite the table")
    parser.add_argument("--object", action="append", type=pathlib.Path,
                        help="object file, may be repeated (all of BUILD/bpf)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "build/vm")
    parser.add_argument("--table", type=pathlib.Path, default=TABLE)
    options = parser.parse_args()
    # As an exception a signal to stop unwinds: the guest is killed, the scratch folder removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    start = time.monotonic()
    try:
        status = smoke(options)
    except SmokeError as error:
        print(f"vm: {error}", file=sys.stderr)
        return 1
    if status == 0:
        say(f"passed in {time.monotonic() - start:.1f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
