"""Worker, scheduler and broker killed at random under load: shortly here, at length by `make kill-storm`."""

import os
import random

import pytest
from storm import Storm

COMMANDS = int(os.environ.get("OVERTIME_STORM_COMMANDS", "3000"))
KILLS = int(os.environ.get("OVERTIME_STORM_KILLS", "6"))
SEED = int(os.environ.get("OVERTIME_STORM_SEED", "0")) or random.randrange(1, 1 << 32)


def test_random_kills(binary, broker, canary, figure, say):
    if not broker.can_cut_power:
        pytest.skip("OVERTIME_TEST_BROKER does not name the script that could end the broker")
    say(f"storm: {COMMANDS} commands, {KILLS} kills, OVERTIME_STORM_SEED={SEED}")
    storm = Storm(binary, broker, canary, COMMANDS, KILLS, SEED, tell=say)
    try:
        figures, violations = storm.run()
    finally:
        storm.close()
    figure("random kills", figures)
    say(f"storm: {figures['commands']} commands, {sum(figures['kills'].values())} kills "
        f"{figures['kills']} in {figures['seconds']} s: {figures['lost']} lost, "
        f"{figures['doubled']} doubled, {figures['out of order']} out of order, "
        f"{figures['wrong notices']} wrong notices; {figures['published again']} published again, "
        f"{figures['copies']} copies of {figures['events']} events")
    assert not violations, f"seed {SEED}:\n" + "\n".join(violations[:20])
    assert sum(figures["kills"].values()) == KILLS
