"""Worker, scheduler and broker killed at random under commands. A short one by default; `make kill-storm` is long."""

import os
import random

import pytest
from storm import Storm

COMMANDS = int(os.environ.get("OVERTIME_STORM_COMMANDS", "3000"))
KILLS = int(os.environ.get("OVERTIME_STORM_KILLS", "6"))
SEED = int(os.environ.get("OVERTIME_STORM_SEED", "0")) or random.randrange(1, 1 << 32)


def test_random_kills(binary, broker, figure, say):
    if not broker.can_cut_power:
        pytest.skip("OVERTIME_TEST_BROKER does not name the script that could end the broker")
    say(f"storm: {COMMANDS} commands, {KILLS} kills, OVERTIME_STORM_SEED={SEED}")
    storm = Storm(binary, broker, COMMANDS, KILLS, SEED, tell=say)
    try:
        figures, violations = storm.run()
    finally:
        storm.close()
    figure("random kills", figures)
    say(f"storm: {figures['commands']} commands, {sum(figures['kills'].values())} kills {figures['kills']} in "
        f"{figures['seconds']} s: {figures['lost']} lost, {figures['doubled']} doubled, "
        f"{figures['out of order']} out of order, {figures['wrong notices']} wrong notices; "
        f"{figures['published again']} published again, {figures['copies']} copies of {figures['events']} events")
    assert not violations, f"seed {SEED}:\n" + "\n".join(violations[:20])
    assert sum(figures["kills"].values()) == KILLS
