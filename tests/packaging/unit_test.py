# SPDX-License-Identifier: Apache-2.0
"""The service and the maintainer scripts are understood by who reads them, and the sandbox stays
narrow. Usage: FOLDER with the packaging files."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIMIT_S = 30
# What `systemd-analyze security` says, times ten; 21 when this was written.
EXPOSURE_MAX = 25
CAPABILITIES = {"CAP_BPF", "CAP_NET_ADMIN", "CAP_SYS_NICE"}


def run(*command):
    return subprocess.run(command, text=True, capture_output=True, timeout=LIMIT_S, check=False)


@unittest.skipIf(shutil.which("systemd-analyze") is None, "systemd-analyze is not installed")
class UnitTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="edgeshed-unit-")
        self.addCleanup(scratch.cleanup)
        self.text = (FOLDER / "edgeshed.service").read_text()
        # The programs need not be installed on this machine.
        here = re.sub(r"/usr/s?bin/edgeshedd?\b", "/bin/true", self.text)
        self.unit = pathlib.Path(scratch.name) / "edgeshed.service"
        self.unit.write_text(here)

    def test_is_understood(self):
        result = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                     str(self.unit))
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_exposure(self):
        result = run("systemd-analyze", "security", "--offline=yes",
                     f"--threshold={EXPOSURE_MAX}", str(self.unit))
        self.assertEqual(result.returncode, 0, result.stdout[-200:] + result.stderr)

    def test_capabilities(self):
        for key in ("CapabilityBoundingSet", "AmbientCapabilities"):
            lines = re.findall(rf"(?m)^{key}=(.*)$", self.text)
            self.assertEqual([set(line.split()) for line in lines], [CAPABILITIES], key)

    def test_system_calls(self):
        result = run("systemd-analyze", "security", "--offline=yes", "--json=short",
                     str(self.unit))
        rows = {row["name"]: row for row in json.loads(result.stdout)}
        for name in ("NoNewPrivileges=", "MemoryDenyWriteExecute=", "ProtectSystem="):
            self.assertTrue(rows[name]["set"], name)


class ScriptsTest(unittest.TestCase):
    def test_shell_takes_them(self):
        for name in ("postinst", "prerm", "postrm"):
            path = FOLDER / "deb" / name
            self.assertEqual(path.stat().st_mode & 0o777, 0o755, name)
            self.assertEqual(run("sh", "-n", str(path)).stderr, "", name)
            self.assertTrue(path.read_text().startswith("#!/bin/sh\n"), name)
            self.assertRegex(path.read_text(), r"(?m)^set -e$", name)

    def test_other_calls_do_nothing(self):
        # What dpkg calls scripts with, and these do not act on: no error, nothing touched.
        for name, action in (("postinst", "triggered"), ("prerm", "upgrade"),
                             ("prerm", "failed-upgrade")):
            result = run("sh", str(FOLDER / "deb" / name), action)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""), name)


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv[1])
    unittest.main(argv=sys.argv[:1], verbosity=2)
