"""What a process finds around it: nowhere to write its log, few descriptors, little memory, odd signals."""

import os
import signal
import time

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


def test_standard_descriptors_that_are_closed(installation, wire, history, broker, worker):
    """No file or socket of ours gets their numbers, so nothing that is printed goes there."""
    worker.terminate()
    line = "exec <&- >&- 2>&-"
    worker = installation.start("worker", command=shell(line))
    scheduler = installation.start("scheduler", command=shell(line))
    plays(wire, history, "r1")
    # Not as JSON: that prints process ids which close_connection does not take.
    table = broker.ctl("--silent", "list_connections", "pid", "client_properties").splitlines()
    ours = [line.split()[0] for line in table if any(f"pid {one.pid}" in line for one in (worker, scheduler))]
    assert len(ours) == 4, table
    for connection in ours:
        broker.ctl("close_connection", connection, "a test")
    with no_hot_loop(scheduler):
        plays(wire, history, "r2")
    for process in (worker, scheduler):
        for number in range(3):
            assert os.readlink(f"/proc/{process.pid}/fd/{number}") == "/dev/null"
        assert process.terminate()[0] == 0


def test_a_log_whose_reader_stands_still(installation, wire, history, worker):
    """Its pipe is full after a while: lines are lost, commands are not."""
    worker.terminate()
    reader, writer = os.pipe()
    try:
        environment = {"OVERTIME_LOG_LEVEL": "debug"}
        worker = installation.start(
            "worker", environment=environment, command=shell(f"exec >/proc/{os.getpid()}/fd/{writer} 2>&1")
        )
        calls = [wire.send("open", f"room-{number}") for number in range(2_000)]
        for call in calls:
            assert history.wait_reply(call, 60)["ok"]
        assert worker.terminate()[0] == 0
    finally:
        os.close(reader)
        os.close(writer)


def test_signals_that_mean_nothing(installation, wire, history, worker, scheduler):
    for process in (worker, scheduler):
        for name in (signal.SIGPIPE, signal.SIGHUP, signal.SIGWINCH, signal.SIGCONT):
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
    for component in ("worker", "scheduler"):
        for limit in (6, 9, 12, 15):
            few = installation.start(component, command=shell(f"ulimit -n {limit}"))
            began = time.monotonic()
            poll(lambda few=few: len(few.lines) > 1 or not few.running, 15, "a line or an end")
            poll(lambda few=few, began=began: not few.running or time.monotonic() > began + 1, 5, "tries")
            if few.running:
                with no_hot_loop(few):
                    poll(lambda began=began: time.monotonic() > began + 2, 5, "more tries")
            # Either it ends, for its supervisor to begin anew, or it says that it tries again.
            if few.running:
                assert "again" in few.tail() or few.said("disconnected"), (limit, few.tail())
                few.kill()
            else:
                assert few.popen.returncode in (71, 78, 127), (limit, few.popen.returncode, few.tail())
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
