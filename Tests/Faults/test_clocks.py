"""Clocks that step, stand still or disagree: no notice is early or told twice, and lateness stays bounded."""

import shutil
import subprocess
import time
from datetime import datetime

import pytest
from end_to_end import ROOT
from history import seconds
from waiting import poll
from watching import check_store

SHIM = ROOT.parent / "shared/lab/clock_shim.c"
WINDOWS = {"windows": ["3s", "1s"], "extension": {"min": "3s", "max": "6s"}}
STEPPED = "the clock was stepped or the machine suspended"
HOUR, MONTH = 3_600, 30 * 86_400


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Moves only the wall clock, by the seconds that a file says, read at every call."""
    if not SHIM.exists() or shutil.which("cc") is None:
        pytest.skip(f"{SHIM} or a C compiler is not there")
    target = tmp_path_factory.mktemp("clock") / "clock.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", target, SHIM], check=True, timeout=60)
    return str(target)


class Clock:
    """The wall clock of one process."""

    def __init__(self, library, path, offset=0):
        self._path = path
        self.offset = offset
        self.step_to(offset)
        self.environment = {"LD_PRELOAD": library, "CLOCK_OFFSET_FILE": str(path)}

    def step_to(self, offset):
        self.offset = offset
        # Written beside and moved over it, so that no call finds it half written.
        beside = self._path.with_suffix(".new")
        beside.write_text(f"{offset}\n")
        beside.replace(self._path)

    def now(self):
        return time.time() + self.offset


@pytest.fixture
def clocks(library, tmp_path):
    return {name: Clock(library, tmp_path / f"{name}.offset") for name in ("worker", "scheduler")}


@pytest.fixture
def pair(installation, wire, clocks):
    worker = installation.worker(environment=clocks["worker"].environment)
    scheduler = installation.scheduler(environment=clocks["scheduler"].environment)
    return worker, scheduler


def begin(wire, room, duration="6s", policy=WINDOWS):
    wire.ok("open", room, duration=duration, policy=policy)
    return wire.ok("join", room, "ada")


def notices(history, room):
    return [
        (event.data["extensions"], event.data["window"])
        for event in history.events(room, "session.window.opened")
    ]


STEPS = [5, -5, HOUR, -HOUR, MONTH, -MONTH]


def heavy(who):
    return pytest.param(who, STEPS, marks=pytest.mark.heavy_fault, id=who)


@pytest.mark.parametrize(
    "who, steps",
    [pytest.param("both", [5, -HOUR], id="both, short"), heavy("worker"), heavy("scheduler"), heavy("both")],
)
def test_steps_under_live_rooms(installation, wire, history, pair, clocks, figure, who, steps):
    """In the middle of a session; a room of a year lives through all of them."""
    worker, scheduler = pair
    stepped = [clocks[name] for name in clocks if who in (name, "both")]
    processes = [
        process for process, name in ((worker, "worker"), (scheduler, "scheduler")) if who in (name, "both")
    ]
    begin(wire, "lasting", duration="8000h")
    late = {}

    def move(step):
        marks = [len(process.lines) for process in processes]
        for clock in stepped:
            clock.step_to(clock.offset + step)
        for process, mark in zip(processes, marks, strict=True):
            # Said once, and how far: a second at the most until the clock is looked at.
            line = process.wait_said(STEPPED, 10, mark)
            assert abs(line["stepMs"] - step * 1_000) < 3_000, line

    for step in steps:
        room = f"room{step:+d}"
        reply = begin(wire, room)
        end = seconds(reply["session"]["endsAt"])
        move(step)
        if who == "scheduler":
            # Only the worker's clock counts: everything comes when it would have come.
            history.wait_event(room, "session.ended", max(0, end - time.time()) + 15)
            assert notices(history, room) == [(0, 1), (0, 2)], room
            late[step] = max(event.data["lateBy"] for event in history.rooms[room] if "lateBy" in event.data)
            assert late[step] < 5
        elif step > 0:
            # The session is over, or its windows come sooner; late by no more than the step and one look.
            ended = history.wait_event(room, "session.ended", 45)
            late[step] = round(ended.data["lateBy"], 3)
            assert late[step] <= step + 40
        else:
            # Nothing is early; after the clock is right again it goes on where it was.
            if step == -5:
                history.wait_event(room, "session.ended", 6 + 5 + 15)
                assert notices(history, room) == [(0, 1), (0, 2)]
                late[step] = history.events(room, "session.ended")[0].data["lateBy"]
            else:
                pause = time.monotonic()
                poll(lambda pause=pause: time.monotonic() > pause + 3, 4, "nothing to happen")
                assert not history.events(room, "session.ended"), "ended early"
                move(-step)
                history.wait_event(room, "session.ended", 45)
                move(step)
        assert len(history.events(room, "session.ended")) == 1
    for process in processes:
        assert process.running
    assert not history.events("lasting", "session.window.opened")
    assert wire.ok("status", "lasting")["session"]["state"] == "running"
    figure(f"clock of {who} stepped by {steps}: late by, s", late)
    assert check_store(installation) == 0


@pytest.mark.parametrize("skew", [90, pytest.param(-90, marks=pytest.mark.heavy_fault)])
def test_a_scheduler_whose_clock_is_off(installation, wire, history, clocks, figure, skew):
    """By a minute and a half, from its start: windows and ends are the worker's, on time."""
    clocks["scheduler"].step_to(skew)
    installation.worker(environment=clocks["worker"].environment)
    scheduler = installation.scheduler(environment=clocks["scheduler"].environment)
    for number in range(10):
        begin(wire, f"room-{number}")
    late = []
    for number in range(10):
        room = f"room-{number}"
        history.wait_event(room, "session.ended", 20)
        assert notices(history, room) == [(0, 1), (0, 2)]
        late += [event.data["lateBy"] for event in history.rooms[room] if "lateBy" in event.data]
    figure(f"scheduler {skew:+d} s off: late by at most, s", max(late))
    assert max(late) < 1
    assert not scheduler.said(STEPPED)


