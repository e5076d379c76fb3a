"""What the demo claims, each with the numbers behind it. Pure: reads figures, returns verdicts."""

import dataclasses


@dataclasses.dataclass
class Verdict:
    claim: str
    holds: bool
    figures: str


@dataclasses.dataclass
class Limits:
    """What must hold: as promised, and for a short run beside other work."""

    tick_without: float = 2.0
    tick_with: float = 1.2
    kept_flood: float = 0.8
    flooder_share: float = 2.0
    recover_ms: float = 8000
    recover_far_ms: float = 9000  # from a step beyond FAR_LOAD


FAR_LOAD = 3
SHORT = Limits(tick_without=1.3, tick_with=2.0, kept_flood=0.5, flooder_share=3.0,
               recover_ms=9000)


def judge(opts, without, shed):
    limits = SHORT if opts.short else Limits()
    if opts.load > FAR_LOAD:
        limits = dataclasses.replace(limits, recover_ms=limits.recover_far_ms)
    return [overloaded(limits, without), critical_safe(shed), critical_arrived(shed),
            tick_holds(limits, shed), kept_in_flood(limits, shed), flooders_bound(limits, shed),
            all_back(limits, shed), ledger(shed), nobody_lost(shed)]


def overloaded(limits, without):
    lost, ratio = without["critical_lost"], without["tick_p99_ratio"]
    return Verdict("without: the game is overloaded", ratio > limits.tick_without or lost > 0,
                   f"tick p99 {ratio:.2f} budgets (over {limits.tick_without:g}), or critical "
                   f"lost: {lost} of {without['critical_sent']}")


def critical_safe(shed):
    dropped, seen = shed["critical_dropped_by_shedder"], shed["critical_sent"]
    return Verdict("with: in-contract critical dropped by the shedder 0",
                   dropped == 0 and seen > 0,
                   f"{dropped} dropped, {shed['critical_demoted']} beyond their contract")


def critical_arrived(shed):
    return Verdict("with: every critical message arrived within a second",
                   shed["critical_lost"] == 0,
                   f"{shed['critical_lost']} lost of {shed['critical_sent']}, round trip p99 "
                   f"{shed['critical_rtt_p99_ms']:.0f} ms")


def tick_holds(limits, shed):
    ratio = shed["tick_p99_ratio"]
    return Verdict(f"with: tick p99 at most {limits.tick_with:g} budgets from 1 s after the step",
                   ratio <= limits.tick_with, f"{ratio:.2f}")


def kept_in_flood(limits, shed):
    kept = shed["best_effort_kept_in_contract"]
    return Verdict(f"with: best-effort kept in contract at least {limits.kept_flood:g} under the "
                   "flood", kept is not None and kept >= limits.kept_flood, f"{kept}")


def flooders_bound(limits, shed):
    share = shed["flooder_share_ratio"]
    return Verdict(f"with: a flooder gets at most {limits.flooder_share:g} times a fair share",
                   share is not None and share <= limits.flooder_share, f"{share}")


def all_back(limits, shed):
    time_ms = shed["time_to_recover_ms"]
    return Verdict(f"with: all is back within {limits.recover_ms / 1000:g} s",
                   time_ms is not None and time_ms <= limits.recover_ms,
                   "not before the end" if time_ms is None else f"{time_ms / 1000:.1f} s")


def ledger(shed):
    rows = shed["ledger"]
    figures = "; ".join(f"{way}: sent {row['sent']}, seen {row.get('seen')}, let through "
                        f"{row['let_through']}, received {row['received']}, socket full "
                        f"{row['socket_full']}" for way, row in rows.items())
    return Verdict("with: the ledger is exact", shed["ledger_exact"], figures)


def nobody_lost(shed):
    return Verdict("with: nobody was disconnected", shed["disconnects"] == 0,
                   f"{shed['disconnects']} disconnects of {shed['players']} players")
