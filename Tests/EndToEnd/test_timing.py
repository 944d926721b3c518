"""Windows and ends are facts of time: on time, once, true, with one scheduler, with two and with none."""

import statistics
import time

from conftest import SHORT
from history import seconds
from waiting import until

WINDOWS = {"windows": ["4s", "2s"], "extension": {"min": "4s", "max": "8s"}}


def play(wire, rooms, policy, duration):
    """Opens these rooms and lets a user into each; returns the last planned end."""
    for room in rooms:
        wire.send("open", room, duration=duration, policy=policy)
    calls = [wire.send("join", room, "ada") for room in rooms]
    return max(seconds(wire.history.wait_reply(call)["session"]["endsAt"]) for call in calls)


def lateness(history, rooms):
    """By the events' own account and by the subscriber's clock, in seconds after they were due."""
    said, seen = [], []
    for room in rooms:
        for event in history.rooms[room]:
            if event.type in ("session.window.opened", "session.ended"):
                due = seconds(event.data["dueAt"] if "dueAt" in event.data else event.data["endsAt"])
                said.append(event.data["lateBy"])
                seen.append(event.at - due)
    return said, seen


def test_twenty_rooms_are_on_time(wire, scheduler, history, figure):
    rooms = [f"room-{number}" for number in range(20)]
    end = play(wire, rooms, WINDOWS, "6s")
    for room in rooms:
        history.wait_event(room, "session.ended", limit=end - time.time() + 5)
    said, seen = lateness(history, rooms)
    assert len(said) == 60
    median, largest = statistics.median(seen), max(seen)
    figure(
        "lateness of windows and ends of 20 rooms, ms",
        {
            "median by the subscriber's clock": round(median * 1000, 1),
            "max": round(largest * 1000, 1),
            "median of lateBy": round(statistics.median(said) * 1000, 1),
            "max of lateBy": round(max(said) * 1000, 1),
            "largest difference of the two": round(
                max(b - a for a, b in zip(said, seen, strict=True)) * 1000, 1
            ),
        },
    )
    assert median <= 0.1
    assert max(said) < 1
    for one, other in zip(said, seen, strict=True):
        # The subscriber sees it later than the worker decided it, by no more than the way between them.
        assert -0.002 <= other - one < 0.5, (one, other)


def test_an_extension_needs_no_scheduler(installation, wire, worker, history):
    # With nobody to fire the window, the clock still decides.
    wire.ok("open", "r", duration="6s", policy=WINDOWS)
    session = wire.ok("join", "r", "ada")["session"]
    wire.refused("window_not_open", "extend", "r", "ada")
    until(seconds(session["nextWindowAt"]) + 0.05)
    reply = wire.ok("extend", "r", "ada")
    assert reply["result"]["extendedTime"] == round(4 / 60, 4)
    # The command announced the window that it found open.
    history.wait_sequence("r", reply["sequence"])
    assert [event.type for event in history.rooms["r"]][3:] == ["session.window.opened", "session.extended"]
    # A scheduler that comes during the second window says that one only, with the time that is truly left.
    end = seconds(reply["session"]["endsAt"])
    until(end - 1.7)
    installation.scheduler(ready=None)
    history.wait_event("r", "session.ended", limit=10)
    notices = [
        (event.data["extensions"], event.data["window"])
        for event in history.events("r", "session.window.opened")
    ]
    assert notices == [(0, 1), (1, 2)]


def test_a_scheduler_that_comes_late_tells_the_truth(installation, wire, worker, history):
    """Rooms before, in the first, in the final window and past their end when the scheduler starts."""
    first = time.time()
    wire.ok("open", "over", duration="2s", policy=SHORT)
    wire.ok("open", "final", duration="7s", policy=WINDOWS)
    wire.ok("open", "open", duration="9s", policy=WINDOWS)
    wire.ok("open", "before", duration="11s", policy=WINDOWS)
    for room in ("over", "final", "open", "before"):
        wire.ok("join", room, "ada")
    until(first + 5.7)
    installation.scheduler(ready=None)
    for room in ("over", "final", "open", "before"):
        history.wait_event(room, "session.ended", limit=15)
    # Of `over` one window was open from its start.
    for room, notices in [("over", [1]), ("final", [2]), ("open", [1, 2]), ("before", [1, 2])]:
        found = [event.data["window"] for event in history.events(room, "session.window.opened")]
        assert found == notices, room
    assert history.events("over", "session.ended")[0].data["lateBy"] > 2