@pytest.mark.heavy_fault
@pytest.mark.parametrize(
    "zone, change",
    [
        ("Europe/Berlin", "2027-03-28T01:00:00+00:00"),
        ("Europe/Berlin", "2027-10-31T01:00:00+00:00"),
        ("America/New_York", "2027-03-14T07:00:00+00:00"),
        ("Australia/Lord_Howe", "2027-04-03T15:00:00+00:00"),
        # The day that Samoa left out.
        ("Pacific/Apia", "2011-12-30T10:00:00+00:00"),
    ],
)
def test_a_session_over_a_change_of_the_local_time(installation, wire, history, clocks, zone, change):
    # Three seconds before the change, when both have started.
    offset = round(datetime.fromisoformat(change).timestamp() - time.time() - 3)
    for clock in clocks.values():
        clock.step_to(offset)
    installation.worker(environment=clocks["worker"].environment | {"TZ": zone})
    installation.scheduler(environment=clocks["scheduler"].environment | {"TZ": zone})
    reply = begin(wire, "r", duration="7s")
    end = seconds(reply["session"]["endsAt"])
    assert abs(end - 7 - clocks["worker"].now()) < 5
    history.wait_event("r", "session.ended", 20)
    assert end > datetime.fromisoformat(change).timestamp()
    assert notices(history, "r") == [(0, 1), (0, 2)]
    assert max(event.data["lateBy"] for event in history.rooms["r"] if "lateBy" in event.data) < 1


@pytest.mark.heavy_fault
@pytest.mark.parametrize("who", ["worker", "scheduler"])
def test_one_that_stands_still_for_longer_than_its_heartbeats(installation, wire, history, who):
    """The broker gives it up; it comes back by itself, and what came due meanwhile is told once, late."""
    heartbeat = {"OVERTIME_AMQP_HEARTBEAT": "1s"}
    worker = installation.worker(environment=heartbeat)
    scheduler = installation.scheduler(environment=heartbeat)
    end = seconds(begin(wire, "r")["session"]["endsAt"])
    frozen = worker if who == "worker" else scheduler
    mark = len(frozen.lines)
    frozen.pause()
    poll(lambda: time.time() > end + 3, 12, "the end to pass")
    if who == "scheduler":
        # Nobody else needs it.
        wire.ok("open", "other")
    frozen.resume()
    frozen.wait_said("disconnected", 15, mark)
    ended = history.wait_event("r", "session.ended", 20)
    assert ended.data["lateBy"] > 2
    assert len(notices(history, "r")) == len(set(notices(history, "r"))) <= 2
    begin(wire, "next")
    history.wait_event("next", "session.ended", 20)
    assert notices(history, "next") == [(0, 1), (0, 2)]
    assert check_store(installation) == 0


