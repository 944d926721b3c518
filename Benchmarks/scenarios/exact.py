"""Exactness: a thousand windows a second for a minute, among a million live rooms. How late does a subscriber hear each?

Against `bench-tool timer`, a bare loop that sleeps until each instant and publishes.
"""

import timed
from figures import spread, summary, table
from lab import AUDIT

from scenarios.top import wrong

TITLE = "Exactness"
PERCENTILES = ("p50", "p90", "p99", "p999", "max")


def run(bench):
    rooms = 100_000 if bench.quick else 1_000_000
    rate = 1_000
    seconds = 5 if bench.quick else 60
    rows = {"timer": [], "overtime": []}
    for number_of_round in range(bench.rounds):
        order = (_timer, _overtime) if number_of_round % 2 == 0 else (_overtime, _timer)
        for measure in order:
            sample = measure(bench, rooms, rate, seconds)
            rows[sample["name"]].append(sample)
            late = sample["receivedLateMs"]
            bench.say(
                f"round {number_of_round + 1}: {sample['name']}: heard {late['p50']:.2f} ms late in the middle,"
                f" {late['p99']:.2f} at the 99th"
            )
    return {
        "rooms": rooms,
        "rate": rate,
        "seconds": seconds,
        "heardMs": {name: _percentiles(samples, "receivedLateMs") for name, samples in rows.items()},
        # By the worker's own clock when it decided, and by the timer's when it published.
        "ownMs": {name: _percentiles(samples, "ownMs") for name, samples in rows.items()},
        "wrong": [sample["wrong"] for samples in rows.values() for sample in samples if sample["wrong"]],
    }


def _percentiles(samples, key):
    return {name: summary([sample[key].get(name) for sample in samples]) for name in PERCENTILES}


def _overtime(bench, rooms, rate, seconds):
    result = timed.windows(bench, rooms, rate * seconds, lambda number: number * 1000 // rate, seconds)
    heard = result["heard"]
    return {
        "name": "overtime",
        "receivedLateMs": heard["receivedLateMs"],
        "ownMs": heard["lateByMs"],
        "wrong": wrong(heard, rate * seconds),
    }


def _timer(bench, rooms, rate, seconds):
    lab = bench.lab
    lab.purge()
    lab.settle()
    audit = lab.tool.start("audit", queue=AUDIT, count=rate * seconds, type=timed.OPENED, timeout=seconds + 60)
    try:
        published = lab.tool.run("timer", limit=seconds + 60, rate=rate, seconds=seconds)
        heard = audit.result(seconds + 90)
    finally:
        audit.end()
    return {
        "name": "timer",
        "receivedLateMs": heard["receivedLateMs"],
        "ownMs": published["publishedLateMs"],
        "wrong": wrong(heard, rate * seconds),
    }


def show(figures):
    heads = ["late by, ms", *PERCENTILES]
    names = {
        ("heardMs", "timer"): "timer, as heard",
        ("heardMs", "overtime"): "Overtime, as heard",
        ("ownMs", "timer"): "timer, as published",
        ("ownMs", "overtime"): "Overtime, as decided",
    }
    rows = [
        [title, *(spread(figures[kind][name][percentile]) for percentile in PERCENTILES)]
        for (kind, name), title in names.items()
    ]
    note = f"\n\n**Wrong:** {figures['wrong']}" if figures["wrong"] else ""
    head = f"{figures['rate']:,} windows a second for {figures['seconds']} s among {figures['rooms']:,} live rooms."
    return f"{head}\n\n{table(heads, rows)}{note}"
