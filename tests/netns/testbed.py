"""Two namespaces joined by a veth pair, and the two programs run inside one of them.

Must not know what a test checks. Everything it makes carries the prefix edgeshed-test-PID and is
removed by Testbed.close(), whatever happened before.
"""

import ctypes
import errno
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

CLONE_NEWNET = 0x40000000
SERVER_ADDRESS = "10.99.1.1"
CLIENT_ADDRESS = "10.99.1.2"
DEV, CLIENT_DEV = "es-srv", "es-cli"
SO_RCVBUFFORCE = 33  # not clamped to net.core.rmem_max, which is 208 kB where nobody raised it
CATCH_UP_S = 0.02


def game_config(host="", tables="", endpoint="", dscp='0 = "snapshot", 46 = "event"',
                connections=64, rooms=("lobby",), protocol="dscp"):
    """A configuration with one shard, one room and one endpoint, "game", on any address and port
    7777. host, endpoint: more lines of these tables; tables: more of the room, then whole ones;
    rooms: of the endpoint, those of `tables` too; dscp: of that protocol alone."""
    classes = f"dscp = {{ {dscp} }}" if protocol == "dscp" else ""
    return f"""
[host]
connections_max = {connections}
endpoints_max = 4
rooms_max = 4
{host}
[[shard]]
name = "arena"
frame_budget_ms = 20
[[room]]
name = "lobby"
shard = "arena"
{tables}
[[endpoint]]
name = "game"
address = "any"
port = 7777
protocol = "{protocol}"
rooms = {json.dumps(rooms)}
{endpoint}
{classes}
"""


