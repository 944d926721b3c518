"""kill -9 at every k-th step of worker and scheduler, k drawn; `make kill-sweep` does all."""

import os
import random
import time

import pytest
from scheduler_sweep import SchedulerLane
from sweep import Sweep
from worker_sweep import RecoveryLane, WorkerLane

LANES = int(os.environ.get("OVERTIME_SWEEP_LANES", "3"))
# About how many kills there are by default.
SHARE = {WorkerLane: 16, RecoveryLane: 8, SchedulerLane: 6}


@pytest.mark.parametrize("lane", [WorkerLane, RecoveryLane, SchedulerLane], ids=lambda lane: lane.name)
def test_killed_at_every_step(lane, binary, broker, canary, killpoint, figure, say):
    every = int(os.environ.get("OVERTIME_SWEEP_EVERY", "0"))
    first = os.environ.get("OVERTIME_SWEEP_FIRST")
    began = time.monotonic()

    def draw(steps):
        chosen = every or random.randrange(max(1, steps // SHARE[lane]), 2 + steps * 5 // SHARE[lane] // 4)
        start = int(first) if first else random.randrange(chosen)
        say(f"{lane.name}: {steps} steps, OVERTIME_SWEEP_EVERY={chosen} OVERTIME_SWEEP_FIRST={start}")
        return chosen, start

    sweep = Sweep(lane, (binary, broker, canary, killpoint), LANES, draw, say)
    sweep.run()
    figure(f"kill points of the {lane.name}", {
        "kill points": sum(sweep.killed.values()), "by system call": sweep.table(), "runs": sweep.runs,
        "not met": [f"{point} {number}" for point, number in sweep.missed],
        "acknowledged and came again": sweep.requeued,
        "seconds": round(time.monotonic() - began), "violations": len(sweep.violations)})
    say(f"{lane.name}: {sum(sweep.killed.values())} kill points, {len(sweep.violations)} violations")
    assert not sweep.told, sweep.told
    assert not sweep.violations, "\n\n".join(sweep.violations[:5])
    assert sweep.killed and len(sweep.missed) <= len(sweep.tasks) // 50
