"""What must be true before anything is built up, and the removal of what a killed demo left."""

import errno
import fcntl
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from . import edgeshed_cli, options
from .errors import DemoError
from .processes import missing_tools, run

LOCK_FILE = pathlib.Path("/run/edgeshed-demo.lock")
RUN_DIR_PREFIX = "edgeshed-demo-"
RUN_DIR_PARENT = pathlib.Path("/run")
BPFFS = pathlib.Path("/sys/fs/bpf")
TOOLS = ("ip", "nsenter", "setpriv", "taskset", "chrt")
LEFTOVER_EXIT_S = 3


def prepare(opts, cleanup):
    """Returns the directory for sockets, config and logs; it goes when the demo ends."""
    check_root()
    check_tools()
    check_binaries(opts)
    take_lock(cleanup)
    remove_leftovers()
    check_bpffs()
    check_writable(opts)
    # The orchestrator is no part of the game: it keeps off the server's CPU.
    os.sched_setaffinity(0, opts.other_cpus())
    run_dir = pathlib.Path(tempfile.mkdtemp(prefix=RUN_DIR_PREFIX, dir=RUN_DIR_PARENT))
    cleanup.callback(shutil.rmtree, run_dir, ignore_errors=True)
    return run_dir


def check_writable(opts):
    """Before a minute is played, not after it."""
    for path in (opts.json, opts.plot):
        if path is not None and not os.access(path.parent, os.W_OK):
            raise DemoError(f"cannot write {path}: {path.parent} does not exist or is not "
                            "writable; choose another file")


def check_root():
    if os.geteuid() != 0:
        raise DemoError("needs root for network namespaces and BPF; run it with sudo")


def check_tools():
    missing = missing_tools(TOOLS)
    if missing:
        raise DemoError(f"not installed: {', '.join(missing)}; install iproute2 and util-linux")


def check_binaries(opts):
    wanted = [opts.game_binary("server"), opts.game_binary("clients"),
              *edgeshed_cli.binaries(opts)]
    missing = [str(path) for path in wanted if not os.access(path, os.X_OK)]
    if missing:
        raise DemoError(f"not built: {', '.join(missing)}; build first, or name the build "
                        "directory with --build-dir")


def take_lock(cleanup):
    descriptor = os.open(LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    cleanup.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        raise DemoError(f"another demo runs (process {holder}, lock {LOCK_FILE}); one at a time: "
                        "wait for it or end it") from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())


def check_bpffs():
    if not os.path.ismount(BPFFS):
        print(f"demo: mounting bpffs on {BPFFS} (it stays mounted)", file=sys.stderr)
        run(["mount", "-t", "bpf", "bpf", BPFFS])


def remove_leftovers():
    """Only called under the lock: whatever carries the prefix belongs to no living demo."""
    for line in run(["ip", "netns", "list"]).splitlines():
        name = line.split(" ")[0]
        if name.startswith(options.NAMESPACE_PREFIX):
            print(f"demo: removing namespace {name} of an earlier demo", file=sys.stderr)
            end_processes_in(name)
            run(["ip", "netns", "delete", name])
    for left in edgeshed_cli.leftover_pins():
        print(f"demo: removing {left} of an earlier demo", file=sys.stderr)
        edgeshed_cli.remove_pins(left)
    for left in RUN_DIR_PARENT.glob(f"{RUN_DIR_PREFIX}*/"):
        for pins in edgeshed_cli.leftover_dispatchers(left):
            print(f"demo: removing {pins} of an earlier demo", file=sys.stderr)
            edgeshed_cli.remove_pins(pins)
        print(f"demo: removing {left} of an earlier demo", file=sys.stderr)
        shutil.rmtree(left, ignore_errors=True)


def end_processes_in(namespace):
    # A namespace lives on, without a name, while a process is in it: end them first.
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + LEFTOVER_EXIT_S
        pids = pids_in(namespace)
        for pid in pids:
            print(f"demo: ending process {pid} in {namespace}", file=sys.stderr)
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        while pids_in(namespace) and time.monotonic() < deadline:
            time.sleep(0.05)


def pids_in(namespace):
    return [int(pid) for pid in run(["ip", "netns", "pids", namespace], may_fail=True).split()]
