"""Stores with many rooms, without a command for each: a real worker makes one room, its row is copied, times are moved.

A prepared store is kept and copied for each run. In it every room has a session whose next window is far away; a run then
moves the rooms it is about, so that a command finds their window open or they fall due at an instant of its choice.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from bootstrap import BUILD, ROOT

PREFIX = "room-"
USER = "u"
MINUTE = 60_000
DAY = 24 * 60 * MINUTE


@dataclass(frozen=True)
class Plan:
    """A kind of room: how long it is planned to last, and when and by how much it can be extended, in milliseconds."""

    name: str
    planned: int
    # Lengths before the end at which windows open, two of them.
    first: int
    final: int
    # What an extension gives at least and at most; ten minutes are asked for.
    extension: int
    longest: int

    @property
    def options(self):
        """Of `overtime send open`."""
        policy = {
            "windows": [f"{self.first}ms", f"{self.final}ms"],
            "extension": {"min": f"{self.extension}ms", "max": f"{self.longest}ms"},
        }
        return ["--duration", f"{self.planned}ms", "--policy", json.dumps(policy)]


# With the policy that a room has where nothing else is said.
USUAL = Plan("usual", 60 * MINUTE, 10 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE)
# As far as extensions have moved the end of rooms that are to stay quiet, and how old a prepared store may get meanwhile.
FAR = 300 * DAY
OLDEST = 100 * DAY
# What decides how a prepared store looks: with any of it changed it is made anew.
RECIPE = (ROOT / "Sources/Store/SQLite/Schema.swift", Path(__file__))


def name(index):
    return f"{PREFIX}{index:07d}"


def now():
    return time.time_ns() // 1_000_000


class Stores:
    def __init__(self, lab):
        self._lab = lab
        self._directory = BUILD / "stores"
        self._directory.mkdir(parents=True, exist_ok=True)

    def copy(self, count, installation, plan=USUAL):
        """Puts a store with `count` quiet rooms in the installation's place and returns its path."""
        path = os.path.join(installation.directory, "overtime.db")
        shutil.copyfile(self._prepared(count, plan), path)
        return path

    def _prepared(self, count, plan):
        recipe = hashlib.sha256(b"".join(file.read_bytes() for file in RECIPE)).hexdigest()[:12]
        path = self._directory / f"{recipe}-{plan.name}-{count}.db"
        if path.exists() and time.time() - path.stat().st_mtime < OLDEST / 1000:
            return path
        for old in self._directory.iterdir():
            if not old.name.startswith(recipe):
                old.unlink()
        installation = self._lab.installation()
        try:
            template = self._template(installation, plan)
            part = path.with_suffix(f".{os.getpid()}.part")
            shutil.copyfile(template, part)
            multiply(part, count, plan)
            part.rename(path)
        finally:
            self._lab.discard(installation)
        return path

    def _template(self, installation, plan):
        """A store in which a worker has opened one room and let its user in."""
        worker = installation.worker()
        for arguments in (["open", *plan.options], ["join", "--user", USER]):
            done = installation.run("send", *arguments, "--room", name(0))
            assert done.returncode == 0, done.stdout + done.stderr
        code, _ = worker.terminate()
        assert code == 0, worker.tail()
        return os.path.join(installation.directory, "overtime.db")


def multiply(path, count, plan):
    """Makes `count` rooms of one, all quiet."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN")
        assert database.execute("SELECT id, announced, due_at = ends_at - ? FROM rooms", (plan.first,)).fetchall() == [
            (name(0), 0, 1)
        ]
        # The commands that made the room are forgotten, as after their retention.
        for table in ("answers", "outbox", "runs", "attempts"):
            database.execute(f"DELETE FROM {table}")
        extensions = (FAR - plan.planned) // plan.extension
        database.execute(
            """
            UPDATE rooms SET ends_at = ends_at + ?1, due_at = due_at + ?1, extensions = ?2, extender_kind = 0,
                extended_by = ?3
            """,
            (extensions * plan.extension, extensions, USER),
        )
        for table, key in (("rooms", "id"), ("participants", "room")):
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            copied = ", ".join("printf('%s%07d', ?2, number)" if column == key else column for column in columns)
            database.execute(
                f"""
                WITH RECURSIVE numbers(number) AS (VALUES (1) UNION ALL SELECT number + 1 FROM numbers WHERE number < ?1)
                INSERT INTO {table} ({", ".join(columns)}) SELECT {copied} FROM numbers, {table}
                WHERE {table}.{key} = printf('%s%07d', ?2, 0) AND ?1 > 0
                """,
                (count - 1, PREFIX),
            )
        database.execute(
            """
            UPDATE definitions SET uses = (SELECT count(*) FROM rooms WHERE definition = definitions.id)
                + (SELECT count(*) FROM rooms WHERE session_definition = definitions.id)
            """
        )
        database.execute("COMMIT")
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert database.execute("SELECT count(*) FROM rooms").fetchone() == (count,)


def touched(count, rooms, first=0, stride=1):
    """The indices of the rooms that commands 0 … count − 1 act on, as `bench-tool fill` chooses them."""
    return ((first + number * stride) % rooms for number in range(count))


def spread(rooms):
    """A stride that visits every room once before any twice, neighbours far apart: a cache must not make it easy."""
    stride = max(1, int(rooms * 0.618))
    while _common_divisor(stride, rooms) > 1:
        stride += 1
    return stride


def _common_divisor(one, other):
    while other:
        one, other = other, one % other
    return one


def open_windows(path, indices, left=8 * MINUTE):
    """Moves rooms so that their first window is open, and was announced; it stays open for a whole run."""
    ends = now() + left
    move(path, ((index, ends, 1) for index in indices))


def fall_due(path, indices, instant_of):
    """Moves rooms so that the first window of the n-th opens at `instant_of(n)`, in milliseconds since 1970."""
    move(path, ((index, instant_of(number) + USUAL.first, 0) for number, index in enumerate(indices)))


def move(path, rooms, plan=USUAL):
    """Index, end and announced window of each room: as the rules would have it, had the session begun as planned."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN")
        database.executemany(
            """
            UPDATE rooms SET started_at = ?2 - ?4, changed_at = ?2 - ?4, ends_at = ?2, announced = ?3, extensions = 0,
                extender_kind = NULL, extended_by = NULL, sequence = sequence + ?3, version = version + ?3,
                due_at = ?2 - CASE ?3 WHEN 0 THEN ?5 ELSE ?6 END
            WHERE id = ?1
            """,
            ((name(index), ends, announced, plan.planned, plan.first, plan.final) for index, ends, announced in rooms),
        )
        database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
