"""Many workers on one store: each shard has one, and all have as many, whoever comes, goes or stands still."""

import time

import pytest
from sharing import consumers, is_even, leases
from stores import KIND
from test_faults import WHOLE
from waiting import poll

pytestmark = pytest.mark.skipif(KIND != "postgresql", reason="OVERTIME_TEST_STORE=postgresql runs it")
SHARDS = 16
HEARTBEAT = 5
# Until the shards are even again; those of one that says nothing more are freed by the broker after two heartbeats.
LIMIT = 10
FROZEN_LIMIT = 2 * HEARTBEAT + LIMIT


class Crew:
    """The workers of one store."""

    def __init__(self, installation, broker, figure):
        self.installation = installation
        self.broker = broker
        self.figure = figure
        self.environment = {"OVERTIME_SHARDS": str(SHARDS), "OVERTIME_AMQP_HEARTBEAT": f"{HEARTBEAT}s"}

    def start(self, count=1):
        return [self.installation.start("worker", environment=self.environment) for _ in range(count)]

    def even(self, workers, what, began, limit=LIMIT):
        """Waits until these have the shards, by their leases and by the broker; notes how long each took."""
        pids = [worker.pid for worker in workers]
        found = {}

        def settled(ask):
            found.update(last=ask())
            return is_even(found["last"], pids, SHARDS)

        def missing():
            return f"even shards after {what}: {found['last']} of {pids}; {workers[0].tail(6)}"

        poll(lambda: settled(lambda: leases(self.installation.store)), began + limit - time.monotonic(), missing)
        said = time.monotonic() - began
        # Each question takes about a second, which is not the workers'.
        poll(lambda: settled(lambda: consumers(self.broker, self.installation.prefix)),
            began + limit + 3 - time.monotonic(), missing)
        self.figure(f"seconds until shards are even: {what}", {
            "by their leases": round(said, 1), "by the broker": round(time.monotonic() - began, 1),
            "shards of each": sorted(len(shards) for shards in found["last"].values())})


@pytest.fixture
def crew(installation, broker, figure):
    yield Crew(installation, broker, figure)
    installation.end()
    broker.delete(
        [f"{installation.prefix}.commands.{shard}" for shard in range(SHARDS)], [f"{installation.prefix}.commands.shards"])


def test_shards_are_even(crew, wire, history, figure):
    began = time.monotonic()
    workers = crew.start(4)
    for worker in workers:
        worker.wait_said("starting")
    crew.even(workers, "a start of four", began)
    calls = [wire.send("open", f"room-{number}", duration="1h", policy=WHOLE) for number in range(200)]
    for call in calls:
        assert history.wait_reply(call)["ok"]

    # It has much in hand, and none of it decided.
    victim = workers.pop(1)
    victim.pause()
    calls = [wire.send("join", f"room-{number}", f"user-{user}") for user in range(15) for number in range(200)]
    poll(lambda: sum(1 for call in calls if call.replies) > 1000, LIMIT, "answers of the others")
    began = time.monotonic()
    victim.kill()
    crew.even(workers, "a kill", began)
    for call in calls:
        assert history.wait_reply(call, LIMIT)["ok"]
    figure("seconds until all is answered that a killed worker had in hand", round(time.monotonic() - began, 1))

    began = time.monotonic()
    workers += crew.start()
    crew.even(workers, "one joins", began)

    began = time.monotonic()
    assert workers.pop(0).terminate()[0] == 0
    crew.even(workers, "one leaves", began)
    workers += crew.start()
    crew.even(workers, "another joins", time.monotonic())

    frozen = workers.pop(2)
    began = time.monotonic()
    frozen.pause()
    calls = [wire.send("join", f"room-{number}", "ada") for number in range(200)]
    crew.even(workers, "one stands still", began, FROZEN_LIMIT)
    for call in calls:
        assert history.wait_reply(call, LIMIT)["ok"]
    frozen.resume()
    workers.append(frozen)
    crew.even(workers, "it goes on", time.monotonic())

    for number in range(200):
        wire.send("leave", f"room-{number}", "ada")
    for number in range(200):
        history.wait_event(f"room-{number}", "participant.left")
    for worker in workers:
        assert worker.terminate()[0] == 0, worker.tail()


def test_a_worker_with_another_number_of_shards_is_refused(crew):
    worker, = crew.start()
    poll(lambda: leases(crew.installation.store), 10, "its lease")
    other = crew.installation.start("worker", environment=crew.environment | {"OVERTIME_SHARDS": "8"})
    assert other.wait_exit(35) == 78
    assert "16" in other.tail() and "8" in other.tail()
    assert worker.running
