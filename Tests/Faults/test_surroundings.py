"""What a process finds around it: nowhere to write its log, few descriptors, little memory, odd signals."""

import signal
import time
from contextlib import nullcontext

import pytest
from end_to_end import SHORT
from waiting import poll
from watching import no_hot_loop


def shell(text):
    """Runs the program behind a line of shell."""
    return ["sh", "-c", f'{text}; exec "$0" "$@"']


def plays(wire, history, room):
    wire.ok("open", room, limit=30, duration="3s", policy=SHORT)
    wire.ok("join", room, "ada")
    history.wait_event(room, "session.ended", 15)


def test_a_log_that_cannot_be_written(installation, wire, history, worker):
    """On a full disk, or read by nobody any more: the service goes on."""
    worker.terminate()
    for number, line in enumerate(["exec >/dev/full 2>&1", "exec >&- 2>&-"]):
        worker = installation.start("worker", command=shell(line))
        scheduler = installation.start("scheduler", command=shell(line))
        plays(wire, history, f"r{number}")
        for process in (worker, scheduler):
            assert process.terminate()[0] == 0


def test_signals_that_mean_nothing(installation, wire, history, worker, scheduler):
    for process in (worker, scheduler):
        for name in (signal.SIGPIPE, signal.SIGWINCH, signal.SIGCONT):
            process.popen.send_signal(name)
    plays(wire, history, "r")
    assert worker.running and scheduler.running


@pytest.mark.heavy_fault
def test_sixteen_schedulers(installation, wire, history, worker):
    """Nothing twice, nothing missed; those that only stand by drop what another has fired."""
    schedulers = [installation.start("scheduler") for _ in range(16)]
    for scheduler in schedulers:
        scheduler.wait_said("firing", 60)
    wire.declare(f"ticks.{installation.prefix}", [(f"{installation.prefix}.ticks", "")])
    rooms = [f"room-{number}" for number in range(20)]
    policy = {"windows": ["2s", "1s"], "extension": {"min": "2s", "max": "3s"}}
    for room in rooms:
        wire.ok("open", room, duration="3s", policy=policy)
        wire.ok("join", room, "ada")
    for room in rooms:
        history.wait_event(room, "session.ended", 15)
        assert [event.data["window"] for event in history.events(room, "session.window.opened")] == [1, 2]
    # Three instants a room; each of the sixteen firing each of them would be 960 ticks.
    assert wire.count(f"ticks.{installation.prefix}") < 240
    assert all(scheduler.running for scheduler in schedulers)


def test_few_descriptors(installation, wire, history):
    """With too few it says so and does not run hot; with just enough it works."""
    few = installation.start("worker", command=shell("ulimit -n 8"))
    poll(lambda: len(few.lines) > 1 or not few.running, 15, "a line or an end")
    began = time.monotonic()
    with no_hot_loop(few) if few.running else nullcontext():
        poll(lambda: time.monotonic() > began + 3, 4, "some tries")
    few.kill()
    assert len(few.lines) < 20, few.tail()
    worker = installation.start("worker", command=shell("ulimit -n 32"))
    installation.ready(worker)
    installation.scheduler()
    plays(wire, history, "r")


def test_little_memory(installation, wire, history, worker):
    """With an address space that is too small it ends or works; afterwards nothing is lost."""
    worker.terminate()
    worker = installation.start("worker", command=shell("ulimit -v 300000"))
    calls = [wire.send("open", f"room-{number}", moderators=["m" * 100]) for number in range(500)]
    history.changed.wait(lambda: calls[-1].replies or not worker.running, 30, "an answer or an end")
    if worker.running:
        assert worker.terminate()[0] == 0
    installation.worker()
    for call in calls:
        assert history.wait_reply(call, 30)["ok"]
