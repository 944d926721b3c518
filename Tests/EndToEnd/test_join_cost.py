"""A join costs no more with 1,000 people in the room than with 10."""

import statistics
from pathlib import Path

import pytest

CROWDS = {"small": 10, "large": 1_000}
RUNS = 5
JOINS = 4_000


def cpu_seconds(process):
    """What the process has used, from the kernel's own account in nanoseconds."""
    total = 0
    for thread in Path(f"/proc/{process.pid}/task").iterdir():
        total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def send(wire, messages, limit=60):
    """Publishes commands without answers and waits until the broker has them."""
    receipts = wire.publish_many(message for message, _ in messages)
    assert wire.settled(receipts, limit) == {"ack"}


@pytest.mark.heavy
def test_a_join_costs_the_same_in_a_full_room(wire, worker, figure):
    for room, crowd in CROWDS.items():
        wire.ok("open", room, duration="5h")
        send(wire, [wire.message("join", room, f"u{number}", reply=False) for number in range(crowd)])
        status = wire.ok("status", room)
        assert status["session"]["connected"] == crowd

    costs = {room: [] for room in CROWDS}
    for run in range(RUNS):
        for room, crowd in CROWDS.items():
            before = cpu_seconds(worker)
            messages = []
            for number in range(JOINS // 2):
                user = f"guest-{run}-{number}"
                messages.append(wire.message("join", room, user, reply=False))
                messages.append(wire.message("leave", room, user, reply=False))
            send(wire, messages)
            # In order behind them all, so that its answer says that they are done.
            status = wire.ask("status", room, limit=60)
            assert status["session"]["connected"] == crowd
            costs[room].append((cpu_seconds(worker) - before) / JOINS)

    small, large = (statistics.median(costs[room]) for room in CROWDS)
    ratio = round(large / small, 3)
    figure("join cost with 1,000 people over that with 10 (CPU of the worker, median of 5)", ratio)
    figure("CPU of the worker for a join or leave, microseconds", round(small * 1e6, 1))
    assert ratio < 1.5, f"{costs}"
