"""From the logs of a run to its figures. Pure arithmetic; judging is claims.py."""

import math

from . import options

TIERS = ("critical", "standard", "best_effort")
CRITICAL, STANDARD, BEST_EFFORT = range(3)
MESSAGE_MS = 0.23  # mean work of a message: game_work.h
CELL_S = 0.2       # of the time series: 6 ticks
KEPT_WHOLE = 0.98
REVERSAL = 0.15
BACK_FOR_NS = 1e9
HANDSHAKE_REASONS = ("handshake_cap", "join_refused")


def of_run(opts, run):
    """The figures of one run, in the names of the README."""
    peers = {peer["address"]: peer for peer in run.server["peers"]}
    players = [client for client in run.clients["clients"] if not client["flooder"]]
    flooders = [client for client in run.clients["clients"] if client["flooder"]]
    series = time_series(run)
    found = {
        "tick_p99_ratio": tick_ratio(run, "step", 0.99),
        **critical(run, players, peers),
        "best_effort_kept_in_contract": kept(players, peers, "flood", BEST_EFFORT),
        "best_effort_kept_in_step": kept(players, peers, "step", BEST_EFFORT),
        "standard_kept_in_step": kept(players, peers, "step", STANDARD),
        "flooder_share_ratio": max(flooder_share(players, flooders, peers, phase)
                                   for phase in ("flood", "step")),
        "jain_in_contract": jain(handled_each(players, peers, "step")),
        "useful_throughput_ratio": useful_throughput(run),
        "offered_ratio": {phase: offered_ratio(run, phase) for phase in ("calm", "flood", "step")},
        "tick_ratio_by_phase": {
            phase: {"p50": tick_ratio(run, phase, 0.5), "p99": tick_ratio(run, phase, 0.99)}
            for phase in ("calm", "flood", "step_begins", "step", "back")},
        "critical_rtt_ms_by_phase": run.clients["round_trips"],
        **shedding(run, series),
        **ledger(run),
        "kernel_udp": run.kernel_udp,
        "stolen_share": run.stolen_share,
        "disconnects": sum(each["disconnects"] for each in run.clients["clients"]),
        "players": len(players),
        "series": series,
    }
    return found


def phase_bounds(run, phase):
    """(first ns, first ns of the next phase)"""
    names = list(run.clients["phases"])
    began = run.clients["phases"][phase]
    following = names[names.index(phase) + 1]
    return began, run.clients["phases"][following]


def ticks_in(run, phase):
    first, last = phase_bounds(run, phase)
    return [tick for tick in run.server["ticks"] if first <= tick[0] < last]


def tick_ratio(run, phase, share):
    lengths = sorted(tick[1] for tick in ticks_in(run, phase))
    if not lengths:  # one tick was longer than the phase
        lengths = [max(tick[1] for tick in run.server["ticks"])]
    rank = max(math.ceil(share * len(lengths)), 1)
    return round(lengths[rank - 1] / options.FRAME_BUDGET_MS, 3)


def critical(run, players, peers):
    """Both directions, all phases, players in contract. Lost: never arrived, or more than a second
    after it was sent."""
    sent = lost = never = 0
    for client in players:
        peer = peers.get(client["address"], {"reliable_received": 0, "reliable_late": 0,
                                             "reliable_sent": 0})
        for sender, receiver in ((client, peer), (peer, client)):
            missing = sender["reliable_sent"] - receiver["reliable_received"]
            sent += sender["reliable_sent"]
            never += missing
            lost += missing + receiver["reliable_late"]
    tiers = run.counted.get("tiers")
    dropped = demoted = handshakes = None
    if tiers:
        # The critical lane `join` is strangers': they have no contract yet, and ask again.
        handshakes = sum(sum(row["dropped_by_lane"].get("join", {}).get(reason, 0)
                             for reason in HANDSHAKE_REASONS)
                         for row in run.counted["cells"].values())
        dropped = sum(rows["critical"]["dropped"] + rows["critical"]["rejected"]
                      for rows in tiers.values()) - handshakes
        demoted = sum(rows["demoted"]["seen"] for rows in tiers.values())
    return {"critical_sent": sent, "critical_lost": lost, "critical_never_arrived": never,
            "critical_dropped_by_shedder": dropped, "critical_demoted": demoted,
            "handshakes_refused": handshakes,
            "critical_rtt_p99_ms": run.clients["round_trips"]["step"]["p99"]}


