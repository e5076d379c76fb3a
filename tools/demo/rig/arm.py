"""One of the two runs, without or with EdgeShed: built up, played, counted, taken down."""

import contextlib
import dataclasses
import json
import time

from . import network, options
from .edgeshed_cli import EdgeShed
from .game import Game
from .live import LiveLine
from .machine import StolenTime

SAMPLE_S = 0.05  # 20 a second: a step of the keeps is seen within two ticks of the server
SAMPLE_DENSE_S = 0.008  # while the time to shed is looked for
# The daemon's status may be a few of its ticks old; after this it has seen the last datagram.
SETTLE_S = 0.3


@dataclasses.dataclass
class Run:
    """Everything that a run left, before it is judged. `samples` and `counted` are empty in the
    run without EdgeShed."""

    name: str
    server: dict
    clients: dict
    samples: list
    counted: dict
    kernel_udp: dict
    stolen_share: float


def play(opts, name, run_dir):
    """`name` is "without" or "with"."""
    own_dir = run_dir / name
    own_dir.mkdir()
    log_dir = opts.log_dir / name if opts.log_dir else own_dir
    log_dir.mkdir(parents=True, exist_ok=True)
    # A stack of its own: the second run begins from nothing.
    with contextlib.ExitStack() as cleanup:
        network.build(opts, cleanup)
        edgeshed = None
        if name == "with":
            edgeshed = EdgeShed(opts, own_dir, log_dir, cleanup)
        session = None if edgeshed is None or opts.no_session else edgeshed.session_socket
        game = Game(opts, log_dir, session, cleanup)
        stolen = StolenTime()
        samples = watch(name, game, edgeshed)
        stolen_share = stolen.share()
        game.finish()
        if opts.log_dir and samples:
            (log_dir / "decisions.json").write_text(json.dumps(samples), encoding="utf-8")
        return collect(name, game, edgeshed, samples, stolen_share)


def watch(name, game, edgeshed):
    live = LiveLine(name)
    samples = []
    while game.phase() != "end":
        game.check()
        sample = edgeshed.shard() if edgeshed else {}
        sample["t_ns"] = time.monotonic_ns()
        if edgeshed:
            samples.append(sample)
        live.show(game.phase(), sample, game.server.status, game.clients.status)
        time.sleep(SAMPLE_DENSE_S if game.phase() == "step_begins" else SAMPLE_S)
    live.end()
    return samples


def collect(name, game, edgeshed, samples, stolen_share):
    counted = {}
    if edgeshed:
        time.sleep(SETTLE_S)
        counted = {"tiers": edgeshed.tiers(), "cells": edgeshed.ledger()}
    udp = {"server": network.udp_counters(options.SERVER_NAMESPACE),
           "clients": network.udp_counters(options.CLIENTS_NAMESPACE)}
    return Run(name, game.server.result(), game.clients.result(), samples, counted, udp,
               stolen_share)
