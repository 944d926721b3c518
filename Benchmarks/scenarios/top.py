"""The top of the hour: a hundred thousand windows open at one instant. How long until a subscriber has heard the last?

Against `bench-tool emit`, which publishes as many events of that size as fast as the broker takes them.
"""

import timed
from figures import number, ratios, spread, summary, table
from lab import AUDIT

TITLE = "Top of the hour"


def run(bench):
    count = bench.options.commands or (10_000 if bench.quick else 100_000)
    rows = {"emit": [], "overtime": []}
    for number_of_round in range(bench.rounds):
        order = (_emit, _overtime) if number_of_round % 2 == 0 else (_overtime, _emit)
        for measure in order:
            sample = measure(bench, count)
            rows[sample["name"]].append(sample)
            bench.say(f"round {number_of_round + 1}: {sample['name']}: the last after {sample['seconds']:.3f} s")
    last = {name: [sample["seconds"] for sample in samples] for name, samples in rows.items()}
    return {
        "windows": count,
        "seconds": {name: summary(values) for name, values in last.items()},
        "ofFloor": summary(ratios(last["emit"], last["overtime"])),
        "medianHeard": summary([sample["p50"] for sample in rows["overtime"]]),
        "first": summary([sample["first"] for sample in rows["overtime"]]),
        "wrong": [sample["wrong"] for samples in rows.values() for sample in samples if sample["wrong"]],
        "cpu": {
            name: summary([sample["cpu"][name] for sample in rows["overtime"]])
            for name in ("worker", "scheduler", "broker")
        },
    }


def _overtime(bench, count):
    result = timed.windows(bench, count, count, lambda number: 0, 0)
    heard, start = result["heard"], result["start"]
    return {
        "name": "overtime",
        "seconds": heard["lastRealtimeNs"] / 1e9 - start / 1000,
        "first": heard["firstRealtimeNs"] / 1e9 - start / 1000,
        "p50": heard["receivedLateMs"]["p50"] / 1000,
        "wrong": wrong(heard, count),
        "cpu": result["cpu"],
    }


def _emit(bench, count):
    lab = bench.lab
    lab.purge()
    lab.settle()
    audit = lab.tool.start("audit", queue=AUDIT, count=count, type=timed.OPENED, timeout=120)
    try:
        emitted = lab.tool.run("emit", count=count)
        heard = audit.result(150)
    finally:
        audit.end()
    return {
        "name": "emit",
        "seconds": (heard["lastNs"] - emitted["startNs"]) / 1e9,
        "wrong": wrong(heard, count),
    }


def wrong(heard, count):
    found = {
        "events": heard["distinct"] - count,
        "doubled events": heard["duplicates"],
        "events out of order": heard["orderViolations"],
    }
    return {key: value for key, value in found.items() if value}


def show(figures):
    rows = [
        ["the last heard, s", spread(figures["seconds"]["emit"]), spread(figures["seconds"]["overtime"])],
        ["floor's time of Overtime's", "1", spread(figures["ofFloor"], 2)],
        ["half of them heard, s", "–", spread(figures["medianHeard"])],
        ["the first heard, s", "–", spread(figures["first"])],
        ["CPU of worker and scheduler, s", "–", " + ".join(number(figures["cpu"][n]["median"]) for n in _PROCESSES)],
    ]
    note = f"\n\n**Wrong:** {figures['wrong']}" if figures["wrong"] else ""
    return f"{figures['windows']:,} windows at one instant.\n\n" + table(["", "floor (emit)", "Overtime"], rows) + note


_PROCESSES = ("worker", "scheduler")
