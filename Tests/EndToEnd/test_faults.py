"""What is killed, cut, frozen or refused loses nothing and does nothing twice."""

import shutil
import threading
import time

import pytest
from conftest import SHORT
from history import seconds
from waiting import poll

WHOLE = {"windows": ["1h"], "extension": {"min": "1h", "max": "2h"}}


class Load:
    """Commands with ids for many rooms, of which the outcome is known: one extension a room, whoever asks."""

    def __init__(self, wire, rooms, users, name="room"):
        self.wire = wire
        self.rooms = [f"{name}-{number}" for number in range(rooms)]
        self.users = users
        self.calls = []
        messages = []
        for step in self._steps():
            for room in self.rooms:
                message, call = wire.message(step[0], room, *step[1:2], **(step[2] if len(step) > 2 else {}))
                messages.append(message)
                self.calls.append(call)
        self.messages = messages

    def _steps(self):
        yield "open", None, {"duration": "1h", "policy": WHOLE}
        for number in range(self.users):
            yield "join", f"user-{number}"
        for number in range(self.users):
            yield "extend", f"user-{number}"
        for number in range(self.users // 2):
            yield "leave", f"user-{number}"

    @property
    def events_per_room(self):
        # Opened, started, the window that is open from the start, one extension.
        return 4 + self.users + self.users // 2

    def publish(self):
        return self.wire.publish_many(self.messages)

    def check(self, history, limit=60):
        """Each command had its answer, each room exactly the events that the commands make together."""
        for call in self.calls:
            history.wait_reply(call, limit)
        for room in self.rooms:
            history.wait_sequence(room, self.events_per_room, limit)
        for room in self.rooms:
            assert len(history.rooms[room]) == self.events_per_room, room
            assert len(history.events(room, "session.extended")) == 1, room
        granted = [
            call for call in self.calls if call.command["command"] == "extend" and call.replies[0][0]["ok"]
        ]
        assert len(granted) == len(self.rooms)
        assert {
            call.replies[0][0]["error"]["reason"] for call in self.calls if not call.replies[0][0]["ok"]
        } == {"already_extended"}

    def repeat(self, history):
        """Every command once more: nothing changes, and every answer is the one given before."""
        before = {room: history.rooms[room][-1].sequence for room in self.rooms}
        again = [self.wire.again(call) for call in self.calls]
        for call, repeat in zip(self.calls, again, strict=True):
            assert history.wait_reply(repeat, 60) == call.replies[0][0]
        for room in self.rooms:
            assert self.wire.ok("status", room)["sequence"] == before[room]


def wait_copies(history, count, limit=60):
    history.changed.wait(
        lambda: history.copies >= count, limit, lambda: f"{count} events; {history.copies} came"
    )


def test_the_worker_killed_under_2000_commands(installation, wire, worker, history, figure):
    load = Load(wire, 20, 40)
    assert len(load.calls) >= 2_000
    load.publish()
    began = time.monotonic()
    for share in (50, 300, 600, 900):
        wait_copies(history, share)
        worker.kill()
        worker = installation.worker()
    load.check(history)
    took = time.monotonic() - began
    load.repeat(history)
    events = sum(len(events) for events in history.rooms.values())
    figure(
        "kill -9 of the worker",
        {
            "commands": len(load.calls),
            "kills": 4,
            "seconds": round(took, 1),
            "events": events,
            "copies": history.copies - events,
            "answers twice": sum(len(call.replies) > 1 for call in load.calls),
            "commands without effect": 0,
        },
    )


@pytest.mark.heavy
@pytest.mark.parametrize(
    "point",
    [
        pytest.param("fdatasync", marks=pytest.mark.sqlite("the worker syncs no file; its kill sweep has its steps")),
        "send",
        "recv",
    ],
)
def test_the_worker_killed_at_every_step(installation, wire, history, figure, point):
    """Killed by the kernel at the nth sync to disk, or sending to or receiving from the broker."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    calls = {
        "fdatasync": "fdatasync,fsync",
        "send": "sendto,sendmsg,writev,write",
        "recv": "recvfrom,recvmsg,read",
    }[point]
    worker = installation.worker()
    wire.ok("open", "r", duration="1h", policy=WHOLE)
    sent, deaths = [], 0
    worker.terminate()
    # What a crash left is decided in batches, so a life has a handful of syncs: each of them, three times.
    steps = {"fdatasync": [*range(1, 6)] * 3, "send": range(10, 60, 2), "recv": range(20, 70, 2)}[point]
    for number in steps:
        for word, user in [("join", "ada"), ("extend", "ada"), ("leave", "ada")]:
            sent.append(wire.send(word, "r", user))
        traced = installation.start(
            "worker",
            command=[
                "strace",
                "-D",
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-e",
                f"trace={calls}",
                "-e",
                f"inject={calls}:signal=KILL:when={number}",
            ],
            on_end=history.changed.tell,
        )
        # Either it dies at that step, or it gets through all of it.
        history.changed.wait(
            lambda worker=traced: not worker.running or sent[-1].replies,
            30,
            "the traced worker to die or answer",
        )
        deaths += not traced.running
        traced.kill()
    installation.worker()
    for call in sent:
        history.wait_reply(call, 30)
    joined = sum(call.command["command"] == "join" and call.replies[0][0]["ok"] for call in sent)
    reply = wire.ok("status", "r")
    history.wait_sequence("r", reply["sequence"])
    assert joined == len(steps)
    assert len(history.events("r", "participant.joined")) == joined
    assert len(history.events("r", "session.extended")) == 1
    figure(f"killed at {point}", {"attempts": len(steps), "deaths": deaths})
    assert deaths >= len(steps) // 2


def test_sigterm_under_load(installation, wire, worker, history, figure):
    load = Load(wire, 20, 100)
    load.publish()
    times = []
    for share in (200, 1_500):
        wait_copies(history, share)
        code, took = worker.terminate(limit=10)
        assert code == 0, worker.tail()
        times.append(round(took, 2))
        worker = installation.worker()
    load.check(history)
    events = sum(len(events) for events in history.rooms.values())
    figure(
        "SIGTERM under load",
        {
            "commands": len(load.calls),
            "seconds to the exit": times,
            "copies": history.copies - events,
            "answers twice": sum(len(call.replies) > 1 for call in load.calls),
        },
    )


def test_sigterm_of_a_scheduler(installation, wire, scheduler, history):
    wire.ok("open", "r", duration="60m")
    code, took = scheduler.terminate()
    assert (code, took < 5) == (0, True)


def test_the_command_queue_deleted_under_the_worker(installation, wire, worker, broker, history):
    wire.ok("open", "r")
    mark = len(worker.lines)
    began = time.monotonic()
    broker.delete([f"{installation.prefix}.commands"], [])
    worker.wait_said("consuming", 10, mark, queue=f"{installation.prefix}.commands")
    assert time.monotonic() - began < 10
    assert wire.ok("join", "r", "ada")["sequence"] == 3


def test_connections_closed_by_an_administrator(installation, wire, scheduler, worker, broker, history):
    wire.ok(
        "open",
        "r",
        duration="20s",
        policy={"windows": ["10s", "9s"], "extension": {"min": "10s", "max": "10s"}},
    )
    wire.ok("join", "r", "ada")
    # Not as JSON: that prints process ids which close_connection does not take.
    table = broker.ctl("--silent", "list_connections", "pid", "client_properties").splitlines()
    mine = [
        line.split()[0]
        for line in table
        if any(f"pid {process.pid}" in line for process in (worker, scheduler))
    ]
    assert len(mine) == 4, table
    mark = len(worker.lines)
    waits = [threading.Thread(target=broker.ctl, args=("close_connection", pid, "test")) for pid in mine]
    for wait in waits:
        wait.start()
    for wait in waits:
        wait.join(60)
    installation.ready(worker, after=mark, limit=30)
    assert wire.ok("join", "r", "bob")["sequence"] >= 4
    history.wait_event("r", "session.window.opened", limit=20)


def test_a_worker_and_a_scheduler_that_stand_still(wire, worker, scheduler, history):
    """Frozen over an end: it is told once, late, and how late is said."""
    wire.ok("open", "r", duration="3s", policy=SHORT)
    end = seconds(wire.ok("join", "r", "ada")["session"]["endsAt"])
    history.wait_event("r", "session.window.opened")
    worker.pause()
    scheduler.pause()
    poll(lambda: time.time() > end + 1, 10, "the end to pass")
    scheduler.resume()
    worker.resume()
    ended = history.wait_event("r", "session.ended")
    assert 1 <= ended.data["lateBy"] < 3
    assert len(history.events("r", "session.window.opened")) <= 2


def test_a_subscriber_whose_queue_is_full(installation, wire, worker, broker, history):
    """It refuses; all others hear everything in order, and once it is gone nothing is held back."""
    full = f"full.{installation.prefix}"
    wire.declare(full, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    wire._on_loop(
        lambda done: wire._consumer.queue_bind(full, f"{installation.prefix}.events", "", callback=done)
    )
    mark = len(worker.lines)
    wire.ok("open", "other")
    for room in ("a", "b"):
        wire.ok("open", room, duration="1h", policy=WHOLE)
        for number in range(20):
            wire.ok("join", room, f"user-{number}")
    worker.wait_said("a queue bound to the events refuses events: tried again for 60 s", 10, mark)
    wire.ok("status", "other")
    broker.delete([full], [])
    for room in ("a", "b"):
        assert wire.ok("extend", room, "user-0")["sequence"] == 24
        history.wait_sequence(room, 24, 20)
        assert len(history.rooms[room]) == 24


@pytest.mark.heavy
def test_an_alarm_of_the_broker(installation, wire, worker, broker, history):
    """While the broker blocks publishers nothing is lost; afterwards everything comes."""
    load = Load(wire, 10, 20)
    worker.pause()
    receipts = load.publish()
    assert wire.settled(receipts) == {"ack"}
    mark = len(worker.lines)
    broker.ctl("set_vm_memory_high_watermark", "0.0000001")
    try:
        worker.resume()
        worker._changed.wait(
            lambda: any("block" in str(line) for line in worker.lines[mark:]),
            20,
            lambda: f"the worker to say that it is blocked; it said {worker.tail()}",
        )
    finally:
        broker.ctl("set_vm_memory_high_watermark", "0.4")
    load.check(history)


@pytest.mark.heavy
def test_the_broker_goes_and_comes_back(installation, wire, worker, scheduler, broker, history, figure):
    """First it stops in order, then like in a power cut.

    In this order, because a quorum queue of RabbitMQ 3.10 that was declared a second before the kill may
    never have a leader again, whoever uses it; after an orderly stop the queue is safe.
    """
    for way in ("stop_app", "power cut"):
        if way == "power cut" and not broker.can_cut_power:
            pytest.skip("OVERTIME_TEST_BROKER does not name the script that could end the broker")
        load = Load(wire, 20, 60, name=way[0])
        timed = f"timed-{way[0]}"
        wire.ok(
            "open",
            timed,
            duration="40s",
            policy={"windows": ["25s", "1s"], "extension": {"min": "25s", "max": "25s"}},
        )
        due = seconds(wire.ok("join", timed, "ada")["session"]["nextWindowAt"])
        before = history.copies
        receipts = load.publish()
        wait_copies(history, before + 300)
        marks = len(worker.lines), len(scheduler.lines)
        if way == "stop_app":
            broker.ctl("stop_app")
            broker.ctl("start_app")
        else:
            broker.cut_power()
            broker.start()
        back = time.monotonic()
        wire.reconnect()
        # What the broker did not confirm may be gone: it is sent again, with the same id.
        unknown = [
            message
            for message, receipt in zip(load.messages, receipts, strict=True)
            if receipt.state != "ack"
        ]
        wire.publish_many(unknown)
        installation.ready(worker, 30, marks[0])
        scheduler.wait_said("connected", 30, marks[1], connection="consumer")
        scheduler.wait_said("connected", 30, marks[1], connection="publisher")
        took = time.monotonic() - back
        assert took < 30
        load.check(history)
        window = history.wait_event(timed, "session.window.opened", limit=max(0, due - time.time()) + 15)
        figure(
            f"broker restart ({way})",
            {
                "seconds until all channels work again": round(took, 1),
                "commands sent again": len(unknown),
                "answers twice": sum(len(call.replies) > 1 for call in load.calls),
                "lateness of a window, ms": round(window.data["lateBy"] * 1000),
            },
        )
