"""On PostgreSQL, up to ten million live rooms: what a room takes, what a command takes, and how long a start takes.

It takes half an hour and 25 GB of disk, so it is run when it is named.
"""

import time

from figures import number, table
from on_postgres import OnPostgres
from postgres import Postgres
from processes import usage

from scenarios import throughput

TITLE = "Scale"
ROOMS = [100_000, 1_000_000, 10_000_000]
START_SECONDS = 1_800


def run(bench):
    count = throughput.commands(bench)
    figures = {}
    for rooms in ROOMS[:2] if bench.quick else ROOMS:
        server = Postgres(bench.lab)
        try:
            figures[str(rooms)] = measure(bench, server, rooms, count)
        finally:
            server.close()
    return figures


def measure(bench, server, rooms, count):
    worker = OnPostgres(bench.lab, bench.stores, server, rooms)
    sample = throughput.measure(bench, worker, count)
    bench.say(f"{rooms:,} rooms: {number(sample['rate'])}/s{', WRONG' if sample['wrong'] else ''}")
    found = {
        "rooms": rooms, "commands": count, "wrong": sample["wrong"], "rate": sample["rate"],
        "cpuMicros": sample["cpuMicros"], "serverCpuMicros": worker.server_cpu / count * 1e6,
        "brokerCpuMicros": sample["brokerCpuMicros"], "workerPeakKiB": sample["peakKiB"],
        "bytes": server.bytes(rooms),
    } | start(bench, server, rooms)
    bench.say(f"{rooms:,} rooms: the scheduler knows all after {found['snapshot']:.1f} s")
    return found


def start(bench, server, rooms):
    """A scheduler that learns every room from a worker, page by page."""
    lab = bench.lab
    lab.purge()
    lab.settle()
    installation = lab.installation()
    name, url = server.copy(rooms)
    try:
        began = time.monotonic()
        worker = installation.worker(environment={"OVERTIME_STORE": url})
        ready = time.monotonic() - began
        before = usage(worker.pid).cpu, server.usage().cpu
        began = time.monotonic()
        scheduler = installation.scheduler(ready=None)
        scheduler.wait_said("firing", START_SECONDS)
        snapshot = time.monotonic() - began
        return {
            "workerReady": ready, "snapshot": snapshot, "schedulerCpu": usage(scheduler.pid).cpu,
            "schedulerPeakKiB": usage(scheduler.pid).peak, "snapshotWorkerCpu": usage(worker.pid).cpu - before[0],
            "snapshotServerCpu": server.usage().cpu - before[1],
        }
    finally:
        lab.discard(installation)
        server.drop(name)


def show(figures):
    heads = ["live rooms", *(f"{row['rooms']:,}" for row in figures.values())]
    few, *_, many = figures.values()
    per_room = {
        key: (many[key] - few[key]) / (many["rooms"] - few["rooms"]) for key in ("workerPeakKiB", "schedulerPeakKiB")}
    lines = [
        ("commands/s", lambda row: number(row["rate"]) + (" **wrong**" if row["wrong"] else "")),
        ("worker's CPU µs a command", lambda row: number(row["cpuMicros"])),
        ("database's CPU µs a command", lambda row: number(row["serverCpuMicros"])),
        ("broker's CPU µs a command", lambda row: number(row["brokerCpuMicros"])),
        ("database, bytes a room and its one participant", lambda row: number(row["bytes"] / row["rooms"])),
        ("worker, MiB at most", lambda row: number(row["workerPeakKiB"] / 1024)),
        ("scheduler, MiB at most", lambda row: number(row["schedulerPeakKiB"] / 1024)),
        ("worker serves after, s", lambda row: number(row["workerReady"])),
        ("scheduler knows all after, s", lambda row: number(row["snapshot"])),
        ("of which CPU: scheduler, worker, database, s", lambda row: ", ".join(
            number(row[key]) for key in ("schedulerCpu", "snapshotWorkerCpu", "snapshotServerCpu"))),
    ]
    rows = [[title, *(cell(row) for row in figures.values())] for title, cell in lines]
    each = (
        f"Each further room: worker {number(per_room['workerPeakKiB'] * 1024)} bytes,"
        f" scheduler {number(per_room['schedulerPeakKiB'] * 1024)}."
    )
    return table(heads, rows) + f"\n\n{each}"
