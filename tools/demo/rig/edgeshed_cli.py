"""Every contact with EdgeShed's programs: their paths, options, config file and JSON.

When the CLI or the daemon changes, this is the only file of the demo that follows.
"""

import json
import pathlib
import re
import shutil
import sys
import time

from . import options
from .errors import DemoError
from .processes import Child, in_namespace, run

# Not the default places: the demo must not touch an EdgeShed that protects this host.
PIN_DIR = pathlib.Path("/sys/fs/bpf/edgeshed-demo")
SHARD, ROOM, CLASS, ENDPOINT = "main", "arena", "player", "game"
TIERS = ("critical", "standard", "best_effort", "demoted", "other")
OUTCOMES = ("passed", "marked", "dropped", "rejected")
DIRECTIONS = ("in", "out")
# Which of its two places each command of the CLI has to be told: pins, control socket.
PLACES_OF_COMMAND = {
    "attach": ("--pin-dir",),
    "detach": ("--pin-dir",),
    "connect": ("--socket",),
    "report": ("--socket",),
    "status": ("--socket", "--pin-dir"),
    "dump": ("--socket", "--pin-dir"),  # the socket only for names
}
DISPATCHER_DIR = pathlib.Path("/sys/fs/bpf/xdp")
DISPATCHER_NOTE = "dispatchers"
READY_LINE = re.compile(r"(?<!not )\bready\b")  # in whatever frame the log puts it
READY_TIMEOUT_S = 5
COMMAND_TIMEOUT_S = 5


def binaries(build_dir):
    return [build_dir / "tools" / "cli" / "edgeshed",
            build_dir / "userspace" / "daemon" / "edgeshedd"]


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
    # Contracts are several times what a player of this game sends (60 inputs, 5 events, a few
    # acknowledgements a second), so that everything here is in contract: what is then dropped was
    # dropped by the ladder.
    contract = "{ packets_per_s = 200, bytes_per_s = 200000 }"
    text = f"""\
[host]
connections_max = 4096
mode = "enforce"

[[shard]]
name = "{SHARD}"
frame_budget_ms = {options.FRAME_BUDGET_MS}

[[room]]
name = "{ROOM}"
shard = "{SHARD}"

[[class]]
name = "{CLASS}"
critical = {contract}
standard = {contract}
best_effort = {contract}

[[endpoint]]
name = "{ENDPOINT}"
address = "{options.SERVER_ADDRESS}"
port = {options.SERVER_PORT}
protocol = "enet"
rooms = ["{ROOM}"]
"""
    if opts.connect_by == "config":
        for remote in opts.client_addresses():
            text += (f'\n[[connection]]\nremote = "{remote}"\nendpoint = "{ENDPOINT}"\n'
                     f'room = "{ROOM}"\nclass = "{CLASS}"\npriority = 128\n')
    return text


class EdgeShed:
    """Attached programs and a daemon in the server's namespace, until the clean-up."""

    def __init__(self, opts, run_dir, cleanup):
        self._cli, daemon = binaries(opts.build_dir)
        self._run_dir = run_dir
        self._socket = run_dir / "control.sock"
        config = run_dir / "edgeshed.toml"
        config.write_text(config_text(opts), encoding="utf-8")
        cleanup.callback(self._detach)
        earlier = dispatchers()
        self._run("attach", "--config", config, "--dev", options.SERVER_IFACE, "--enforce")
        self._note_dispatchers(earlier)
        self._daemon = Child("edgeshedd", options.SERVER_NAMESPACE,
                             [daemon, "--config", config, "--pin-dir", PIN_DIR,
                              "--socket", self._socket],
                             (opts.log_dir or run_dir) / "edgeshedd.log")
        cleanup.callback(self._daemon.stop)
        self._wait_until_ready()
        if opts.connect_by == "cli":
            for remote in opts.client_addresses():
                self._run("connect", remote, "--endpoint", ENDPOINT, "--room", ROOM,
                          "--class", CLASS, "--priority", 128)

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

    def report_tick(self, ratio):
        self._run("report", "--shard", SHARD,
                  "--tick-p99-ms", f"{ratio * options.FRAME_BUDGET_MS:.3f}")

    def status(self):
        """{"shard": {rung, tick_ratio, why, expired},
        "tiers": {direction: {tier: {seen, passed, marked, dropped, rejected}}}}"""
        status = self._run_json("status")
        try:
            if not status["daemon"]["running"]:
                raise DemoError("edgeshed status says that the daemon does not run: "
                                f"{self._daemon.last_words()}")
            shard = next(each for each in status["shards"] if each["name"] == SHARD)
            tiers = self._endpoint(status)["tiers"]
            return {"shard": {"rung": int(shard["rung"]),
                              "tick_ratio": float(shard["tick_ratio"] or 0),
                              "why": shard["why"],
                              "expired": bool(status["daemon"]["expired"])},
                    "tiers": {
                direction: {tier: count_row(tiers[direction].get(tier)) for tier in TIERS}
                for direction in DIRECTIONS}}
        except (KeyError, StopIteration, TypeError) as error:
            raise DemoError(f"`edgeshed status --json` lacks {error} for shard {SHARD} and "
                            f"endpoint {ENDPOINT}") from None

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
    by_verdict = {}
    for cell in row["cells"]:
        by_verdict[cell["verdict"]] = by_verdict.get(cell["verdict"], 0) + int(cell["packets"])
    return {"seen": int(row["seen"]), "cells": sum(by_verdict.values()),
            "by_verdict": by_verdict}