@pytest.mark.heavy_fault
def test_a_machine_that_was_suspended(installation, wire, history, pair, clocks):
    """Both stand still and wake up an hour later: what came due meanwhile is told once, what did not is not."""
    wire.ok("open", "lasting", duration="3h")
    wire.ok("join", "lasting", "ada")
    begin(wire, "short")
    marks = [len(process.lines) for process in pair]
    for process in pair:
        process.pause()
    for clock in clocks.values():
        clock.step_to(HOUR)
    for process in pair:
        process.resume()
    for process, mark in zip(pair, marks, strict=True):
        line = process.wait_said(STEPPED, 10, mark)
        assert abs(line["stepMs"] - HOUR * 1_000) < 3_000, line
    ended = history.wait_event("short", "session.ended", 20)
    assert HOUR - 10 < ended.data["lateBy"] < HOUR + 20
    assert not notices(history, "short"), "a window that was over when it could be told"
    status = wire.ok("status", "lasting")["session"]
    assert abs(status["timeLeft"] - 2 * 60) < 1 and not notices(history, "lasting")
    begin(wire, "next")
    history.wait_event("next", "session.ended", 20)
    assert notices(history, "next") == [(0, 1), (0, 2)]
    assert check_store(installation) == 0


@pytest.mark.heavy_fault
def test_a_month_forward_under_many_rooms(installation, wire, history, pair, clocks, figure):
    """Each of them ends once and no window is told that was over; in the midst of it SIGTERM still counts."""
    worker, scheduler = pair
    count = 10_000
    for first in range(0, count, 1_000):
        rooms = [f"room-{number}" for number in range(first, first + 1_000)]
        messages = [wire.message("open", room, duration="1h") for room in rooms]
        messages += [wire.message("join", room, "ada") for room in rooms]
        wire.publish_many([message for message, _ in messages])
        history.wait_reply(messages[-1][1], 60)
    for clock in clocks.values():
        clock.step_to(MONTH)
    began = time.monotonic()
    history.changed.wait(lambda: history.copies > 3 * count + 500, 60, lambda: f"some ends; {worker.tail()}")
    assert worker.terminate()[0] == 0
    # Not waited for by its log: that has a line for each end, and lines are lost where they come faster than they are read.
    worker = installation.start("worker", environment=clocks["worker"].environment)
    history.changed.wait(
        lambda: sum(bool(events) and events[-1].type == "session.ended" for events in history.rooms.values()) == count,
        120, lambda: f"all ends; {worker.tail()}")
    figure(f"{count} rooms a month late, s", round(time.monotonic() - began, 1))
    assert not any(history.events(room, "session.window.opened") for room in history.rooms)
    assert check_store(installation) == 0


def test_durations_at_the_edge(installation, wire, history, worker, scheduler):
    tiny = {"windows": ["1ms"], "extension": {"min": "1ms", "max": "8784h"}}
    wire.ok("open", "tiny", duration="1ms", policy=tiny)
    wire.ok("join", "tiny", "ada")
    ended = history.wait_event("tiny", "session.ended", 5)
    assert ended.data["lateBy"] < 2
    wire.ok("open", "longest", duration="8784h")
    reply = wire.ok("join", "longest", "ada")
    assert abs(seconds(reply["session"]["endsAt"]) - seconds(reply["serverTime"]) - 8784 * HOUR) < 0.01
    for duration in ("8784h1ms", 8784 * 60 + 0.001, "0ms", 0, -1, 1e18, 2**63, "99999999999999999999ms"):
        wire.refused("invalid_command", "open", "refused", duration=duration)
    wire.refused("unknown_room", "status", "refused")
    # As often extended by the most as it takes to pass any integer of 32 bits in milliseconds.
    wide = {"windows": ["8784h"], "extension": {"min": "8784h", "max": "8784h"}, "clock": "open"}
    wire.ok("open", "wide", duration="8784h", policy=wide)
    wire.ok("join", "wide", "ada")
    reply = wire.ok("extend", "wide", "ada")
    assert reply["result"]["extendedTime"] == 8784 * 60
    assert wire.ok("leave", "wide", "ada")["session"]["timeLeft"] > 8784 * 60
