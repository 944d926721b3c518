"""A start with a million live rooms: how long until the worker serves, and until the scheduler knows every room."""

import time

import timed
from figures import spread, summary, table

TITLE = "Start"


def run(bench):
    rooms = 100_000 if bench.quick else 1_000_000
    samples = []
    for number_of_round in range(bench.rounds):
        bench.lab.purge()
        bench.lab.settle()
        with timed.running(bench, rooms, lambda path: None) as running:
            used = running.usage()
            sample = running.figures | {f"{name}Cpu": used[name].cpu for name in used}
            samples.append(sample | _again(running))
        bench.say(
            f"round {number_of_round + 1}: the worker serves after {sample['workerReady']:.2f} s,"
            f" the scheduler knows all after {sample['snapshot']:.2f} s more"
        )
    return {"rooms": rooms} | {key: summary([sample[key] for sample in samples]) for key in samples[0]}


def _again(running):
    """How long the end of both takes."""
    ends = {}
    for name in ("scheduler", "worker"):
        began = time.monotonic()
        process = getattr(running, name)
        assert process.terminate(60)[0] == 0, process.tail()
        ends[f"{name}Stop"] = time.monotonic() - began
    return ends


def show(figures):
    rows = [
        ["worker: from its start until it serves", spread(figures["workerReady"]), spread(figures["workerCpu"])],
        ["scheduler: from its start until it knows all", spread(figures["snapshot"]), spread(figures["schedulerCpu"])],
        ["worker: from SIGTERM to its end", spread(figures["workerStop"]), "–"],
        ["scheduler: from SIGTERM to its end", spread(figures["schedulerStop"]), "–"],
    ]
    head = (
        f"{figures['rooms']:,} live rooms, files in the page cache. The worker's CPU includes answering the scheduler."
    )
    return f"{head}\n\n" + table(["", "s", "CPU, s"], rows)
