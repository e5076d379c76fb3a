"""The options, with the reason for each default beside it."""

import argparse
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
FRAME_BUDGET_MS = 33.3  # of TICK_HZ

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]


class Options(argparse.Namespace):
    """What was asked for; seconds and ratios are floats."""

    def time_limit_s(self):
        # Phases, plus joins (5), settling (4), start and stop of everything (30 at the worst).
        phases_s = self.calm_s + self.pressure_s + self.recovery_s + self.recovery_grace_s
        return int(phases_s + 45)

    def client_addresses(self):
        return [f"{CLIENTS_ADDRESS}:{CLIENTS_BASE_PORT + i}" for i in range(self.clients)]

    def game_binary(self, side):
        return self.build_dir / "tools" / "demo" / f"edgeshed_demo_{side}"


def number(lowest, highest, unit):
    def number_in_range(text):
        value = float(text)
        if not lowest <= value <= highest:
            raise argparse.ArgumentTypeError(
                f"{text} {unit}: allowed are {lowest} to {highest} {unit}")
        return value
    return number_in_range


def seconds(lowest, highest):
    return number(lowest, highest, "s")


def frame_budgets(lowest, highest):
    return number(lowest, highest, "frame budgets")


def client_count(text):
    value = int(text)
    if not 1 <= value <= 1000:
        raise argparse.ArgumentTypeError(f"{text} clients: allowed are 1 to 1000")
    return value


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="demo", description="A real libenet game under pressure, shed by EdgeShed.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--plain", action="store_true",
        help="the same game and phases without EdgeShed: delivery and datagram ledger only")
    add("--build-dir", type=pathlib.Path, default=REPOSITORY / "build" / "dev",
        help="where the programs were built")
    add("--json", type=pathlib.Path, metavar="FILE", help="write the result there")
    add("--log-dir", type=pathlib.Path, metavar="DIR",
        help="keep the logs of all programs there (else they go with the demo)")
    # Twelve players: every tier carries enough datagrams for a percentage, and two cores are idle.
    add("--clients", type=client_count, default=12, help="game clients")
    add("--calm-s", type=seconds(1, 600), default=4.0, metavar="S", help="first calm phase")
    # Six: the shed state is reached in the first tenth and can be read from the live line.
    add("--pressure-s", type=seconds(1, 600), default=6.0, metavar="S", help="pressure phase")
    # Eight: the ramp back from a full pause of best-effort takes about that long.
    add("--recovery-s", type=seconds(1, 600), default=8.0, metavar="S", help="last calm phase")
    add("--recovery-grace-s", type=seconds(0, 600), default=6.0, metavar="S",
        help="wait that much longer for the recovery, only if it is not complete")
    add("--pressure-ratio", type=frame_budgets(0.8, 100), default=2.0, metavar="R",
        help="tick p99 that is reported under pressure, in frame budgets")
    # Half the budget: far under the first rung (0.8) and under every exit level.
    add("--calm-ratio", type=frame_budgets(0.01, 0.79), default=0.5, metavar="R",
        help="tick p99 that is reported when calm, in frame budgets")
    add("--connect-by", choices=("config", "cli"), default="config",
        help="register the players in the config file or by `edgeshed connect`")
    add("--verbose", action="store_true", help="name every step")
    return parser.parse_args(arguments, namespace=Options())
