#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traffic from end to end on two cards: calm, a flooder, a rung by hand, and nothing left behind.

One machine, or one namespace, is the server: it owns EdgeShed, checks everything, and tells the
other over TCP what to send. Both the guests of tools/dev vm and the machines of vagrant/ run it.

    traffic.py server --dev eth1 --address 10.99.3.1 --edgeshed PATH --edgeshedd PATH
    traffic.py client --server 10.99.3.1
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

GAME_PORT, ORDERS_PORT = 7777, 7778
SNAPSHOTS, EVENTS, FLOODER = 40000, 40001, 40002  # the client's ports
TOS_SNAPSHOT, TOS_EVENT = 0, 46 << 2
PACKETS, FLOOD = 200, 1500
SPACING_S, CATCH_UP_S = 0.002, 0.02
WAIT_S = 60
COMMAND_TIMEOUT_S = 60
SO_RCVBUFFORCE = 33
CONFIG = f"""
[host]
connections_max = 256
endpoints_max = 4
rooms_max = 8
tick_hz = 60
mode = "enforce"
[[shard]]
name = "arena"
frame_budget_ms = 20
[[room]]
name = "lobby"
shard = "arena"
[[class]]
name = "thrifty"
[class.best_effort]
packets_per_s = 10
[[endpoint]]
name = "game"
address = "any"
port = {GAME_PORT}
protocol = "dscp"
rooms = ["lobby"]
dscp = {{ 0 = "snapshot", 46 = "event" }}
"""


class TrafficError(Exception):
    """What was expected and what was seen, in one line."""


def expect(true, what):
    if not true:
        raise TrafficError(what)


def wait_for(condition, what, timeout_s=WAIT_S):
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TrafficError(f"not within {timeout_s} s: {what}")
        time.sleep(0.05)


# --- client ----------------------------------------------------------------------------------


