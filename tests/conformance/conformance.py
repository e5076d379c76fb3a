"""Which test shows which rule of the model: read from the tests themselves, as a page.

A test says so in a comment right above it: `# Rule: A3, B8` or `// Rule: A3, B8`. A test is live
when it judges real packets: in namespaces, or by the packet path's own programs.

usage: conformance.py --check | --write     (of docs/conformance.md)
exit status: 0 all is well, 1 a rule without a live test or an old page, 2 wrong usage
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
RULES = ROOT / "tests" / "conformance" / "rules.tsv"
LIVE = ("tests/netns/", "tests/bpf/")
TEST_FILES = ("tests/**/*_test.cc", "tests/**/*_test.py", "userspace/**/*_test.cc")
MARKER = re.compile(r"^\s*(?://|#) Rule: (.+)$")
TEST = re.compile(r"^\s*(?:TEST(?:_[FP])?\((\w+), (\w+)\)|def (test_\w+|main)\(|TYPED_TEST\((\w+), (\w+)\))")
HEAD = """# Conformance

Every rule of the model and of the control law, and the tests that show it. Live tests judge real
packets: in network namespaces, or by running the packet path's own programs on them. Made from the
tests by `tests/conformance/conformance.py --write`; a rule without a live test fails CI.

| rule | what it says | live | pure |
|---|---|---|---|
"""


class Fault(Exception):
    """One line for people."""


def rules():
    """{rule: text}, in order."""
    found = {}
    for number, line in enumerate(RULES.read_text(encoding="utf-8").splitlines(), 1):
        rule, tab, text = line.partition("\t")
        if not tab or "\t" in text or rule in found:
            raise Fault(f"rules.tsv:{number}: a line is a rule, a tab and its text, each rule once")
        found[rule] = text
    return found


def marked_tests(path):
    """[(rules, name of the test)] of one file."""
    name = path.relative_to(ROOT).as_posix()
    found, waiting = [], None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        marker, test = MARKER.match(line), TEST.match(line)
        if marker:
            waiting = (number, [rule.strip() for rule in marker[1].split(",")])
        elif test and waiting:
            found.append((waiting[1], f"`{path.stem}` {'.'.join(part for part in test.groups() if part)}"))
            waiting = None
        elif waiting and not line.lstrip().startswith(("//", "#", "@")):
            raise Fault(f"{name}:{waiting[0]}: a rule stands right above a test")
    if waiting:
        raise Fault(f"{name}:{waiting[0]}: a rule without a test below it")
    return found


def collect(known):
    """{rule: {"live": [...], "pure": [...]}}"""
    shown = {rule: {"live": [], "pure": []} for rule in known}
    for pattern in TEST_FILES:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            kind = "live" if name.startswith(LIVE) else "pure"
            for its_rules, test in marked_tests(path):
                for rule in its_rules:
                    if rule not in known:
                        raise Fault(f"{name}: no rule is called {rule}; known: {' '.join(known)}")
                    shown[rule][kind].append(test)
    return shown


def page(known, shown):
    text = HEAD
    for rule, what in known.items():
        live, pure = ("<br>".join(shown[rule][kind]) for kind in ("live", "pure"))
        text += f"| {rule} | {what} | {live} | {pure} |\n"
    return text


def main(arguments):
    if arguments not in (["--check"], ["--write"]):
        print("usage: conformance.py --check | --write", file=sys.stderr)
        return 2
    try:
        known = rules()
        shown = collect(known)
        bare = [rule for rule in known if not shown[rule]["live"]]
        if bare:
            raise Fault(f"no live test shows {', '.join(bare)}: write `Rule: {bare[0]}` above the "
                        "one that does")
        if arguments == ["--write"]:
            PAGE.write_text(page(known, shown), encoding="utf-8")
        elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page(known, shown):
            raise Fault("docs/conformance.md is not what the tests say: run "
                        "tests/conformance/conformance.py --write")
    except Fault as fault:
        print(f"conformance: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
