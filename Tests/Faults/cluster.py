"""A cluster of three nodes that are killed one after the other, and the load that must not notice for long."""

import os
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path

import pika
from end_to_end import Broker
from scale_storm import ScaleStorm
from storm import STALL, Storm, StormHistory
from waiting import poll, until
from wire import Wire

CLUSTERED = {"OVERTIME_AMQP_CLUSTER": "true"}
QUORUM = {"x-queue-type": "quorum"}
# How long a node stays away.
AWAY = 4
# And how long it stands still, longer than clients and the other nodes take to notice.
FROZEN = 35

# Kills what leads each replicated queue; all else of the node goes on.
KILL_LEADERS = """
    length([case amqqueue:get_type(Q) of
        rabbit_quorum_queue ->
            {Name, Node} = amqqueue:get_pid(Q),
            exit(rpc:call(Node, erlang, whereis, [Name]), kill);
        rabbit_stream_queue ->
            exit(maps:get(leader_pid, amqqueue:get_type_state(Q)), kill)
    end || Q <- rabbit_amqqueue:list(), amqqueue:get_type(Q) =/= rabbit_classic_queue]).
"""


class Cluster(Broker):
    """Nodes 1 to 3; what is asked of the broker is asked of one that runs."""

    def __init__(self, script, directory, nodes=3):
        super().__init__(None, None, str(script), directory)
        self.nodes = range(1, nodes + 1)
        self.down = set()

    def _run(self, action, *arguments, limit=150):
        return subprocess.run(
            [self._script, action, self._directory, *map(str, arguments)], check=True, timeout=limit,
            capture_output=True, text=True, env=os.environ | {"NODES": str(len(self.nodes))}).stdout.strip()

    def begin(self):
        self._run("start", limit=400)
        self.url = self._run("url")

    def end(self):
        self._run("stop")

    @property
    def running(self):
        return [node for node in self.nodes if node not in self.down]

    def ctl(self, *arguments, limit=90, node=None):
        self._ctl = [self._script, "ctl", self._directory, str(node or self.running[0])]
        return super().ctl(*arguments, limit=limit)

    def channel(self):
        if self._admin is None or self._admin.is_closed:
            parameters = [pika.URLParameters(self.node_url(node)) for node in self.running]
            for each in parameters:
                each.heartbeat = 0
            self._admin = pika.BlockingConnection(parameters)
        return self._admin.channel()

    def kill_node(self, node):
        self.down.add(node)
        self._run("kill", node)

    def start_nodes(self):
        """All that are down."""
        self._run("start")
        self.down.clear()

    def node_url(self, node):
        return self._run("url", node)

    def signal_node(self, node, number):
        pid = int((Path(self._directory) / str(node) / "node.pid").read_text())
        assert b"beam" in Path(f"/proc/{pid}/cmdline").read_bytes()
        os.kill(pid, number)

    def replicated(self):
        return [
            row for row in self.listing("list_queues", "name", "type", "leader", "online")
            if row["type"] in ("quorum", "stream")]

    def whole(self, limit=90):
        """Waits until every replicated queue is on every node: before, the next loss may be one too many."""
        def missing():
            return [row for row in self.replicated() if len(row["online"]) < len(self.nodes)]

        poll(lambda: not missing(), limit, lambda: f"all replicas of {missing()}", every=0.5)

    def leader(self, queue):
        """The number of the node that leads it."""
        name = next(row["leader"] for row in self.replicated() if row["name"] == queue)
        return next(
            node for node in self.nodes
            if f"overtime-{(Path(self._directory) / str(node) / 'ports').read_text().split()[0]}@" in name)


class ClusterHistory(StormHistory):
    """Knows when answers came last, and for how long at most none came."""

    def __init__(self):
        super().__init__()
        self.answered_at = None
        self.stalls = []

    def note_reply(self, correlation, reply, properties):
        before = self.answered
        super().note_reply(correlation, reply, properties)
        if self.answered > before:
            now = time.monotonic()
            if self.answered_at:
                self.stalls.append((now - self.answered_at, self.answered_at))
            self.answered_at = now


class ClusterWire(Wire):
    queue_arguments = QUORUM
    heartbeat = 5


def reconnect(wire):
    """To the next node that answers; one may go while this is done."""
    def done():
        try:
            wire.reconnect()
        except (ConnectionError, TimeoutError, pika.exceptions.AMQPError):
            wire.close()
            return False
        return True

    poll(done, STALL, "a connection of the test's own")


