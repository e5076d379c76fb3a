"""The live line: twice a second in place on a terminal, once a second as a line elsewhere."""

import shutil
import sys
import time

from . import options

TERMINAL_INTERVAL_S = 0.5
FILE_INTERVAL_S = 1.0
TIERS = ("critical", "standard", "best-effort")


class LiveLine:
    def __init__(self, name):
        self._name = name
        self._terminal = sys.stdout.isatty()
        self._interval_s = TERMINAL_INTERVAL_S if self._terminal else FILE_INTERVAL_S
        self._began = time.monotonic()
        self._shown = None

    def show(self, phase, sample, server, clients):
        now_s = time.monotonic()
        if self._shown and now_s - self._shown[0] < self._interval_s:
            return
        if self._shown:
            text = self._text(phase, sample, self._shown, server, clients)
            if self._terminal:
                columns = shutil.get_terminal_size().columns
                print(f"\r\x1b[K{text[:columns - 1]}", end="", flush=True)
            else:
                print(text, flush=True)
        self._shown = (now_s, server, clients)

    def _text(self, phase, sample, shown, server, clients):
        _, server_before, clients_before = shown
        sent = total(clients, clients_before)
        handled = [now - before for now, before in
                   zip(server["handled"], server_before["handled"])]
        rows = " ".join(f"{tier} {percent(got, wanted)}"
                        for tier, got, wanted in zip(TIERS, handled, sent))
        rung = f"rung {sample['rung']}" if "rung" in sample else "rung -"
        ratio = server["tick_ms_max"] / options.FRAME_BUDGET_MS
        return (f"{self._name:<8}{time.monotonic() - self._began:5.1f}s "
                f"{phase.split('_')[0]:<6}{rung}  tick {ratio:4.2f}x  reached the game: {rows}")

    def end(self):
        if self._terminal:
            print()


def total(now, before):
    """Messages sent per tier between two status lines, flooders included."""
    return [sum(now[key][tier] - before[key][tier] for key in ("sent", "flood_sent"))
            for tier in range(3)]


def percent(got, wanted):
    return "   -" if wanted <= 0 else f"{min(got / wanted, 1):4.0%}"