class Testbed:
    """edgeshed: path of the command line; edgeshedd: path of the daemon."""

    def __init__(self, edgeshed, edgeshedd):
        self.edgeshed_path = edgeshed
        self.edgeshedd_path = edgeshedd
        prefix = f"edgeshed-test-{os.getpid()}"
        self.server_ns = prefix + "-s"
        self.client_ns = prefix + "-c"
        self.pin_dir = "/sys/fs/bpf/" + prefix
        self.folder = tempfile.mkdtemp(prefix=prefix)
        self.socket_path = os.path.join(self.folder, "control.sock")
        self.daemons = []
        self.sockets = []
        try:
            self._make_namespaces()
        except BaseException:
            self.close()
            raise

    def _make_namespaces(self):
        for name in (self.server_ns, self.client_ns):
            run(["ip", "netns", "add", name])
        self.add_pair(DEV, CLIENT_DEV)
        for name, dev, address in ((self.server_ns, DEV, SERVER_ADDRESS),
                                   (self.client_ns, CLIENT_DEV, CLIENT_ADDRESS)):
            run(["ip", "-n", name, "addr", "add", address + "/24", "dev", dev])
            run(["ip", "-n", name, "link", "set", "lo", "up"])
        # What the kernel itself said to a pair of which only one was up yet.
        self.lost_at_start = {way: self._tx_dropped(way) for way in ("in", "out")}

    def add_pair(self, server_dev, client_dev):
        """A veth pair between the two namespaces, up and without addresses."""
        run(["ip", "link", "add", server_dev, "netns", self.server_ns, "type", "veth",
             "peer", "name", client_dev, "netns", self.client_ns])
        for name, dev in ((self.server_ns, server_dev), (self.client_ns, client_dev)):
            run(["ip", "-n", name, "link", "set", dev, "up"])

    def close(self):
        for daemon in self.daemons:
            if daemon.poll() is None:
                daemon.kill()
                daemon.wait()
        for one in self.sockets:
            one.close()
        if os.path.exists(self.pin_dir):
            self.edgeshed("detach", check=False)
        for name in (self.server_ns, self.client_ns):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        shutil.rmtree(self.pin_dir, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    # The two programs. `ip netns exec` would hide bpffs, so nsenter.

    def inside(self, *command, wrapper=()):
        return ["nsenter", f"--net=/run/netns/{self.server_ns}", *wrapper, *command,
                "--pin-dir", self.pin_dir, "--socket", self.socket_path]

    def edgeshed(self, *arguments, check=True, wrapper=(), before_exec=None):
        result = subprocess.run(self.inside(self.edgeshed_path, *arguments, wrapper=wrapper),
                                text=True, capture_output=True, timeout=60, check=False,
                                preexec_fn=before_exec)
        if check and result.returncode != 0:
            raise AssertionError(f"edgeshed {' '.join(arguments)}: exit {result.returncode}: "
                                 f"{result.stderr.strip()}")
        return result

    def json(self, *arguments):
        return json.loads(self.edgeshed(*arguments, "--json").stdout)

    def cells(self, way="in"):
        """What the packet path counted at the first endpoint: a row for each lane and reason."""
        return self.json("dump", "counters")["endpoints"][0][way]["cells"]

    def hold_rung(self, rung, seconds=60):
        """The shard "arena" on a rung by hand, in force in a plan that is written."""
        self.edgeshed("set", "shard", "arena", "rung", str(rung), "--for", f"{seconds}s")

        def is_held():
            shards = self.json("status")["shards"]
            return next(one["rung"] for one in shards if one["name"] == "arena") == rung
        wait_for(is_held, f"rung {rung}")
        self.await_next_plan()

    def await_next_plan(self):
        """What the daemon knows by now is in a plan that is in force."""
        def generation():
            return self.json("status")["daemon"]["generation"]
        before = generation()
        wait_for(lambda: generation() > before + 1, "the plan of the next tick")

    def start_daemon(self, config, before_exec=None):
        """Starts the daemon and returns it once it has said `ready`; its log is in .log_path.
        before_exec runs in the child first."""
        log_path = os.path.join(self.folder, f"daemon-{len(self.daemons)}.log")
        with open(log_path, "w", encoding="utf-8") as log:
            daemon = subprocess.Popen(self.inside(self.edgeshedd_path, "--config", config),
                                      stderr=log, stdout=log, preexec_fn=before_exec)
        daemon.log_path = log_path
        self.daemons.append(daemon)
        wait_for(lambda: "ready" in read(log_path) or daemon.poll() is not None,
                 f"{log_path} says ready")
        if daemon.poll() is not None:
            raise AssertionError(f"edgeshedd: exit {daemon.returncode}: {read(log_path)}")
        return daemon

    def stop_daemon(self, daemon, number=signal.SIGTERM):
        """Sends a signal; returns the exit code."""
        daemon.send_signal(number)
        return daemon.wait(timeout=10)

    def has_xdp(self, dev=DEV):
        """True if an XDP program is on an interface of the server's namespace."""
        shown = subprocess.run(["ip", "-n", self.server_ns, "link", "show", dev], text=True,
                               capture_output=True, check=True).stdout
        return "xdp" in shown

    def control_socket(self):
        """A connection to the daemon's control socket."""
        one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sockets.append(one)
        one.settimeout(5)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        one.connect(self.socket_path)
        return one

    # Traffic and files.

    def udp(self, namespace, address, port, tos=0):
        """A UDP socket of a namespace, bound; tos sets the DSCP of what it sends."""
        one = in_namespace(namespace, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.sockets.append(one)
        one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        one.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 20)
        one.bind((address, port))
        return one

    def lost_by_veth(self, way="in"):
        """Packets that the rig itself lost so far, between a sender and the other side's first
        program: the ring of a veth holds 256, and a machine that is busy may not empty it in time."""
        return self._tx_dropped(way) - self.lost_at_start[way]

    def _tx_dropped(self, way):
        name, dev = {"in": (self.client_ns, CLIENT_DEV), "out": (self.server_ns, DEV)}[way]
        shown = in_namespace(name, lambda: read("/proc/thread-self/net/dev"))
        counts = next(line.split(":")[1].split() for line in shown.splitlines()
                      if line.strip().startswith(dev + ":"))
        tx_dropped = 11
        return int(counts[tx_dropped])

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


def skip_without_root():
    """ctest's word for skipped, unless this process may make namespaces and load BPF."""
    if os.geteuid() != 0:
        print("skipped: needs root for namespaces and BPF")
        sys.exit(77)


def skip_or_fail(test, reason):
    """For what a machine may lack: skips there, and fails in the guests of tools/dev vm, which are
    made to have it."""
    if os.environ.get("EDGESHED_IN_GUEST"):
        test.fail(reason)
    test.skipTest(reason)


def take_paths(count):
    """The first `count` arguments as absolute paths; the rest is unittest's."""
    paths = [os.path.abspath(path) for path in sys.argv[1:1 + count]]
    del sys.argv[1:1 + count]
    return paths


def run(command):
    subprocess.run(command, check=True, capture_output=True)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def in_namespace(name, make):
    """make() with this thread in a network namespace: a socket stays where it was made."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open("/run/netns/" + name, os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {name}")
        return make()
    finally:
        libc.setns(here, CLONE_NEWNET)
        os.close(there)
        os.close(here)


def refuse_call(number, error, first_argument=None):
    """From here on the system call fails with that errno in this process and its children; with
    first_argument only where it is that."""
    load, jump_if_equal, answer, allow = 0x20, 0x15, 0x06, 0x7FFF0000
    number_at, first_argument_at = 0, 16
    checks = [(number_at, number)]
    if first_argument is not None:
        checks.append((first_argument_at, first_argument))
    steps = []
    for left, (place, value) in enumerate(reversed(checks)):
        # What is equal goes on; anything else jumps over the rest and the refusal.
        steps = [(load, 0, 0, place), (jump_if_equal, 0, 2 * left + 1, value)] + steps
    steps += [(answer, 0, 0, 0x00050000 | error), (answer, 0, 0, allow)]
    code = b"".join(struct.pack("HBBI", *one) for one in steps)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    pr_set_no_new_privs, pr_set_seccomp, mode_filter = 38, 22, 2
    if libc.prctl(pr_set_no_new_privs, 1, 0, 0, 0) or libc.prctl(
            pr_set_seccomp, mode_filter, program, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def hide_pressure():
    """From here on this process has no pressure stall information, as with psi=0."""
    clone_newns, ms_rec, ms_private = 0x20000, 0x4000, 1 << 18
    libc = ctypes.CDLL(None, use_errno=True)
    failed = (libc.unshare(clone_newns) or
              libc.mount(b"none", b"/", None, ctypes.c_ulong(ms_rec | ms_private), None))
    if not failed and os.path.exists("/proc/pressure"):
        failed = libc.mount(b"none", b"/proc/pressure", b"tmpfs", ctypes.c_ulong(0), None)
    if failed:
        raise OSError(ctypes.get_errno(), "hide /proc/pressure")


def deny_io_uring():
    """From here on io_uring_setup fails with EPERM in this process and its children."""
    io_uring_setup = 425
    refuse_call(io_uring_setup, errno.EPERM)


class Pace:
    """Even sending: wait() returns when the next one is due. Who was kept from it catches up with
    so much and no more: all at once would be more than a veth's ring holds."""

    def __init__(self, per_s, catch_up_s=CATCH_UP_S):
        self.every_s = 1 / per_s
        self.catch_up_s = catch_up_s
        self.due = time.monotonic()

    def wait(self):
        now = time.monotonic()
        self.due = max(self.due + self.every_s, now - self.catch_up_s)
        time.sleep(max(0, self.due - now))


def drain(one):
    """Reads all that waits in a socket that does not block; returns how many messages."""
    count = 0
    try:
        while True:
            one.recv(2048)
            count += 1
    except BlockingIOError:
        return count


def wait_for(condition, what, timeout_s=20.0):
    """Polls until condition() is true. AssertionError names `what` if it never is."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"not within {timeout_s} s: {what}")
