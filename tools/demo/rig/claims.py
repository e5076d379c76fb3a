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
    kept_flood: float = 0.95
    flooder_share: float = 1.2
    jain: float = 0.99
    shed_intervals: int = 2  # of the daemon: one until it is there to be seen, one to see it
    reversals: int = 1
    standard_back_ms: float = 2000
    recover_ms: float = 8000


# From a step beyond FAR_LOAD.
FAR_LOAD = 3
FAR = {"standard_back_ms": 3500, "recover_ms": 9000}
SHORT = Limits(tick_without=1.3, tick_with=2.0, kept_flood=0.5, flooder_share=2.0, jain=0.95,
               shed_intervals=12, reversals=3, standard_back_ms=5000, recover_ms=9000)


def judge(opts, without, shed):
    limits = SHORT if opts.short else Limits()
    if opts.load > FAR_LOAD:
        limits = dataclasses.replace(limits, **FAR)
    return [overloaded(limits, without), critical_safe(shed), critical_arrived(shed),
            tick_holds(limits, shed), kept_in_flood(limits, shed), flooders_bound(limits, shed),
            equal_shares(limits, shed), shed_at_once(opts, limits, shed), steady(limits, shed),
            standard_back(limits, shed), all_back(limits, shed), ledger(shed), nobody_lost(shed)]


def overloaded(limits, without):
    lost, ratio = without["critical_lost"], without["tick_p99_ratio"]
    return Verdict("without: the game is overloaded", ratio > limits.tick_without or lost > 0,
                   f"tick p99 {ratio:.2f} budgets (over {limits.tick_without:g}), or critical "
                   f"lost: {lost} of {without['critical_sent']}")


def critical_safe(shed):
    dropped, seen = shed["critical_dropped_by_shedder"], shed["critical_sent"]
    return Verdict("with: in-contract critical dropped by the shedder 0",
                   dropped == 0 and seen > 0,
                   f"{dropped} dropped, {shed['critical_demoted']} beyond their contract, "
                   f"{shed['handshakes_refused']} handshakes put off")


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


def equal_shares(limits, shed):
    index = shed["jain_in_contract"]
    return Verdict(f"with: Jain index of players in contract at least {limits.jain:g} in the step",
                   index is not None and index >= limits.jain, f"{index}")


def shed_at_once(opts, limits, shed):
    time_ms, limit_ms = shed["time_to_shed_ms"], limits.shed_intervals * 1000 / opts.rate
    return Verdict(f"with: shed within {limit_ms:.0f} ms of the step's first message",
                   time_ms is not None and time_ms <= limit_ms, f"{time_ms} ms")


def steady(limits, shed):
    return Verdict(f"with: at most {limits.reversals} reversals",
                   shed["reversals"] <= limits.reversals, f"{shed['reversals']}")


def standard_back(limits, shed):
    return back("standard", limits.standard_back_ms, shed["standard_back_ms"])


def all_back(limits, shed):
    return back("all", limits.recover_ms, shed["time_to_recover_ms"])


def back(what, limit_ms, time_ms):
    return Verdict(f"with: {what} is back within {limit_ms / 1000:g} s",
                   time_ms is not None and time_ms <= limit_ms,
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
