# SPDX-License-Identifier: Apache-2.0
"""What the parts of tools/dev vm share: messages, and commands with a limit in time."""

import subprocess
import sys


class VmError(Exception):
    """One clear line for the person who started this."""


def say(text):
    print(f"vm: {text}", flush=True)


def run(command, timeout_s, **options):
    """Output and errors together in .stdout; the exit status is the caller's to judge."""
    try:
        return subprocess.run(command, timeout=timeout_s, check=False, text=True,
                              errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options)
    except FileNotFoundError as error:
        raise VmError(f"{command[0]} is not installed: run tools/dev deps") from error
    except subprocess.TimeoutExpired as error:
        # What a guest had on its console when it hung is the only trace of why.
        print((error.stdout or b"").decode(errors="replace").rstrip("\n"), file=sys.stderr)
        raise VmError(f"'{' '.join(map(str, command[:3]))} ...' took over {timeout_s} s and "
                      "was stopped") from error


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"
