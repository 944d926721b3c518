"""Where a test's rooms are kept: in a SQLite file, or in a database of its own on a PostgreSQL server."""

import json
import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

ROOT = Path(__file__).resolve().parents[2]
KIND = os.environ.get("OVERTIME_TEST_STORE") or "sqlite"


def mark_of_sqlite(config):
    config.addinivalue_line(
        "markers", "sqlite(reason): about SQLite's file; left out where the rooms are elsewhere"
    )


def leave_out_other_stores(items):
    # Not at the top: what measures uses this file too, and has no pytest.
    import pytest

    for item in items:
        mark = item.get_closest_marker("sqlite")
        if mark and KIND != "sqlite":
            item.add_marker(pytest.mark.skip(reason=f"on PostgreSQL: {mark.args[0]}"))


class SQLiteFile:
    def __init__(self, path):
        self.path = str(path)
        self.url = f"sqlite:{path}"

    @contextmanager
    def read(self):
        """Gives what answers a query; read from a copy, so that no lock and no file of the store is ever touched."""
        with tempfile.TemporaryDirectory(prefix="overtime-copy.") as directory:
            copy = f"{directory}/copy.db"
            for ending in ("", "-wal", "-journal"):
                if os.path.exists(self.path + ending):
                    shutil.copyfile(self.path + ending, copy + ending)
            connection = sqlite3.connect(copy)
            try:
                yield lambda sql: connection.execute(sql).fetchall()
            finally:
                connection.close()

    def defects(self):
        with self.read() as rows:
            return [text for (text,) in rows("PRAGMA integrity_check") if text != "ok"]

    @staticmethod
    def text(column):
        """SQL for a column that holds a name."""
        return column

    def drop(self):
        """It goes with its directory."""


class PostgresDatabase:
    def __init__(self, url, server=None):
        self.url = url
        self._server = server
        parts = urlsplit(url)
        self.name = parts.path[1:]
        # The password is no argument: everybody can read those.
        self._target = urlunsplit(parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", "@")))
        self._environment = os.environ | {
            "PGPASSWORD": parts.password or "", "PGOPTIONS": "-c search_path=overtime", "PGCONNECT_TIMEOUT": "20"}

    def psql(self, *arguments, **options):
        """psql as the worker's user, for a test to wait for or to talk to."""
        return subprocess.Popen(
            ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", self._target, *arguments],
            env=self._environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    @contextmanager
    def read(self):
        yield self.rows

    def rows(self, sql):
        with self.psql("-c", f"SELECT coalesce(json_agg(row), '[]') FROM ({sql}) row") as asked:
            said, wrong = asked.communicate(timeout=60)
        assert asked.returncode == 0, f"{sql}: {wrong}"
        return [tuple(row.values()) for row in json.loads(said)]

    def defects(self):
        """A server looks after its files itself; that its rows can be read is seen by reading them."""
        return []

    @staticmethod
    def text(column):
        return f"convert_from({column}, 'UTF8') AS {column}"

    def drop(self):
        if self._server:
            self._server.psql(f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')


class PostgresServer:
    """A server of scripts/postgres, or one that answers to the same actions."""

    def __init__(self, tool, directory):
        self._tool = tool
        self.directory = directory
        self._login = None

    def run(self, action, *arguments, limit=150):
        done = subprocess.run(
            [self._tool, action, self.directory, *arguments], capture_output=True, text=True, timeout=limit, check=False)
        assert done.returncode == 0, f"{self._tool} {action} {arguments}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def psql(self, sql, database="postgres"):
        """As its superuser."""
        return self.run("psql", "-d", database, "-Atq", "-v", "ON_ERROR_STOP=1", "-c", sql, limit=60)

    def use_login(self, user, password):
        """The databases made from now on belong to this user."""
        self.psql(f"CREATE ROLE \"{user}\" LOGIN CREATEDB PASSWORD '{password}'")
        self._login = user, password

    def database(self):
        name = f"test_{secrets.token_hex(6)}"
        parts = urlsplit(self.run("database", name))
        if self._login:
            self.psql(f'ALTER DATABASE "{name}" OWNER TO "{self._login[0]}"')
            parts = parts._replace(netloc=f"{self._login[0]}:{self._login[1]}@{parts.hostname}:{parts.port}")
        return PostgresDatabase(urlunsplit(parts), self)

    def signal(self, name):
        for pid in self.run("pids").split():
            try:
                os.kill(int(pid), name)
            except ProcessLookupError:
                continue

    def freeze(self):
        """It keeps its connections and says nothing, as a host that hangs does."""
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def restart(self, mode="immediate"):
        self.run("restart", mode)

    def cut_power(self):
        self.run("kill")

    def start(self):
        self.run("start")


@contextmanager
def private_server():
    """A server that nobody else uses."""
    tool = str(ROOT / "scripts/postgres")
    directory = tempfile.mkdtemp(prefix="overtime-postgres.")
    # It runs as another user where this is root.
    os.chmod(directory, 0o711)
    server = PostgresServer(tool, directory)
    try:
        server.start()
        yield server
    finally:
        server.run("stop", limit=60)
        shutil.rmtree(directory)


_server = None


@contextmanager
def stores_on(server):
    """Stores are made on this server from now on, if on any."""
    global _server
    _server = server
    yield server
    _server = None


def new_store(directory, name="overtime"):
    """An empty store of the kind that is tested."""
    return _server.database() if KIND == "postgresql" else SQLiteFile(f"{directory}/{name}.db")


def store_at(text):
    """A store that is there: a URL, or the path of a file."""
    return PostgresDatabase(text) if text.startswith("postgres") else SQLiteFile(text.removeprefix("sqlite:"))
