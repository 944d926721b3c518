"""The fixtures of Tests/EndToEnd, on a broker that belongs to these tests alone and as a user whose password is a canary."""

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "EndToEnd"))
_spec = importlib.util.spec_from_file_location("end_to_end", TESTS / "EndToEnd/conftest.py")
end_to_end = importlib.util.module_from_spec(_spec)
sys.modules["end_to_end"] = end_to_end
_spec.loader.exec_module(end_to_end)

from canary import Canary  # noqa: E402
from end_to_end import *  # noqa: E402, F403
from end_to_end import FIGURES, ROOT, Broker  # noqa: E402

plain_installation = end_to_end.installation


def pytest_configure(config):
    config.addinivalue_line("markers", "heavy_fault: takes long; left to `make faults`")


def pytest_collection_modifyitems(items):
    """Light tests first."""
    items.sort(key=lambda item: item.get_closest_marker("heavy_fault") is not None)


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
            [script, "url", directory], check=True, capture_output=True, text=True
        ).stdout.strip()
        broker = Broker(url, [script, "ctl", directory], script, directory)
        yield broker
        broker.close()
    finally:
        subprocess.run([script, "stop", directory], check=True, timeout=90)
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def sink():
    (ROOT / ".build").mkdir(exist_ok=True)
    with open(ROOT / ".build/faults-events.jsonl", "w+b") as file:
        yield file


@pytest.fixture(scope="session")
def canary(broker):
    """A user of the broker whose password must not be seen anywhere."""
    canary = Canary(broker)
    canary.restore()
    return canary


@pytest.fixture
def installation(plain_installation, canary, history):
    plain_installation.url = canary.url
    plain_installation.environment["OVERTIME_AMQP_URL"] = canary.url
    yield plain_installation
    canary.check(plain_installation, history)
