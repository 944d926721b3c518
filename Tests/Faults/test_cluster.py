"""Any node of three, or what leads every queue, may go: nothing is lost, and nothing waits longer than half a minute."""

import os
import random

import pytest
from canary import Canary
from cluster import ClusterStorm

COMMANDS = int(os.environ.get("OVERTIME_CLUSTER_COMMANDS", "10000"))
SEED = int(os.environ.get("OVERTIME_CLUSTER_SEED", "0")) or random.randrange(1, 1 << 32)
STALL = 30


@pytest.fixture(scope="session")
def canary(cluster, names):
    canary = Canary(cluster, *names)
    canary.restore()
    return canary


@pytest.mark.parametrize(("commands", "faults"), [
    pytest.param(2_000, ["kill commands", "leaders"], id="short"),
    pytest.param(
        COMMANDS, ["kill 1", "leaders", "kill 2", "kill commands", "kill 3", "leaders", "kill commands", "freeze commands"],
        id="long", marks=pytest.mark.heavy_fault),
])
@pytest.mark.parametrize(("shards", "workers"), [(1, 1)])
def test_nodes_and_leaders_go(binary, cluster, canary, figure, say, request, commands, faults, shards, workers):
    say(f"cluster: at least {commands} commands, {', '.join(faults)}; OVERTIME_CLUSTER_SEED={SEED}")
    storm = ClusterStorm(
        binary, cluster, canary, commands, faults, SEED, shards=shards, workers=workers, tell=say)
    try:
        figures, violations = storm.run()
    finally:
        storm.close()
    figure(f"cluster, {request.node.callspec.id}", figures)
    say(f"cluster: {figures['commands']} commands in {figures['seconds']} s, longest stall "
        f"{figures['longest stall']} s {figures['stalls']}: {figures['lost']} lost, {figures['doubled']} doubled, "
        f"{figures['out of order']} out of order, {figures['wrong notices']} wrong notices; "
        f"{figures['published again']} published again, {figures['copies']} copies of {figures['events']} events")
    assert not violations, f"seed {SEED}:\n" + "\n".join(violations[:20])
    assert figures["longest stall"] <= STALL