def counts(record, key, phase):
    return record[key][phase] if record else [0, 0, 0]


def kept(clients, peers, phase, tier):
    """Of what the clients sent in a phase, the share that the game handled."""
    sent = sum(counts(client, "sent", phase)[tier] for client in clients)
    handled = sum(counts(peers.get(client["address"]), "handled", phase)[tier]
                  for client in clients)
    return round(handled / sent, 4) if sent else None


def handled_each(clients, peers, phase):
    return [sum(counts(peers.get(client["address"]), "handled", phase)) for client in clients
            if sum(counts(client, "sent", phase)) > 0]


def flooder_share(players, flooders, peers, phase):
    """What a flooder got handled, in what a player in contract got. 1 is fair."""
    fair = handled_each(players, peers, phase)
    got = handled_each(flooders, peers, phase)
    if not fair or not got or sum(fair) == 0:
        return None
    return round(sum(got) / len(got) / (sum(fair) / len(fair)), 3)


def jain(shares):
    squares = sum(share * share for share in shares)
    return round(sum(shares) ** 2 / (len(shares) * squares), 4) if squares else None


def seconds_of(run, phase):
    first, last = phase_bounds(run, phase)
    return (last - first) / 1e9


def useful_throughput(run):
    """Work on messages that were handled within two budgets after they were sent, in what the loop
    could have worked. What is older a game throws away."""
    in_time = sum(tick[5] for tick in ticks_in(run, "step"))
    return round(in_time * MESSAGE_MS / 1000 / seconds_of(run, "step"), 3)


def offered_ratio(run, phase):
    """Work of what players in contract sent, in what the loop can work."""
    sent = sum(sum(client["sent"][phase]) for client in run.clients["clients"]
               if not client["flooder"])
    return round(sent * MESSAGE_MS / 1000 / seconds_of(run, phase), 3)


def time_series(run):
    """Rows of CELL_S: offered and handled per tier and second, tick ratio; with EdgeShed the
    decisions as they were sampled, in a list of their own. Times are seconds since calm began."""
    began, end = run.clients["phases"]["calm"], run.clients["phases"]["end"]
    rows = []
    for index in range(int((end - began) / 1e9 / CELL_S)):
        first, last = (began + int(number * CELL_S * 1e9) for number in (index, index + 1))
        ticks = [tick for tick in run.server["ticks"] if first <= tick[0] < last]
        rows.append({"t_s": round((index + 0.5) * CELL_S, 2),
                     "offered_per_s": offered_between(run, first, last),
                     "kept_per_s": [sum(tick[2 + tier] for tick in ticks) / CELL_S
                                    for tier in range(3)],
                     "tick_ratio": max((round(tick[1] / options.FRAME_BUDGET_MS, 3)
                                        for tick in ticks), default=None)})
    decided = [{"t_s": round((sample["t_ns"] - began) / 1e9, 3),
                **{name: sample.get(name) for name in (
                    "rung", "tick_ratio", "offered_cost_ratio", "keep_standard",
                    "keep_best_effort", "report", "pressure")}} for sample in run.samples]
    phases = {name: round((at - began) / 1e9, 3) for name, at in run.clients["phases"].items()}
    return {"phases": phases, "rows": rows, "decided": decided}


def offered_between(run, first, last):
    """Messages a second of players and flooders, per tier, from the clients' own log."""
    def at(t_ns):
        before = run.clients["rows"][0]
        for row in run.clients["rows"]:
            if row[0] > t_ns:
                span = row[0] - before[0]
                part = (t_ns - before[0]) / span if span > 0 and t_ns > before[0] else 0
                return [before[1][tier] + before[2][tier]
                        + part * (row[1][tier] + row[2][tier] - before[1][tier] - before[2][tier])
                        for tier in range(3)]
            before = row
        return [before[1][tier] + before[2][tier] for tier in range(3)]
    return [round((now - then) / CELL_S, 1) for now, then in zip(at(last), at(first))]


