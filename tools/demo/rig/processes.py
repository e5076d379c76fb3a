"""Running programs: every call bounded in time, every child ends with the demo."""

import collections
import functools
import os
import shutil
import signal
import subprocess
import threading

from .errors import DemoError

RUN_TIMEOUT_S = 10
STOP_TIMEOUT_S = 3
OUTPUT_LINES_KEPT = 200
REALTIME_PRIORITY = "10"


def in_namespace(namespace, command):
    # Not `ip netns exec`: it remounts /sys, which hides bpffs.
    return ["nsenter", f"--net=/run/netns/{namespace}", *map(str, command)]


def run(command, timeout_s=RUN_TIMEOUT_S, may_fail=False, text=""):
    """Runs to the end, with `text` as its input, and returns the standard output; DemoError names
    what went wrong."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s,
                              input=text, start_new_session=True, check=False)
    except FileNotFoundError:
        raise DemoError(f"`{command[0]}` is not there; install or build it") from None
    except subprocess.TimeoutExpired:
        if may_fail:
            return ""
        raise DemoError(f"`{' '.join(command)}` did not end within {timeout_s} s") from None
    if done.returncode != 0 and not may_fail:
        reason = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise DemoError(f"`{' '.join(command)}` failed with {done.returncode}: {reason}")
    return done.stdout


@functools.cache
def may_be_realtime():
    """False in a container without CAP_SYS_NICE, for example."""
    done = subprocess.run(["chrt", "--rr", REALTIME_PRIORITY, "true"], check=False,
                          capture_output=True, timeout=RUN_TIMEOUT_S)
    return done.returncode == 0


class Child:
    """A program that runs beside the demo, with its last lines of output kept.

    It gets SIGTERM from the kernel when the demo dies, even by SIGKILL (setpriv), and is in a
    session of its own, so that Ctrl-C reaches only the demo, which ends it in order.
    """

    def __init__(self, name, namespace, command, log_file, on_line=None, cpus=None):
        self.name = name
        self.lines = collections.deque(maxlen=OUTPUT_LINES_KEPT)
        self._on_line = on_line
        self._log = open(log_file, "w", encoding="utf-8")
        words = ["setpriv", "--pdeathsig", "TERM", *in_namespace(namespace, command)]
        if cpus:
            words = ["taskset", "--cpu-list", ",".join(map(str, cpus)), *words]
        # Before what else runs on this machine: it is the game's own load that is to be seen. Not
        # by a nice value, which counts inside a session only (autogroups).
        if may_be_realtime():
            words = ["chrt", "--rr", REALTIME_PRIORITY, *words]
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        except OSError as error:
            self._log.close()
            raise DemoError(f"cannot start {name}: {error}") from None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))
            self._log.write(line)
            self._log.flush()
            if self._on_line:
                self._on_line(line)

    def running(self):
        return self._process.poll() is None

    def exit_code(self):
        return self._process.poll()

    def check(self):
        if not self.running():
            raise DemoError(f"{self.name} ended by itself with {self.exit_code()}: "
                            f"{self.last_words()}")

    def last_words(self):
        spoken = [line for line in self.lines if line and not line.startswith("{")]
        return " | ".join(spoken[-3:]) if spoken else "no message"

    def terminate(self):
        if self.running():
            self._process.send_signal(signal.SIGTERM)

    def wait(self, timeout_s):
        """True when it ended in time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._reader.join(1)
        return True

    def stop(self):
        """SIGTERM, then SIGKILL: never leaves it running."""
        self.terminate()
        if not self.wait(STOP_TIMEOUT_S):
            os.killpg(self._process.pid, signal.SIGKILL)
            self.wait(STOP_TIMEOUT_S)
        self._log.close()


def missing_tools(names):
    return [name for name in names if shutil.which(name) is None]
