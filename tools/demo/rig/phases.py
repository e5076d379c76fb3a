"""Calm, pressure, calm again: reports the tick, samples the counters, drives the live line."""

import dataclasses
import time

from .live import LiveLine

CALM, PRESSURE, RECOVERY = "calm", "pressure", "recovery"
SAMPLE_S = 0.1
# The time to shed is read from samples: closer ones while it is being looked for.
SAMPLE_DENSE_S = 0.03
DENSE_FOR_S = 1.0
REPORT_S = 0.2
WINDOW_S = 0.5  # a kept ratio is taken over at least this: 15 snapshots of each client
KEPT_RECOVERED = 0.98


@dataclasses.dataclass
class Sample:
    """One look at everything. Without EdgeShed `shard` and `tiers` are empty."""

    at_s: float  # since the first phase began
    phase: str
    shard: dict
    tiers: dict
    server: dict
    clients: dict
    disconnects: int


def run(opts, game, edgeshed):
    """Returns the samples of all phases in order."""
    return Runner(opts, game, edgeshed).run()


class Runner:
    def __init__(self, opts, game, edgeshed):
        self._opts, self._game, self._edgeshed = opts, game, edgeshed
        self._samples = []
        self._live = LiveLine(plain=opts.plain)
        self._began = time.monotonic()

    def run(self):
        opts = self._opts
        self._phase(CALM, opts.calm_s, opts.calm_ratio)
        self._phase(PRESSURE, opts.pressure_s, opts.pressure_ratio)
        self._phase(RECOVERY, opts.recovery_s, opts.calm_ratio,
                    grace_s=0 if opts.plain else opts.recovery_grace_s)
        self._live.end()
        return self._samples

    def _phase(self, name, seconds, tick_ratio, grace_s=0.0):
        self._sample(name)  # what is counted so far belongs to the time before
        began = time.monotonic()
        next_report = began
        while True:
            in_phase_s = time.monotonic() - began
            if in_phase_s >= seconds and (grace_s == 0 or self._recovered()
                                          or in_phase_s >= seconds + grace_s):
                break
            if self._edgeshed and time.monotonic() >= next_report:
                next_report += REPORT_S
                self._edgeshed.report_tick(tick_ratio)
            dense = name == PRESSURE and in_phase_s < DENSE_FOR_S
            self._sample(name)
            self._live.show(self._samples)
            time.sleep(SAMPLE_DENSE_S if dense else SAMPLE_S)
        self._sample(name)

    def _sample(self, phase):
        self._game.check()
        shard, tiers = {}, {}
        if self._edgeshed:
            self._edgeshed.check()
            status = self._edgeshed.status()
            shard, tiers = status["shard"], status["tiers"]
        self._samples.append(Sample(
            time.monotonic() - self._began, phase, shard, tiers, dict(self._game.server.status),
            dict(self._game.clients.status), self._game.disconnects()))

    def _recovered(self):
        earlier = window_start(self._samples, len(self._samples) - 1)
        return is_recovered(earlier, self._samples[-1])


def window_start(samples, index):
    """The latest sample that is at least a window older than samples[index]; the first if none."""
    for earlier in range(index - 1, -1, -1):
        if samples[index].at_s - samples[earlier].at_s >= WINDOW_S:
            return samples[earlier]
    return samples[0]


def difference(before, after, direction, tier):
    """Counts between two samples."""
    first, last = before.tiers[direction][tier], after.tiers[direction][tier]
    return {name: last[name] - first[name] for name in last}


def kept_ratio(counts):
    """Passed or marked of what was seen; None when nothing was seen."""
    if counts["seen"] == 0:
        return None
    return (counts["passed"] + counts["marked"]) / counts["seen"]


def is_recovered(before, after):
    if int(after.shard["rung"]) != 0:
        return False
    ratios = [kept_ratio(difference(before, after, direction, tier))
              for direction in ("in", "out") for tier in ("standard", "best_effort")]
    return all(ratio is None or ratio >= KEPT_RECOVERED for ratio in ratios)
