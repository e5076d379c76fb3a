# SPDX-License-Identifier: Apache-2.0
"""Man pages and completions say what --help says, and work. Usage: edgeshed_pages edgeshed
edgeshedd."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIMIT_S = 30


def run(*command, **options):
    return subprocess.run(command, text=True, capture_output=True, timeout=LIMIT_S, check=True,
                          **options).stdout


def help_of(*words):
    """(names of options, names of subcommands) as --help lists them."""
    text = run(*words, "--help")
    options = set(re.findall(r"(?:^  |,)(--?[a-z][a-z0-9-]*)", text, re.MULTILINE))
    _, _, tail = text.partition("Subcommands:\n")
    return options, re.findall(r"^  ([a-z]+) ", tail, re.MULTILINE)


def complete(script, *words):
    """What bash offers at the end of `words`."""
    program = (f"source '{script}'; COMP_WORDS=({' '.join(repr(word) for word in words)}); "
               f"COMP_CWORD={len(words) - 1}; _edgeshed; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return run("bash", "-euc", program).split()


class PagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="edgeshed-pages-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        run(PAGES, str(cls.folder), "1.2.3")
        cls.bash = cls.folder / "edgeshed.bash"
        cls.options, cls.subcommands = help_of(EDGESHED)

    def page(self, name):
        return (self.folder / name).read_text().replace("\\-", "-")

    def test_each_subcommand_is_everywhere(self):
        self.assertGreater(len(self.subcommands), 15, "the list of --help was not understood")
        pages = {path.name for path in self.folder.glob("*.[18]")}
        self.assertEqual(pages, {"edgeshed.1", "edgeshedd.8"} |
                         {f"edgeshed-{name}.1" for name in self.subcommands})
        self.assertEqual(complete(self.bash, "edgeshed", ""), self.subcommands)
        zsh = (self.folder / "_edgeshed").read_text()
        for name in self.subcommands:
            self.assertIn(f"edgeshed-{name}", self.page("edgeshed.1"))
            self.assertRegex(zsh, rf"(?m)^    '{name}:.+'$")
            self.assertRegex(zsh, rf"(?m)^        {name}\)$")

    def test_each_option_is_everywhere(self):
        zsh = (self.folder / "_edgeshed").read_text()
        for name in self.subcommands:
            options, _ = help_of(EDGESHED, name)
            self.assertIn("--help", options)
            page = self.page(f"edgeshed-{name}.1")
            offered = complete(self.bash, "edgeshed", name, "-")
            self.assertEqual(set(offered), options | {"--pin-dir", "--socket"}, name)
            part = zsh[zsh.index(f"\n        {name})"):]
            part = part[:part.index(";;")]
            for option in options:
                self.assertRegex(page, rf"(?m)^\.B .*{option}\b", name)
                self.assertRegex(part, rf"'{option}=?\[", name)
        for option in help_of(EDGESHEDD)[0]:
            self.assertRegex(self.page("edgeshedd.8"), rf"(?m)^\.B .*{option}\b")

    def test_bash_completes_values_and_places(self):
        self.assertEqual(complete(self.bash, "edgeshed", "attach", "--faces", "c"), ["clients"])
        self.assertEqual(complete(self.bash, "edgeshed", "--socket", "x", "bypass", "o"),
                         ["on", "off"])
        self.assertEqual(complete(self.bash, "edgeshed", "bypass", "on", ""), [])
        self.assertIn("counters", complete(self.bash, "edgeshed", "dump", "--config", "on", ""))
        self.assertIn("lo", complete(self.bash, "edgeshed", "detach", "--dev", ""))
        # Files are the shell's own matter.
        self.assertEqual(complete(self.bash, "edgeshed", "attach", "--config", ""), [])

    def test_zsh_takes_the_script(self):
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed")
        run("zsh", "-n", str(self.folder / "_edgeshed"))

    def test_troff_takes_the_pages(self):
        for page in sorted(self.folder.glob("*.[18]")):
            result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-rCHECKSTYLE=0", str(page)],
                                    text=True, capture_output=True, timeout=LIMIT_S, check=True)
            self.assertEqual(result.stderr, "", page.name)
            shown = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", result.stdout)
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"):
                self.assertRegex(shown, rf"(?m)^{section}$", page.name)

    def test_examples_are_in_the_pages(self):
        self.assertIn("edgeshed set shard arena rung 2 --for 60s", self.page("edgeshed-set.1"))
        self.assertIn("Exit codes: 0 ok", self.page("edgeshed.1"))


if __name__ == "__main__":
    PAGES, EDGESHED, EDGESHEDD = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1], verbosity=2)
