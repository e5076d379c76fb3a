"""The demo's figures and claims, from runs that are written by hand. Usage: folder of the demo."""

import contextlib
import io
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

FOLDER = sys.argv.pop(1)
sys.path.insert(0, FOLDER)
from rig import claims, figures, machine, report  # noqa: E402 (the folder is an argument)

MS = 1_000_000
STEP, BACK, END = 1000, 11000, 23000


def run_of(*samples):
    """A run with samples of (ms, rung, ms since the rung changed, keep standard, keep best-effort)."""
    names = ("rung", "since_ms", "keep_standard", "keep_best_effort")
    return types.SimpleNamespace(
        clients={"phases": {"step_begins": STEP * MS, "step": (STEP + 1000) * MS,
                            "back": BACK * MS, "end": END * MS}},
        samples=[{"t_ns": at * MS, **dict(zip(names, rest))} for at, *rest in samples])


class TimeToShedTest(unittest.TestCase):
    def shed_ms(self, *samples):
        return figures.time_to_shed_ms(run_of((STEP - 10, 1, 500, 1, 1), *samples))

    def test_is_the_moment_of_the_decision_and_not_of_the_answer(self):
        self.assertEqual(self.shed_ms((STEP + 50, 5, 34, 1, 0)), 16)

    def test_a_rung_of_before_the_step_does_not_count(self):
        self.assertEqual(self.shed_ms((STEP + 5, 2, 12, 1, 1), (STEP + 30, 4, 10, 1, 0)), 20)

    def test_a_lower_keep_on_the_same_rung_counts(self):
        self.assertEqual(self.shed_ms((STEP + 9, 1, 519, 1, .98), (STEP + 18, 1, 528, 1, .7)), 18)

    def test_never(self):
        self.assertIsNone(self.shed_ms((STEP + 500, 1, 1010, 1, 1)))


class BackTest(unittest.TestCase):
    RUN = run_of((BACK + 100, 5, 0, .5, 0), (BACK + 1500, 4, 0, 1, 0), (BACK + 2600, 3, 0, 1, 1),
                 (BACK + 3000, 3, 0, 1, .9), (BACK + 4000, 1, 0, 1, .99), (BACK + 5100, 1, 0, 1, 1))

    def test_what_is_asked_for_stays_for_a_second(self):
        self.assertEqual(figures.back_ms(self.RUN, ("keep_standard",)), 1500)
        self.assertEqual(figures.back_ms(self.RUN, ("keep_standard", "keep_best_effort")), 4000)

    def test_not_before_the_end(self):
        late = run_of((BACK + 100, 5, 0, .5, 0), (END - 500, 1, 0, 1, 1))
        self.assertIsNone(figures.back_ms(late, ("keep_standard",)))


class CriticalTest(unittest.TestCase):
    def figures(self, dropped, by_lane):
        row = {"dropped": dropped, "rejected": 0, "seen": 9}
        run = types.SimpleNamespace(
            counted={"tiers": {"in": {"critical": row, "demoted": {"seen": 0}}},
                     "cells": {"in": {"dropped_by_lane": by_lane}}},
            clients={"round_trips": {"step": {"p99": 30}}})
        found = figures.critical(run, [], {})
        return found["critical_dropped_by_shedder"], found["handshakes_refused"]

    def test_handshakes_of_strangers_are_told_apart(self):
        self.assertEqual(self.figures(3, {"join": {"handshake_cap": 2}, "event": {"contract": 1}}),
                         (1, 2))
        self.assertEqual(self.figures(1, {"join": {"contract": 1}}), (1, 0))
        self.assertEqual(self.figures(0, {}), (0, 0))


class ReversalsTest(unittest.TestCase):
    def turns(self, *keeps):
        decided = [{"t_s": number, "keep_best_effort": keep} for number, keep in enumerate(keeps)]
        return figures.reversals({"decided": decided, "phases": {"step_begins": 0}})

    def test_down_and_back_is_none_and_each_more_is_one(self):
        self.assertEqual(self.turns(1, .5, 0, .5, 1), 0)
        self.assertEqual(self.turns(1, 0, .1, 0, 1), 0)
        self.assertEqual(self.turns(1, 0, .5, .2, 1), 2)


