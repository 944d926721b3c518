"""One run of the scenario against a worker that is killed at one step."""

from dump import Dump
from lanes import LIMIT, Lane
from scenario import Scenario
from waiting import poll


class WorkerLane(Lane):
    """Beside it runs one scheduler, so that windows and ends come due in every run."""

    name = "worker"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        # The topology is there before the first run, as in an installation that has been running.
        self.begin()
        worker = self.start("worker")
        self.installation.ready(worker)
        self.scheduler = self.installation.scheduler()
        self.keep.append(self.scheduler)
        worker.terminate()
        self.wire.dead_letters()

    def first(self, point, number):
        return self.traced("worker", point, number)

    def run(self, point=None, number=0):
        """Returns whether the worker was killed there, the counts of its steps, and the problems found."""
        self.begin()
        self.scenario = scenario = Scenario(self.wire, self.tag)
        try:
            self.drive(scenario, self.first(point, number))
            killed, counts = self.read_report()
            return killed, counts, self.problems(scenario)
        except AssertionError as error:
            return *self.read_report(), [f"{error}\n{self.log()}"]

    def drive(self, scenario, worker):
        """To the end of the scenario and of a worker, with a new worker for one that died."""
        deaths = 0
        while True:
            self.history.changed.wait(
                lambda running=worker: scenario.advance() or not running.running, LIMIT,
                lambda: f"{scenario.missing()}\n{self.log()}")
            if self.stopped(worker):
                break
            code = worker.wait_exit(5)
            deaths += 1
            assert code == -9, f"{worker.name} ended with {code}"
            assert deaths == 1, f"{worker.name} was killed by nobody"
            worker = self.start("worker")
        killed = self.read_report()[0]
        assert killed == (deaths == 1), f"it died {deaths} times; killed by the tracer: {killed}"

    def problems(self, scenario):
        dump = Dump(self.store)
        for room, sequence in dump.sequences.items():
            self.history.wait_sequence(room, sequence, 5)
        invalid = {call.correlation for call in scenario.invalid}
        letters = self.history.letters
        self.history.changed.wait(
            lambda: invalid <= {properties.correlation_id for _, properties in letters}, 5,
            "the dead letters")
        problems = scenario.problems() + dump.problems(self.history, scenario.calls)
        if strangers := {properties.correlation_id for _, properties in letters} - invalid:
            problems.append(f"dead letters that should not be: {strangers}")
        if left := self.wire.count(f"{self.prefix}.commands"):
            problems += self.again(left, dump)
        self.history.check()
        return problems

    def again(self, left, before):
        """What was acknowledged just before a stop may come again and must do nothing a second time: RabbitMQ
        3.10 forgets acknowledgements of a quorum queue that are not worked off when the channel closes."""
        self.requeued += left
        worker = self.start("worker")
        poll(lambda: not self.wire.count(f"{self.prefix}.commands"), LIMIT, "an empty queue")
        assert self.stopped(worker), "killed by nobody"
        after = Dump(self.store)
        return [] if after.sequences == before.sequences and after.answers == before.answers else [
            f"{left} commands that came again did something"]


class RecoveryLane(WorkerLane):
    """A worker before it was killed in the midst of its work: its outbox is full, commands come again."""

    name = "worker after a crash"

    def first(self, point, number):
        # Between the frames of an event: a batch is committed and not acknowledged, and more commands wait.
        before = self.traced("worker", "amqp-link#2/sendto/socket", 60)
        self.history.changed.wait(
            lambda: self.scenario.advance() or not before.running, LIMIT, self.scenario.missing)
        before.kill()
        return self.traced("worker", point, number)
