"""Puts together what game, kernel and EdgeShed counted. Only arithmetic; judging is claims.py."""

import time

from . import network, options, phases

# The daemon's status may be a few of its ticks old; after this it has seen the last datagram.
SETTLE_S = 0.3


def collect(opts, game, edgeshed, samples):
    """The result as it is written by --json, without the verdicts."""
    server, clients = game.server.result(), game.clients.result()
    found = {
        "mode": "plain" if opts.plain else "shed",
        "clients": opts.clients,
        "reliable": reliable_delivery(server, clients),
        "disconnects": disconnects(opts, server, clients),
        "datagrams": datagrams(server, clients),
        "kernel_udp": {"server": network.udp_counters(options.SERVER_NAMESPACE),
                       "clients": network.udp_counters(options.CLIENTS_NAMESPACE)},
        "snapshots": snapshots(server, clients),
    }
    rows = found["reliable"].values()
    found["reliable_sent"] = sum(row["sent"] for row in rows)
    found["reliable_delivered"] = sum(row["received"] for row in rows)
    if edgeshed:
        time.sleep(SETTLE_S)
        tiers, cells = edgeshed.status()["tiers"], edgeshed.ledger()
        found["edgeshed"] = {"tiers": tiers, "cells": cells}
        found["critical_dropped_in_contract"] = sum(
            rows["critical"]["dropped"] + rows["critical"]["rejected"] for rows in tiers.values())
        found["ledger"] = ledger(found["datagrams"], tiers, cells)
        found["ledger_exact"] = all(row["exact"] for row in found["ledger"].values())
        found["plan_expired_samples"] = sum(sample.shard["expired"] for sample in samples)
        found["phases"] = by_phase(samples)
        found.update(shedding(samples))
    return found


def reliable_delivery(server, clients):
    """Sums over the players, and how many differ: a sum could hide one message behind another."""
    at_server = {peer["address"]: peer for peer in server["peers"]}
    total = {"to_server": series_sum(), "to_clients": series_sum()}
    for client in clients["clients"]:
        peer = at_server.get(client["address"])
        add_series(total["to_server"], client, peer)
        add_series(total["to_clients"], peer, client)
    return total


def series_sum():
    return {"sent": 0, "acked": 0, "received": 0, "out_of_order": 0, "players_incomplete": 0}


def add_series(total, sender, receiver):
    sent = sender["reliable_sent"] if sender else 0
    acked = sender["reliable_acked"] if sender else 0
    got = receiver["reliable_in"] if receiver else {"received": 0, "out_of_order": 0, "missing": 0}
    total["sent"] += sent
    total["acked"] += acked
    total["received"] += got["received"]
    total["out_of_order"] += got["out_of_order"]
    complete = sender and receiver and sent == acked == got["received"] and got["missing"] == 0
    total["players_incomplete"] += 0 if complete else 1


def disconnects(opts, server, clients):
    return {
        "unexpected": sum(peer["disconnects"] for peer in server["peers"])
                      + sum(client["disconnects"] for client in clients["clients"]),
        "left_in_order": sum(client["left_in_order"] for client in clients["clients"]),
        "players": opts.clients,
        "joins": len(server["peers"]),
    }


def datagrams(server, clients):
    hosts = [client["host"] for client in clients["clients"]]
    return {
        "clients_sent": sum(host["datagrams_sent"] for host in hosts),
        "server_received": server["host"]["datagrams_received"],
        "server_sent": server["host"]["datagrams_sent"],
        "clients_received": sum(host["datagrams_received"] for host in hosts),
    }