class ClusterStorm(Storm):
    """A steady load, at least `commands` of them, while faults come one after the other."""

    def __init__(self, binary, cluster, canary, commands, faults, seed, rate=100, shards=1, workers=1, tell=print):
        super().__init__(binary, cluster, canary, 1 << 40, 0, seed, tell=tell)
        self.commands, self.faults, self.rate = commands, faults, rate
        self.workers = workers
        self.lane.installation.environment |= CLUSTERED | {"OVERTIME_SHARDS": str(shards)}
        self.report = []

    def _kinds(self, kills, broker_share):
        return []

    def _wire(self, prefix):
        return ClusterWire(self.broker.url, prefix, ClusterHistory())

    # The faults, on a thread of their own.

    def _fault(self, name):
        kind, _, which = name.partition(" ")
        cluster = self.broker
        if kind == "leaders":
            cluster.ctl("eval", KILL_LEADERS)
            return until(time.time() + AWAY)
        node = cluster.leader(f"{self.lane.prefix}.{which}") if which.isalpha() else int(which)
        if kind == "kill":
            cluster.kill_node(node)
            until(time.time() + AWAY)
            cluster.start_nodes()
        elif kind == "majority":
            for other in [node, *(other for other in cluster.nodes if other != node)][:2]:
                cluster.kill_node(other)
            until(time.time() + AWAY)
            cluster.start_nodes()
        else:
            # Like a host that vanishes: its connections stay, and nobody says so. It is not let go on: RabbitMQ 3.10 takes
            # a node that has stood still for one of a partition, which nothing heals but its restart.
            cluster.down.add(node)
            cluster.signal_node(node, signal.SIGSTOP)
            until(time.time() + FROZEN)
            cluster.kill_node(node)
            cluster.start_nodes()

    def _go_through(self):
        try:
            for name in self.faults:
                self.broker.whole()
                began, before = time.monotonic(), self.history.answered
                self._fault(name)
                self.history.changed.wait(
                    lambda before=before: self.history.answered > before, STALL, f"any answer after {name}")
                ended = time.monotonic()
                longest = max((gap for gap, at in self.history.stalls if began - gap <= at <= ended), default=0)
                self.report.append((name, round(longest, 2)))
                self.tell(f"cluster: {name}: {longest:.2f} s without an answer; {self._state()}")
            self.broker.whole()
        except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits
            self._failure = error
        finally:
            self._is_over = True

    # The load.

    def _load(self):
        stream = self._commands()
        self._failure, self._is_over = None, False
        faults = threading.Thread(target=self._go_through, daemon=True)
        faults.start()
        chunk = max(1, self.rate // 20)
        due = time.time()
        while not self._is_over or len(self.calls) < self.commands or self.unconfirmed:
            due = max(due + chunk / self.rate, time.time() - 1)
            until(due)
            if self.wire.lost:
                self._reconnect()
            self._collect()
            if self.outstanding < 2_000 and not (self._is_over and len(self.calls) >= self.commands):
                self._publish(stream, chunk)
            silence = time.monotonic() - (self.history.answered_at or self.began)
            assert silence < STALL or not self.outstanding, (
                f"no answer for {silence:.0f} s: {self._state()}\n{self.lane.log()}")
            assert self.worker.running and self.scheduler.running, f"ended by itself:\n{self.lane.log()}"
            if self._failure:
                raise self._failure
        self.total = len(self.calls)
        faults.join(5)
        self.longest = max((gap for gap, _ in self.history.stalls), default=0)

    def _reconnect(self):
        reconnect(self.wire)

    def _reckon(self):
        figures, violations = super()._reckon()
        return figures | {"longest stall": round(self.longest, 2), "stalls": self.report}, violations


class ClusterScaleStorm(ScaleStorm):
    """Many workers and schedulers, and nodes that are killed in turn: one at a time, each when all replicas are back."""

    def __init__(self, binary, cluster, canary, commands, faults, seed, *, servers, **options):
        self._due = queue.Queue()
        self._failure = None
        kinds = {f"node {node}": lambda storm, node=node: storm.then(f"node {node}") for node in cluster.nodes}
        super().__init__(
            binary, cluster, canary, commands, faults, seed,
            servers=servers | kinds | {"leaders": lambda storm: storm.then("leaders")}, **options)
        self.lane.installation.environment |= CLUSTERED
        self._nodes = threading.Thread(target=self._go_through, daemon=True)
        self._nodes.start()

    def _wire(self, prefix):
        return ClusterWire(self.broker.url, prefix, ClusterHistory())

    def then(self, fault):
        """The load goes on while the nodes are killed and brought back."""
        self._due.put(fault)

    def _go_through(self):
        try:
            while (fault := self._due.get()) is not None:
                self.broker.whole()
                self.tell(f"scale storm: {self._second():.1f} s: {fault} goes")
                if fault == "leaders":
                    self.broker.ctl("eval", KILL_LEADERS)
                    until(time.time() + AWAY)
                else:
                    self.broker.kill_node(int(fault.split()[1]))
                    until(time.time() + AWAY)
                    self.broker.start_nodes()
            self.broker.whole()
        except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits
            self._failure = error

    def _collect(self):
        if self.wire.lost:
            reconnect(self.wire)
        super()._collect()
        if self._failure:
            raise self._failure

    def _settle(self):
        self._due.put(None)

        def over():
            self._collect()
            return not self._nodes.is_alive() and not self.unconfirmed

        poll(over, 600, "the last node to be back", every=0.2)
        super()._settle()

    def close(self):
        self._due.put(None)
        super().close()

    def _reckon(self):
        figures, violations = super()._reckon()
        stalls = [gap for gap, _ in self.history.stalls]
        return figures | {"longest time without an answer, s": round(max(stalls, default=0), 1)}, violations
