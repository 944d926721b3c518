"""Kills a component at its 1st, 2nd, 3rd … step of each kind until runs end by themselves."""

import threading
from collections import Counter

# After so many runs that ended by themselves a component is held to have no such step.
TRIES = 3


class Sweep:
    """Hands out the points. `draw` is told how many there are and says: each how many-th, from which on."""

    def __init__(self, lane_type, arguments, lanes, draw, tell):
        self.lane_type = lane_type
        self.arguments = arguments
        self.lanes = lanes
        self.draw = draw
        self.tell = tell
        self.tasks = []
        self.killed = Counter()
        # Steps that were never met although later ones of their kind were: no two runs are quite the same.
        self.missed = []
        self.requeued = 0
        self.violations = []
        # Where the password of the processes was told.
        self.told = []
        self.runs = 0
        self._lock = threading.Lock()
        self._limits = {}
        self._tasks = []
        self._tries = Counter()
        self._highest = Counter()
        self._ends = {}
        self._active = 0
        self._idle = threading.Condition(self._lock)

    def run(self):
        lane = self.lane_type(*self.arguments)
        # Twice, as no two runs have quite the same steps.
        for _ in range(2):
            _, counts, problems = lane.run()
            lane.clear()
            self._learn(counts)
            if problems:
                self.violations.append(f"{lane.name}, killed nowhere: " + "\n".join(problems))
                self.tell(self.violations[-1])
        if self.violations:
            lane.close()
            return
        self._plan()
        threads = [
            threading.Thread(target=self._work, args=(lane if index == 0 else None,))
            for index in range(self.lanes)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            # Interrupted: the runs that are under way come to their ends, and no more begin.
            with self._idle:
                self._tasks.clear()
            raise
        self.missed = sorted(
            task for task, tries in self._tries.items()
            if tries == TRIES and task[1] < self._highest[task[0]])

    def _learn(self, counts):
        for point, count in counts.items():
            self._limits[point] = max(count, self._limits.get(point, 0))

    def _plan(self):
        points = [(point, number) for point, limit in self._limits.items() for number in range(1, limit + 1)]
        self.every, first = self.draw(len(points))
        self._tasks = [task for index, task in enumerate(points) if index % self.every == first % self.every]
        self.tasks = list(self._tasks)
        # All kinds from the beginning on, so that a sweep that is stopped has seen something of each.
        self._tasks.sort(key=lambda task: -task[1])

    def _work(self, lane):
        try:
            lane = lane or self.lane_type(*self.arguments)
            while task := self._take():
                try:
                    found = lane.run(*task)
                except Exception as error:  # noqa: BLE001 - the sweep goes on, and it is told
                    found = False, {}, [f"the run itself failed: {error!r}"]
                self._done(task, *found)
                lane.clear()
                if found[2]:
                    # What a violation left behind must not disturb the next run.
                    self._close(lane)
                    lane = self.lane_type(*self.arguments)
        finally:
            with self._idle:
                self._idle.notify_all()
            if lane:
                self._close(lane)

    def _close(self, lane):
        self.requeued += lane.requeued
        self.told += lane.told
        lane.close()

    def _take(self):
        with self._idle:
            while True:
                while self._tasks:
                    point, number = self._tasks.pop()
                    if number < self._ends.get(point, number + 1):
                        self._active += 1
                        return point, number
                if self._active == 0:
                    self._idle.notify_all()
                    return None
                self._idle.wait()

    def _done(self, task, killed, counts, problems):
        point, number = task
        with self._idle:
            self._active -= 1
            self.runs += 1
            if killed:
                self.killed[point] += 1
                self._highest[point] = max(number, self._highest[point])
                # The run was longer than any before: on until one ends by itself.
                if number >= self._limits[point] and self.every == 1:
                    self._limits[point] = number + 1
                    self._tasks.append((point, number + 1))
            elif not problems:
                self._tries[task] += 1
                if self._tries[task] < TRIES:
                    self._tasks.append(task)
                else:
                    self._ends[point] = min(number, self._ends.get(point, number))
                for other, count in counts.items():
                    if other not in self._limits:
                        self._limits[other] = count
                        self._tasks += [(other, n) for n in range(count, 0, -1) if self.every == 1]
            if problems:
                self.violations.append(f"{self.lane_type.name}, {point} {number}: " + "\n".join(problems))
                self.tell(self.violations[-1])
            if self.runs % 50 == 0:
                self.tell(f"{self.lane_type.name}: {self.runs} runs, at most {len(self._tasks)} to go")
            self._idle.notify_all()

    def table(self):
        """Kill points by system call and by what it was done to, all threads together."""
        rows = Counter()
        for point, count in self.killed.items():
            _, call, target = point.split("/")
            rows[f"{call} {target}"] += count
        return dict(sorted(rows.items()))