def shedding(run, series):
    if not run.samples:
        return dict.fromkeys(("rung_max", "reversals", "time_to_shed_ms", "standard_back_ms",
                              "time_to_recover_ms"))
    return {"rung_max": max(sample["rung"] for sample in run.samples),
            "reversals": reversals(series),
            "time_to_shed_ms": time_to_shed_ms(run),
            "standard_back_ms": back_ms(run, ("keep_standard",)),
            "time_to_recover_ms": back_ms(run, ("keep_standard", "keep_best_effort"))}


def reversals(series):
    """Changes of direction of the share of best-effort that is kept, by more than REVERSAL, from
    the step on, beyond the one that ends an episode."""
    decided = [row["keep_best_effort"] for row in series["decided"]
               if row["t_s"] >= series["phases"]["step_begins"]]
    turns, direction, extreme = 0, 0, decided[0] if decided else 1
    for keep in decided:
        if direction >= 0 and keep > extreme or direction <= 0 and keep < extreme:
            if direction == 0 and abs(keep - extreme) > REVERSAL:
                direction = 1 if keep > extreme else -1
            extreme = keep if direction != 0 else extreme
        elif direction != 0 and abs(keep - extreme) > REVERSAL:
            turns, direction, extreme = turns + 1, -direction, keep
    return max(turns - 1, 0)


def time_to_shed_ms(run):
    """From the first message of the step to the decision for a higher rung, by the daemon's own
    clock, or to the first answer that shows a lower keep."""
    began = run.clients["phases"]["step_begins"]
    before = [sample for sample in run.samples if sample["t_ns"] < began]
    for sample in run.samples:
        if sample["t_ns"] < began or not before:
            continue
        asked_ms = (sample["t_ns"] - began) / 1e6
        if sample["rung"] > before[-1]["rung"] and sample["since_ms"] <= asked_ms:
            return round(asked_ms - sample["since_ms"], 1)
        if sample["keep_best_effort"] < before[-1]["keep_best_effort"] - 0.05:
            return round(asked_ms, 1)
    return None


def back_ms(run, keeps):
    """From the end of the step to the beginning of the first second in which all of these is kept;
    None when that did not come. The rung may still be 1 or 2: while all of what is offered fits,
    those shed nothing."""
    began, end = phase_bounds(run, "back")
    back = None
    for sample in run.samples:
        if not began <= sample["t_ns"] < end:
            continue
        if any(sample[keep] < KEPT_WHOLE for keep in keeps):
            back = None
        elif back is None:
            back = sample["t_ns"]
        elif sample["t_ns"] - back >= BACK_FOR_NS:
            return round((back - began) / 1e6)
    return None


def ledger(run):
    """Per direction, the same datagrams as counted by who sent them, by EdgeShed's total, its cells
    and its tiers, and, of those let through, by who received them or the full socket."""
    hosts = [client["host"] for client in run.clients["clients"]]
    sent = {"in": sum(host["datagrams_sent"] for host in hosts),
            "out": run.server["host"]["datagrams_sent"]}
    received = {"in": run.server["host"]["datagrams_received"],
                "out": sum(host["datagrams_received"] for host in hosts)}
    # The kernel's own witness: a full socket, or one that was closed already.
    full, closed = ({"in": run.kernel_udp["server"].get(name, 0),
                     "out": run.kernel_udp["clients"].get(name, 0)}
                    for name in ("RcvbufErrors", "NoPorts"))
    table = {}
    for direction in ("in", "out"):
        row = {"sent": sent[direction], "received": received[direction],
               "socket_full": full[direction], "socket_closed": closed[direction]}
        through = row["sent"]
        row["exact"] = True
        if run.counted:
            tiers = run.counted["tiers"][direction].values()
            row.update(run.counted["cells"][direction])
            row["tiers_seen"] = sum(each["seen"] for each in tiers)
            row["tiers_outcomes"] = sum(each["passed"] + each["marked"] + each["dropped"]
                                        + each["rejected"] for each in tiers)
            through = sum(each["passed"] + each["marked"] for each in tiers)
            row["exact"] = (row["sent"] == row["seen"] == row["cells"] == row["tiers_seen"]
                            == row["tiers_outcomes"])
        row["let_through"] = through
        row["exact"] = row["exact"] and through == (row["received"] + row["socket_full"]
                                                  + row["socket_closed"])
        table[direction] = row
    return {"ledger_exact": all(row["exact"] for row in table.values()), "ledger": table}
