"""The log: who was away reads what was missed, as published."""

from datetime import UTC, datetime

from conftest import SHORT
from history import Event, seconds
from waiting import until


def test_a_subscriber_that_was_away(installation, connect, worker, scheduler, history, wire, figure):
    queue = next(name for name in wire.queues if name.startswith("audit."))
    wire.ok("open", "r", duration="3s", policy=SHORT)
    wire.ok("join", "r", "ada")
    history.wait_sequence("r", 3)
    seen = len(history.rooms["r"])
    wire.cancel(queue)
    end = seconds(wire.ok("status", "r")["session"]["endsAt"])
    wire.ok("join", "r", "bob")
    wire.ok("leave", "r", "bob")
    for number in range(30):
        wire.ok("open", f"meanwhile-{number}")
    # Ended, by the command's own account.

    until(end + 0.2)
    assert wire.ok("status", "r")["session"]["state"] == "ended"

    log, bodies = [], []
    reader = connect()

    def read(method, properties, body):
        log.append(Event(body, None))
        bodies.append(
            (method.routing_key, properties.message_id, properties.type, properties.headers.get("sequence"))
        )
        history.changed.tell()

    reader.consume(f"{installation.prefix}.events.log", read, {"x-stream-offset": "first"})
    total = 8 + 30
    history.changed.wait(
        lambda: len(log) >= total, 15, lambda: f"{total} events from the log; {len(log)} came"
    )
    wire.consume(queue, wire.on_event)
    history.wait_sequence("r", 8)
    assert [event.type for event in log if event.room == "r"] == [
        "room.opened",
        "session.started",
        "participant.joined",
        "participant.joined",
        "participant.left",
        "session.window.opened",
        "session.window.opened",
        "session.ended",
    ]
    assert [event.body for event in log if event.room == "r"] == [event.body for event in history.rooms["r"]]
    for event, facts in zip(log, bodies, strict=True):
        assert facts == (event.type, event.json["id"], event.type, event.sequence)

    missed = log[seen].json["time"]
    done = installation.run("watch", "--from", missed, "--room", "r", "--count", str(8 - seen), "--json")
    assert done.stdout.splitlines() == [event.body.decode() for event in history.rooms["r"]][seen:]
    later = (
        datetime.fromtimestamp(log[-1].time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
    done = installation.run("watch", "--from", later, "--count", "1", "--json")
    assert done.stdout.splitlines() == [log[-1].body.decode()]
    figure("read from the log after being away", {"stream": len(log), "watch --from": 8 - seen})
