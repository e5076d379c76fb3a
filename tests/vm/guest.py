# SPDX-License-Identifier: Apache-2.0
"""A guest: its file system, made of programs of this machine, and one run of it under qemu.

Every file is at the path that it has here, so that paths which are compiled in or written in a
script hold inside. Must not know what a test checks.
"""

import functools
import os
import pathlib
import re
import select
import shlex
import shutil
import subprocess
import time

from common import VmError, last_line, run, say
from kernels import BOOT_OPTIONS

MEMORY_MIB = 2048
# More possible CPUs than online ones, as on hosts that may be given more: a per-CPU map has a value
# for each possible one. By the kernel's own option: 6.12 does not count those that qemu only may plug.
CPUS, CPUS_POSSIBLE = 2, 4
BOOT_LIMIT_S = 90
KVM_PROBE_LIMIT_S = 15
TOOL_TIMEOUT_S, PACK_TIMEOUT_S = 60, 120

# The drivers of the cards, of the links between namespaces and of what shares or carries a card.
MODULES = ("virtio_pci", "virtio_net", "veth", "sch_ingress", "cls_bpf", "8021q", "bridge",
           "bonding", "udp_diag", "ifb")
TOOLS = ("dash", "ip", "tc", "bpftool", "nsenter", "setpriv", "xdp-loader", "xdp-filter", "python3")
APPLETS = ("mount", "echo", "cat", "mkdir", "sleep", "poweroff", "insmod", "timeout", "rm",
           "env")
# Parts of Python that no test needs and that are large.
PYTHON_LEFT_OUT = ("test", "idlelib", "tkinter", "ensurepip", "lib2to3", "pydoc_data", "distutils",
                   "turtledemo", "dist-packages", "site-packages", "config-*", "sqlite3", "dbm")
NAMESPACES = {"server": "eth0", "client": "eth1"}
MARK = "EDGESHED_GUEST"

INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin HOME=/tmp EDGESHED_IN_GUEST=1 PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t bpf bpf /sys/fs/bpf
mount -t securityfs security /sys/kernel/security
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t tmpfs run /run
for module in {modules}; do insmod /modules/$module.ko; done
# The object is checked as the kernel runs it in production: compiled.
echo 1 > /proc/sys/net/core/bpf_jit_enable
ip link set lo up
{cards}
play() {{
  echo "{mark} begin $1"
  limit_s=$2 name=$1
  shift 2
  timeout -s KILL $limit_s "$@" 2>&1 </dev/null
  echo "{mark} end $name $?"
}}
{tests}
# Without this the last lines may still be in the serial port when the machine stops.
sleep 0.2
poweroff -f
"""


class Tree:
    """The files of a guest. `folder` is made here, and removed by whoever gave it."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "proc", "sys", "dev", "run",
                     "tmp", "var", "etc", "modules"):
            (folder / name).mkdir(parents=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            (folder / name).symlink_to(f"usr/{name}")
        (folder / "var/run").symlink_to("../run")
        busybox = find_tool("busybox")
        shutil.copy2(busybox, folder / "usr/bin/busybox")
        for applet in APPLETS:
            (folder / "usr/bin" / applet).symlink_to("busybox")
        for tool in TOOLS:
            self.add_program(find_tool(tool))
        # Not busybox as the shell: it would take its own `ip` for iproute2's.
        (folder / "usr/bin/sh").symlink_to("dash")
        self._add_python()

    def add_file(self, path):
        """A file, at the path that it has here; its folder's links are followed, not copied."""
        path = pathlib.Path(os.path.abspath(path))
        place = self.folder / os.path.realpath(path.parent).lstrip("/") / path.name
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)
        return place

    def add_program(self, path):
        """A program without its debug information, and the libraries it needs."""
        if not path.exists():
            raise VmError(f"{path} does not exist: run tools/dev build")
        place = self.add_file(path)
        run(["strip", "--strip-debug", str(place)], TOOL_TIMEOUT_S)
        for library in shared_libraries(path):
            self.add_file(library)

    def add_folder(self, path, left_out=()):
        path = pathlib.Path(os.path.realpath(path))
        shutil.copytree(path, self.folder / str(path).lstrip("/"), symlinks=False,
                        dirs_exist_ok=True, ignore=shutil.ignore_patterns(*left_out))

    def _add_python(self):
        # Debian's, which may not be the one that runs this.
        asked = run([str(find_tool("python3")), "-c",
                     "import sysconfig; print(sysconfig.get_path('stdlib'))"], TOOL_TIMEOUT_S)
        library = pathlib.Path(last_line(asked.stdout))
        self.add_folder(library, PYTHON_LEFT_OUT)
        for module in library.glob("lib-dynload/*.so"):
            for needed in shared_libraries(module):
                self.add_file(needed)

    def add_modules(self, modules):
        for name, content in modules:
            (self.folder / f"modules/{name}.ko").write_bytes(content)

    def write_init(self, modules, tests):
        cards = "\n".join(f"ip netns add {name}\nip link set {card} netns {name}"
                          for name, card in NAMESPACES.items())
        plays = "\n".join(f"play {test.name} {test.limit_s} {shlex.join(test.command)}"
                          for test in tests)
        init = self.folder / "init"
        init.write_text(INIT.format(modules=" ".join(name for name, _ in modules), cards=cards,
                                    tests=plays, mark=MARK))
        init.chmod(0o755)


