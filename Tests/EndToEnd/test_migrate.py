"""A service that goes on on PostgreSQL where it stopped on SQLite."""

import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from history import seconds
from waiting import poll

ROOT = Path(__file__).resolve().parents[2]
LONG = {"windows": ["8h"], "extension": {"min": "8h", "max": "9h"}}
ROOMS = 100_000

TEXTS = "d.text, CASE WHEN r.session_definition = r.definition THEN NULL ELSE s.text END"
PLAIN = (
    "version, sequence, session, is_open, phase, connected, changed_at, started_at, ends_at, extensions, announced, "
    "extender_kind, ended_at, cause, due_at, idle_since"
)
# The same rows of both kinds of store, as text.
HERE = {
    "rooms": f"""SELECT hex(r.id), {PLAIN}, hex(extended_by), {TEXTS} FROM rooms r
        LEFT JOIN definitions d ON d.id = r.definition LEFT JOIN definitions s ON s.id = r.session_definition""",
    "participants": "SELECT hex(room), session, hex(user), role, joined_at FROM participants",
    "answers": "SELECT number, hex(room), hex(id), session, at, position, hex(canonical), hex(reply) FROM answers",
    "outbox": "SELECT position, hex(room), sequence, type, hex(message_id), timestamp, hex(body), trace FROM outbox",
}


def hexed(name):
    return f"upper(encode({name}, 'hex'))"


THERE = {
    "rooms": f"""SELECT {hexed("id")}, {PLAIN}, coalesce({hexed("extended_by")}, ''), definition, session_definition
        FROM overtime.rooms""",
    "participants": f"SELECT {hexed('room')}, session, {hexed('name')}, role, joined_at FROM overtime.participants",
    "answers": f"""SELECT number, {hexed("room")}, {hexed("id")}, session, at, position, {hexed("canonical")},
        {hexed("reply")} FROM overtime.answers""",
    "outbox": f"""SELECT position, {hexed("room")}, sequence, type, {hexed("message_id")}, timestamp, {hexed("body")},
        trace FROM overtime.outbox""",
}


class Database:
    """An empty database of the test's own."""

    def __init__(self, tool, directory):
        self._tool = [tool, "psql", directory]
        self.name = f"migrate_{secrets.token_hex(6)}"
        self.url = subprocess.run(
            [tool, "database", directory, self.name], check=True, capture_output=True, text=True
        ).stdout.strip()
        self.password = self.url.split("@")[0].rsplit(":", 1)[1]

    def sql(self, text, database=None):
        """Rows as lists of texts; NULL is None."""
        done = subprocess.run(
            [self._tool[0], self._tool[1], self._tool[2], "-At", "-F", "\x1f", "-P", "null=\x1e", "-c", text]
            + ["-d", database or self.name],
            check=True,
            capture_output=True,
            text=True,
        )
        return [
            tuple(None if value == "\x1e" else value for value in line.split("\x1f"))
            for line in done.stdout.split("\n")[:-1]
        ]

    def rows(self, table):
        return sorted(self.sql(THERE[table]))

    def drop(self):
        self.sql(f"DROP DATABASE {self.name} WITH (FORCE)", "postgres")


@pytest.fixture(scope="module")
def server():
    """The PostgreSQL server that the environment names, or a private one."""
    tool = os.environ.get("OVERTIME_TEST_POSTGRES_TOOL")
    if tool:
        yield tool, os.environ["OVERTIME_TEST_POSTGRES_DIRECTORY"]
        return
    tool, directory = str(ROOT / "scripts/postgres"), tempfile.mkdtemp(prefix="overtime-e2e-postgres.")
    # Its user is another one where root runs the tests.
    os.chmod(directory, 0o711)
    try:
        subprocess.run([tool, "start", directory], check=True, timeout=150)
        yield tool, directory
    finally:
        subprocess.run([tool, "stop", directory], check=True, timeout=90)
        shutil.rmtree(directory)


@pytest.fixture
def database(server, installation):
    database = Database(*server)
    yield database
    installation.end()
    database.drop()


@pytest.fixture
def stores(installation, database, tmp_path):
    """Environments of processes on either store; that of PostgreSQL has the URL in a file."""
    (tmp_path / "store-url").write_text(database.url + "\n")
    (tmp_path / "store-url").chmod(0o600)
    path = str(tmp_path / "before.db")
    del installation.environment["OVERTIME_STORE"]
    return path, {"OVERTIME_STORE": f"sqlite:{path}"}, {"OVERTIME_STORE_FILE": str(tmp_path / "store-url")}


def sqlite_rows(path, table):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return sorted(
            tuple(None if value is None else str(value) for value in row)
            for row in connection.execute(HERE[table])
        )
    finally:
        connection.close()


