"""Any node of three, or what leads every queue, may go: nothing is lost, and nothing waits longer than half a minute."""

import os
import random

import pytest
from canary import Canary
from cluster import CLUSTERED, ClusterScaleStorm, ClusterStorm, ClusterWire
from stores import KIND
from waiting import poll
from wire import ACK

COMMANDS = int(os.environ.get("OVERTIME_CLUSTER_COMMANDS", "10000"))
SEED = int(os.environ.get("OVERTIME_CLUSTER_SEED", "0")) or random.randrange(1, 1 << 32)
STALL = 30
FAULTS = [
    "kill 1", "leaders", "kill 2", "kill commands", "kill 3", "leaders", "kill ticks",
    "vanish commands", "vanish 1", "kill commands"]


@pytest.fixture(scope="session")
def broker(cluster):
    return cluster


@pytest.fixture(scope="session")
def canary(cluster, names):
    canary = Canary(cluster, *names)
    canary.restore()
    return canary


@pytest.fixture
def installation(installation):
    installation.environment |= CLUSTERED
    return installation


@pytest.fixture
def connect(cluster, installation, history):
    wires = []

    def connect():
        wires.append(ClusterWire(cluster.url, installation.prefix, history))
        return wires[-1]

    yield connect
    for wire in wires:
        wire.close()
        cluster.delete(wire.queues, [])


@pytest.mark.parametrize(("commands", "faults", "stall"), [
    pytest.param(2_000, ["kill commands", "leaders"], STALL, id="short"),
    pytest.param(COMMANDS, FAULTS, STALL, id="long", marks=pytest.mark.heavy_fault),
    # Nothing can go on without most of the nodes; how long is up to them.
    pytest.param(1_000, ["majority commands"], 90, id="majority", marks=pytest.mark.heavy_fault),
])
@pytest.mark.parametrize(("shards", "workers"), [(1, 1)])
def test_nodes_and_leaders_go(
        binary, cluster, canary, figure, say, request, commands, faults, stall, shards, workers):
    say(f"cluster: at least {commands} commands, {', '.join(faults)}; OVERTIME_CLUSTER_SEED={SEED}")
    storm = ClusterStorm(
        binary, cluster, canary, commands, faults, SEED, shards=shards, workers=workers, tell=say)
    try:
        figures, violations = storm.run()
    finally:
        storm.close()
    figure(f"cluster, {request.node.callspec.id}", figures)
    say(f"cluster: {figures['commands']} commands in {figures['seconds']} s, longest stall "
        f"{figures['longest stall']} s: {figures['lost']} lost, {figures['doubled']} doubled, "
        f"{figures['out of order']} out of order, {figures['wrong notices']} wrong notices, "
        f"{storm.lost_answers} answers lost; {figures['published again']} published again, "
        f"{figures['copies']} copies of {figures['events']} events")
    assert not violations, f"seed {SEED}:\n" + "\n".join(violations[:20])
    assert not storm.lost_answers
    assert figures["longest stall"] <= stall


@pytest.mark.heavy_fault
@pytest.mark.skipif(KIND != "postgresql", reason="OVERTIME_TEST_STORE=postgresql runs it")
def test_many_of_each(binary, cluster, canary, postgres, figure, say):
    """Workers and schedulers killed and frozen, PostgreSQL restarted, each node killed in turn, all leaders killed."""
    say(f"cluster and scale: {COMMANDS} commands; OVERTIME_CLUSTER_SEED={SEED}")
    storm = ClusterScaleStorm(
        binary, cluster, canary, COMMANDS, 14, SEED, workers=4, shards=16, schedulers=3, rooms=200, rate=40,
        servers={"PostgreSQL": lambda storm: postgres.restart("immediate")}, tell=say)
    try:
        figures, violations = storm.run()
    finally:
        storm.close()
    figure("cluster, many of each", figures)
    say(f"cluster and scale: {figures}")
    assert not violations, f"seed {SEED}:\n" + "\n".join(violations[:20])
    assert figures["longest stall, s"] <= 60


@pytest.mark.heavy_fault
def test_windows_open_while_a_node_is_away(cluster, installation, wire, worker, scheduler, history):
    """The node that leads the ticks; and for processes that are only started while it is away."""
    ticks = f"{installation.prefix}.ticks"
    cluster.whole()
    node = cluster.leader(ticks)
    is_mine = wire.url == cluster.node_url(node)
    cluster.kill_node(node)
    try:
        if is_mine:
            wire.reconnect()
        assert_window(wire, history, "before")
        for process in (scheduler, worker):
            assert process.terminate(20)[0] == 0, process.tail()
        installation.worker()
        installation.scheduler()
        assert_window(wire, history, "after")
    finally:
        cluster.start_nodes()
    cluster.whole()


def assert_ok(wire, *command, **fields):
    """A queue without a leader refuses for a moment: what is not confirmed is published again, under the key that it had."""
    message, call = wire.message(*command, **fields)
    poll(lambda: wire.settled(wire.publish_many([message])) == {ACK}, STALL, f"{call} to be taken", every=0.2)
    reply = wire.history.wait_reply(call, STALL)
    assert reply["ok"], reply


def assert_window(wire, history, room):
    policy = {"windows": ["6s"], "extension": {"min": "6s", "max": "6s"}}
    assert_ok(wire, "open", room, duration="8s", policy=policy)
    assert_ok(wire, "join", room, "ada")
    window = history.wait_event(room, "session.window.opened", STALL)
    assert window.data["lateBy"] < 5
