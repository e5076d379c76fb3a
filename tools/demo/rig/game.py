"""The game: starts server and clients, follows their status lines, ends them in order."""

import json
import time

from . import options
from .errors import DemoError
from .processes import Child

LEAVE_TIMEOUT_S = 8   # settle bound of both is 4
SERVER_READY_S = 4


class Side:
    """One of the two programs and its latest status line."""

    def __init__(self, name, namespace, command, log_dir, cpus):
        self.status = {}
        self.result_file = log_dir / f"{name}.json"
        self.child = Child(name, namespace, [*command, "--log", self.result_file],
                           log_dir / f"{name}.log", self._take_line, cpus)

    def _take_line(self, line):
        if not line.startswith("{"):
            return
        try:
            self.status = json.loads(line)
        except ValueError:
            pass  # a half line of a program that was killed

    def result(self):
        try:
            return json.loads(self.result_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise DemoError(f"{self.child.name} left no result (exit code "
                            f"{self.child.exit_code()}): {self.child.last_words()}") from None


class Game:
    """The server has a CPU of its own; clients and daemon share the others. So what the server
    does is the server's, and what arrives is paid by who sends it."""

    def __init__(self, opts, log_dir, session_socket, cleanup):
        common = ["--host", options.SERVER_ADDRESS, "--port", options.SERVER_PORT]
        session = []
        if session_socket:
            session = ["--shard", "main", "--session-socket", session_socket]
        self.server = Side("game-server", options.SERVER_NAMESPACE,
                           [opts.game_binary("server"), *common, "--tick-hz", options.TICK_HZ,
                            "--rooms", options.ROOMS, "--players-max", opts.peers() + 5, *session],
                           log_dir, [opts.server_cpu()])
        cleanup.callback(self.server.child.stop)
        self._wait_for(lambda: self.server.status, SERVER_READY_S, "the game server is up")
        self.clients = Side("game-clients", options.CLIENTS_NAMESPACE,
                            [opts.game_binary("clients"), *common, *client_words(opts)],
                            log_dir, opts.other_cpus())
        cleanup.callback(self.clients.child.stop)
        self._wait_for(lambda: self.clients.status.get("phase", "join") != "join",
                       opts.join_s() + 2, f"all {opts.peers()} peers are in the game")

    def _wait_for(self, condition, timeout_s, what):
        deadline = time.monotonic() + timeout_s
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise DemoError(f"not within {timeout_s:.0f} s: {what}")
            time.sleep(0.02)

    def check(self):
        self.server.child.check()
        if hasattr(self, "clients") and self.phase() != "end":
            self.clients.child.check()

    def phase(self):
        return self.clients.status.get("phase", "join")

    def finish(self):
        """The clients leave by themselves; the server's counts then include their end."""
        for side in (self.clients, self.server):
            if side is self.server:
                side.child.terminate()
            if not side.child.wait(LEAVE_TIMEOUT_S):
                raise DemoError(f"{side.child.name} did not end within {LEAVE_TIMEOUT_S} s")


def client_words(opts):
    calm_s, flood_s, step_s, back_s = opts.phases_s()
    words = {"players": options.PLAYERS, "players-more": opts.players_more(),
             "flooders": options.FLOODERS, "flood-factor": options.FLOOD_FACTOR,
             "local": options.CLIENTS_ADDRESS, "base-port": options.CLIENTS_BASE_PORT,
             "event-hz": options.EVENT_HZ, "command-hz": options.COMMAND_HZ,
             "state-hz": options.STATE_HZ, "joins-per-s": opts.joins_per_s(),
             "join-seconds": opts.join_s(), "calm-s": calm_s, "flood_begins-s": 1,
             "flood-s": flood_s - 1, "step_begins-s": 1, "step-s": step_s - 1, "back-s": back_s}
    return [word for name, value in words.items() for word in (f"--{name}", value)]
