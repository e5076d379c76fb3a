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
DEV = "es-srv"


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
        run(["ip", "link", "add", DEV, "netns", self.server_ns, "type", "veth",
             "peer", "name", "es-cli", "netns", self.client_ns])
        for name, dev, address in ((self.server_ns, DEV, SERVER_ADDRESS),
                                   (self.client_ns, "es-cli", CLIENT_ADDRESS)):
            run(["ip", "-n", name, "addr", "add", address + "/24", "dev", dev])
            run(["ip", "-n", name, "link", "set", dev, "up"])
            run(["ip", "-n", name, "link", "set", "lo", "up"])

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

    def edgeshed(self, *arguments, check=True, wrapper=()):
        result = subprocess.run(self.inside(self.edgeshed_path, *arguments, wrapper=wrapper),
                                text=True, capture_output=True, timeout=60, check=False)
        if check and result.returncode != 0:
            raise AssertionError(f"edgeshed {' '.join(arguments)}: exit {result.returncode}: "
                                 f"{result.stderr.strip()}")
        return result

    def json(self, *arguments):
        return json.loads(self.edgeshed(*arguments, "--json").stdout)

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
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        one.bind((address, port))
        return one

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


def deny_io_uring():
    """From here on io_uring_setup fails with EPERM in this process and its children."""
    load_number, jump_if_equal, answer = 0x20, 0x15, 0x06
    io_uring_setup, allow, deny = 425, 0x7FFF0000, 0x00050000 | errno.EPERM
    code = b"".join(struct.pack("HBBI", *one) for one in (
        (load_number, 0, 0, 0), (jump_if_equal, 0, 1, io_uring_setup), (answer, 0, 0, deny),
        (answer, 0, 0, allow)))
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    pr_set_no_new_privs, pr_set_seccomp, mode_filter = 38, 22, 2
    if libc.prctl(pr_set_no_new_privs, 1, 0, 0, 0) or libc.prctl(
            pr_set_seccomp, mode_filter, program, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


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