def test_the_next_window_opens_on_time(installation, database, stores, broker, wire, history):
    path, before, after = stores
    worker = installation.worker(environment=before)
    scheduler = installation.scheduler(environment=before)
    calls = [wire.send("open", f"room-{number}", duration="8h", policy=LONG) for number in range(50)]
    calls += [
        wire.send("join", f"room-{number}", f"user-{number}", role="viewer") for number in range(0, 50, 2)
    ]
    calls += [wire.send("destroy", f"room-{number}", "user-0") for number in range(0, 50, 10)]
    wire.ok("open", "timed", duration="24s", policy={"windows": ["6s", "2s"], "extension": {"min": "6s"}})
    joined = wire.ok("join", "timed", "ada", role="moderator")
    answers = [history.wait_reply(call) for call in calls]
    # Events that are still unpublished when the worker stops.
    full = f"full.{installation.prefix}"
    wire.declare(full, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    wire._on_loop(
        lambda done: wire._consumer.queue_bind(full, f"{installation.prefix}.events", "", callback=done)
    )
    mark = len(worker.lines)
    held = ["held-a", "held-b"]
    for room in held:
        wire.ok("open", room, duration="8h", policy=LONG)
        for number in range(5):
            wire.ok("join", room, f"user-{number}")
    worker.wait_said("a queue bound to the events refuses events: tried again for 60 s", 10, mark)

    def migrate(code, *arguments, environment=after):
        done = installation.run(
            "migrate-store", f"sqlite:{path}", *arguments, environment=environment, limit=60
        )
        assert done.returncode == code, done
        assert database.password + "@" not in done.stdout + done.stderr
        return done.stdout + done.stderr

    assert f"owned by another worker (pid {worker.pid}" in migrate(1)
    assert scheduler.terminate()[0] == 0 and worker.terminate()[0] == 0
    text = migrate(0)
    assert "53 rooms moved to postgresql://127.0.0.1" in text, text
    for table in HERE:
        assert sqlite_rows(path, table) == database.rows(table), table
    assert len(database.rows("outbox")) >= 10
    broker.delete([full], [])
    assert "there is nothing to do" in migrate(0, database.url, environment=before)
    old = installation.start("worker", environment=before)
    said = old.wait_said("the store cannot be opened: trying again")
    assert "was moved to postgresql://127.0.0.1" in said["error"], said
    old.terminate()

    installation.worker(environment=after)
    installation.scheduler(environment=after)
    opened = history.wait_event("timed", "session.window.opened", 20)
    assert opened.sequence == joined["sequence"] + 1
    assert opened.data["lateBy"] < 0.5 and opened.at - seconds(opened.data["dueAt"]) < 1
    # Published in their order, as the history's check sees; and forgotten with a later commit.
    poll(lambda: not database.rows("outbox"), 20, "the events that were unpublished")
    assert history.copies >= 10
    for call, answer in zip(calls, answers, strict=True):
        assert history.wait_reply(wire.again(call)) == answer
    extended = wire.ok("extend", "timed", "ada", by="6s")
    assert extended["sequence"] == opened.sequence + 1
    ended = history.wait_event("timed", "session.ended", 30)
    assert ended.data["lateBy"] < 0.5


def test_what_is_refused(installation, database, stores, wire, tmp_path):
    path, before, after = stores

    def migrate(code, *arguments, environment=after):
        done = installation.run("migrate-store", *arguments, environment=environment)
        assert done.returncode == code, done
        assert database.password + "@" not in done.stdout + done.stderr
        assert "\n" not in done.stderr.rstrip("\n"), done.stderr
        return done.stdout + done.stderr

    assert "is not there" in migrate(1, f"sqlite:{path}")
    assert not Path(path).exists(), "a migration makes no store"
    assert "sqlite:PATH" in migrate(2)
    assert "sqlite:PATH" in migrate(2, path)
    assert "postgresql://" in migrate(2, f"sqlite:{path}", "mysql://overtime:overtime@127.0.0.1/x")
    assert "unexpected" in migrate(2, f"sqlite:{path}", database.url, "more")
    assert "where to is not said" in migrate(78, f"sqlite:{path}", environment=before)
    worker = installation.worker(environment=before)
    wire.ok("open", "demo", duration="8h", policy=LONG)
    assert worker.terminate()[0] == 0
    wrong = database.url.replace(":overtime@", ":wrong@")
    assert "refuses" in migrate(1, f"sqlite:{path}", wrong)

    worker = installation.worker(environment=after)
    assert "is used by a worker" in migrate(1, f"sqlite:{path}")
    assert worker.terminate()[0] == 0
    lines = [json.loads(line) for line in migrate(0, f"sqlite:{path}", "--json").splitlines()]
    assert lines[0].items() >= {"step": "copied", "table": "rooms", "rows": 1}.items()
    assert lines[-1].items() >= {"step": "moved", "rooms": 1}.items()

    # Nothing has changed there: the file may be used again, and the database is closed.
    assert "taken back" in migrate(0, f"sqlite:{path}", "--back")
    assert "was not moved" in migrate(1, f"sqlite:{path}", "--back")
    refused = installation.start("worker", environment=after)
    said = refused.wait_said("the store cannot be opened: trying again")
    assert "is half of a migration" in said["error"], said
    refused.terminate()
    worker = installation.worker(environment=before)
    wire.ok("open", "another", duration="8h", policy=LONG)
    assert worker.terminate()[0] == 0
    assert "2 rooms moved" in migrate(0, f"sqlite:{path}")
    worker = installation.worker(environment=after)
    wire.ok("open", "third", duration="8h", policy=LONG)
    assert worker.terminate()[0] == 0
    assert "was used since" in migrate(1, f"sqlite:{path}", "--back")


@pytest.mark.heavy
@pytest.mark.slow
def test_100000_live_rooms(installation, database, stores, connect, history, figure):
    path, before, after = stores
    worker = installation.worker(environment=before)
    wire = connect()
    prefix = installation.prefix
    properties = wire.message("open", "x", reply=False)[0][3]
    wire.declare(f"windows.{prefix}", [(f"{prefix}.events.topic", "session.window.opened")])
    heard = []

    def note(_method, _properties, body):
        heard.append((time.time(), json.loads(body)))
        history.changed.tell()

    def commands(*words):
        for number in range(ROOMS):
            for word in words:
                # Some thirty definitions, and users of their own.
                more = {"open": {"duration": f"{300 + number % 30}m"}, "join": {"user": f"user-{number}"}}[
                    word
                ]
                body = {"command": word, "room": f"room-{number}", "id": f"{word}-{number}"} | more
                yield f"{prefix}.commands", body["room"], json.dumps(body).encode(), properties, False

    began = time.monotonic()
    receipts = wire.publish_many(commands("open", "join"))
    assert wire.settled(receipts, 180) == {"ack"}
    history.wait_reply(wire.send("status", "room-0"), 180)
    filled = time.monotonic() - began
    timed = [f"timed-{number}" for number in range(300)]
    policy = {"windows": ["10s"], "extension": {"min": "10s"}}
    for number, room in enumerate(timed):
        wire.send("open", room, duration=f"{40_000 + 500 * number}ms", policy=policy, reply=False)
    calls = [wire.send("join", room, "ada") for room in timed]
    answers = [history.wait_reply(call, 60) for call in calls]
    assert worker.terminate(30)[0] == 0
    stopped = time.monotonic()
    rows = {table: sqlite_rows(path, table) for table in HERE}
    assert len(rows["rooms"]) == ROOMS + len(timed)

    def migrate(*options):
        """The seconds that it took, and its steps."""
        began, peak = time.monotonic(), 0
        process = installation.start("migrate-store", f"sqlite:{path}", "--json", *options, environment=after)
        while process.running:
            peak = max(peak, int((process.status("VmHWM") or "0").split()[0]))
            time.sleep(0.05)
        assert process.wait_exit(5) == 0, process.tail()
        steps = {
            f"{line['step']} {line['table']}": line["milliseconds"]
            for line in process.lines
            if "table" in line
        }
        return round(time.monotonic() - began, 1), steps, peak

    # Killed in the middle, then to its end, and back.
    killed = installation.start("migrate-store", f"sqlite:{path}", environment=after)
    halfway = ROOMS // 3
    poll(
        lambda: database.sql("SELECT to_regclass('overtime.rooms')") != [(None,)]
        and int(database.sql("SELECT count(*) FROM overtime.rooms")[0][0]) >= halfway,
        60,
        "a third of the rooms",
    )
    killed.kill()
    there = int(database.sql("SELECT count(*) FROM overtime.rooms")[0][0])
    resumed, _, _ = migrate()
    for table in HERE:
        assert database.rows(table) == rows[table], table
    back, _, _ = migrate("--back")
    # Anew, and as a whole.
    moved, steps, peak = migrate()
    for table in HERE:
        assert database.rows(table) == rows[table] == sqlite_rows(path, table), table

    wire.consume(f"windows.{prefix}", note)
    installation.worker(environment=after)
    installation.scheduler(environment=after)
    working = time.time()
    waited = time.monotonic() - stopped
    history.changed.wait(
        lambda: sum(seconds(event["data"]["dueAt"]) > working for _, event in heard) >= 40,
        150,
        lambda: f"windows that open now; {len(heard)} were heard",
    )
    due = [(at, event) for at, event in heard if seconds(event["data"]["dueAt"]) > working]
    late = sorted(event["data"]["lateBy"] for _, event in due)
    for call, answer in zip(calls[:50], answers, strict=False):
        assert history.wait_reply(wire.again(call)) == answer
    figure(
        "100,000 live rooms moved to PostgreSQL",
        {
            "rows": {table: len(found) for table, found in rows.items()},
            "filled in s": round(filled, 1),
            "rooms there at the kill": there,
            "the rest in s": resumed,
            "taken back in s": back,
            "moved as a whole in s": moved,
            "its steps, ms": steps,
            "its peak resident, KiB": peak,
            "no worker for s": round(waited, 1),
            "windows": len(due),
            "max of lateBy, ms": round(late[-1] * 1000),
            "max by the subscriber's clock, ms": round(
                max(at - seconds(event["data"]["dueAt"]) for at, event in due) * 1000
            ),
        },
    )
    assert late[-1] < 1
