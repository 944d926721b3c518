"""Many commands: windows stay on time beside a backlog, and memory stays where it was."""

import json
import time

import pytest
from conftest import SHORT
from history import seconds
from waiting import poll

pytestmark = pytest.mark.heavy
OPENS = 100_000


def test_a_window_beside_100000_opens(installation, connect, history, figure):
    wire = connect()
    worker = installation.worker()
    prefix = installation.prefix
    # Sessions are heard as they come; the openings are only counted.
    wire.declare(f"sessions.{prefix}", [(f"{prefix}.events.topic", "session.#")])
    wire.declare(f"openings.{prefix}", [(f"{prefix}.events.topic", "room.opened")])
    heard = []

    def note(_method, _properties, body):
        heard.append((time.time(), json.loads(body)))
        history.changed.tell()

    wire.consume(f"sessions.{prefix}", note)
    timed = [f"timed-{number}" for number in range(400)]
    for number, room in enumerate(timed):
        wire.send("open", room, duration=f"{3000 + 400 * number}ms", policy=SHORT, reply=False)
    for call in [wire.send("join", room, "ada") for room in timed]:
        history.wait_reply(call, 30)
    assert worker.terminate()[0] == 0

    began = time.monotonic()
    command = json.dumps({"command": "open", "room": "%s", "id": "o"})
    properties = wire.message("open", "x", reply=False)[0][3]
    receipts = wire.publish_many(
        (f"{prefix}.commands", f"room-{number}", (command % f"room-{number}").encode(), properties, False)
        for number in range(OPENS)
    )
    assert wire.settled(receipts, 90) == {"ack"}
    filled = time.monotonic() - began
    last = wire.send("open", "the-last")
    installation.scheduler(ready=None)
    worker = installation.worker()
    working = time.time()
    history.wait_reply(last, 120)
    drained = time.time()
    assert wire.count(f"{prefix}.commands") == 0
    history.changed.wait(
        lambda: any(at > drained for at, _ in heard), 10, "a session's event after the backlog"
    )

    late = []
    for at, event in heard:
        if event["type"] in ("session.window.opened", "session.ended"):
            due = seconds(event["data"]["dueAt" if "dueAt" in event["data"] else "endsAt"])
            # Due while the worker had the backlog before it, not while it was stopped.
            if working < due < drained:
                late.append((round(at - due, 3), event["data"]["lateBy"]))
    figure(
        "windows and ends due beside 100,000 queued opens",
        {
            "events": len(late),
            "max by the subscriber's clock, ms": round(max(late)[0] * 1000) if late else None,
            "max of lateBy, ms": round(max(said for _, said in late) * 1000) if late else None,
            "median, ms": round(sorted(late)[len(late) // 2][0] * 1000) if late else None,
            "filled in s": round(filled, 1),
            "drained in s": round(drained - working, 1),
            "opens/s": round(OPENS / (drained - working)),
        },
    )
    assert len(late) >= 10
    # What the way through a busy broker to a busy subscriber adds is held in the median, and reported.
    assert max(said for _, said in late) < 1
    assert sorted(late)[len(late) // 2][0] < 1
    # Each of the opens had its effect, once. The last events may still be on their way behind the last answer.
    expected = OPENS + len(timed) + 1
    poll(lambda: wire.count(f"openings.{prefix}") >= expected, 20, f"{expected} openings", every=0.1)
    assert wire.count(f"openings.{prefix}") == expected


def test_memory_after_200000_commands(installation, connect, history, figure):
    wire = connect()
    worker = installation.worker()
    prefix = installation.prefix
    rooms = [f"room-{number}" for number in range(100)]
    for room in rooms:
        wire.send("open", room, duration="8h", reply=False)
    properties = wire.message("open", "x", reply=False)[0][3]

    def commands(first, count):
        for number in range(first, first + count):
            room = rooms[number % 100]
            turn = number // 100
            word = "leave" if turn % 2 else "join"
            user = f"user-{turn // 2 % 50}"
            body = f'{{"command":"{word}","room":"{room}","user":"{user}","id":"{number}"}}'
            yield f"{prefix}.commands", room, body.encode(), properties, False

    resident, done, began = {}, 0, time.monotonic()
    for mark in (50_000, 100_000, 150_000, 200_000):
        receipts = wire.publish_many(commands(done, mark - done))
        assert wire.settled(receipts, 120) == {"ack"}
        done = mark
        # Commands are decided in order: the answer to one behind them says that all of them are done.
        answer = history.wait_reply(wire.send("status", rooms[-1]), 120)
        assert answer["sequence"] == mark // 100 + 2
        resident[mark] = worker.resident()
    ratio = resident[200_000] / resident[50_000]
    figure(
        "worker's resident memory, KiB",
        resident | {"ratio": round(ratio, 3), "commands/s": round(200_000 / (time.monotonic() - began))},
    )
    assert ratio <= 1.05
