"""The game: starts server and clients, follows their status lines, ends them in order."""

import json
import time

from . import options
from .errors import DemoError
from .processes import Child

JOIN_TIMEOUT_S = 6    # the clients' own bound is 5
LEAVE_TIMEOUT_S = 6   # settle bound of the clients is 4
SERVER_READY_S = 3


class Side:
    """One of the two programs and its latest status line."""

    def __init__(self, name, namespace, command, log_dir, run_dir):
        self.status = {}
        self.result_file = run_dir / f"{name}.json"
        self.child = Child(name, namespace, [*command, "--log", self.result_file],
                           log_dir / f"{name}.log", self._take_line)

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
    def __init__(self, opts, run_dir, cleanup):
        self._clients_wanted = opts.clients
        log_dir = opts.log_dir or run_dir
        common = ["--host", options.SERVER_ADDRESS, "--port", options.SERVER_PORT,
                  "--seconds", opts.time_limit_s()]
        self.server = Side("game-server", options.SERVER_NAMESPACE,
                           [opts.game_binary("server"), *common, "--tick-hz", options.TICK_HZ,
                            "--peers-max", opts.clients + 8], log_dir, run_dir)
        cleanup.callback(self.server.child.stop)
        self._wait_for(lambda: self.server.status, SERVER_READY_S, "the game server is up")
        self.clients = Side("game-clients", options.CLIENTS_NAMESPACE,
                            [opts.game_binary("clients"), *common,
                             "--local", options.CLIENTS_ADDRESS,
                             "--base-port", options.CLIENTS_BASE_PORT,
                             "--clients", opts.clients], log_dir, run_dir)
        cleanup.callback(self.clients.child.stop)
        self._wait_for(lambda: self.clients.status.get("connected") == opts.clients,
                       JOIN_TIMEOUT_S, f"all {opts.clients} clients are in the game")

    def _wait_for(self, condition, timeout_s, what):
        deadline = time.monotonic() + timeout_s
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise DemoError(f"not within {timeout_s} s: {what}")
            time.sleep(0.02)

    def check(self):
        self.server.child.check()
        if hasattr(self, "clients"):
            self.clients.child.check()

    def disconnects(self):
        return (self.server.status.get("disconnects", 0)
                + self.clients.status.get("disconnects", 0))

    def finish(self):
        """Clients first: they leave in order, and the server's counts then include their end."""
        for side in (self.clients, self.server):
            side.child.terminate()
            if not side.child.wait(LEAVE_TIMEOUT_S):
                raise DemoError(f"{side.child.name} did not end within {LEAVE_TIMEOUT_S} s")