def ledger(counts, tiers, cells):
    """Per direction, the same datagrams as counted by the sender, by EdgeShed's total, by its
    cells, by its tiers, and, of those let through, by the receiver."""
    sides = {"in": ("clients_sent", "server_received"), "out": ("server_sent", "clients_received")}
    table = {}
    for direction, (sent_name, received_name) in sides.items():
        rows = tiers[direction].values()
        row = {
            "sent": counts[sent_name],
            "received": counts[received_name],
            **cells[direction],
            "tiers_seen": sum(each["seen"] for each in rows),
            "tiers_outcomes": sum(each["passed"] + each["marked"] + each["dropped"]
                                  + each["rejected"] for each in rows),
            "let_through": sum(each["passed"] + each["marked"] for each in rows),
        }
        row["exact"] = (row["sent"] == row["seen"] == row["cells"] == row["tiers_seen"]
                        == row["tiers_outcomes"] and row["received"] == row["let_through"])
        table[direction] = row
    return table


def snapshots(server, clients):
    series = [client["snapshots_in"] for client in clients["clients"]]
    return {
        "sent": sum(peer["unreliable_sent"] for peer in server["peers"]),
        "received": sum(each["received"] for each in series),
        "gap_ms_max": max(each["gap_ms_max"] for each in series),
        "gap_ms_mean": round(sum(each["gap_ms_mean"] for each in series) / len(series), 1),
        "server_ticks_late": server["ticks_late"],
    }


def phase_samples(samples, phase):
    return [sample for sample in samples if sample.phase == phase]


def by_phase(samples):
    """{phase: {direction: {tier: {seen, passed, marked, dropped, rejected}}}}"""
    table = {}
    for phase in (phases.CALM, phases.PRESSURE, phases.RECOVERY):
        own = phase_samples(samples, phase)
        table[phase] = {direction: {tier: phases.difference(own[0], own[-1], direction, tier)
                                    for tier in own[0].tiers[direction]}
                        for direction in own[0].tiers}
    return table


def shedding(samples):
    pressure = phase_samples(samples, phases.PRESSURE)
    recovery = phase_samples(samples, phases.RECOVERY)
    last_second = next(sample for sample in recovery if sample.at_s >= recovery[-1].at_s - 1)
    pressed = next(sample for sample in pressure if sample.at_s >= pressure[0].at_s + 1)
    return {
        "rung_max": max(int(sample.shard["rung"]) for sample in samples),
        "rung_calm_max": max(int(sample.shard["rung"])
                             for sample in phase_samples(samples, phases.CALM)),
        "rung_at_end": int(samples[-1].shard["rung"]),
        "why_at_rung_max": max(samples, key=lambda each: int(each.shard["rung"])).shard.get("why"),
        "best_effort_kept": {
            "calm": kept_between(*ends(phase_samples(samples, phases.CALM))),
            # Without its first second, in which counts from before the first report still mix in.
            "pressure": kept_between(pressed, pressure[-1]),
            "recovery": kept_between(recovery[0], recovery[-1]),
            "last_second": kept_between(last_second, recovery[-1]),
        },
        "time_to_shed_ms": time_to_shed_ms(pressure),
        "time_to_recover_ms": time_to_recover_ms(recovery),
    }


def ends(samples):
    return samples[0], samples[-1]


def kept_between(before, after):
    rows = {direction: phases.difference(before, after, direction, "best_effort")
            for direction in ("in", "out")}
    both = {name: rows["in"][name] + rows["out"][name] for name in rows["in"]}
    ratios = {direction: phases.kept_ratio(row) for direction, row in rows.items()}
    return {**ratios, "both": phases.kept_ratio(both)}


def time_to_shed_ms(pressure):
    """From the first report of pressure to the first sample with a drop: an upper bound, as
    samples are some 30 ms apart. None when nothing was dropped."""
    first = pressure[0]
    for sample in pressure:
        for direction in ("in", "out"):
            if phases.difference(first, sample, direction, "best_effort")["dropped"] > 0:
                return round((sample.at_s - first.at_s) * 1000)
    return None


def time_to_recover_ms(recovery):
    """From the first calm report to the moment after which every window is recovered. None when
    the last window is not."""
    recovered_at_s = None
    for index in range(len(recovery) - 1, 0, -1):
        if not phases.is_recovered(phases.window_start(recovery, index), recovery[index]):
            break
        recovered_at_s = recovery[index].at_s
    return None if recovered_at_s is None else round((recovered_at_s - recovery[0].at_s) * 1000)
