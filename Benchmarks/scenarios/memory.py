"""Memory of worker and scheduler, with few rooms and with many: after the start, and after a burst of commands."""

import timed
from figures import number, spread, summary, table
from lab import REPLIES
from prepared import PREFIX, open_windows, touched
from prepared import spread as stride_of

TITLE = "Memory"
PROCESSES = ("worker", "scheduler")


def run(bench):
    sizes = (10_000, 100_000) if bench.quick else (10_000, 1_000_000)
    samples = {rooms: [] for rooms in sizes}
    for number_of_round in range(bench.rounds):
        for rooms in sizes:
            samples[rooms].append(_measure(bench, rooms, 10_000))
            peaks = samples[rooms][-1]["peak"]
            bench.say(
                f"round {number_of_round + 1}: {rooms:,} rooms: "
                + ", ".join(f"{name} {peaks[name] / 1024:.1f} MiB at most" for name in PROCESSES)
            )
    return {
        str(rooms): {
            kind: {name: summary([sample[kind][name] for sample in mine]) for name in PROCESSES}
            for kind in ("idle", "resident", "peak")
        }
        for rooms, mine in samples.items()
    }


def _measure(bench, rooms, count):
    lab = bench.lab
    lab.purge()
    lab.settle()
    stride = stride_of(rooms)
    with timed.running(bench, rooms, lambda path: open_windows(path, touched(count, rooms, stride=stride))) as running:
        idle = running.usage()
        replies = lab.tool.start("replies", queue=REPLIES, count=count, timeout=120)
        try:
            lab.tool.run(
                "fill",
                count=count,
                first=0,
                stride=stride,
                rooms=rooms,
                room_prefix=PREFIX,
                command="extend",
                reply_to=REPLIES,
            )
            replies.result(150)
        finally:
            replies.end()
        used = running.usage()
        return {
            "idle": {name: idle[name].resident for name in PROCESSES},
            "resident": {name: used[name].resident for name in PROCESSES},
            "peak": {name: used[name].peak for name in PROCESSES},
        }


def show(figures):
    kinds = {"idle": "after the start", "resident": "after 10,000 commands", "peak": "at most"}
    rows = []
    for name in PROCESSES:
        for rooms, row in figures.items():
            cells = [spread(_mebibytes(row[kind][name])) for kind in kinds]
            rows.append([f"{name}, {int(rooms):,} rooms", *cells])
    few, *_, many = (int(rooms) for rooms in figures)
    growth = [
        (figures[str(many)]["peak"][name]["median"] - figures[str(few)]["peak"][name]["median"]) * 1024 / (many - few)
        for name in PROCESSES
    ]
    each = f"Each further room: worker {number(growth[0])} bytes, scheduler {number(growth[1])}."
    return table(["resident MiB", *kinds.values()], rows) + f"\n\n{each}"


def _mebibytes(figure):
    return {key: [one / 1024 for one in value] if key == "values" else value / 1024 for key, value in figure.items()}
