"""Every contact with EdgeShed's programs: their paths, options, config file and JSON.

When the CLI or the daemon changes, this is the only file of the demo that follows.
"""

import json
import pathlib
import re
import shutil
import socket
import sys
import time

from . import options
from .errors import DemoError
from .processes import Child, in_namespace, run

# Not the default places: the demo must not touch an EdgeShed that protects this host.
PIN_DIR = pathlib.Path("/sys/fs/bpf/edgeshed-demo")
SHARD, CLASS, ENDPOINT = "main", "player", "game"
TIERS = ("critical", "standard", "best_effort", "demoted", "other")
OUTCOMES = ("passed", "marked", "dropped", "rejected")
DIRECTIONS = ("in", "out")
# Which of its two places each command of the CLI has to be told: pins, control socket.
PLACES_OF_COMMAND = {
    "attach": ("--pin-dir",),
    "detach": ("--pin-dir",),
    "status": ("--socket", "--pin-dir"),
    "dump": ("--socket", "--pin-dir"),  # the socket only for names
}
DISPATCHER_DIR = pathlib.Path("/sys/fs/bpf/xdp")
DISPATCHER_NOTE = "dispatchers"
READY_LINE = re.compile(r"(?<!not )\bready\b")  # in whatever frame the log puts it
READY_TIMEOUT_S = 5
COMMAND_TIMEOUT_S = 5


def binaries(opts):
    return [opts.product_dir / "tools" / "cli" / "edgeshed",
            opts.product_dir / "userspace" / "daemon" / "edgeshedd"]


def leftover_pins():
    return [PIN_DIR] if PIN_DIR.exists() else []


def remove_pins(directory):
    """For pins whose programs went with their interface; also after a failed `detach`."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        raise DemoError(f"cannot remove {directory}, left by an earlier demo; remove it by hand")


def dispatchers():
    """libxdp's own pins, one directory per interface and dispatcher program."""
    return set(DISPATCHER_DIR.glob("dispatch-*"))


def leftover_dispatchers(run_dir):
    """Those that a demo with this run directory noted, and that are still there. Only noted ones:
    the directory is shared with other XDP users."""
    try:
        noted = (run_dir / DISPATCHER_NOTE).read_text(encoding="utf-8").split()
    except OSError:
        return []
    return sorted(dispatchers() & set(map(pathlib.Path, noted)))


def config_text(opts):
    """Contracts of standard and best-effort are what a player sends and one message a second more,
    as clocks differ: in the flood the daemon lets nobody have more than that. Critical has room for acknowledgements and pings: 600 players x 4/s x
    230 us are .55 of the loop, and placement allows .6."""
    text = f"""\
[host]
connections_max = 4096
mode = "enforce"
tick_hz = {opts.rate}

[[shard]]
name = "{SHARD}"
frame_budget_ms = {options.FRAME_BUDGET_MS:.3f}

[placement]
shard_players_max = 1024

[[class]]
name = "{CLASS}"
critical = {{ packets_per_s = 4, bytes_per_s = 4000, burst_s = 4 }}
standard = {{ packets_per_s = {options.COMMAND_HZ + 1}, bytes_per_s = 10000 }}
best_effort = {{ packets_per_s = {options.STATE_HZ + 1}, bytes_per_s = 20000, burst_s = 0.1 }}

[[endpoint]]
name = "{ENDPOINT}"
address = "{options.SERVER_ADDRESS}"
port = {options.SERVER_PORT}
protocol = "enet"
rooms = [{", ".join(f'"room-{i + 1}"' for i in range(options.ROOMS))}]
channels = {{ 2 = {{ unreliable = "command" }} }}
stranger = {{ handshakes_per_s = 2000 }}
"""
    for room in range(options.ROOMS):
        text += f'\n[[room]]\nname = "room-{room + 1}"\nshard = "{SHARD}"\n'
    if opts.no_session:
        # Nobody reports what the loop does, nor who plays: both have to be said here.
        text += "\n[cost]\ncommand_us = 270\nevent_us = 270\nsnapshot_us = 270\n"
        text += "control_us = 5\njoin_us = 5\nbase_share = 0.02\n"
        for index in range(opts.peers()):
            remote = f"{options.CLIENTS_ADDRESS}:{options.CLIENTS_BASE_PORT + index}"
            text += (f'\n[[connection]]\nremote = "{remote}"\nendpoint = "{ENDPOINT}"\n'
                     f'room = "room-{index % options.ROOMS + 1}"\nclass = "{CLASS}"\n'
                     "priority = 128\n")
    return text


