"""Stores with many rooms, without a command for each: a real worker makes one room, its row is copied, times are moved.

A prepared store is kept and copied for each run. In it every room has a session whose next window is far away; a run then
moves the rooms it is about, so that a command finds their window open or they fall due at an instant of its choice.
"""

import hashlib
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from bootstrap import BUILD, ROOT

PREFIX = "room-"
USER = "u"
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
# The default policy: the first window opens ten minutes before the end, the final one five, an extension gives ten.
FIRST_WINDOW, FINAL_WINDOW, EXTENSION = 10 * MINUTE, 5 * MINUTE, 10 * MINUTE
PLANNED = 60 * MINUTE
# As far as extensions have moved the end of rooms that are to stay quiet, and how old a prepared store may get meanwhile.
FAR = 300 * DAY
OLDEST = 100 * DAY
# What decides how a prepared store looks: with any of it changed it is made anew.
RECIPE = (ROOT / "Sources/Store/SQLite/Schema.swift", ROOT / "Sources/RoomCore/Policy.swift", Path(__file__))


def name(index):
    return f"{PREFIX}{index:07d}"


def now():
    return time.time_ns() // 1_000_000


class Stores:
    def __init__(self, lab):
        self._lab = lab
        self._directory = BUILD / "stores"
        self._directory.mkdir(parents=True, exist_ok=True)

    def copy(self, count, installation):
        """Puts a store with `count` quiet rooms in the installation's place and returns its path."""
        path = os.path.join(installation.directory, "overtime.db")
        shutil.copyfile(self._prepared(count), path)
        return path

    def _prepared(self, count):
        recipe = hashlib.sha256(b"".join(file.read_bytes() for file in RECIPE)).hexdigest()[:12]
        path = self._directory / f"{recipe}-{count}.db"
        if path.exists() and time.time() - path.stat().st_mtime < OLDEST / 1000:
            return path
        for old in self._directory.iterdir():
            if not old.name.startswith(recipe):
                old.unlink()
        installation = self._lab.installation()
        try:
            template = self._template(installation)
            part = path.with_suffix(".part")
            shutil.copyfile(template, part)
            multiply(part, count)
            part.rename(path)
        finally:
            self._lab.discard(installation)
        return path

    def _template(self, installation):
        """A store in which a worker has opened one room and let its user in."""
        worker = installation.worker()
        for arguments in (["open", "--duration", "60m"], ["join", "--user", USER]):
            done = installation.run("send", *arguments, "--room", name(0))
            assert done.returncode == 0, done.stdout + done.stderr
        code, _ = worker.terminate()
        assert code == 0, worker.tail()
        return os.path.join(installation.directory, "overtime.db")


def multiply(path, count):
    """Makes `count` rooms of one, all quiet."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN")
        assert database.execute(
            "SELECT id, announced, due_at = ends_at - ? FROM rooms", (FIRST_WINDOW,)
        ).fetchall() == [(name(0), 0, 1)]
        # The commands that made the room are forgotten, as after their retention.
        for table in ("answers", "outbox", "runs", "attempts"):
            database.execute(f"DELETE FROM {table}")
        extensions = (FAR - PLANNED) // EXTENSION
        database.execute(
            """
            UPDATE rooms SET ends_at = ends_at + ?1, due_at = due_at + ?1, extensions = ?2, extender_kind = 0,
                extended_by = ?3
            """,
            (extensions * EXTENSION, extensions, USER),
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
    _move(path, ((name(index), ends, 1) for index in indices))


def fall_due(path, indices, instant_of):
    """Moves rooms so that the first window of the n-th opens at `instant_of(n)`, in milliseconds since 1970."""
    _move(path, ((name(index), instant_of(number) + FIRST_WINDOW, 0) for number, index in enumerate(indices)))


def _move(path, rooms):
    """What the rules would have made of a session that began a planned duration before its end."""
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
            ((*room, PLANNED, FIRST_WINDOW, FINAL_WINDOW) for room in rooms),
        )
        database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
