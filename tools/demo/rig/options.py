"""The options, with the reason for each default beside it."""

import argparse
import os
import pathlib

SERVER_NAMESPACE = "edgeshed-demo-server"
CLIENTS_NAMESPACE = "edgeshed-demo-clients"
NAMESPACE_PREFIX = "edgeshed-demo-"
SERVER_ADDRESS = "10.91.0.1"
CLIENTS_ADDRESS = "10.91.0.2"
SERVER_PORT = 7777
CLIENTS_BASE_PORT = 40000
SERVER_IFACE = "demo-srv0"
CLIENTS_IFACE = "demo-cli0"
TICK_HZ = 30
FRAME_BUDGET_MS = 1000 / TICK_HZ
ROOMS = 4
PLAYERS = 60
FLOODERS = 3
FLOOD_FACTOR = 40
# What a player sends a second. 63 of them (flooders play too) x 46 messages x 230 us are .67 of the
# loop by calibration; beside libenet and its memory a message takes 270 us: measured .75 to .8, and
# .85 beside 540 others who stay and are silent, whom libenet serves all the same. Critical
# is 2 % of it: 600 players are then .17 of the loop, which critical may take.
EVENT_HZ, COMMAND_HZ, STATE_HZ = 1, 10, 35

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]

# Seconds of calm, flood, step and back. Calm: costs are learned in the first second. Step: the
# p99 from 1 s on is over 5 s, 150 ticks. Back: the ramp may take 8.
PHASES_S = (4.0, 5.0, 6.0, 10.0)
# In CI: long enough that a ramp begins and ends.
SHORT_PHASES_S = (3.0, 3.0, 3.0, 9.5)


class Options(argparse.Namespace):
    """What was asked for."""

    def phases_s(self):
        return SHORT_PHASES_S if self.short else PHASES_S

    def players_more(self):
        return round(PLAYERS * (self.load - 1))

    def peers(self):
        return PLAYERS + self.players_more() + FLOODERS

    def join_s(self):
        return self.peers() / self.joins_per_s() + 3

    def joins_per_s(self):
        return 200

    def time_limit_s(self):
        # Two runs: joins, phases, settling (4), start and stop of everything (15 at the worst).
        return int(2 * (self.join_s() + sum(self.phases_s()) + 4 + 15))

    def game_binary(self, side):
        return self.build_dir / "tools" / "demo" / f"edgeshed_demo_{side}"

    def server_cpu(self):
        return self.cpus[0]

    def other_cpus(self):
        return self.cpus[1:] or self.cpus


def in_range(lowest, highest, unit, kind=float):
    def number_in_range(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not lowest <= value <= highest:
            raise argparse.ArgumentTypeError(
                f"{text} {unit}: allowed are {lowest} to {highest} {unit}")
        return value
    return number_in_range


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="demo", description="A real libenet game, flooded and overloaded: first without, then "
                                 "with EdgeShed.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    # Three: where a control loop on tick time alone collapses.
    add("--load", type=in_range(1.5, 10, "times"), default=3.0, metavar="N",
        help="the step, in multiples of the offered load: 60 N players")
    add("--rate", type=in_range(10, 250, "Hz", int), default=60, metavar="HZ",
        help="decisions of the daemon a second (its tick_hz)")
    add("--no-session", action="store_true",
        help="the game server does not use the client library: EdgeShed sees packets alone, and "
             "the cost of a message is configured")
    add("--json", type=pathlib.Path, metavar="FILE", help="write all figures there")
    add("--plot", type=pathlib.Path, metavar="FILE",
        help="write the plot there, .svg or .png; beside the --json file if not given")
    add("--short", action="store_true",
        help="shorter phases and wide tolerances, for machines that do other things as well")
    add("--log-dir", type=pathlib.Path, metavar="DIR",
        help="keep the logs of all programs there (else they go with the demo)")
    add("--build-dir", type=pathlib.Path, default=REPOSITORY / "build" / "dev",
        help="where the programs were built")
    add("--product-dir", type=pathlib.Path, metavar="DIR",
        help="where edgeshed and edgeshedd were built, if elsewhere")
    add("--verbose", action="store_true", help="name every step")
    opts = parser.parse_args(arguments, namespace=Options())
    opts.cpus = sorted(os.sched_getaffinity(0))
    opts.product_dir = opts.product_dir or opts.build_dir
    if opts.plot is None and opts.json is not None:
        opts.plot = opts.json.with_suffix(".svg")
    if opts.plot is not None and opts.plot.suffix not in (".svg", ".png"):
        parser.error(f"--plot {opts.plot}: allowed are names that end in .svg or .png")
    return opts
