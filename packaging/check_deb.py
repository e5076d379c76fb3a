#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is in the package: files with their owners and modes, fields, conffiles. Usage: FILE.deb"""

import re
import subprocess
import sys

LIMIT_S = 60
ROOT_FILE, ROOT_PROGRAM = "-rw-r--r--", "-rwxr-xr-x"
TRIPLE = "usr/lib/[a-z0-9_]+-linux-gnu"
WANTED = {
    r"usr/bin/edgeshed": ROOT_PROGRAM,
    r"usr/sbin/edgeshedd": ROOT_PROGRAM,
    r"usr/lib/edgeshed/edgeshed\.bpf\.o": ROOT_FILE,
    rf"{TRIPLE}/libedgeshed\.a": ROOT_FILE,
    rf"{TRIPLE}/libedgeshed\.so\.0\.[0-9.]+": ROOT_FILE,
    rf"{TRIPLE}/pkgconfig/edgeshed\.pc": ROOT_FILE,
    r"usr/include/edgeshed\.h": ROOT_FILE,
    r"usr/lib/systemd/system/edgeshed\.service": ROOT_FILE,
    r"usr/lib/systemd/system/edgeshed-arm\.service": ROOT_FILE,
    r"usr/lib/sysusers\.d/edgeshed\.conf": ROOT_FILE,
    r"usr/share/man/man1/edgeshed\.1\.gz": ROOT_FILE,
    r"usr/share/man/man8/edgeshedd\.8\.gz": ROOT_FILE,
    r"usr/share/bash-completion/completions/edgeshed": ROOT_FILE,
    r"usr/share/zsh/vendor-completions/_edgeshed": ROOT_FILE,
    r"usr/share/doc/edgeshed/copyright": ROOT_FILE,
    r"usr/share/doc/edgeshed/changelog\.gz": ROOT_FILE,
    r"usr/share/doc/edgeshed/examples/edgeshed\.toml": ROOT_FILE,
    r"etc/default/edgeshed": ROOT_FILE,
}
# One page for each of `edgeshed --help`'s subcommands: pages_test.py says that none is missing.
PAGES_MIN = 15
FOLDERS = ("etc/edgeshed/",)
SCRIPTS = {"postinst", "prerm", "postrm"}


def dpkg_deb(*words):
    return subprocess.run(["dpkg-deb", *words], text=True, capture_output=True, timeout=LIMIT_S,
                          check=True).stdout


def contents(deb):
    """{path: (mode, owner)}; of a link the path only."""
    found = {}
    for line in dpkg_deb("--contents", deb).splitlines():
        mode, owner, _, _, _, path = line.split(maxsplit=5)
        found[path.split(" -> ")[0].removeprefix("./")] = (mode, owner)
    return found


def check_files(found):
    for pattern, mode in WANTED.items():
        matching = [path for path in found if re.fullmatch(pattern, path)]
        if len(matching) != 1:
            yield f"{pattern}: {len(matching)} files of that name, 1 is expected"
        elif found[matching[0]][0] != mode:
            yield f"{matching[0]}: mode {found[matching[0]][0]}, {mode} is expected"
    pages = [path for path in found if re.fullmatch(r"usr/share/man/man1/edgeshed-.+\.1\.gz", path)]
    if len(pages) < PAGES_MIN:
        yield f"{len(pages)} man pages of subcommands, at least {PAGES_MIN} are expected"
    for folder in FOLDERS:
        if folder not in found:
            yield f"{folder}: not there"
    if any(path.startswith("etc/edgeshed/") and path not in FOLDERS for path in found):
        yield "etc/edgeshed/: not empty; the configuration is the operator's"
    for path, (mode, owner) in found.items():
        if owner != "root/root":
            yield f"{path}: owned by {owner}, root/root is expected"
        if mode[0] != "l" and (mode[5] == "w" or mode[8] == "w" or "s" in mode):
            yield f"{path}: mode {mode}: writable by others, or set-id"
        if mode[0] == "d" and mode != "drwxr-xr-x":
            yield f"{path}: mode {mode}, drwxr-xr-x is expected"


def check_control(deb):
    depends = dpkg_deb("--field", deb, "Depends")
    for package in ("libc6", "libbpf1", "libxdp1", "liburing2", "systemd"):
        if not re.search(rf"(^|, ){package}\b", depends):
            yield f"Depends: no {package}: '{depends.strip()}'"
    listing = dpkg_deb("--info", deb)
    for script in SCRIPTS:
        if not re.search(rf"^ +\d+ bytes,.*\* +{script} ", listing, re.MULTILINE):
            yield f"{script}: no such script in the package"
    if dpkg_deb("--info", deb, "conffiles") != "/etc/default/edgeshed\n":
        yield "conffiles: /etc/default/edgeshed and nothing else is expected"


def main():
    deb = sys.argv[1]
    problems = [*check_files(contents(deb)), *check_control(deb)]
    for problem in problems:
        print(f"package: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