def pack(folder, archive, *options):
    """Writes what is in the folder as an archive that a kernel unpacks."""
    names = "\n".join(str(path.relative_to(folder)) for path in sorted(folder.rglob("*")))
    with open(archive, "wb") as out:
        result = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", *options], cwd=folder,
                                input=names.encode(), stdout=out, stderr=subprocess.PIPE,
                                timeout=PACK_TIMEOUT_S, check=False)
    if result.returncode != 0:
        raise VmError(f"cpio cannot write {archive.name}: {last_line(result.stderr.decode())}")


def find_tool(name):
    found = shutil.which(name, path="/usr/sbin:/usr/bin")
    if found is None:
        raise VmError(f"{name} is not installed: run tools/dev deps")
    return pathlib.Path(found)


def shared_libraries(binary):
    """Full paths of the loader and of all libraries that the binary needs."""
    result = run(["ldd", str(binary)], TOOL_TIMEOUT_S)
    if "not a dynamic executable" in result.stdout or "statically linked" in result.stdout:
        return []
    if result.returncode != 0 or "not found" in result.stdout:
        raise VmError(f"{binary}: ldd cannot name its libraries: {last_line(result.stdout)}")
    return sorted(set(re.findall(r"(/\S+)(?= \(0x)", result.stdout)))


# panic=-1 with -no-reboot: a guest that panics ends qemu at once.
KERNEL_LINE = "console=ttyS0 quiet loglevel=2 panic=-1"


def qemu(accelerator, image, cpus, *options):
    return ["qemu-system-x86_64", "-accel", accelerator, "-cpu", "max", "-smp", cpus,
            "-m", str(MEMORY_MIB), "-nodefaults", "-display", "none", "-serial", "stdio",
            "-no-reboot", "-kernel", str(image), *options]


def qemu_command(image, archive, cpus, cards, *kernel_options):
    return qemu(accelerator_for(image), image, cpus, "-initrd", str(archive),
                "-append", " ".join((KERNEL_LINE, *kernel_options)), *cards)


@functools.cache
def accelerator_for(image, device="/dev/kvm", limit_s=KVM_PROBE_LIMIT_S):
    """kvm, or tcg where there is no KVM or one that runs no guest: on some virtual machines it is
    there, and a kernel stops in it for good. Tried with the kernel alone, which gets as far as that
    it has no file system, in a second or two."""
    if not os.access(device, os.R_OK | os.W_OK):
        return "tcg"
    try:
        tried = subprocess.run(qemu("kvm", image, str(CPUS), "-append", KERNEL_LINE), timeout=limit_s,
                               check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
        if b"Kernel panic" in tried.stdout:
            return "kvm"
    except subprocess.TimeoutExpired:
        pass
    say(f"{device} is there, but no kernel runs in it: emulating")
    return "tcg"


def cards_at_one_hub():
    """Two cards, and nothing of this machine's network. A queue pair for each CPU, and no merging of
    what arrives: XDP sees packets as they were sent."""
    options = []
    for number in range(len(NAMESPACES)):
        options += ["-netdev", f"hubport,id=port{number},hubid=0", "-device",
                    f"virtio-net-pci,netdev=port{number},mac=52:54:00:ed:9e:0{number + 1},"
                    "guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off"]
    return options


def plain(text):
    """A console's text without the escape codes of firmware and systemd."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1bc|\r", "", text)


class Ended:
    """How one test ended in a guest. status None: the guest stopped before the test did."""

    def __init__(self, status, seconds, output):
        self.status, self.seconds, self.output = status, seconds, output


class Console:
    """Takes the guest's lines apart into tests; times are those of this machine."""

    def __init__(self, on_end):
        self.ended, self.boot_lines, self._on_end = {}, [], on_end
        self._name, self._lines, self._start = None, [], 0.0

    def line(self, text):
        # Lines of the kernel may cut into one of ours.
        text = plain(text)
        begin = re.search(rf"{MARK} begin (\S+)$", text)
        end = re.search(rf"{MARK} end (\S+) (\d+)$", text)
        if begin:
            self._name, self._lines, self._start = begin.group(1), [], time.monotonic()
        elif end and end.group(1) == self._name:
            self._close(int(end.group(2)))
        elif self._name is None:
            self.boot_lines.append(text)
        else:
            self._lines.append(text)

    def _close(self, status):
        ended = Ended(status, time.monotonic() - self._start, "\n".join(self._lines))
        self.ended[self._name] = ended
        self._on_end(self._name, ended)
        self._name = None

    def stop(self):
        """The guest is gone: a test that had begun has no status."""
        if self._name is not None:
            self._close(None)


def boot(kernel, archive, limit_s, on_end):
    """Runs the guest to its end, or to the limit; calls on_end(name, Ended) after each test and
    returns the Console."""
    say(f"booting kernel {kernel.series}")
    console = Console(on_end)
    command = qemu_command(kernel.image, archive, str(CPUS_POSSIBLE), cards_at_one_hub(),
                           f"maxcpus={CPUS}", *BOOT_OPTIONS.get(kernel.series, ()))
    deadline = time.monotonic() + limit_s
    with subprocess.Popen(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as machine:
        try:
            rest = b""
            while True:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not select.select([machine.stdout], [], [], left_s)[0]:
                    say(f"the {kernel.series} guest took over {limit_s} s and was stopped")
                    break
                data = os.read(machine.stdout.fileno(), 65536)
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    console.line(line.decode(errors="replace"))
        finally:
            machine.kill()
    console.stop()
    return console
