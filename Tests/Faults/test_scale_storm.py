"""Many workers, shards and schedulers under faults of all kinds: shortly here, at length by `make scale-storm`."""

import os
import random

import pytest
from scale_storm import ScaleStorm
from stores import KIND

pytestmark = pytest.mark.skipif(KIND != "postgresql", reason="OVERTIME_TEST_STORE=postgresql runs it")


def setting(name, default):
    return int(os.environ.get(f"OVERTIME_SCALE_{name}") or default)


def test_many_of_each(binary, broker, canary, postgres, figure, say):
    seed = setting("SEED", 0) or random.randrange(1, 1 << 32)
    counts = {
        "workers": setting("WORKERS", 3), "shards": setting("SHARDS", 8), "schedulers": setting("SCHEDULERS", 2),
        "rooms": setting("ROOMS", 100), "rate": setting("RATE", 80)}
    commands, faults = setting("COMMANDS", 4000), setting("FAULTS", 9)
    say(f"scale storm: {commands} commands, {faults} faults, {counts}, OVERTIME_SCALE_SEED={seed}")
    servers = {"PostgreSQL": lambda storm: postgres.restart("immediate"), "broker": ScaleStorm.restart_broker}
    storm = ScaleStorm(binary, broker, canary, commands, faults, seed, servers=servers, tell=say, **counts)
    try:
        figures, violations = storm.run()
    finally:
        storm.close()
    figure("many of each", figures)
    say(f"scale storm: {figures}")
    assert not violations, f"seed {seed}:\n" + "\n".join(violations[:20])
    assert sum(figures["kills"].values()) == faults
