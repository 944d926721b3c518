"""A worker and a scheduler with windows that fall due at chosen instants, heard by `bench-tool audit`."""

import time
from contextlib import contextmanager

import prepared
from lab import AUDIT
from processes import usage

OPENED = "session.window.opened"
# How long before the first instant everything must be in place.
MARGIN = 1.0


class TooLate(Exception):
    """The windows would have fallen due before all of them were known."""


class Timed:
    """Both processes, running."""

    def __init__(self, worker, scheduler, figures):
        self.worker = worker
        self.scheduler = scheduler
        self.figures = figures

    def usage(self):
        return {"worker": usage(self.worker.pid), "scheduler": usage(self.scheduler.pid)}


@contextmanager
def running(bench, rooms, prepare):
    """Both on a store with so many rooms, which `prepare(path)` changes first; ready, with each live room known."""
    installation = bench.lab.installation()
    try:
        prepare(bench.stores.copy(rooms, installation))
        began = time.monotonic()
        worker = installation.worker()
        ready = time.monotonic()
        scheduler = installation.start("scheduler")
        scheduler.wait_said("firing", 600)
        known = time.monotonic()
        yield Timed(worker, scheduler, {"workerReady": ready - began, "snapshot": known - ready})
    finally:
        bench.lab.discard(installation)


def windows(bench, rooms, count, instant_of, seconds):
    """`count` of `rooms` windows open at `instant_of(n)` ms after a start of `windows`' choice; what `audit` says of it.

    The start is a whole second, late enough that the scheduler knows every room by then; how long that takes is found out
    once for each number of rooms.
    """
    lead = bench.memory.get(("lead", rooms), 5 + rooms / 20_000)
    while True:
        lab = bench.lab
        lab.purge()
        lab.settle()
        try:
            return _attempt(bench, rooms, count, instant_of, seconds, lead)
        except TooLate:
            lead *= 2
            bench.memory["lead", rooms] = lead
            bench.say(f"{rooms:,} rooms were not known in time: tried again with {lead:.0f} s")


def _attempt(bench, rooms, count, instant_of, seconds, lead):
    lab = bench.lab
    start = 0

    def prepare(path):
        nonlocal start
        indices = list(prepared.touched(count, rooms, stride=prepared.spread(rooms)))
        # Writing takes part of the time too: a first pass finds out how long, the second sets the times.
        began = time.monotonic()
        prepared.fall_due(path, indices, lambda number: prepared.now() + prepared.DAY)
        written = time.monotonic() - began
        start = int(time.time() + written + lead) * 1000 + 1000
        prepared.fall_due(path, indices, lambda number: start + instant_of(number))

    with running(bench, rooms, prepare) as timed:
        if time.time() > start / 1000 - MARGIN:
            raise TooLate
        audit = lab.tool.start("audit", queue=AUDIT, count=count, type=OPENED, timeout=lead + seconds + 120)
        try:
            broker, before = lab.broker_usage(), timed.usage()
            heard = audit.result(lead + seconds + 150)
            after = timed.usage()
            broker_cpu = lab.broker_usage().cpu - broker.cpu
        finally:
            audit.end()
        assert timed.worker.terminate(30)[0] == 0, timed.worker.tail()
        assert timed.scheduler.terminate(30)[0] == 0, timed.scheduler.tail()
    return {
        "start": start,
        "heard": heard,
        "cpu": {name: after[name].cpu - before[name].cpu for name in after} | {"broker": broker_cpu},
        "peakKiB": {name: after[name].peak for name in after},
        **timed.figures,
    }
