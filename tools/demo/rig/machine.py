"""What else wants the CPUs: on a virtual machine, the other ones of its host."""

import os
import time

STEAL_COLUMN = 8  # of the line "cpu" in /proc/stat, in clock ticks: proc(5)


class StolenTime:
    """From here on: the share of all CPUs' time that the host gave to others, 0 to 1. Every claim
    of time needs a CPU at the moment that it is due."""

    def __init__(self, path="/proc/stat"):
        self._path, self._begun_s, self._before = path, time.monotonic(), stolen_s(path)

    def share(self):
        elapsed_s = (time.monotonic() - self._begun_s) * (os.cpu_count() or 1)
        return (stolen_s(self._path) - self._before) / elapsed_s


def stolen_s(path):
    """0 where the kernel does not say."""
    with open(path, encoding="ascii") as file:
        columns = file.readline().split()
    if len(columns) <= STEAL_COLUMN:
        return 0.0
    return int(columns[STEAL_COLUMN]) / os.sysconf("SC_CLK_TCK")
