"""Many commands for many workers on one store, while workers, schedulers and servers are killed, frozen and restarted."""

import json
import time

from end_to_end import ROOT
from sharing import leases
from storm import OUTSTANDING, Storm
from waiting import TimedOut, poll

# Longer than any time-out, those of leases and of two heartbeats among them.
FREEZE = 35
# Now and then one that was killed stays away for longer than its lease.
AWAY = 12
HEARTBEAT = 5
# Without any answer; a start of the broker is in it.
STALL = 90
# For one command: then what every process said is kept, to be looked into.
LONG_WAIT = 45


class ScaleStorm(Storm):
    """`servers` are kinds of faults beside those of workers and schedulers: a name, and what does it.

    Faults come with the answers, `rate` commands a second at the most: so the load lasts as long as they do.
    """

    def __init__(
        self, binary, broker, canary, commands, faults, seed, *, workers, shards, schedulers, rooms, rate, servers,
        tell=print
    ):
        self.servers = servers
        super().__init__(binary, broker, canary, commands, faults, seed, tell=tell)
        self.rooms = [f"room-{number}" for number in range(rooms)]
        self.rate = rate
        self.shards = shards
        self.wanted = {"worker": workers, "scheduler": schedulers}
        self.running = {"worker": [], "scheduler": []}
        self.frozen = {"worker": [], "scheduler": []}
        # What is to be done when: those that stand still go on, those that are away come back.
        self.later = []
        self.longest_stall = 0
        self.oldest, self.kept = 0, None
        self.lane.installation.environment |= {
            "OVERTIME_SHARDS": str(shards), "OVERTIME_AMQP_HEARTBEAT": f"{HEARTBEAT}s"}
        self.lane.queues += [f"{self.lane.prefix}.commands.{shard}" for shard in range(shards)]

    def _kinds(self, faults, _):
        processes = ["worker killed", "worker killed", "worker frozen", "scheduler killed", "scheduler frozen"]
        kinds = [*self.servers, *processes]
        # Each kind at least once, where there are so many.
        kinds += [self.random.choice(processes * 2 + list(self.servers)) for _ in range(faults - len(kinds))]
        self.random.shuffle(kinds)
        return kinds[:faults]

    # The processes.

    def _start(self, component):
        self.running[component].append(self.lane.start(component))

    def _start_workers(self):
        while len(self.running["worker"]) < self.wanted["worker"]:
            self._start("worker")
        self._await_workers()

    def _await_workers(self):
        pids = {worker.pid for worker in self.running["worker"]}

        def whole():
            found = leases(self.lane.store) if pids else {}
            return set(found) == pids and sorted(
                shard for shards in found.values() for shard in shards) == list(range(self.shards))

        poll(whole, STALL, lambda: f"every shard to have one of the workers {pids}: {self.lane.log()}", every=0.5)

    def _stop_workers(self):
        # Those that were killed are known as such, and nobody is left to find it out later.
        self._await_workers()
        for worker in self.running["worker"]:
            worker.popen.terminate()
        for worker in self.running["worker"]:
            code = worker.wait_exit(30, "its end after SIGTERM")
            assert code == 0, f"{worker.name} ended with {code}: {worker.tail()}"
        self.running["worker"].clear()

    # The faults.

    def _fault(self, kind):
        component, _, how = kind.partition(" ")
        victim = None
        if kind in self.servers:
            self.servers[kind](self)
        else:
            running = self.running[component]
            # One is left that can work, or the load would wait for a thaw.
            if len(running) == 1:
                how = "killed"
            victim = running.pop(self.random.randrange(len(running)))
            if how == "frozen":
                victim.pause()
                self.frozen[component].append(victim)
                self._after(FREEZE, lambda: self._thaw(component, victim))
            else:
                victim.kill()
                away = AWAY if running and self.random.random() < 0.4 else 0
                self._after(away, lambda: self._start(component))
            kind = f"{component} {how}"
        self.killed[kind] += 1
        self.tell(f"scale storm: {self._second():.1f} s: {kind} {victim.pid if victim else ''}")
        self._forget(40)

    def _second(self, moment=None):
        return (moment or time.monotonic()) - self.began

    def _thaw(self, component, process):
        self.frozen[component].remove(process)
        self.running[component].append(process)
        process.resume()

    def _after(self, seconds, action):
        self.later.append((time.monotonic() + seconds, action))

    def _do_what_is_due(self):
        now = time.monotonic()
        due = [action for moment, action in self.later if moment <= now]
        self.later = [entry for entry in self.later if entry[0] > now]
        for action in due:
            action()

    def _forget(self, count):
        """As before, but of those only that have ended."""
        processes = self.lane.installation.processes
        ended = [process for process in processes if not process.running][:-count]
        self.told += self.lane.canary.told(ended)
        processes[:] = [process for process in processes if process not in ended]

    # The load.

    def _load(self):
        for _ in range(self.wanted["scheduler"] - 1):
            self._start("scheduler")
        self.running["scheduler"].append(self.scheduler)
        stream, kinds = self._commands(), iter(self.kinds)
        began = answered_at = time.monotonic()
        answered = progress = 0
        while len(self.calls) < self.total or self.moments or self.unconfirmed or self.later:
            self._collect()
            self._do_what_is_due()
            allowed = (time.monotonic() - began) * self.rate
            if len(self.calls) < min(self.total, allowed) and self.outstanding < OUTSTANDING:
                self._publish(stream)
            near_the_end = len(self.calls) == self.total and self.outstanding < 100
            if self.moments and (self.history.answered >= self.moments[0] or near_the_end):
                self.moments.popleft()
                self._fault(next(kinds))
            before = self.history.answered
            try:
                self.history.changed.wait(lambda before=before: self.history.answered > before + 20, 0.05, "answers")
            except TimedOut:
                pass
            now = time.monotonic()
            self._note_long_waits(now)
            if self.history.answered > answered or self.outstanding == 0:
                answered, answered_at = self.history.answered, now
            self.longest_stall = max(self.longest_stall, now - answered_at)
            assert now - answered_at < STALL, f"{STALL} s without an answer: {self._state()}\n{self.lane.log()}"
            for process in self.running["worker"] + self.running["scheduler"]:
                assert process.running, f"{process.name} ended by itself: {process.tail()}"
            if self.history.answered // 10_000 > progress:
                progress = self.history.answered // 10_000
                self.tell(f"scale storm: {self._state()}")

    def _note_long_waits(self, now):
        while self.oldest < len(self.calls) and self.calls[self.oldest].replies:
            self.oldest += 1
        if self.kept or self.oldest == len(self.calls) or now - self.calls[self.oldest].sent_at < LONG_WAIT:
            return
        call = self.calls[self.oldest]
        self.kept = ROOT / ".build/scale-storm.log"
        with open(self.kept, "w") as file:
            print(f"at {self._second(now):.1f} s: {call} waits since {self._second(call.sent_at):.1f} s, which was "
                  f"{time.time() - now + call.sent_at:.1f}; leases {leases(self.lane.store)}", file=file)
            for process in self.lane.installation.processes:
                for line in list(process.lines):
                    print(process.name, process.pid, json.dumps(line), file=file)
        self.tell(f"scale storm: {call} waits for {LONG_WAIT} s: {self.kept} has what everybody said")

    def _reckon(self):
        figures, found = super()._reckon()
        figures |= {
            "workers": self.wanted["worker"], "shards": self.shards, "schedulers": self.wanted["scheduler"],
            "longest stall, s": round(self.longest_stall, 1), "longest waits of commands": self._longest_waits()}
        return figures, found

    def _send(self, pairs):
        for call, _ in pairs:
            # A command that is published again has waited since the first time.
            call.sent_at = getattr(call, "sent_at", time.monotonic())
        super()._send(pairs)

    def _longest_waits(self):
        """Of those whose answers were not lost with a broker: how long, since when, in which room."""
        waited = [
            (round(call.answered_at - call.sent_at, 1), round(self._second(call.sent_at), 1), call.command["room"])
            for call in self.calls if hasattr(call, "answered_at")]
        return sorted(waited, reverse=True)[:5]
