"""A copy of the store under load, and a service that goes on from it."""

import json
import re
import sqlite3
import threading
import time
from pathlib import Path

import pytest
from history import seconds
from waiting import poll

pytestmark = pytest.mark.sqlite("its own tools make backups there")
COMMANDS = 4_000
LONG = {"windows": ["8h"], "extension": {"min": "8h", "max": "9h"}}


class Backup:
    """What a backup holds, read from it directly: it belongs to nobody."""

    def __init__(self, path):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            self.integrity = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            self.journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
            self.sequences = dict(connection.execute("SELECT id, sequence FROM rooms"))
            self.outbox = connection.execute("SELECT room, sequence FROM outbox").fetchall()
            self.answers = {
                (room, key): json.loads(reply)
                for room, key, reply in connection.execute("SELECT room, id, reply FROM answers")
            }
        finally:
            connection.close()


def taken_at(done):
    """The instant that a backup prints."""
    assert done.returncode == 0, done
    return seconds(re.search(r"everything up to (\S+Z)", done.stdout)[1])


def test_a_backup_under_load_restored_elsewhere(installation, worker, scheduler, wire, history, tmp_path):
    rooms = [f"room-{number}" for number in range(20)]
    for room in rooms:
        wire.ok("open", room, duration="8h", policy=LONG)
    wire.ok("open", "timed", duration="30s", policy={"windows": ["8s", "2s"], "extension": {"min": "8s"}})
    wire.ok("join", "timed", "ada")

    calls, is_copied = [], threading.Event()

    def load():
        """Some hundred commands on their way at any time, until well behind the backup."""
        left = COMMANDS // 4
        for turn in range(100_000):
            word = ("join", "extend", "leave")[turn % 3]
            calls.extend(wire.send(word, room, f"user-{turn // 3}") for room in rooms)
            if len(calls) > 600:
                history.wait_reply(calls[-600], 30)
            left -= len(rooms) if is_copied.is_set() else 0
            if left <= 0 and len(calls) >= COMMANDS:
                break

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    history.changed.wait(lambda: len(calls) >= COMMANDS // 2, 60, "the load")
    target = tmp_path / "copy.db"
    done = installation.run("backup", str(target))
    is_copied.set()
    instant = taken_at(done)
    assert f"{target.stat().st_size} bytes" in done.stdout
    thread.join(60)
    history.wait_reply(calls[-1], 60)
    answered = [(call, call.replies[0][0]) for call in calls]
    before = [pair for pair in answered if seconds(pair[1]["serverTime"]) < instant]
    after = [pair for pair in answered if seconds(pair[1]["serverTime"]) > instant]
    assert len(before) >= COMMANDS // 4 and len(after) >= 100, (len(before), len(after))

    # Exactly what was committed up to the instant, nothing less and nothing more.
    backup = Backup(target)
    assert backup.integrity == ["ok"] and backup.journal == "delete"
    for call, reply in before:
        assert backup.answers.get((call.command["room"], call.command["id"])) == reply, call
    for call, _ in after:
        assert (call.command["room"], call.command["id"]) not in backup.answers, call
    for room, events in history.rooms.items():
        heard = [event.sequence for event in events]
        assert heard[: backup.sequences[room]] == list(range(1, backup.sequences[room] + 1))
        for event in events:
            if abs(event.time - instant) > 0.0005:
                assert (event.sequence <= backup.sequences[room]) == (event.time < instant), event
    unpublished = set(backup.outbox)
    assert all(sequence <= backup.sequences[room] for room, sequence in unpublished)

    # Another directory, the same broker: the clients stay as they are.
    assert worker.terminate()[0] == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    environment = {"OVERTIME_STORE": f"sqlite:{elsewhere}/overtime.db"}
    done = installation.run("restore", str(target), environment=environment)
    assert done.returncode == 0 and "of 21 rooms advanced by 1000000" in done.stdout, done
    history.restored(backup.sequences, instant)
    installation.worker(environment=environment)
    # An answer from before is known still; what came after is forgotten, and is a new command.
    call, reply = before[-1]
    assert history.wait_reply(wire.again(call)) == reply
    joined = wire.ok("join", rooms[0], "zoe")
    assert joined["sequence"] == backup.sequences[rooms[0]] + 1_000_001
    opened = history.wait_event("timed", "session.window.opened", 30)
    assert opened.sequence == backup.sequences["timed"] + 1_000_001
    assert opened.data["lateBy"] < 0.5 and opened.at - seconds(opened.data["dueAt"]) < 1


def test_what_is_refused(installation, wire, history, tmp_path):
    target = str(tmp_path / "copy.db")

    def run(code, *arguments, **more):
        done = installation.run(*arguments, **more)
        assert done.returncode == code, done
        assert "\n" not in done.stderr.rstrip("\n"), done.stderr
        return done.stdout + done.stderr

    assert "is not there" in run(1, "backup", target)
    assert not (tmp_path / "overtime.db").exists(), "a backup makes no store"
    worker = installation.worker()
    wire.ok("open", "demo", duration="8h", policy=LONG)
    sequence = wire.ok("join", "demo", "ada")["sequence"]
    assert "needs a FILE" in run(2, "backup")
    assert "unexpected" in run(2, "backup", "a", "b")
    assert "belongs to the store" in run(1, "backup", str(tmp_path / "overtime.db"), "--force")
    assert "cannot be written" in run(1, "backup", str(tmp_path / "none/copy.db"))
    run(0, "backup", "copy.db")
    assert "exists" in run(1, "backup", target)
    run(0, "backup", target, "--force")
    assert "owned by another worker" in run(1, "restore", target, "--force")

    worker.pause()
    assert "in time" in run(3, "backup", str(tmp_path / "late.db"), "--timeout", "1s")
    worker.resume()
    # Requests are taken one after the other: behind the next one the one that was given up is over.
    run(0, "backup", target, "--force")
    assert not list(tmp_path.glob("late.db*"))

    assert worker.terminate()[0] == 0
    assert not (tmp_path / "overtime.db.control").exists()
    run(0, "backup", target, "--force")
    assert "exists" in run(1, "restore", target)
    text = run(0, "restore", target, "--force")
    aside = re.search(r"the replaced store is (\S+)", text)[1]
    assert Path(aside).exists()
    history.restored({"demo": sequence}, time.time())
    installation.worker()
    assert wire.ok("join", "demo", "bob")["sequence"] == sequence + 1_000_001


@pytest.mark.heavy
@pytest.mark.slow
def test_windows_beside_the_backup_of_a_large_store(installation, wire, history, figure, tmp_path):
    worker = installation.worker()
    assert worker.terminate()[0] == 0
    # No worker runs: the file may be filled by hand.
    connection = sqlite3.connect(tmp_path / "overtime.db")
    with connection:
        connection.executemany(
            "INSERT INTO answers (room, id, session, at, canonical, reply) VALUES (?, ?, 1, ?, ?, ?)",
            (
                (f"old-{number % 997}", f"id-{number}", int(time.time() * 1000), b"c" * 300, b"r" * 700)
                for number in range(300_000)
            ),
        )
    connection.close()
    worker = installation.worker()
    installation.scheduler()
    rooms = [f"timed-{number}" for number in range(60)]
    policy = {"windows": ["2s", "1s"], "extension": {"min": "2s"}}
    for number, room in enumerate(rooms):
        wire.ok("open", room, duration=f"{3000 + 100 * number}ms", policy=policy)
    for room in rooms:
        wire.send("join", room, "ada")

    done = []
    thread = threading.Thread(
        target=lambda: done.append(installation.run("backup", str(tmp_path / "copy.db"), limit=120))
    )
    began = time.time()
    thread.start()
    slowest, asked = 0, 0
    while thread.is_alive():
        sent = time.monotonic()
        wire.ok("status", "timed-0", limit=30)
        slowest, asked = max(slowest, time.monotonic() - sent), asked + 1
    thread.join()
    instant = taken_at(done[0])
    poll(lambda: all(history.events(room, "session.ended") for room in rooms), 30, "all sessions' ends")
    said = [
        event.data["lateBy"]
        for room in rooms
        for event in history.events(room)
        if event.type in ("session.window.opened", "session.ended")
        and began <= event.time <= instant
    ]
    figure(
        "windows and ends due while a large store is copied",
        {
            "MB": (tmp_path / "copy.db").stat().st_size // 1_000_000,
            "copied in s": round(instant - began, 2),
            "events": len(said),
            "max of lateBy, ms": round(max(said) * 1000) if said else None,
            "slowest status, ms": round(slowest * 1000),
            "status commands": asked,
        },
    )
    # What a busy machine adds by itself is in it.
    assert said and max(said) < 0.5
    assert slowest < 1
