"""The final table, the verdict sentence and the JSON file."""

import json

from . import phases
from .errors import DemoError

COLUMNS = ("seen", "passed", "marked", "dropped", "rejected")


def show(opts, found, verdicts):
    found["claims"] = [vars(verdict) for verdict in verdicts]
    found["ok"] = all(verdict.holds for verdict in verdicts)
    print()
    if not opts.plain:
        print_tiers(found)
    print_snapshots(found)
    print_claims(verdicts)
    if opts.json:
        write_json(opts.json, found)


def print_tiers(found):
    print(f"{'phase':<10}{'way':<5}{'tier':<13}" + "".join(f"{name:>10}" for name in COLUMNS)
          + f"{'kept':>8}")
    blocks = {**found["phases"], "whole run": found["edgeshed"]["tiers"]}
    for phase, directions in blocks.items():
        for direction, tiers in directions.items():
            for tier, counts in tiers.items():
                if counts["seen"] == 0:
                    continue
                print(f"{phase:<10}{direction:<5}{tier.replace('_', '-'):<13}"
                      + "".join(f"{counts[name]:>10}" for name in COLUMNS)
                      + f"{phases.kept_ratio(counts):>8.1%}")
    print()


def print_snapshots(found):
    row = found["snapshots"]
    print(f"snapshots: {row['received']} of {row['sent']} reached the players, "
          f"{row['gap_ms_mean']} ms apart on average, {row['gap_ms_max']} ms at the most\n")


def print_claims(verdicts):
    for verdict in verdicts:
        print(f"{'holds ' if verdict.holds else 'FAILED'}  {verdict.claim}: {verdict.figures}")
    failed = [verdict.claim for verdict in verdicts if not verdict.holds]
    print()
    if failed:
        print(f"Verdict: {len(failed)} of {len(verdicts)} claims failed: {'; '.join(failed)}.")
    else:
        print(f"Verdict: all {len(verdicts)} claims hold.")


def write_json(path, found):
    try:
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise DemoError(f"cannot write {path}: {error.strerror}; choose another with --json"
                        ) from None
