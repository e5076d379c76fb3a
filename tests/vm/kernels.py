# SPDX-License-Identifier: Apache-2.0
"""Debian's kernels for virtual machines: fetched as packages, unpacked, never installed."""

import lzma
import pathlib
import re
import tempfile

from common import VmError, last_line, run, say

KERNEL_PACKAGES = {"6.1": "linux-image-cloud-amd64", "6.12": "linux-image-6.12-cloud-amd64"}
# One of the two is locked down as far as Linux goes: all tests of its guest are tests of that, too.
BOOT_OPTIONS = {"6.12": ("lockdown=confidentiality",)}
FETCH_TIMEOUT_S = 300
UNPACK_TIMEOUT_S = 60


class Kernel:
    """An unpacked package: .image, and the modules by name."""

    def __init__(self, series, home):
        self.series = series
        self.image = home / "vmlinuz"
        self._files = {module_name(path): path for path in (home / "modules").rglob("*.ko*")}
        builtin = (home / "modules/modules.builtin").read_text().split()
        self._builtin = {module_name(pathlib.Path(line)) for line in builtin}

    def modules(self, wanted):
        """[(name, bytes)] of the modules and of what they need, in the order to load them."""
        ordered = {}
        for name in wanted:
            self._add(name, ordered)
        return list(ordered.items())

    def _add(self, name, ordered):
        if name in ordered or name in self._builtin:
            return
        if name not in self._files:
            raise VmError(f"kernel {self.series} has no module {name}, as a file or built in: "
                          "take it out of MODULES in tests/vm/guest.py, or use another kernel")
        content = self._files[name].read_bytes()
        if self._files[name].suffix == ".xz":
            content = lzma.decompress(content)
        needs = re.search(rb"\0depends=([^\0]*)\0", content)
        for need in (needs.group(1).decode().split(",") if needs else []):
            if need:
                self._add(need.replace("-", "_"), ordered)
        ordered[name] = content


def module_name(path):
    return path.name.split(".ko")[0].replace("-", "_")


def image_package(series):
    """The package with the image: the one that the meta package of the series depends on."""
    meta = KERNEL_PACKAGES[series]
    for attempt in ("as it is", "after apt-get update"):
        if attempt == "after apt-get update":
            say("package lists are missing: apt-get update")
            run(["apt-get", "update", "-qq"], FETCH_TIMEOUT_S)
        listing = run(["apt-cache", "depends", meta], UNPACK_TIMEOUT_S).stdout
        found = re.search(r"^\s*Depends: (linux-image-\S+)$", listing, re.MULTILINE)
        if found:
            return found.group(1)
    raise VmError(f"apt knows no package {meta} with kernel {series}: enable the main section "
                  "of Debian 12 in the apt sources, then run apt-get update")


def fetch(series, cache):
    """The kernel of a series, fetched once into the folder `cache`."""
    home = cache / f"kernel-{series}"
    if not (home / "modules").exists():
        _fetch_into(home, image_package(series))
    return Kernel(series, home)


def _fetch_into(home, package):
    say(f"fetching {package}")
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        # The sandbox user of apt may not write here; what is fetched is checked all the same.
        result = run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package],
                     FETCH_TIMEOUT_S, cwd=scratch)
        debs = list(pathlib.Path(scratch).glob("*.deb"))
        if result.returncode != 0 or not debs:
            raise VmError(f"cannot fetch {package}: {last_line(result.stdout)}: check the "
                          "network and the apt sources, then run apt-get update")
        unpacked = pathlib.Path(scratch) / "unpacked"
        result = run(["dpkg-deb", "-x", str(debs[0]), str(unpacked)], UNPACK_TIMEOUT_S)
        images = list(unpacked.glob("boot/vmlinuz-*"))
        modules = list(unpacked.glob("lib/modules/*")) + list(unpacked.glob("usr/lib/modules/*"))
        if result.returncode != 0 or not images or not modules:
            raise VmError(f"{debs[0].name} holds no kernel with modules: "
                          f"{last_line(result.stdout)}: remove {home} and try again")
        # The modules last: a run that was stopped half-way leaves nothing that looks whole.
        images[0].replace(home / "vmlinuz")
        modules[0].rename(home / "modules")
