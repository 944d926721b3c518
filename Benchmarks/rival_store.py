"""The store of the rivals: the two tables one writes first."""

import os
import sqlite3
import time
from contextlib import closing

import prepared

FILES = ("", "-wal", "-shm")


def make(path, rooms):
    """So many rooms, the window of each open."""
    ends = prepared.now() + 8 * prepared.MINUTE
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN")
        database.execute(
            """
            CREATE TABLE rooms (id TEXT PRIMARY KEY, started_at INTEGER NOT NULL, ends_at INTEGER NOT NULL,
                extensions INTEGER NOT NULL, sequence INTEGER NOT NULL, user TEXT NOT NULL)
            """
        )
        database.execute("CREATE TABLE commands (id TEXT PRIMARY KEY, room TEXT NOT NULL, at INTEGER NOT NULL)")
        database.executemany(
            "INSERT INTO rooms VALUES (?, ?, ?, 0, 4, ?)",
            ((prepared.name(index), ends - prepared.USUAL.planned, ends, prepared.USER) for index in range(rooms)),
        )
        database.execute("COMMIT")


def remove(path):
    for suffix in FILES:
        if os.path.exists(f"{path}{suffix}"):
            os.remove(f"{path}{suffix}")


def connect(path):
    """As durable as the product's: a commit returns after the log was synced."""
    database = sqlite3.connect(path, isolation_level=None, timeout=30)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    return database


def now():
    return time.time_ns() // 1_000_000
