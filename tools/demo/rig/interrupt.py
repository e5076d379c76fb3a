"""Signals and the overall time limit: both end the demo by an exception, so that the clean-up
stack always unwinds; while it unwinds further signals wait."""

import signal
import sys

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupted(BaseException):
    """Not an Exception, so that no `except Exception` on the way swallows it."""

    def __init__(self, message, exit_code):
        super().__init__(message)
        self.exit_code = exit_code


def install(opts):
    limit_s = opts.time_limit_s()

    def on_signal(number, _frame):
        hold()
        if number == signal.SIGALRM:
            raise Interrupted(f"gave up: not finished after {limit_s} s, the limit for these "
                              "phases; see what hangs with --log-dir", 1)
        raise Interrupted(f"ended by {signal.Signals(number).name}", 128 + number)

    for number in (*ENDING_SIGNALS, signal.SIGALRM):
        signal.signal(number, on_signal)
    signal.alarm(limit_s)


def hold():
    """From here on nothing interrupts: the clean-up is bounded by its own time-outs."""
    for number in (*ENDING_SIGNALS, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    signal.alarm(0)


def report_cleanup_done(opts):
    if opts.verbose:
        print("demo: cleaned up", file=sys.stderr)