def test_two_schedulers_say_nothing_twice(installation, wire, scheduler, history):
    second = installation.scheduler()
    rooms = [f"room-{number}" for number in range(30)]
    end = play(wire, rooms, SHORT, "3s")
    for room in rooms:
        history.wait_event(room, "session.ended", limit=end - time.time() + 5)
    for room in rooms:
        notices = [event.data["window"] for event in history.events(room, "session.window.opened")]
        assert notices == [1, 2], room
        assert len(history.events(room, "session.ended")) == 1
    # Either of them alone goes on.
    scheduler.kill()
    end = play(wire, ["alone"], SHORT, "3s")
    history.wait_event("alone", "session.ended", limit=end - time.time() + 5)
    assert [event.data["window"] for event in history.events("alone", "session.window.opened")] == [1, 2]
    assert second.terminate()[0] == 0


def test_a_scheduler_killed_at_a_window(installation, wire, scheduler, history):
    """Just before, at, and just after the instant; each time another one starts at once."""
    groups = [[f"room-{group}-{number}" for number in range(10)] for group in range(3)]
    ends = [play(wire, rooms, WINDOWS, f"{5 + group}s") for group, rooms in enumerate(groups)]
    for rooms, late in zip(groups, (-0.03, 0, 0.03), strict=True):
        until(seconds(history.wait_event(rooms[0], "session.started").data["nextDueAt"]) + late)
        scheduler.kill()
        scheduler = installation.scheduler(ready=None)
    for rooms, end in zip(groups, ends, strict=True):
        for room in rooms:
            history.wait_event(room, "session.ended", limit=max(0, end - time.time()) + 5)
            notices = [event.data["window"] for event in history.events(room, "session.window.opened")]
            assert notices == [1, 2], room


def test_a_window_that_is_passed_over_while_all_is_stopped(installation, wire, worker, history):
    """Worker and scheduler away over the first window: only the open one is told, and truly."""
    wire.ok("open", "r", duration="6s", policy=WINDOWS)
    end = seconds(wire.ok("join", "r", "ada")["session"]["endsAt"])
    wire.ok("open", "gone", duration="2s", policy=SHORT)
    wire.ok("join", "gone", "ada")
    history.wait_event("gone", "session.window.opened")
    worker.kill()
    until(end - 1.8)
    installation.worker()
    # The worker alone brings overdue rooms up to date; the scheduler does the rest.
    installation.scheduler(ready=None)
    history.wait_event("gone", "session.ended", limit=10)
    history.wait_event("r", "session.ended", limit=10)
    assert [event.data["window"] for event in history.events("r", "session.window.opened")] == [2]


def test_extend_and_window_at_one_instant(wire, scheduler, history):
    """Extensions asked for all around the opening: granted after it, refused before it, never both."""
    rooms = [f"room-{number}" for number in range(30)]
    play(wire, rooms, SHORT, "3s")
    due = min(seconds(history.wait_event(room, "session.started").data["nextDueAt"]) for room in rooms)
    until(due - 0.02)
    calls = [(room, wire.send("extend", room, "ada")) for _ in range(3) for room in rooms]
    reasons = {"ok": 0, "window_not_open": 0, "already_extended": 0}
    for room, call in calls:
        reply = history.wait_reply(call)
        reasons["ok" if reply["ok"] else reply["error"]["reason"]] += 1
        if reply["ok"]:
            history.wait_sequence(room, reply["sequence"])
            types = [event.type for event in history.rooms[room]]
            assert types.count("session.window.opened") == 1 and types.index(
                "session.window.opened"
            ) < types.index("session.extended")
    assert sum(reasons.values()) == 90 and set(reasons) == {"ok", "window_not_open", "already_extended"}
