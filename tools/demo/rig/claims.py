"""What the demo claims, each with the numbers behind it. Pure: reads evidence, returns verdicts."""

import dataclasses

KEPT_WHOLE = 0.98     # nothing noticeable is shed
KEPT_SHED_MAX = 0.90  # something clearly is
# tick ratio -> rung, the shard ladder from the top.
SHARD_LADDER = ((2.0, 5), (1.5, 4), (1.25, 3), (1.0, 2), (0.8, 1))


@dataclasses.dataclass
class Verdict:
    claim: str
    holds: bool
    figures: str


def judge(opts, found):
    verdicts = [reliable_delivered(found), nobody_lost(found)]
    if opts.plain:
        return verdicts + [plain_ledger(found)]
    return verdicts + [critical_kept(found), rung_rose(opts, found), best_effort_fell(found),
                       all_came_back(found), *ledger_claims(found)]


def reliable_delivered(found):
    rows = found["reliable"]
    holds = all(row["sent"] == row["acked"] == row["received"] and row["sent"] > 0
                and row["players_incomplete"] == 0 and row["out_of_order"] == 0
                for row in rows.values())
    figures = ", ".join(f"{name.replace('_', ' ')} {row['received']} of {row['sent']} "
                        f"({row['acked']} acknowledged)" for name, row in rows.items())
    return Verdict("every reliable message was delivered", holds, figures)


def nobody_lost(found):
    row = found["disconnects"]
    holds = (row["unexpected"] == 0
             and row["left_in_order"] == row["players"] == row["joins"])
    return Verdict("no player was disconnected", holds,
                   f"{row['unexpected']} disconnects, {row['left_in_order']} of "
                   f"{row['players']} left in order, {row['joins']} joins")


def plain_ledger(found):
    counts = found["datagrams"]
    holds = (counts["clients_sent"] == counts["server_received"]
             and counts["server_sent"] == counts["clients_received"])
    return Verdict("every datagram sent was received", holds,
                   f"clients sent {counts['clients_sent']}, server received "
                   f"{counts['server_received']}; server sent {counts['server_sent']}, clients "
                   f"received {counts['clients_received']}{socket_losses(found)}")


def critical_kept(found):
    lost = found["critical_dropped_in_contract"]
    tiers = found["edgeshed"]["tiers"]
    seen = [tiers[direction]["critical"]["seen"] for direction in ("in", "out")]
    demoted = sum(tiers[direction]["demoted"]["seen"] for direction in ("in", "out"))
    # Something must have been seen as critical, or the zero says nothing.
    return Verdict("in-contract critical dropped 0", lost == 0 and min(seen) > 0,
                   f"{lost} dropped of {seen[0]} in and {seen[1]} out, {demoted} beyond contract")


def rung_rose(opts, found):
    # A little below what was reported: the ratio may be rounded on its way.
    expected = next((rung for ratio, rung in SHARD_LADDER if opts.pressure_ratio * .99 >= ratio), 0)
    holds = found["rung_calm_max"] == 0 and found["rung_max"] >= max(expected, 1)
    return Verdict(f"a tick of {opts.pressure_ratio:g}x raises the rung", holds,
                   f"from {found['rung_calm_max']} to {found['rung_max']}, at least {expected} "
                   f"expected; why: {found['why_at_rung_max']}")


def best_effort_fell(found):
    kept = found["best_effort_kept"]
    calm, pressed = kept["calm"]["both"], kept["pressure"]["both"]
    holds = (calm is not None and pressed is not None and calm >= KEPT_WHOLE
             and pressed <= KEPT_SHED_MAX and found["time_to_shed_ms"] is not None)
    return Verdict("best-effort kept falls with the rung", holds,
                   f"{share(calm)} calm, {share(pressed)} under pressure (in "
                   f"{share(kept['pressure']['in'])}, out {share(kept['pressure']['out'])}), "
                   f"first drop within {found['time_to_shed_ms']} ms")


def all_came_back(found):
    kept = found["best_effort_kept"]["last_second"]
    returned = all(kept[way] is not None and kept[way] >= KEPT_WHOLE for way in ("in", "out"))
    holds = (returned and found["rung_at_end"] == 0 and found["time_to_recover_ms"] is not None)
    return Verdict("calm brings everything back", holds,
                   f"rung {found['rung_at_end']}, best-effort kept in the last second in "
                   f"{share(kept['in'])}, out {share(kept['out'])}, after "
                   f"{found['time_to_recover_ms']} ms")


def ledger_claims(found):
    return [ledger_claim(found, direction, hook)
            for direction, hook in (("in", "XDP"), ("out", "TC"))]


def ledger_claim(found, direction, hook):
    row = found["ledger"][direction]
    return Verdict(f"ledger exact at {hook}", row["exact"],
                   f"sent {row['sent']}, seen {row['seen']}, cells {row['cells']}, tiers "
                   f"{row['tiers_seen']} = passed+marked+dropped+rejected {row['tiers_outcomes']}; "
                   f"let through {row['let_through']}, received {row['received']}"
                   f"{socket_losses(found)}")


def socket_losses(found):
    """Datagrams that the kernel lost at a full socket: the usual honest reason of a difference."""
    lost = {side: udp.get("RcvbufErrors", 0) for side, udp in found["kernel_udp"].items()}
    if not any(lost.values()):
        return ""
    return f"; full receive sockets lost {lost['server']} (server), {lost['clients']} (clients)"


def share(ratio):
    return "-" if ratio is None else f"{ratio:.1%}"