class ClaimsTest(unittest.TestCase):
    GOOD = {"critical_dropped_by_shedder": 0, "critical_sent": 9, "critical_demoted": 0, "handshakes_refused": 2,
            "critical_lost": 0, "critical_rtt_p99_ms": 30, "tick_p99_ratio": 1.1,
            "best_effort_kept_in_contract": .97, "flooder_share_ratio": 1.0,
            "jain_in_contract": .995, "time_to_shed_ms": 20, "reversals": 1,
            "standard_back_ms": 1900, "time_to_recover_ms": 7900, "ledger": {},
            "ledger_exact": True, "disconnects": 0, "players": 60}
    WITHOUT = {"critical_lost": 100, "critical_sent": 900, "tick_p99_ratio": 5.0}

    def failing(self, load=3, **changed):
        opts = types.SimpleNamespace(short=False, load=load, rate=60)
        verdicts = claims.judge(opts, self.WITHOUT, {**self.GOOD, **changed})
        return len([one for one in verdicts if not one.holds])

    def test_each_claim_can_fail(self):
        self.assertEqual(self.failing(), 0)
        for changed in ({"critical_dropped_by_shedder": 1}, {"critical_lost": 1},
                        {"tick_p99_ratio": 1.21}, {"best_effort_kept_in_contract": .94},
                        {"flooder_share_ratio": 1.21}, {"jain_in_contract": .98},
                        {"time_to_shed_ms": 34}, {"time_to_shed_ms": None}, {"reversals": 2},
                        {"standard_back_ms": 2001}, {"standard_back_ms": None},
                        {"time_to_recover_ms": 8001}, {"ledger_exact": False},
                        {"disconnects": 1}):
            self.assertEqual(self.failing(**changed), 1, changed)

    def test_a_farther_step_has_more_time(self):
        self.assertEqual(self.failing(load=10, standard_back_ms=3400, time_to_recover_ms=8900), 0)
        self.assertEqual(self.failing(load=10, standard_back_ms=3600), 1)


class StolenTimeTest(unittest.TestCase):
    def test_what_the_host_took_is_a_share_of_all_cpus(self):
        with tempfile.NamedTemporaryFile("w+") as stat:
            stat.write("cpu  9 9 9 9 9 9 9 100 0 0\n")
            stat.flush()
            stolen = machine.StolenTime(stat.name)
            stat.seek(0)
            stat.write("cpu  9 9 9 9 9 9 9 200 0 0\n")
            stat.flush()
            stolen._begun_s -= 10
            share = stolen.share()
        wanted = 100 / os.sysconf("SC_CLK_TCK") / (10 * os.cpu_count())
        self.assertAlmostEqual(share, wanted, delta=wanted / 10)

    def test_a_kernel_that_does_not_say_took_nothing(self):
        with tempfile.NamedTemporaryFile("w+") as stat:
            stat.write("cpu  9 9 9 9\n")
            stat.flush()
            self.assertEqual(machine.StolenTime(stat.name).share(), 0)

    def test_only_a_failure_on_a_busy_machine_is_remarked(self):
        for ok, share, remarked in ((False, .02, True), (False, .005, False), (True, .02, False)):
            arm = dict.fromkeys([key for _, key, _ in report.ROWS])
            found = {"without": arm, "with": {**arm, "stolen_share": share}}
            verdicts = [claims.Verdict("a claim", ok, "its figures")]
            opts = types.SimpleNamespace(load=3, json=None, plot=None)
            out = io.StringIO()
            with mock.patch.object(report, "sentence", return_value="Verdict"), \
                    contextlib.redirect_stdout(out):
                report.show(opts, found, verdicts)
            self.assertEqual("This machine is not quiet" in out.getvalue(), remarked, (ok, share))


if __name__ == "__main__":
    unittest.main(verbosity=2)