class EdgeShed:
    """Attached programs and a daemon in the server's namespace, until the clean-up."""

    def __init__(self, opts, run_dir, log_dir, cleanup):
        self._cli, daemon = binaries(opts)
        self._run_dir = run_dir
        self._socket = run_dir / "control.sock"
        self.session_socket = run_dir / "session.sock"
        config = run_dir / "edgeshed.toml"
        config.write_text(config_text(opts), encoding="utf-8")
        cleanup.callback(self._detach)
        earlier = dispatchers()
        self._run("attach", "--config", config, "--dev", options.SERVER_IFACE, "--enforce")
        self._note_dispatchers(earlier)
        self._daemon = Child("edgeshedd", options.SERVER_NAMESPACE,
                             [daemon, "--config", config, "--pin-dir", PIN_DIR,
                              "--socket", self._socket],
                             log_dir / "edgeshedd.log",
                             cpus=opts.other_cpus())
        cleanup.callback(self._daemon.stop)
        self._wait_until_ready()
        self._asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        cleanup.callback(self._asking.close)
        self._asking.settimeout(COMMAND_TIMEOUT_S)
        self._asking.connect(str(self._socket))

    def _run(self, *words):
        places = {"--pin-dir": PIN_DIR, "--socket": self._socket}
        for option in PLACES_OF_COMMAND[words[0]]:
            words += (option, places[option])
        return run(in_namespace(options.SERVER_NAMESPACE, [self._cli, *words]),
                   timeout_s=COMMAND_TIMEOUT_S)

    def _run_json(self, *words):
        text = self._run(*words, "--json")
        try:
            return json.loads(text)
        except ValueError:
            raise DemoError(f"`edgeshed {' '.join(words)} --json` printed no JSON: "
                            f"{text[:80]!r}") from None

    def _wait_until_ready(self):
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not any(READY_LINE.search(line) for line in list(self._daemon.lines)):
            self.check()
            if time.monotonic() > deadline:
                raise DemoError(f"edgeshedd was not ready within {READY_TIMEOUT_S} s: "
                                f"{self._daemon.last_words()}")
            time.sleep(0.02)

    def _detach(self):
        try:
            self._run("detach")
        except DemoError as error:
            # The interface goes with its namespace; only the pins could stay.
            print(f"demo: {error}", file=sys.stderr)
        for left in (*leftover_pins(), *leftover_dispatchers(self._run_dir)):
            print(f"demo: detach left {left}, removing it", file=sys.stderr)
            remove_pins(left)

    def _note_dispatchers(self, earlier):
        # For the next demo, should this one be killed. Interface numbers are per namespace, so
        # the number alone does not say whose a dispatcher is: it must also be new.
        link = json.loads(run(["ip", "-n", options.SERVER_NAMESPACE, "-json", "link", "show",
                               "dev", options.SERVER_IFACE]))
        ours = [str(path) for path in dispatchers() - earlier
                if path.name.startswith(f"dispatch-{link[0]['ifindex']}-")]
        (self._run_dir / DISPATCHER_NOTE).write_text("\n".join(ours), encoding="utf-8")

    def check(self):
        self._daemon.check()

    def shard(self):
        """What the daemon decides now: rung, tick_ratio, offered_cost_ratio, keeps. Asked on the
        control socket, as `edgeshed status` does, and not by running it: 20 times a second that
        would be a load of its own."""
        try:
            self._asking.send(b'{"command":"status"}')
            answer = json.loads(self._asking.recv(65536))
            return next(each for each in answer["shards"] if each["name"] == SHARD)
        except (OSError, ValueError, KeyError, StopIteration) as error:
            self.check()
            raise DemoError(f"edgeshedd does not say how shard {SHARD} is: {error}") from None

    def tiers(self):
        """{direction: {tier: {seen, passed, marked, dropped, rejected}}}"""
        status = self._run_json("status")
        try:
            tiers = self._endpoint(status)["tiers"]
            return {direction: {tier: count_row(tiers[direction].get(tier)) for tier in TIERS}
                    for direction in DIRECTIONS}
        except (KeyError, StopIteration, TypeError) as error:
            raise DemoError(f"`edgeshed status --json` lacks {error} for endpoint {ENDPOINT}"
                            ) from None

    def ledger(self):
        """{direction: {"seen": n, "cells": sum of all cells, "by_verdict": {...}}}"""
        counters = self._run_json("dump", "counters")
        try:
            endpoint = self._endpoint(counters)
            return {direction: ledger_row(endpoint[direction]) for direction in DIRECTIONS}
        except (KeyError, StopIteration, TypeError) as error:
            raise DemoError(f"`edgeshed dump counters --json` lacks {error} for endpoint "
                            f"{ENDPOINT}") from None

    @staticmethod
    def _endpoint(document):
        return next(each for each in document["endpoints"] if each["name"] == ENDPOINT)


def count_row(row):
    row = row or {}
    return {name: int(row.get(name, 0)) for name in ("seen", *OUTCOMES)}


def ledger_row(row):
    by_verdict, dropped = {}, {}
    for cell in row["cells"]:
        packets = int(cell["packets"])
        by_verdict[cell["verdict"]] = by_verdict.get(cell["verdict"], 0) + packets
        if cell["verdict"] == "drop":
            lane = dropped.setdefault(cell["lane"], {})
            lane[cell["reason"]] = lane.get(cell["reason"], 0) + packets
    return {"seen": int(row["seen"]), "cells": sum(by_verdict.values()),
            "by_verdict": by_verdict, "dropped_by_lane": dropped}
