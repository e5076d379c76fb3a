# SPDX-License-Identifier: Apache-2.0
"""The table of the verifier's work, verifier_table.tsv: read, written, and compared with what
edgeshed_verify_object measured. A program and its option set (clients, servers) is a row."""

import pathlib

from common import VmError

TABLE = pathlib.Path(__file__).resolve().parent / "verifier_table.tsv"
TABLE_HEAD = ["kernel", "program", "insns_processed"]

# How much more work than the committed number is still taken for noise of compiler updates.
GROWTH_ALLOWED_PERCENT = 20


def parse_rows(output):
    """{program: insns} of what edgeshed_verify_object printed, other lines left out."""
    rows = {}
    for line in output.splitlines():
        fields = line.split()
        if len(fields) == 6 and fields[5] == "ok" and all(f.isdigit() for f in fields[2:5]):
            rows[fields[1]] = int(fields[2])
    return rows


def series_of(release):
    return ".".join(release.split(".")[:2])


def read_table(path):
    """{kernel series: {program: insns}}"""
    table = {}
    if not path.exists():
        return table
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        fields = line.split("\t")
        if not line or line.startswith("#") or fields == TABLE_HEAD:
            continue
        if len(fields) != 3 or not fields[2].isdigit():
            raise VmError(f"{path.name}:{number}: '{line}' is not 'kernel<TAB>program<TAB>"
                             "number': repair it, or rewrite with tools/dev vm --smoke --update")
        table.setdefault(fields[0], {})[fields[1]] = int(fields[2])
    return table


def write_table(path, table):
    lines = ["# Instructions that the verifier processed for each program, by kernel series.",
             "# Written by tools/dev vm --smoke --update; more than "
             f"{GROWTH_ALLOWED_PERCENT} % over a number fails.", "\t".join(TABLE_HEAD)]
    for series in sorted(table, key=lambda s: [int(part) for part in s.split(".")]):
        lines += [f"{series}\t{program}\t{table[series][program]}"
                  for program in sorted(table[series])]
    path.write_text("\n".join(lines) + "\n")


def compare(series, rows, table, must_be_known):
    """Returns (problems, remarks), each a list of clear lines."""
    known = table.get(series)
    fix = "run tools/dev vm --smoke --update and commit the table"
    if known is None and not must_be_known:
        return [], [f"kernel {series} has no numbers in the table: loaded, not compared"]
    problems, remarks = [], []
    for program, insns in sorted(rows.items()):
        committed = (known or {}).get(program)
        if committed is None:
            problems.append(f"kernel {series}: {program} has no number in the table: {fix}")
        elif insns * 100 > committed * (100 + GROWTH_ALLOWED_PERCENT):
            problems.append(
                f"kernel {series}: {program} takes the verifier {insns} instructions, the table "
                f"has {committed}, at most {GROWTH_ALLOWED_PERCENT} % over it is allowed: make "
                f"the program simpler, or if the cost is meant {fix}")
        elif insns * (100 + GROWTH_ALLOWED_PERCENT) < committed * 100:
            remarks.append(f"kernel {series}: {program} went down from {committed} to {insns} "
                           f"instructions: {fix}")
    for program in sorted(set(known or {}) - set(rows)):
        problems.append(f"kernel {series}: {program} is in the table but not in the object: {fix}")
    return problems, remarks
