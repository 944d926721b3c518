"""One run of rooms with short windows against a scheduler that is killed at one step."""

import time

from history import seconds
from lanes import LIMIT, Lane

# From the moment at which the scheduler fires again until a window that is open must have been announced.
PROMPT = 1.0
WINDOWS = {"windows": ["800ms", "400ms"], "extension": {"min": "800ms", "max": "900ms"}}
ROOMS = {"early": "900ms", "middle": "1100ms", "late": "1300ms", "extended": "1s"}


class SchedulerLane(Lane):
    """One worker serves all runs."""

    name = "scheduler"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.begin()
        self.worker = self.start("worker")
        self.keep.append(self.worker)
        self.installation.ready(self.worker)

    def run(self, point=None, number=0):
        self.begin()
        try:
            problems = self.play(self.traced("scheduler", point, number))
            self.history.check()
            return *self.read_report(), problems
        except AssertionError as error:
            return *self.read_report(), [f"{error}\n{self.log()}"]

    def play(self, scheduler):
        rooms = [f"{self.tag}{name}" for name in ROOMS]
        calls = []
        for room, duration in zip(rooms, ROOMS.values(), strict=True):
            calls.append(self.wire.send("open", room, duration=duration, policy=WINDOWS))
            calls.append(self.wire.send("join", room, "ada"))
        extended = rooms[-1]
        sent, down, back, again = False, None, None, None

        def ended():
            nonlocal sent
            # A session that is extended in its window: the scheduler must forget the end that it knew.
            if not sent and self.history.events(extended, "session.window.opened"):
                sent = True
                calls.append(self.wire.send("extend", extended, "ada"))
            return all(self.history.events(room, "session.ended") for room in rooms) and all(
                call.replies for call in calls)

        while True:
            self.history.changed.wait(
                lambda running=scheduler: ended() or not running.running, LIMIT,
                lambda: f"the ends of {rooms}\n{self.log()}")
            if self.stopped(scheduler):
                break
            down = down or time.time()
            assert scheduler.wait_exit(5) == -9, f"{scheduler.name} ended otherwise"
            assert again is None, f"{scheduler.name} was killed by nobody"
            again = scheduler = self.start("scheduler")
            scheduler.wait_said("firing", 10)
            back = time.time()
        killed = self.read_report()[0]
        assert killed == (again is not None), f"killed by the tracer: {killed}, but it is {scheduler.name}"
        return [problem for room in rooms for problem in self.unannounced(room, down, back)]

    def unannounced(self, room, down, back):
        """Windows that were open while a scheduler was there and were not announced; ends that came late."""
        problems = []
        events = self.history.rooms[room]
        lengths = [0.8, 0.4, 0]
        ends = [
            (seconds(event.data["endsAt"]), event.data.get("extensions", 0), event.time)
            for event in events if event.type in ("session.started", "session.extended")]
        began = events[1].time
        for index, (end, extensions, since) in enumerate(ends):
            until = ends[index + 1][2] if index + 1 < len(ends) else end
            for window in (1, 2):
                opens = max(end - lengths[window - 1], began, since)
                closes = min(end - lengths[window], until)
                # The part of the window in which it could be announced.
                if down and opens < back and closes > down:
                    opens = max(opens, back)
                notices = self.history.events(
                    room, "session.window.opened", extensions=extensions, window=window)
                if not notices and closes - opens > PROMPT / 3:
                    problems.append(
                        f"{room}: window {window} after {extensions} extensions was not announced")
        last = self.history.events(room, "session.ended")[0]
        if last.data["lateBy"] > PROMPT + (max(0, back - ends[-1][0]) if down else 0):
            problems.append(f"{room} ended {last.data['lateBy']} s late")
        return problems
