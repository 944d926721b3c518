"""Rooms on a private PostgreSQL server: a database with many is made once, and copied for each run by the server itself."""

import os
import secrets
import subprocess

import prepared
from bootstrap import ROOT
from processes import Usage, children, usage

TOOL = str(ROOT / "scripts/postgres")
USUAL = prepared.USUAL


class Postgres:
    """The server of one lab."""

    def __init__(self, lab):
        self._lab = lab
        self._directory = lab.directory / "postgres"
        self._prepared = {}
        # It runs as another user where this is root.
        os.chmod(lab.directory, 0o711)
        self._run("start")

    def _run(self, action, *arguments, limit=600):
        done = subprocess.run(
            [TOOL, action, self._directory, *arguments], capture_output=True, text=True, timeout=limit, check=False
        )
        assert done.returncode == 0, f"postgres {action}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def sql(self, text, database="postgres"):
        return self._run("psql", "-d", database, "-Atq", "-v", "ON_ERROR_STOP=1", "-c", text)

    def usage(self):
        """Of the whole server: its own processes and one for each connection."""
        first = int((self._directory / "data/postmaster.pid").read_text().split()[0])
        total = Usage(0, 0, 0)
        for pid in [first, *children(first)]:
            try:
                total += usage(pid)
            except OSError:
                continue
        return total

    def copy(self, count):
        """A database with `count` quiet rooms: its name and its URL."""
        template = self._prepared.get(count) or self._prepare(count)
        name = f"run_{secrets.token_hex(4)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template} OWNER overtime STRATEGY file_copy")
        self.sql("CHECKPOINT")
        return name, self._run("url", name)

    def bytes(self, count):
        """What so many quiet rooms take, with their indexes."""
        return int(
            self.sql(
                """
                SELECT sum(pg_total_relation_size(oid)) FROM pg_class
                WHERE relnamespace = 'overtime'::regnamespace AND relname IN ('rooms', 'participants')
                """,
                self._prepared[count],
            )
        )

    def drop(self, name):
        self.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def open_windows(self, name, count, rooms):
        """As `prepared.open_windows`, for the rooms that `count` commands act on; they are spread over all of them."""
        stride, ends = prepared.spread(rooms), prepared.now() + 8 * prepared.MINUTE
        self.sql(
            f"""
            UPDATE overtime.rooms SET started_at = {ends - USUAL.planned}, changed_at = {ends - USUAL.planned},
                ends_at = {ends}, announced = 1, extensions = 0, extender_kind = NULL, extended_by = NULL,
                sequence = sequence + 1, version = version + 1, due_at = {ends - USUAL.final}
            WHERE id IN (SELECT {identifier(f"(number * {stride}) % {rooms}")}
                FROM generate_series(0::bigint, {count - 1}) AS number)
            """,
            name,
        )
        self.sql("VACUUM ANALYZE overtime.rooms", name)
        self.sql("CHECKPOINT")

    def _prepare(self, count):
        """A worker makes one room, its row is copied, times are moved."""
        name = f"rooms_{count}"
        url = self._run("database", name)
        installation = self._lab.installation()
        try:
            worker = installation.worker(environment={"OVERTIME_STORE": url})
            for arguments in (["open", *USUAL.options], ["join", "--user", prepared.USER]):
                done = installation.run("send", *arguments, "--room", prepared.name(0))
                assert done.returncode == 0, done.stdout + done.stderr
            code, _ = worker.terminate()
            assert code == 0, worker.tail()
        finally:
            self._lab.discard(installation)
        for table in ("answers", "outbox", "runs", "attempts"):
            self.sql(f"DELETE FROM overtime.{table}", name)
        extensions = (prepared.FAR - USUAL.planned) // USUAL.extension
        further = extensions * USUAL.extension
        self.sql(
            f"""
            UPDATE overtime.rooms SET ends_at = ends_at + {further}, due_at = due_at + {further},
                extensions = {extensions}, extender_kind = 0, extended_by = convert_to('{prepared.USER}', 'UTF8')
            """,
            name,
        )
        for table, key in (("rooms", "id"), ("participants", "room")):
            columns = self.sql(
                f"""
                SELECT attname FROM pg_attribute WHERE attrelid = 'overtime.{table}'::regclass AND attnum > 0
                    AND NOT attisdropped ORDER BY attnum
                """,
                name,
            ).split()
            copied = ", ".join(identifier("number") if column == key else column for column in columns)
            self.sql(
                f"""
                INSERT INTO overtime.{table} ({", ".join(columns)})
                SELECT {copied} FROM overtime.{table}, generate_series(1, {count - 1}) AS number
                """,
                name,
            )
        self.sql("VACUUM ANALYZE", name)
        self._prepared[count] = name
        return name

    def close(self):
        self._run("stop", limit=90)


def identifier(number):
    """SQL for the name of a room."""
    return f"convert_to('{prepared.PREFIX}' || lpad(({number})::text, 7, '0'), 'UTF8')"
