#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots a Debian 12 guest with systemd and lives the life of the package in it (package_guest.py).
Started by `tools/dev package --test`. The guest has no network: the packages that EdgeShed depends
on are part of its root file system, which is made once and kept in build/vm/package-guest."""

import argparse
import hashlib
import json
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

import guest
import kernels
from common import VmError, last_line, run, say

HERE = pathlib.Path(__file__).resolve().parent
CACHE = HERE.parent.parent / "build/vm"
SUITE = "bookworm"
KERNEL = "6.1"
# What the test uses, besides what the package depends on.
PACKAGES = ["systemd-sysv", "iproute2", "kmod", "procps", "python3"]
MODULES = ["veth", "sch_ingress", "cls_bpf"]
# Nothing in the guest asks for these, and they take seconds.
MASKED = ["apt-daily.timer", "apt-daily-upgrade.timer", "console-getty.service",
          "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer",
          "getty.target", "getty@tty1.service", "serial-getty@ttyS0.service",
          "systemd-binfmt.service", "systemd-hwdb-update.service", "systemd-logind.service",
          "systemd-pstore.service", "systemd-random-seed.service", "systemd-update-utmp.service"]
MAKE_TIMEOUT_S = 600
TOOL_TIMEOUT_S = 120
GUEST_TIMEOUT_S = 720
EXIT_MARK = "EDGESHED_GUEST_EXIT="

UNIT = f"""[Unit]
Description=The life of the package
After=basic.target
[Service]
Type=oneshot
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
ExecStart=/usr/bin/python3 -B /guest/package_guest.py /guest/old.deb /guest/new.deb {EXIT_MARK}
# Without this the last lines may still be in the serial port when the machine stops.
ExecStopPost=/usr/bin/sleep 0.3
ExecStopPost=/usr/bin/systemctl poweroff -ff
TimeoutStartSec={GUEST_TIMEOUT_S}
"""


# --- root file system ------------------------------------------------------------------------


def checked(command, what, timeout_s=TOOL_TIMEOUT_S, **options):
    result = run(command, timeout_s, **options)
    if result.returncode != 0:
        raise VmError(f"{what}: {last_line(result.stdout)}")
    return result.stdout


def dependencies(deb):
    """Names of the packages that a .deb depends on, of alternatives the first."""
    text = checked(["dpkg-deb", "-f", str(deb), "Depends"], f"{deb} is no package")
    return sorted({re.split(r"[ (|:]", item.strip())[0] for item in text.split(",")})


def apt_sources():
    """The files of this machine that say where its packages come from."""
    folder = pathlib.Path("/etc/apt")
    files = [folder / "sources.list", *sorted(folder.glob("sources.list.d/*.list")),
             *sorted(folder.glob("sources.list.d/*.sources"))]
    found = [str(file) for file in files if file.exists() and SUITE in file.read_text()]
    if not found:
        raise VmError(f"no apt source of {SUITE} in {folder}: this test needs Debian 12's")
    return found


def make_tree(tree, packages, scratch):
    # Proxies and the like of this machine.
    options = scratch / "apt.conf"
    options.write_text(checked(["apt-config", "dump", "Acquire"], "apt-config"))
    keep_out = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("locale", "doc", "man")]
    checked(["mmdebstrap", "--quiet", "--variant=required", f"--include={','.join(packages)}",
             f"--aptopt={options}", "--dpkgopt=force-unsafe-io", *keep_out, SUITE, str(tree),
             *apt_sources()],
            "mmdebstrap cannot make the guest's file system: check the network and the apt sources",
            MAKE_TIMEOUT_S)
    for name in ("etc/dpkg/dpkg.cfg.d/99mmdebstrap", "etc/apt/apt.conf.d/99mmdebstrap"):
        (tree / name).unlink(missing_ok=True)
    for name in ("var/cache/apt", "var/lib/apt/lists", "usr/share/zoneinfo"):
        shutil.rmtree(tree / name, ignore_errors=True)
    (tree / "etc/machine-id").write_text("0" * 31 + "1\n")
    (tree / "etc/hostname").write_text("guest\n")
    for unit in MASKED:
        link = tree / "etc/systemd/system" / unit
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/null")
    (tree / "init").symlink_to("usr/lib/systemd/systemd")


def file_system(packages):
    """The archive of it, made anew when what belongs into it is another."""
    recipe = hashlib.sha256(json.dumps([packages, MASKED, SUITE]).encode()).hexdigest()
    home = CACHE / "package-guest"
    archive, stamp = home / "base.cpio", home / "recipe"
    if stamp.exists() and stamp.read_text() == recipe:
        return archive
    say(f"making the guest's file system: {' '.join(packages)}")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=home) as folder:
        scratch = pathlib.Path(folder)
        # mmdebstrap's own helpers are not root.
        scratch.chmod(0o755)
        tree = scratch / "tree"
        make_tree(tree, packages, scratch)
        guest.pack(tree, archive)
    # Last: a run that was stopped half-way leaves no half file system behind.
    stamp.write_text(recipe)
    return archive


# --- guest -----------------------------------------------------------------------------------


def write_overlay(tree, old, new, modules, archive):
    """What is of this run: the packages, the test, the modules of the kernel, and the service that
    loads these and starts the test."""
    wants = tree / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (tree / "guest/modules").mkdir(parents=True)
    shutil.copy2(old, tree / "guest/old.deb")
    shutil.copy2(new, tree / "guest/new.deb")
    shutil.copy2(HERE / "package_guest.py", tree / "guest/package_guest.py")
    loads = ""
    for name, content in modules:
        (tree / f"guest/modules/{name}.ko").write_bytes(content)
        loads += f"ExecStartPre=/usr/sbin/insmod /guest/modules/{name}.ko\n"
    (wants.parent / "package-guest.service").write_text(UNIT + loads)
    (wants / "package-guest.service").symlink_to("../package-guest.service")
    guest.pack(tree, archive)


def run_guest(kernel, base, old, new):
    with tempfile.TemporaryDirectory(prefix="edgeshed-package-") as folder:
        scratch = pathlib.Path(folder)
        overlay = scratch / "overlay.cpio"
        write_overlay(scratch / "tree", old, new, kernel.modules(MODULES), overlay)
        # The kernel unpacks archives that stand one behind the other.
        whole = scratch / "initramfs.cpio"
        with open(whole, "wb") as out:
            for part in (base, overlay):
                with open(part, "rb") as archive:
                    shutil.copyfileobj(archive, out)
        result = run(guest.qemu_command(kernel.image, whole, str(guest.CPUS), ["-nic", "none"],
                                        "mitigations=off", "systemd.show_status=0"),
                     GUEST_TIMEOUT_S)
    output = guest.plain(result.stdout)
    print(output.strip("\n"), flush=True)
    mark = re.search(rf"^{EXIT_MARK}(\d+)$", output, re.MULTILINE)
    if mark is None:
        raise VmError("the guest stopped before it was done: the lines above are its console")
    return int(mark.group(1))


def main():
    parser = argparse.ArgumentParser(prog="package_test.py", description=__doc__)
    parser.add_argument("old", type=pathlib.Path, help="the package")
    parser.add_argument("new", type=pathlib.Path, help="the same with a higher version")
    options = parser.parse_args()
    # As an exception a signal to stop unwinds: the guest is killed, the scratch folder removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        base = file_system(sorted({*PACKAGES, *dependencies(options.old)}))
        kernel = kernels.fetch(KERNEL, CACHE)
        say("booting the guest")
        start = time.monotonic()
        status = run_guest(kernel, base, options.old, options.new)
    except VmError as error:
        print(f"vm: {error}", file=sys.stderr)
        return 1
    say(f"the guest {'passed' if status == 0 else 'failed'} after "
        f"{time.monotonic() - start:.1f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
