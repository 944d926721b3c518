"""Soak: extends at a fixed rate for an hour, each room again and again, with every window announced in between.

What matters is that memory stays where it was, that no reply and no event is missing or doubled, and that the last
minutes are as quick as the first. The rooms have windows of a minute, so that each can be extended once a minute.
"""

import os
import subprocess
import time

import prepared
from figures import number, summary, table
from lab import AUDIT, REPLIES
from processes import usage

TITLE = "Soak"
# Planned for longer than the first cycle takes, so that no session seems to begin in the future.
PLAN = prepared.Plan("minute", planned=10 * 60_000, first=60_000, final=30_000, extension=60_000, longest=60_000)
# A command comes so long before its room's end: within the first window, and some time after it was announced.
LEFT = 45_000
PROCESSES = ("worker", "scheduler", "broker")


def run(bench):
    options = bench.options
    rate = int(options.rate or (200 if bench.quick else 1_500))
    seconds = options.seconds or (130 if bench.quick else 3_600)
    rooms = rate * PLAN.extension // 1000
    count = rate * seconds
    lab = bench.lab
    lab.purge()
    installation = lab.installation()
    try:
        store = bench.stores.copy(rooms, installation, PLAN)
        # The first command comes when both are ready, which is known to within seconds only: LEFT leaves them.
        start = prepared.now() + 10_000 + rooms // 20
        stride = prepared.spread(rooms)
        order = prepared.touched(rooms, rooms, stride=stride)
        prepared.move(store, ((index, start + n * 1000 // rate + LEFT, 0) for n, index in enumerate(order)), PLAN)
        worker = installation.worker()
        scheduler = installation.start("scheduler")
        scheduler.wait_said("firing", 120)
        pids = {"worker": worker.pid, "scheduler": scheduler.pid, "broker": lab.broker_pid}
        late = prepared.now() - start
        assert late < 5_000, f"the processes were ready {late} ms too late"
        time.sleep(max(0, -late / 1000))
        audit = lab.tool.start("audit", queue=AUDIT, count=count, type="session.extended", timeout=seconds + 120)
        load = lab.tool.start(
            "latency",
            rate=rate,
            seconds=seconds,
            first=0,
            stride=stride,
            rooms=rooms,
            room_prefix=prepared.PREFIX,
            command="extend",
            reply_queue=REPLIES,
        )
        samples = _watch(bench, load, pids, store, seconds)
        seen = load.result(180)
        heard = audit.result(180)
    finally:
        lab.discard(installation)
    found = {
        "replies": seen["missing"],
        "doubled replies": seen["duplicates"],
        "refusals": seen["notOk"],
        "events": heard["distinct"] - count,
        "doubled events": heard["duplicates"],
        "events out of order": heard["orderViolations"],
        "events missing between others": heard["gaps"],
    }
    return {
        "rooms": rooms,
        "rate": rate,
        "seconds": seconds,
        "commands": count,
        "events": heard["events"],
        "latencyMs": {name: seen[name] for name in ("p50", "p90", "p99", "p999", "max")},
        "samples": samples,
        "growth": {name: _growth(samples, name) for name in PROCESSES},
        "wrong": {key: value for key, value in found.items() if value},
    }


def _watch(bench, load, pids, store, seconds):
    """Memory, processor time and the store's size, some hundred times in all."""
    samples, began = [], time.monotonic()
    pause = max(1.0, seconds / 360)
    while load.popen.poll() is None:
        used = {name: usage(pid) for name, pid in pids.items()}
        samples.append(
            {"seconds": time.monotonic() - began}
            | {name: one.resident for name, one in used.items()}
            | {f"{name}Cpu": one.cpu for name, one in used.items()}
            | {"store": os.path.getsize(store)}
        )
        if len(samples) % 36 == 1:
            memory = ", ".join(f"{name} {used[name].resident / 1024:.1f} MiB" for name in pids)
            bench.say(f"after {samples[-1]['seconds']:.0f} s: {memory}")
        try:
            load.popen.wait(pause)
        except subprocess.TimeoutExpired:
            continue
    return samples


def _growth(samples, name):
    """The last tenth's median memory by that of the second tenth, when all caches are full."""
    values = [sample[name] for sample in samples]
    tenth = max(1, len(values) // 10)
    early, last = summary(values[tenth : 2 * tenth] or values), summary(values[-tenth:])
    return {"early": early["median"], "late": last["median"], "ratio": last["median"] / early["median"]}


def show(figures):
    rows = [
        [name, number(row["early"] / 1024), number(row["late"] / 1024), number(row["ratio"])]
        for name, row in figures["growth"].items()
    ]
    latency = ", ".join(f"{name} {value:.2f}" for name, value in figures["latencyMs"].items())
    head = (
        f"{figures['commands']:,} extends of {figures['rooms']:,} rooms in {figures['seconds']:,} s,"
        f" {figures['events']:,} events. Latency, ms: {latency}."
    )
    wrong = (
        f"\n\n**Wrong:** {figures['wrong']}" if figures["wrong"] else "\n\nNothing missing, doubled or out of order."
    )
    return f"{head}\n\n{table(['resident MiB', 'in the second tenth', 'in the last', 'ratio'], rows)}{wrong}"
