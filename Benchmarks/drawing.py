"""Which figures are drawn, and how: one plot for a scenario, in docs/performance."""

import plots
from bootstrap import ROOT
from figures import number, summary

DIRECTORY = ROOT / "docs/performance"
OURS, OTHERS, FLOOR = 0, 1, 2


def draw(scenarios):
    """Draws what was measured, and returns the names of the files."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, figures in scenarios.items():
        if name not in DRAWINGS:
            continue
        (DIRECTORY / f"{name}.svg").write_text(DRAWINGS[name](figures))
        drawn.append(f"docs/performance/{name}.svg")
    return drawn


def _colour(name):
    return FLOOR if name == "floor" else OURS if name.startswith("overtime") else OTHERS


def _throughput(figures):
    rows = [(row["title"], row["rate"], _colour(name), _of_floor(row)) for name, row in figures.items() if row["rate"]]
    subtitle = "Extends: durable, event and reply confirmed. Whiskers: least to greatest"
    return plots.bars("Commands a second", subtitle, "commands/s", rows)


def _of_floor(row):
    ratio = row.get("ofFloor")
    rate = number(row["rate"]["median"])
    return f"{rate} ({ratio['median']:.2g} of the floor)" if ratio and ratio["median"] != 1 else rate


def _latency(figures):
    series = []
    for dash, (name, title) in enumerate((("p50", "half"), ("p99", "99 %"))):
        for contender, row in figures["contenders"].items():
            points = [(part["rate"], part[name]["median"]) for part in row["parts"].values()]
            who = "floor" if contender == "floor" else "Overtime"
            series.append((f"{who}, {title}", points, _colour(contender), dash))
    return plots.lines(
        "Latency at fixed rates",
        "From a command's due instant to its reply; half and 99 % of them are quicker",
        "commands/s",
        "ms",
        series,
        logarithmic=True,
    )


def _top(figures):
    seconds = figures["seconds"]
    rows = [
        ("Floor (C, only publishes)", seconds["emit"], FLOOR, f"{number(seconds['emit']['median'])} s"),
        ("Overtime", seconds["overtime"], OURS, f"{number(seconds['overtime']['median'])} s"),
    ]
    title = f"{figures['windows']:,} windows at one instant"
    return plots.bars(title, "Until a subscriber has heard the last", "seconds after the instant", rows)


def _exact(figures):
    rows = []
    for percentile, title in (("p50", "half"), ("p90", "90 %"), ("p99", "99 %"), ("p999", "99.9 %")):
        for name, label, colour in (("timer", "bare timer", FLOOR), ("overtime", "Overtime", OURS)):
            figure = figures["heardMs"][name][percentile]
            rows.append((f"{label}: {title} within", figure, colour, f"{number(figure['median'])} ms"))
    return plots.bars(
        f"{figures['rate']:,} windows a second among {figures['rooms']:,} live rooms",
        "How long after its instant a subscriber hears of a window",
        "milliseconds",
        rows,
    )


def _memory(figures):
    rows = []
    for name, colour in (("worker", OURS), ("scheduler", OTHERS)):
        for rooms, row in figures.items():
            peak = summary([value / 1024 for value in row["peak"][name]["values"]])
            rows.append((f"{name}, {int(rooms):,} rooms", peak, colour, f"{number(peak['median'])} MiB"))
    return plots.bars("Memory", "The most that was resident, start and 10,000 commands included", "MiB", rows)


def _soak(figures):
    series = [
        (name, [(one["seconds"] / 60, one[name] / 1024) for one in figures["samples"]], number, number)
        for number, name in enumerate(("worker", "scheduler"))
    ]
    return plots.lines(
        f"Memory over {figures['commands']:,} commands",
        f"{figures['rate']:,} commands and as many windows a second",
        "minutes",
        "resident MiB",
        series,
        dots=False,
    )


DRAWINGS = {
    "throughput": _throughput,
    "latency": _latency,
    "top": _top,
    "exact": _exact,
    "memory": _memory,
    "soak": _soak,
}
