"""The live line: twice a second in place on a terminal, once a second as a line elsewhere."""

import shutil
import sys

from . import phases

TERMINAL_INTERVAL_S = 0.5
FILE_INTERVAL_S = 1.0
# Tier, its name, and its letter where the terminal is narrow.
SHOWN_TIERS = (("critical", "critical ", "c"), ("standard", "standard ", "s"),
               ("best_effort", "best-effort ", "b"))
WIDE_COLUMNS = 132


class LiveLine:
    def __init__(self, plain):
        self._terminal = sys.stdout.isatty()
        self._interval_s = TERMINAL_INTERVAL_S if self._terminal else FILE_INTERVAL_S
        self._text = plain_text if plain else shed_text
        self._shown = None

    def show(self, samples):
        now = samples[-1]
        if self._shown is None:
            self._shown = samples[0]
        if now.at_s - self._shown.at_s < self._interval_s:
            return
        columns = shutil.get_terminal_size().columns if self._terminal else WIDE_COLUMNS
        text = self._text(self._shown, now, wide=columns >= WIDE_COLUMNS)
        if self._terminal:
            print(f"\r\x1b[K{text[:columns - 1]}", end="", flush=True)
        else:
            print(text, flush=True)
        self._shown = now

    def end(self):
        if self._terminal:
            print()


def shed_text(before, now, wide):
    """Kept percentages since the last line; 79 columns when narrow."""
    parts = [f"{now.at_s:5.1f}s {now.phase:<8} rung {now.shard['rung']} "
             f"{now.shard['tick_ratio']:4.2f}x"
             f"{' PLAN EXPIRED' if now.shard['expired'] else ''}"]
    for direction in ("in", "out"):
        kept = [f"{name if wide else letter}"
                f"{percent(phases.difference(before, now, direction, tier))}"
                for tier, name, letter in SHOWN_TIERS]
        parts.append(f"{direction} {' '.join(kept)}")
    parts.append(f"lost {now.disconnects}")
    return (" | " if wide else "|").join(parts)


def percent(counts):
    ratio = phases.kept_ratio(counts)
    return "   -" if ratio is None else f"{ratio:4.0%}"


def plain_text(before, now, wide):
    def rate(side, name):
        first, last = getattr(before, side), getattr(now, side)
        # Per second of the side's own clock: its status lines do not fall together with samples.
        seconds = (last.get("t_ms", 0) - first.get("t_ms", 0)) / 1000
        return (last.get(name, 0) - first.get(name, 0)) / seconds if seconds > 0 else 0.0

    unit = "datagrams/s " if wide else ""
    return (f"{now.at_s:5.1f}s {now.phase:<8} {unit}"
            f"clients > server {rate('clients', 'datagrams_sent'):4.0f} >"
            f"{rate('server', 'datagrams_received'):5.0f}|server > clients "
            f"{rate('server', 'datagrams_sent'):4.0f} >"
            f"{rate('clients', 'datagrams_received'):5.0f}|lost {now.disconnects}")
