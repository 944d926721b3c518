"""SIGTERM at any moment: the process ends within its grace time with 0, and nothing is lost or done twice."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dump import Dump, effects
from lanes import Lane
from waiting import poll

# Five seconds for confirms, two for closing the connections, and the rest for a busy machine.
GRACE = 8
LONG = {"windows": ["8h"], "extension": {"min": "8h", "max": "9h"}}
ROOMS = [f"1-room-{number}" for number in range(10)]


@pytest.fixture
def lane(binary, broker, canary):
    lane = Lane(binary, broker, canary)
    lane.begin()
    # The queues must be there, for commands that come before a worker.
    worker = lane.start("worker")
    lane.installation.ready(worker)
    assert worker.terminate(GRACE)[0] == 0
    yield lane
    lane.look(lane.installation.processes)
    lane.close()
    assert not lane.told, lane.told


@pytest.fixture
def load(lane):
    """Publishes joins, extensions and leaves with ids, more at each call."""
    calls = []
    turn = 0

    def load(count):
        nonlocal turn
        if not calls:
            for room in ROOMS:
                calls.append(lane.wire.send("open", room, duration="8h", policy=LONG))
        goal = len(calls) + count
        while len(calls) < goal:
            user = f"user-{turn // 3}"
            for room in ROOMS:
                calls.append(lane.wire.send(("join", "extend", "leave")[turn % 3], room, user))
            turn += 1

    def answered():
        return sum(bool(call.replies) for call in calls)

    load.calls, load.answered = calls, answered
    return load


def reckon(lane, load):
    """A worker that nothing disturbs answers the rest; then store and wire must agree."""
    worker = lane.start("worker")
    lane.history.changed.wait(
        lambda: all(call.replies for call in load.calls), 30,
        lambda: f"{len(load.calls) - load.answered()} answers\n{lane.log()}")
    # Behind all that comes again, so that nothing waits any more once this is answered.
    lane.wire.ok("status", ROOMS[0], limit=30)
    assert lane.wire.count(f"{lane.prefix}.commands") == 0
    assert worker.terminate(GRACE)[0] == 0
    dump = Dump(lane.store)
    for room, sequence in dump.sequences.items():
        lane.history.wait_sequence(room, sequence)
    lane.history.check()
    found = dump.problems(lane.history, load.calls) + effects(lane.history, load.calls)
    assert not found, "\n".join(found[:20])


def wait_answers(lane, load, worker, count):
    lane.history.changed.wait(
        lambda: load.answered() >= count or not worker.running, 30, lambda: f"{count} answers\n{lane.log()}")
    assert worker.running, worker.tail()


def test_at_random_moments(lane, load, figure, say):
    seed = int(os.environ.get("OVERTIME_SHUTDOWN_SEED", "0")) or random.randrange(1, 1 << 32)
    say(f"shutdown: OVERTIME_SHUTDOWN_SEED={seed}")
    moments = random.Random(seed)
    times = []
    for _ in range(36):
        load(90)
        goal = moments.randrange(load.answered(), len(load.calls) + 1)
        worker = lane.start("worker")
        # From its first line until it has nothing left to do. Before that line the signal's default ends it.
        worker.wait_said(moments.choice(["starting", "starting", "starting", "serving"]))
        if moments.random() > 0.15:
            wait_answers(lane, load, worker, goal)
        code, took = worker.terminate(GRACE)
        assert code == 0, worker.tail()
        times.append(took)
    reckon(lane, load)
    events = sum(len(events) for events in lane.history.rooms.values())
    figure("SIGTERM at random moments", {
        "stops": len(times), "longest, s": round(max(times), 2), "commands": len(load.calls),
        "copies": lane.history.copies - events,
        "answers twice": sum(len(call.replies) > 1 for call in load.calls), "seed": seed})


def test_a_scheduler_at_random_moments(lane):
    worker = lane.start("worker")
    lane.installation.ready(worker)
    for number in range(12):
        room = f"1-timed-{number}"
        lane.wire.ok("open", room, duration="600ms", policy={
            "windows": ["400ms", "200ms"], "extension": {"min": "400ms", "max": "1s"}})
        scheduler = lane.start("scheduler")
        lane.wire.ok("join", room, "ada")
        scheduler.wait_said("firing" if number % 3 else "starting")
        if number % 3 == 2:
            lane.history.wait_event(room, "session.window.opened")
        code, _ = scheduler.terminate(5)
        assert code == 0, scheduler.tail()
    lane.start("scheduler")
    for number in range(12):
        lane.history.wait_event(f"1-timed-{number}", "session.ended")
    lane.history.check()


def node(broker):
    return int((Path(broker._directory) / "node.pid").read_text())


@pytest.fixture
def frozen(broker):
    """Freezes the broker's node, and lets it go on at the end at the latest."""
    if not broker.can_cut_power:
        pytest.skip("OVERTIME_TEST_BROKER does not name the broker's directory")
    pid = node(broker)

    def freeze():
        os.kill(pid, signal.SIGSTOP)

    freeze.end = lambda: os.kill(pid, signal.SIGCONT)
    yield freeze
    freeze.end()


