"""The plot: `plot.py FILE < figures.json`. Offered and kept per tier, rung and tick ratio over time,
without EdgeShed above and with it below."""

import json
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402  after the choice of what draws

TIERS = ("critical", "standard", "best-effort")
COLOURS = ("#c0392b", "#e67e22", "#2471a3")
PHASES = (("calm", "calm"), ("flood_begins", "flood"), ("step_begins", "step"), ("back", "back"))
TICK_SHOWN_MAX = 5


def main():
    found = json.load(sys.stdin)
    figure, rows = pyplot.subplots(3, 2, figsize=(11, 8), sharex=True, sharey="row")
    for column, name in enumerate(("without", "with")):
        series = found[name]["series"]
        messages(rows[0][column], series, name, found["load"])
        shares(rows[1][column], series)
        ticks(rows[2][column], series)
        for axes in rows[:, column]:
            phases(axes, series)
    figure.tight_layout()
    figure.savefig(sys.argv[1], metadata={"Date": None} if sys.argv[1].endswith("svg") else None)


def messages(axes, series, name, load):
    times = [row["t_s"] for row in series["rows"]]
    for tier, colour in enumerate(COLOURS):
        # A logarithmic axis: critical is 2 % of it. 1 stands for none.
        axes.plot(times, [max(row["offered_per_s"][tier], 1) for row in series["rows"]],
                  color=colour, linestyle=":", linewidth=1)
        axes.plot(times, [max(row["kept_per_s"][tier], 1) for row in series["rows"]],
                  color=colour, linewidth=1.4, label=TIERS[tier])
    axes.set_yscale("log")
    axes.set_title(f"{name} EdgeShed, load x{load:g}")
    axes.set_ylabel("messages/s\noffered (dotted), handled")
    axes.legend(loc="lower right", fontsize=8)


def shares(axes, series):
    times = [row["t_s"] for row in series["rows"]]
    for tier, colour in enumerate(COLOURS):
        kept = [min(row["kept_per_s"][tier] / row["offered_per_s"][tier], 1)
                if row["offered_per_s"][tier] > 0 else None for row in series["rows"]]
        axes.plot(times, smooth(kept), color=colour, linewidth=1.4, label=TIERS[tier])
    axes.set_ylim(0, 1.05)
    axes.set_ylabel("share handled,\nflooders' included")


def smooth(values):
    """Mean over 5 cells, a second: a tick falls on one side of a cell's border or the other."""
    means = []
    for index in range(len(values)):
        near = [value for value in values[max(index - 2, 0):index + 3] if value is not None]
        means.append(sum(near) / len(near) if near else None)
    return means


def ticks(axes, series):
    times = [row["t_s"] for row in series["rows"]]
    ratios = [row["tick_ratio"] for row in series["rows"]]
    axes.plot(times, ratios, color="#222222", linewidth=1.2, label="longest tick / budget")
    axes.axhline(1, color="#888888", linewidth=0.8, linestyle="--")
    if series["decided"]:
        axes.step([row["t_s"] for row in series["decided"]],
                  [row["rung"] for row in series["decided"]], where="post", color="#8e44ad",
                  linewidth=1.2, label="rung")
    axes.set_ylim(0, TICK_SHOWN_MAX + 0.5)
    axes.set_ylabel("tick ratio, rung")
    axes.set_xlabel("seconds")
    axes.legend(loc="upper left", fontsize=8)


def phases(axes, series):
    for name, shown in PHASES:
        at_s = series["phases"][name]
        axes.axvline(at_s, color="#cccccc", linewidth=0.8)
        axes.annotate(shown, (at_s, 1), xycoords=("data", "axes fraction"), fontsize=7,
                      xytext=(2, -8), textcoords="offset points", color="#777777")
    axes.set_xlim(0, series["phases"]["end"])


if __name__ == "__main__":
    main()
