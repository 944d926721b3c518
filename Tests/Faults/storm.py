"""Many commands while worker, scheduler and broker are killed at random, and a reckoning at the end."""

import json
import random
import time
from collections import Counter, deque

from dump import Dump, effects
from history import History
from lanes import Lane
from waiting import poll
from wire import ACK, Wire

# Commands that wait for their answer, above which no more are published.
OUTSTANDING = 4_000
CHUNK = 200
ROOMS = 100
# Nothing at all must take longer than this, a start of the broker included.
STALL = 60
LONG = {"windows": ["8h"], "extension": {"min": "8h", "max": "9h"}}
TIMED = {"windows": ["1500ms", "700ms"], "extension": {"min": "1500ms", "max": "2s"}}


class StormHistory(History):
    """Counts answered commands as they come."""

    def __init__(self):
        super().__init__()
        self.answered = 0

    def note_reply(self, correlation, reply, properties):
        call = self.calls.get(correlation)
        if call is not None and not call.replies:
            self.answered += 1
            call.answered_at = time.monotonic()
        super().note_reply(correlation, reply, properties)


class Storm:
    def __init__(self, binary, broker, canary, commands, kills, seed, broker_share=0.1, tell=print):
        self.broker = broker
        self.total = commands
        self.random = random.Random(seed)
        self.seed = seed
        self.tell = tell
        self.rooms = [f"room-{number}" for number in range(ROOMS)]
        self.lane = Lane(binary, broker, canary, wire=self._wire)
        self.wire, self.history = self.lane.wire, self.lane.history
        self.kinds = self._kinds(kills, broker_share)
        self.moments = deque(sorted(self.random.randrange(commands // 50, commands) for _ in range(kills)))
        self.killed = Counter()
        self.calls = []
        self.messages = []
        self.unconfirmed = deque()
        self.again = 0
        self.given_up = 0
        self.lost_answers = 0
        self.timed = []
        # Where the password was told.
        self.told = []

    def _wire(self, prefix):
        return Wire(self.broker.url, prefix, StormHistory())

    def _kinds(self, kills, broker_share):
        brokers = max(1, round(kills * broker_share)) if self.broker.can_cut_power else 0
        kinds = ["broker"] * brokers + [("worker", "scheduler")[n % 2] for n in range(kills - brokers)]
        self.random.shuffle(kinds)
        return kinds

    # The commands: every room in turn, each user joins, asks for time and leaves; now and then one is
    # repeated, and now and then a room opens whose windows and end come due in the midst of it.

    def _commands(self):
        turn = 0
        for room in self.rooms:
            yield "open", room, None, {"duration": "8h", "policy": LONG}
        while True:
            user = f"user-{turn // 3 % 40}"
            for room in self.rooms:
                yield ("join", "extend", "leave")[turn % 3], room, user, {}
            number = len(self.timed)
            room = f"timed-{number}"
            self.timed.append(room)
            yield "open", room, None, {"duration": f"{1800 + 400 * (number % 10)}ms", "policy": TIMED}
            yield "join", room, "ada", {}
            yield "extend", room, "ada", {}
            turn += 1

    def _publish(self, stream, most=CHUNK):
        count = min(most, self.total - len(self.calls))
        messages = []
        for _ in range(count):
            if self.calls and self.random.random() < 0.01:
                first = self.random.choice(self.calls[-2_000:])
                # A correlation of its own, the same command.
                message, call = self.wire.message(
                    None, first.command["room"], id=None, body=json.dumps(first.command).encode())
                call.command = first.command
            else:
                command, room, user, fields = next(stream)
                message, call = self.wire.message(command, room, user, **fields)
            messages.append(message)
            self.calls.append(call)
        self._send(list(zip(self.calls[-count:], messages, strict=True)))

    def _send(self, pairs):
        receipts = self.wire.publish_many([message for _, message in pairs])
        for pair, receipt in zip(pairs, receipts, strict=True):
            pair[0].receipt = receipt
            self.unconfirmed.append(pair)

    def _collect(self):
        """Drops what is confirmed, and publishes again what the broker did not confirm before it went."""
        lost = []
        while self.unconfirmed and self.unconfirmed[0][0].receipt.state is not None:
            pair = self.unconfirmed.popleft()
            if pair[0].receipt.state != ACK:
                lost.append(pair)
        if lost:
            self.again += len(lost)
            self._send(lost)

    @property
    def outstanding(self):
        return len(self.calls) - self.history.answered - self.given_up

    # The kills.

    def _kill(self, kind):
        self.killed[kind] += 1
        if kind == "broker":
            self.restart_broker()
        elif kind == "worker":
            self.worker.kill()
            self.worker = self.lane.start("worker")
        else:
            self.scheduler.kill()
            self.scheduler = self.lane.start("scheduler")
        self._forget(10)

    def restart_broker(self):
        # RabbitMQ 3.10 killed moments after declaring a quorum queue may elect no leader for it, ever.
        poll(lambda: time.monotonic() > self.began + 8, 10, "the queues to be on disk")
        self.broker.cut_power()
        self.broker.start()
        self.wire.reconnect()
        # Answers that were on their way may be gone with the broker; they must not stop the flow.
        self.given_up = len(self.calls) - self.history.answered

    def _forget(self, count):
        """Keeps only the last of the processes and what they said, after a look for the password in it."""
        processes = self.lane.installation.processes
        self.told += self.lane.canary.told(processes[:-count])
        del processes[:-count]

    def run(self):
        self.began = time.monotonic()
        self.scheduler = self.lane.start("scheduler")
        self._start_workers()
        self.wire.dead_letters()
        self._load()
        self._settle()
        return self._reckon()

    def _start_workers(self):
        self.worker = self.lane.start("worker")
        self.lane.installation.ready(self.worker, limit=STALL)

    def _stop_workers(self):
        assert self.worker.terminate()[0] == 0, self.worker.tail()

    def _load(self):
        stream = self._commands()
        kinds = iter(self.kinds)
        progress = 0
        while len(self.calls) < self.total or self.moments or self.unconfirmed:
            self._collect()
            if len(self.calls) < self.total and self.outstanding < OUTSTANDING:
                self._publish(stream)
            near_the_end = len(self.calls) == self.total and self.outstanding < 100
            if self.moments and (self.history.answered >= self.moments[0] or near_the_end):
                self.moments.popleft()
                self._kill(next(kinds))
                continue
            before = self.history.answered
            self.history.changed.wait(
                lambda before=before: self.history.answered > before or not self.unconfirmed
                or self.unconfirmed[0][0].receipt.state is not None or not self.worker.running, STALL,
                lambda: f"any answer: {self._state()}")
            assert self.worker.running and self.scheduler.running, f"ended by itself:\n{self.lane.log()}"
            if self.history.answered // 20_000 > progress:
                progress = self.history.answered // 20_000
                self.tell(f"storm: {self._state()}")

    def _state(self):
        return (
            f"{self.history.answered} of {len(self.calls)} answered, {len(self.unconfirmed)} unconfirmed, "
            f"kills {dict(self.killed)}, {self.history.copies} events, "
            f"{round(time.monotonic() - self.began)} s")

    def _settle(self):
        """Everything is published and confirmed: the queues run empty, and the timed rooms end."""
        for last in [self.wire.send("status", room) for room in self.rooms + self.timed]:
            self.history.wait_reply(last, 2 * STALL)
        rooms = [room for room in self.timed if self.history.rooms.get(room)]
        self.history.changed.wait(
            lambda: all(self.history.events(room, "session.ended") or not self.history.events(
                room, "session.started") for room in rooms), STALL, "the end of all timed rooms")
        self._stop_workers()

    def _reckon(self):
        dump = Dump(self.lane.store)
        unanswered = [call for call in self.calls if not call.replies]
        gone = [call for call in unanswered if (call.command["room"], call.command["id"]) not in dump.answers]
        self.lost_answers = len(unanswered) - len(gone)
        self._start_workers()
        for call in unanswered:
            if call not in gone:
                repeat = self.wire.again(call)
                call.replies.append((self.history.wait_reply(repeat, STALL), None))
        self._stop_workers()
        dump = Dump(self.lane.store)
        for room, sequence in dump.sequences.items():
            self.history.wait_sequence(room, sequence, STALL)
        lost = [f"{call} has neither an answer nor a stored one" for call in gone]
        lost += [
            f"dead-lettered: {body[:200]} {properties.headers}" for body, properties in self.history.letters]
        out_of_order = list(self.history.problems)
        self.history.problems.clear()
        notices = []
        try:
            self.history.check()
        except AssertionError as error:
            notices.append(str(error))
        doubled = effects(self.history, self.calls)
        differing = dump.problems(self.history, self.calls)
        events = sum(len(events) for events in self.history.rooms.values())
        figures = {
            "commands": len(self.calls), "kills": dict(self.killed),
            "seconds": round(time.monotonic() - self.began),
            "published again": self.again, "events": events, "copies": self.history.copies - events,
            "notices": sum(len(self.history.events(room, "session.window.opened")) for room in self.timed),
            "ends by time": sum(len(self.history.events(room, "session.ended")) for room in self.timed),
            "answers twice": sum(len(call.replies) > 1 for call in self.calls),
            "answers lost with the broker and given again": self.lost_answers, "seed": self.seed,
            "lost": len(lost), "doubled": len(doubled), "out of order": len(out_of_order),
            "wrong notices": len(notices), "store differs": len(differing)}
        self.lane.look(self.lane.installation.processes)
        notices += [f"the password is told in {place}" for place in self.told + self.lane.told]
        return figures, lost + doubled + out_of_order + notices + differing

    def close(self):
        self.lane.close()