def test_beside_a_frozen_broker(lane, load, frozen, figure):
    load(300)
    worker = lane.start("worker")
    wait_answers(lane, load, worker, 40)
    # More than it can have answered, so that something is in hand when nothing is confirmed any more.
    frozen()
    code, took = worker.terminate(GRACE)
    assert code == 0, worker.tail()
    figure("SIGTERM beside a frozen broker, s", round(took, 2))
    # One that has never reached it.
    worker = lane.start("worker")
    worker.wait_said("starting")
    code, _ = worker.terminate(GRACE)
    assert code == 0, worker.tail()
    frozen.end()
    reckon(lane, load)


def test_a_second_sigterm_ends_at_once(lane, load, frozen, figure):
    load(600)
    worker = lane.start("worker")
    wait_answers(lane, load, worker, 40)
    frozen()
    load(100)
    worker.popen.send_signal(signal.SIGTERM)
    worker.wait_said("stopping")
    code, took = worker.terminate(GRACE)
    assert (code, took < 1) == (0, True), f"{code} after {took} s: {worker.tail()}"
    figure("second SIGTERM, s", round(took, 3))
    frozen.end()
    reckon(lane, load)


def test_beside_a_dead_broker(lane, load, broker, figure):
    if not broker.can_cut_power:
        pytest.skip("OVERTIME_TEST_BROKER does not name the script that could end the broker")
    load(300)
    lane.history.changed.wait(
        lambda: all(call.receipt.state for call in load.calls), 20, "the confirms of the broker")
    worker = lane.start("worker")
    scheduler = lane.start("scheduler")
    # RabbitMQ 3.10 killed moments after declaring a quorum queue may elect no leader for it, ever.
    settled = time.monotonic() + 8
    wait_answers(lane, load, worker, len(load.calls))
    poll(lambda: time.monotonic() > settled, 10, "the queues to be on disk")
    load(300)
    broker.cut_power()
    try:
        code, took = worker.terminate(GRACE)
        assert code == 0, worker.tail()
        assert scheduler.terminate(GRACE)[0] == 0, scheduler.tail()
        for component in ("worker", "scheduler"):
            late = lane.start(component)
            late.wait_said("disconnected" if late.said("disconnected") else "starting")
            code, _ = late.terminate(GRACE)
            assert code == 0, late.tail()
    finally:
        broker.start()
    lane.wire.reconnect()
    figure("SIGTERM beside a dead broker, s", round(took, 2))
    # Answers that were on their way are gone with the broker: the stored ones are given.
    worker = lane.start("worker")
    status = lane.wire.send("status", ROOMS[0])
    lane.history.changed.wait(
        lambda: status.replies, 30, lambda: f"the answer to {status} {status.receipt.state}\n{lane.log()}")
    for call in [call for call in load.calls if not call.replies]:
        call.replies.append((lane.history.wait_reply(lane.wire.again(call), 20), None))
    assert worker.terminate(GRACE)[0] == 0
    reckon(lane, load)


@pytest.mark.sqlite("the worker syncs no file")
def test_on_a_slow_disk(lane, load, figure):
    """Each sync takes a second: the stop waits for the one that is being done, and the grace time holds."""
    load(300)
    worker = lane.start("worker", [
        "strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e",
        "inject=fdatasync:delay_enter=1s"])
    wait_answers(lane, load, worker, 10)
    load(300)
    code, took = worker.terminate(GRACE + 3)
    assert code == 0, worker.tail()
    figure("SIGTERM on a slow disk, s", round(took, 2))
    reckon(lane, load)


LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.mark.sqlite("test_postgres_faults.py has the locks of a server")
def test_beside_a_locked_store(lane, load):
    """Somebody holds the database: the worker waits for it, and a stop need not."""
    load(50)
    worker = lane.start("worker")
    wait_answers(lane, load, worker, 20)
    assert worker.terminate(GRACE)[0] == 0
    holder = subprocess.Popen(
        [sys.executable, "-c", LOCK, lane.store.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "locked\n"
        worker = lane.start("worker")
        worker.wait_said("the store cannot be opened: trying again")
        code, took = worker.terminate(GRACE)
        assert code == 0, worker.tail()
    finally:
        holder.stdin.close()
        holder.wait(10)
    reckon(lane, load)
    assert poll(lambda: not holder.poll(), 1, "the holder's end") and took < 3
