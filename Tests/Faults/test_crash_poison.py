"""A message that kills every worker that reads it: it is set aside, and its neighbours are none the worse."""

import shutil
import subprocess

import pytest
from end_to_end import ROOT
from test_faults import WHOLE
from watching import check_store

# The first crash marks nothing; each of the next ones marks the message that was being decided.
MOST_CRASHES = 4


@pytest.fixture(scope="session")
def poisoned(tmp_path_factory):
    """The environment in which the parser dies of one text."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler to build the deadly parser with")
    target = tmp_path_factory.mktemp("poison") / "poison.so"
    source = ROOT / "Tests/Faults/poison.c"
    subprocess.run(
        ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", target, source], check=True, timeout=60)
    return {"LD_PRELOAD": str(target)}


@pytest.mark.parametrize("pills", [1, 3])
def test_a_message_that_crashes_the_worker(installation, wire, history, poisoned, figure, pills):
    worker = installation.worker(environment=poisoned)
    wire.dead_letters()
    worker.terminate()
    calls, deadly = [], set()
    for number in range(20):
        room = f"room-{number}"
        calls.append(wire.send("open", room, duration="1h", policy=WHOLE))
        calls += [wire.send("join", room, f"user-{user}") for user in range(10)]
        if number % 7 == 3 and len(deadly) < pills:
            deadly.add(wire.send("join", room, "poison pill").correlation)
        calls.append(wire.send("extend", room, "user-0"))
    crashes = 0
    while True:
        worker = installation.start("worker", environment=poisoned, on_end=history.changed.tell)
        history.changed.wait(
            lambda worker=worker: not worker.running
            or (all(call.replies for call in calls) and len(history.letters) == pills),
            30, lambda worker=worker: f"{len(history.letters)} letters; {worker.tail()}")
        if worker.running:
            break
        assert worker.wait_exit(5) == -6, worker.tail()
        crashes += 1
        assert crashes <= MOST_CRASHES + 3 * (pills - 1), worker.tail()
    assert {properties.correlation_id for _, properties in history.letters} == deadly
    for _, properties in history.letters:
        assert properties.headers["x-overtime-reason"] == "crashed_worker"
    for call in calls:
        assert call.replies[0][0]["ok"], call
    figure(f"crashes until {pills} deadly messages of {len(calls) + pills} were set aside", crashes)
    assert worker.terminate()[0] == 0
    assert check_store(installation) == 0