def client(options):
    """Sends what the server orders, until the server hangs up."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            orders = socket.create_connection((options.server, ORDERS_PORT), timeout=5)
            break
        except OSError as error:
            if time.monotonic() > deadline:
                raise TrafficError(f"no server at {options.server} port {ORDERS_PORT} within "
                                   f"{WAIT_S} s: {error}") from error
            time.sleep(0.2)
    orders.settimeout(2 * COMMAND_TIMEOUT_S)
    senders = {}
    with orders, orders.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            for name in ("count", "senders"):
                expect(name in json.loads(line), f"an order without {name}: {line.strip()}")
            send(senders, options.server, **json.loads(line))
            lines.write("sent\n")
            lines.flush()
    return 0


def send(known, server, senders, count):
    """Each of `senders` [port, tos, per_round] sends per_round packets, `count` times, evenly.
    After a stall it catches up with little: all of it at once is more than a ring holds."""
    due = time.monotonic()
    for port, tos, _ in senders:
        if port not in known:
            known[port] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            known[port].bind(("", port))
            known[port].setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    for _ in range(count):
        for port, _, per_round in senders:
            for _ in range(per_round):
                known[port].sendto(port.to_bytes(2, "big") + b"x" * 98, (server, GAME_PORT))
        due = max(due + SPACING_S, time.monotonic() - CATCH_UP_S)
        time.sleep(max(0.0, due - time.monotonic()))


# --- server ----------------------------------------------------------------------------------


class Receiver:
    """The game server's socket: counts what comes, by the sender's port, in a thread."""

    def __init__(self, address):
        self.counts = {}
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        self.socket.bind((address, GAME_PORT))
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self):
        while True:
            port = int.from_bytes(self.socket.recv(2048)[:2], "big")
            self.counts[port] = self.counts.get(port, 0) + 1


class Server:
    """The programs under test, and a folder and pins of their own, removed by close()."""

    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="edgeshed-traffic-")
        self.pin_dir = f"/sys/fs/bpf/edgeshed-traffic-{os.getpid()}"
        self.config = os.path.join(self.folder, "traffic.toml")
        self.log_path = os.path.join(self.folder, "daemon.log")
        pathlib.Path(self.config).write_text(CONFIG)
        self.daemon = self.listener = self.client = self.lines = None

    def command(self, program, *arguments):
        return [program, *arguments, "--pin-dir", self.pin_dir, "--socket",
                os.path.join(self.folder, "control.sock")]

    def edgeshed(self, *arguments):
        result = subprocess.run(self.command(self.options.edgeshed, *arguments), text=True,
                                capture_output=True, timeout=COMMAND_TIMEOUT_S, check=False)
        expect(result.returncode == 0, f"edgeshed {' '.join(arguments)}: exit "
                                       f"{result.returncode}: {result.stderr.strip()}")
        return result.stdout

    def json(self, *arguments):
        return json.loads(self.edgeshed(*arguments, "--json"))

    def accept_client(self):
        self.listener = socket.create_server((self.options.address, ORDERS_PORT))
        self.listener.settimeout(WAIT_S)
        self.client = self.listener.accept()[0]
        self.client.settimeout(COMMAND_TIMEOUT_S)
        self.lines = self.client.makefile("rw", encoding="utf-8")

    def start_daemon(self):
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.daemon = subprocess.Popen(
                self.command(self.options.edgeshedd, "--config", self.config),
                stdout=log, stderr=log)
        wait_for(lambda: "ready" in self.log() or self.daemon.poll() is not None, "ready")
        expect(self.daemon.poll() is None, f"edgeshedd ended: {self.log().strip()}")

    def log(self):
        return pathlib.Path(self.log_path).read_text()

    def order(self, senders, count):
        self.lines.write(json.dumps({"senders": senders, "count": count}) + "\n")
        self.lines.flush()
        expect(self.lines.readline() == "sent\n", "the client hung up instead of sending")

    def close(self):
        if self.daemon is not None and self.daemon.poll() is None:
            self.daemon.kill()
            self.daemon.wait()
        if os.path.exists(self.pin_dir):
            subprocess.run(self.command(self.options.edgeshed, "detach"), capture_output=True,
                           timeout=COMMAND_TIMEOUT_S, check=False)
        for one in (self.lines, self.client, self.listener):
            if one is not None:
                one.close()
        shutil.rmtree(self.pin_dir, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)


class Play:
    """The scenes, in order; each compares what was sent, counted and received."""

    def __init__(self, server, receiver):
        self.server, self.receiver = server, receiver
        self.sent = {}

    def cells(self):
        """{(lane, verdict, reason): packets} of what came for the endpoint."""
        cells = self.server.json("dump", "counters")["endpoints"][0]["in"]["cells"]
        return {(one["lane"], one["verdict"], one["reason"]): one["packets"] for one in cells}

    def scene(self, name, senders, count):
        """Plays, and returns what came on top, by lane and verdict, and by port. In all, nothing
        may be uncounted, nor counted twice, nor lost after it passed."""
        cells_before, received_before = self.cells(), dict(self.receiver.counts)
        self.server.order(senders, count)
        sent = sum(per_round * count for _, _, per_round in senders)

        def new():
            return {key: packets - cells_before.get(key, 0)
                    for key, packets in self.cells().items() if packets != cells_before.get(key, 0)}

        wait_for(lambda: sum(new().values()) >= sent, f"{name}: all {sent} packets are counted", 10)
        counted = new()
        expect(sum(counted.values()) == sent, f"{name}: {sent} packets sent, counted {counted}")
        dropped = sum(packets for (_, verdict, _), packets in counted.items() if verdict == "drop")

        def received():
            return {port: count - received_before.get(port, 0)
                    for port, count in dict(self.receiver.counts).items()}

        wait_for(lambda: sum(received().values()) >= sent - dropped,
                 f"{name}: {sent} sent and {dropped} dropped, but received {received()}", 10)
        expect(sum(received().values()) == sent - dropped,
               f"{name}: {sent} sent, {dropped} dropped, received {received()}")
        print(f"{name}: sent {sent}, dropped {dropped}, received {received()}", flush=True)
        return counted, received()

    def calm(self):
        counted, came = self.scene("calm", [(SNAPSHOTS, TOS_SNAPSHOT, 1),
                                            (EVENTS, TOS_EVENT, 1)], PACKETS)
        expect(came == {SNAPSHOTS: PACKETS, EVENTS: PACKETS}, f"calm: received {came}")
        expect(not any(verdict == "drop" for _, verdict, _ in counted), f"calm: {counted}")

    def flood(self):
        flood_per_round = FLOOD // PACKETS
        counted, came = self.scene("flood", [
            (SNAPSHOTS, TOS_SNAPSHOT, 1), (EVENTS, TOS_EVENT, 1),
            (FLOODER, TOS_SNAPSHOT, flood_per_round)], PACKETS)
        held = counted.get(("snapshot", "drop", "contract"), 0)
        expect(came[SNAPSHOTS] == came[EVENTS] == PACKETS, f"flood: players lost some: {came}")
        # A second or two of traffic, at ten a second, and its burst.
        expect(held > 0.8 * flood_per_round * PACKETS, f"flood: only {held} held: {counted}")
        expect(held == flood_per_round * PACKETS - came.get(FLOODER, 0), f"flood: {counted}, {came}")

    def rung(self):
        self.server.edgeshed("set", "shard", "arena", "rung", "3", "--for", "60s")
        wait_for(lambda: self.server.json("status")["shards"][0]["rung"] == 3, "rung 3")
        time.sleep(0.2)  # the plan of the next tick
        counted, came = self.scene("rung 3", [(SNAPSHOTS, TOS_SNAPSHOT, 1),
                                              (EVENTS, TOS_EVENT, 1)], PACKETS)
        expect(came[EVENTS] == PACKETS, f"rung 3: events were lost: {came}")
        dropped = sum(packets for (lane, verdict, _), packets in counted.items()
                      if (lane, verdict) == ("snapshot", "drop"))
        expect(dropped > PACKETS / 2, f"rung 3: snapshots are not thinned: {counted}")

    def in_all(self):
        expect(self.server.json("status")["ledger_exact"], "the ledger is not exact")


def attached_things(dev):
    """What `ip` and `tc` show of programs on a device."""
    shown = subprocess.run(["ip", "-d", "link", "show", dev], text=True, capture_output=True,
                           timeout=COMMAND_TIMEOUT_S, check=True).stdout
    qdiscs = subprocess.run(["tc", "qdisc", "show", "dev", dev], text=True, capture_output=True,
                            timeout=COMMAND_TIMEOUT_S, check=True).stdout
    return [word for word in ("xdp", "clsact") if word in shown + qdiscs]


def play_all(server, options):
    # Before the daemon: joining takes the card down for a moment, and the client waits meanwhile.
    server.edgeshed("attach", "--config", server.config, "--dev", options.dev)
    server.start_daemon()
    interface = server.json("status")["interfaces"][0]
    print(f"attached: {interface}", flush=True)
    expect(interface["mode"] in ("native", "dispatcher") and not interface.get("generic"),
           f"{options.dev} has no native XDP: {interface}")
    server.accept_client()
    address = server.client.getpeername()[0]
    for port in (SNAPSHOTS, EVENTS):
        server.edgeshed("connect", f"{address}:{port}", "--endpoint", "game")
    server.edgeshed("connect", f"{address}:{FLOODER}", "--endpoint", "game", "--class", "thrifty")
    play = Play(server, Receiver(options.address))
    play.calm()
    play.flood()
    play.rung()
    play.in_all()
    server.daemon.send_signal(signal.SIGTERM)
    expect(server.daemon.wait(timeout=20) == 0, f"edgeshedd: {server.log().strip()}")
    server.edgeshed("detach")
    left = attached_things(options.dev)
    expect(not left and not os.path.exists(server.pin_dir), f"detach left {left or server.pin_dir}")


def serve(options):
    server = Server(options)
    try:
        play_all(server, options)
    except TrafficError:
        if os.path.exists(server.log_path):
            print(server.log(), file=sys.stderr)
        raise
    finally:
        server.close()
    print("traffic: passed", flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    roles = parser.add_subparsers(required=True)
    role = roles.add_parser("server")
    for name in ("--dev", "--address", "--edgeshed", "--edgeshedd"):
        role.add_argument(name, required=True)
    role.set_defaults(run=serve)
    role = roles.add_parser("client")
    role.add_argument("--server", required=True)
    role.set_defaults(run=client)
    options = parser.parse_args()
    try:
        return options.run(options)
    except (TrafficError, OSError, subprocess.TimeoutExpired) as error:
        print(f"traffic: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
