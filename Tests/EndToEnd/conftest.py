"""One broker for the session; a prefix, a directory and a store for each test; and nothing left behind."""

import json
import os
import secrets
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pika
import pytest
from history import History
from overtime import Installation
from stores import KIND, PostgresServer, leave_out_other_stores, mark_of_sqlite, private_server, stores_on
from wire import Wire

ROOT = Path(__file__).resolve().parents[2]
MARK = f"e2e-{secrets.token_hex(6)}"
FIGURES = {}
SCHEMAS = ROOT.parent / "shared/data/schemas"


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "heavy: many messages or a broker restart; leave out with -m 'not heavy'"
    )
    mark_of_sqlite(config)


def pytest_collection_modifyitems(items):
    """Light tests first; the checks of all messages that were seen last."""
    leave_out_other_stores(items)
    items.sort(
        key=lambda item: (
            item.get_closest_marker("last") is not None,
            item.get_closest_marker("heavy") is not None,
        )
    )


def pytest_terminal_summary(terminalreporter):
    if FIGURES:
        terminalreporter.section("figures")
        for name, value in FIGURES.items():
            terminalreporter.write_line(f"{name}: {json.dumps(value)}")


def pytest_sessionfinish():
    if FIGURES:
        (ROOT / ".build").mkdir(exist_ok=True)
        (ROOT / ".build/e2e-results.json").write_text(json.dumps(FIGURES, indent=2) + "\n")


@pytest.fixture
def figure():
    """Notes a measured figure for the summary and the file of results."""
    return FIGURES.__setitem__


@pytest.fixture(scope="session")
def binary():
    path = Path(os.environ.get("OVERTIME_BIN") or ROOT / ".build/release/overtime")
    if not path.exists():
        pytest.exit(f"{path} is missing: swift build -c release --product overtime, or set OVERTIME_BIN", 2)
    return str(path)


class Broker:
    def __init__(self, url, ctl, script, directory):
        self.url = url
        self._ctl = ctl
        self._script = script
        self._directory = directory
        self._admin = None

    def ctl(self, *arguments, limit=90):
        done = subprocess.run(
            [*self._ctl, *arguments], capture_output=True, text=True, timeout=limit, check=False
        )
        assert done.returncode == 0, f"rabbitmqctl {arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def listing(self, *arguments):
        text = self.ctl("--silent", *arguments, "--formatter", "json")
        return json.loads(text[text.index("[") :])

    @property
    def can_cut_power(self):
        return self._script is not None

    def cut_power(self):
        subprocess.run([self._script, "kill", self._directory], check=True, timeout=60, capture_output=True)

    def start(self):
        subprocess.run([self._script, "start", self._directory], check=True, timeout=150, capture_output=True)

    def channel(self):
        """A blocking channel for declarations and deletions, on a new connection where the broker went."""
        for attempt in (1, 2):
            if self._admin is None or self._admin.is_closed:
                parameters = pika.URLParameters(self.url)
                parameters.heartbeat = 0
                self._admin = pika.BlockingConnection(parameters)
            try:
                return self._admin.channel()
            except pika.exceptions.AMQPError:
                if attempt == 2:
                    raise

    def delete(self, queues, exchanges):
        channel = self.channel()
        for queue in queues:
            channel.queue_delete(queue)
        for exchange in exchanges:
            channel.exchange_delete(exchange)
        channel.close()

    def close(self):
        if self._admin is not None and self._admin.is_open:
            self._admin.close()


@pytest.fixture(scope="session")
def broker():
    """The broker that the environment names, or a private one of this session."""
    url = os.environ.get("OVERTIME_TEST_AMQP_URL")
    if url:
        script = os.environ.get("OVERTIME_TEST_BROKER")
        broker = Broker(
            url,
            shlex.split(os.environ.get("OVERTIME_TEST_RABBITMQCTL", "rabbitmqctl")),
            script,
            os.environ.get("OVERTIME_TEST_BROKER_DIRECTORY"),
        )
        yield broker
        broker.close()
        return
    script = str(ROOT / "scripts/broker")
    directory = tempfile.mkdtemp(prefix="overtime-e2e-broker.")
    try:
        subprocess.run([script, "start", directory], check=True, timeout=150)
        url = subprocess.run(
            [script, "url", directory], check=True, capture_output=True, text=True
        ).stdout.strip()
        broker = Broker(url, [script, "ctl", directory], script, directory)
        yield broker
        broker.close()
    finally:
        subprocess.run([script, "stop", directory], check=True, timeout=90)
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def postgres():
    """The PostgreSQL server that the environment names, or a private one of this session."""
    tool = os.environ.get("OVERTIME_TEST_POSTGRES_TOOL")
    if tool:
        yield PostgresServer(tool, os.environ["OVERTIME_TEST_POSTGRES_DIRECTORY"])
        return
    with private_server() as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def stores(request):
    """Each test has a store of its own, of the kind that OVERTIME_TEST_STORE names."""
    with stores_on(request.getfixturevalue("postgres") if KIND == "postgresql" else None):
        yield


@pytest.fixture(scope="session")
def sink():
    """Every message that any test sees, a line each."""
    (ROOT / ".build").mkdir(exist_ok=True)
    with open(ROOT / ".build/e2e-messages.jsonl", "w+b") as file:
        yield file


@pytest.fixture
def history(sink):
    return History(sink)


@pytest.fixture
def prefix():
    """The names of a test's own."""
    return f"t{secrets.token_hex(4)}"


@pytest.fixture
def installation(binary, broker, tmp_path, prefix):
    """A prefix, a directory and a store of the test's own; its processes are ended with it."""
    installation = Installation(binary, broker.url, prefix, str(tmp_path), {"E2E_RUN": MARK})
    yield installation
    installation.end()
    shards = [f"{prefix}.commands.{number}" for number in range(4)]
    broker.delete(
        [f"{prefix}.{name}" for name in ("commands", "events.log", "queries", "ticks", "dead")] + shards,
        [
            f"{prefix}.{name}"
            for name in (
                "commands",
                "commands.shards",
                "events.topic",
                "events",
                "queries",
                "ticks",
                "replies",
                "dead",
            )
        ],
    )
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.fixture
def connect(broker, installation, history):
    """Makes connections of a client; their queues go with the test."""
    wires = []

    def connect(url=None):
        wire = Wire(url or broker.url, installation.prefix, history)
        wires.append(wire)
        return wire

    yield connect
    for wire in wires:
        wire.close()
    for wire in wires:
        broker.delete(wire.queues, [])


@pytest.fixture
def wire(connect, history, request):
    """A client that hears every event. After the test all guarantees are checked over all it saw."""
    wire = connect()
    wire.audit()
    yield wire
    history.check()


@pytest.fixture
def worker(installation, wire):
    """A running worker; `wire` is there before it, so that no event is missed."""
    return installation.worker()


@pytest.fixture
def scheduler(installation, worker):
    return installation.scheduler()


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind():
    """No process that a test started outlives the session."""
    yield
    left = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if MARK.encode() in (entry / "environ").read_bytes():
                    left.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    assert not left, f"processes were left behind: {left}"


SHORT = {"windows": ["2s", "1s"], "extension": {"min": "2s", "max": "4s"}}


@pytest.fixture
def open_room(wire):
    """Opens a room with short windows, and lets users in."""

    def open_room(room, *users, duration="4s", policy=SHORT, **fields):
        wire.ok("open", room, duration=duration, policy=policy, **fields)
        for user in users:
            wire.ok("join", room, user)

    return open_room
