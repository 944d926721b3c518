"""The broker, the processes and the history of Tests/EndToEnd, and the tracer that kills at a step."""

import importlib.util
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from canary import Canary
from stores import leave_out_other_stores, mark_of_sqlite, private_server

ROOT = Path(__file__).resolve().parents[2]


def _end_to_end():
    """The conftest of Tests/EndToEnd under a name of its own, as this one is `conftest` here."""
    spec = importlib.util.spec_from_file_location("end_to_end", ROOT / "Tests/EndToEnd/conftest.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["end_to_end"] = module
    spec.loader.exec_module(module)
    return module


end_to_end = _end_to_end()
MARK, FIGURES = end_to_end.MARK, end_to_end.FIGURES
SHORT = end_to_end.SHORT
binary, figure, history = end_to_end.binary, end_to_end.figure, end_to_end.history
connect, wire = end_to_end.connect, end_to_end.wire
worker, scheduler = end_to_end.worker, end_to_end.scheduler
prefix, plain_installation = end_to_end.prefix, end_to_end.installation
nothing_left_behind = end_to_end.nothing_left_behind
stores = end_to_end.stores
pytest_terminal_summary = end_to_end.pytest_terminal_summary


def pytest_configure(config):
    config.addinivalue_line("markers", "heavy: of the end-to-end tests, whose helpers are used here")
    config.addinivalue_line("markers", "heavy_fault: takes long; left to `make faults`")
    mark_of_sqlite(config)


def pytest_collection_modifyitems(items):
    leave_out_other_stores(items)


def pytest_sessionfinish():
    """Adds this run's figures to those of the runs before."""
    path = ROOT / ".build/faults-results.json"
    if FIGURES:
        path.parent.mkdir(exist_ok=True)
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(known | FIGURES, indent=2) + "\n")


@pytest.fixture(scope="session")
def broker():
    """Always a node of this session: nobody else is to meet its alarms and its missing queues."""
    script = str(ROOT / "scripts/broker")
    directory = tempfile.mkdtemp(prefix="overtime-faults-broker.")
    try:
        subprocess.run([script, "start", directory], check=True, timeout=150)
        url = subprocess.run(
            [script, "url", directory], check=True, capture_output=True, text=True).stdout.strip()
        broker = end_to_end.Broker(url, [script, "ctl", directory], script, directory)
        yield broker
        broker.close()
    finally:
        subprocess.run([script, "stop", directory], check=True, timeout=90)
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def cluster():
    """Three nodes of this session, all of whose queues may lose any of them."""
    # Not at the top: it builds on what this file loads.
    from cluster import Cluster

    directory = tempfile.mkdtemp(prefix="overtime-cluster.")
    cluster = Cluster(ROOT / "scripts/cluster", directory)
    try:
        cluster.begin()
        yield cluster
        cluster.close()
    finally:
        cluster.end()
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def sink():
    (ROOT / ".build").mkdir(exist_ok=True)
    with open(ROOT / ".build/faults-messages.jsonl", "w+b") as file:
        yield file


@pytest.fixture(scope="session")
def names():
    """A name and a password, of a user of the broker and of PostgreSQL, that must not be seen anywhere."""
    token = secrets.token_hex(6)
    return f"canary-{token}", f"Secret-{token}-password"


@pytest.fixture(scope="session")
def postgres(names):
    """Always a server of this session: nobody else is to meet its restarts."""
    with private_server() as server:
        server.use_login(*names)
        yield server


@pytest.fixture(scope="session")
def canary(broker, names):
    """A user of the broker whose password must not be seen anywhere."""
    canary = Canary(broker, *names)
    canary.restore()
    return canary


@pytest.fixture
def installation(plain_installation, canary, history):
    plain_installation.url = canary.url
    plain_installation.environment["OVERTIME_AMQP_URL"] = canary.url
    yield plain_installation
    canary.check(plain_installation, history)


@pytest.fixture
def say(request):
    """Prints a line while the test runs, as it may take long and its seeds must be known whatever comes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(line):
        with capture.global_and_fixture_disabled():
            print(f"\n{line}", end="", flush=True)

    return say


@pytest.fixture(scope="session")
def killpoint(tmp_path_factory):
    """The tracer, built from its one source file."""
    compiler = next((found for name in ("cc", "clang", "gcc") if (found := shutil.which(name))), None)
    if compiler is None:
        pytest.skip("there is no C compiler to build the tracer with")
    target = str(tmp_path_factory.mktemp("killpoint") / "killpoint")
    source = ROOT / "Tests/Faults/killpoint.c"
    subprocess.run(
        [compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o", target, source], check=True, timeout=60)
    return target
