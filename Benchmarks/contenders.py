"""Who is measured: the product, the floor below it, and what people write instead. All do one job for each command.

The job: take an `extend` from the queue, keep the room's new end and the command's id durably, publish the event to every
bound queue and the reply to its sender, both confirmed, and acknowledge. The floor leaves out parsing and store.
"""

import os
import sys
from pathlib import Path

import prepared
import rival_store
from bootstrap import HERE
from lab import REPLIES
from overtime import Process
from processes import Usage, tree_usage


class Contender:
    """One that takes commands from a filled queue. `prepare`, `fill`, `start`, then `stop`, again and again."""

    name = title = ""
    # How many commands of a run it gets, in parts of what the fastest get: the slow would take all day.
    share = 1.0
    # What is asked for, and the event that each brings.
    command, event = "extend", "session.extended"
    # Rooms that the commands are spread over.
    rooms = 1_000_000

    def __init__(self, lab):
        self.lab = lab

    def prepare(self, count):
        """What must be there before the queue is filled."""

    def fill(self, count, **options):
        """The commands, confirmed by the broker."""
        return self.lab.tool.run("fill", limit=600, **self.filling(count), **options)

    def filling(self, count):
        return {
            "count": count,
            "first": 0,
            "stride": prepared.spread(self.rooms),
            "rooms": self.rooms,
            "room_prefix": prepared.PREFIX,
            "command": self.command,
            "reply_to": REPLIES,
        }

    def start(self, count):
        """Starts it and does not wait."""

    def usage(self):
        """What it has used, asked when the last reply was seen."""

    def stop(self):
        """Ends it, whatever state it is in."""


class Overtime(Contender):
    """The worker on a store with so many rooms."""

    def __init__(self, lab, all_stores, rooms):
        super().__init__(lab)
        self.rooms = rooms
        self.name = f"overtime-{rooms}"
        self.title = f"Overtime, {rooms:,} rooms"
        self._stores = all_stores
        self.installation = None
        self.worker = None

    def prepare(self, count):
        self.installation = self.lab.installation()
        self.store = self._stores.copy(self.rooms, self.installation)
        prepared.open_windows(self.store, prepared.touched(count, self.rooms, stride=prepared.spread(self.rooms)))

    def start(self, count):
        self.worker = self.installation.start("worker")

    def usage(self):
        return tree_usage(self.worker.pid)

    def stop(self):
        if self.installation is None:
            return
        if self.worker is not None and self.worker.running:
            self.worker.terminate(30)
        self.lab.discard(self.installation)
        self.installation = self.worker = None


class OvertimeRoles(Overtime):
    """The same with changes of role, which a room takes any number of times: so few rooms take many commands."""

    command, event = "role", "participant.role.changed"

    def prepare(self, count):
        self.installation = self.lab.installation()
        self.store = self._stores.copy(self.rooms, self.installation)


class Tooled(Contender):
    """A subcommand of `bench-tool` that ends by itself after the last command."""

    def __init__(self, lab):
        super().__init__(lab)
        self._run = None

    def start(self, count):
        self._run = self.lab.tool.start(self.name, count=count, **self.options())

    def options(self):
        return {}

    def usage(self):
        figures = self._run.result(60)
        return Usage(figures.get("cpuSeconds", 0), figures.get("maxRssKiB", 0), figures.get("maxRssKiB", 0))

    def stop(self):
        if self._run is not None:
            self._run.end()
            self._run = None


class Floor(Tooled):
    name, title = "floor", "Floor (C; neither parsing nor store)"


class Plain(Tooled):
    name, title, share = "plain", "Plain C worker, a transaction a message", 0.1

    def __init__(self, lab):
        super().__init__(lab)
        self.store = Path(lab.directory) / "plain.db"

    def prepare(self, count):
        rival_store.remove(self.store)
        rival_store.make(self.store, self.rooms)

    def options(self):
        return {"store": self.store}

    def stop(self):
        super().stop()
        rival_store.remove(self.store)


class Scripted(Contender):
    """A Python program beside this one."""

    script = ""

    def __init__(self, lab):
        super().__init__(lab)
        self.process = None
        self.store = Path(lab.directory) / f"{self.name}.db"

    def prepare(self, count):
        rival_store.remove(self.store)
        rival_store.make(self.store, self.rooms)

    def environment(self):
        return self.lab.environment | {
            "RIVAL_URL": self.lab.url,
            "RIVAL_STORE": str(self.store),
            "PYTHONPATH": str(HERE),
        }

    def arguments(self):
        return [sys.executable, str(HERE / self.script)]

    def start(self, count):
        self.process = Process(self.arguments(), self.environment(), str(self.lab.directory), self.name)

    def usage(self):
        return tree_usage(self.process.pid)

    def stop(self):
        if self.process is not None and self.process.running:
            try:
                self.process.terminate(30)
            except AssertionError:
                self.process.kill()
        self.process = None
        rival_store.remove(self.store)


class Pika(Scripted):
    name, title, share, script = "pika", "Plain Python worker (pika)", 0.06, "plain_rival.py"


class Celery(Scripted):
    name, title, share, script = "celery", "Celery, 2 processes", 0.03, "celery_rival.py"
    # Of tasks, and of the tasks with an ETA that a task makes.
    QUEUE, TIMERS = "bench.celery", "bench.celery.timers"

    def prepare(self, count):
        super().prepare(count)
        self._delete_queues()

    def stop(self):
        super().stop()
        self._delete_queues()

    def _delete_queues(self):
        def delete(channel):
            for queue in (self.QUEUE, self.TIMERS):
                channel.queue_delete(queue)

        self.lab.ask(delete)

    def arguments(self):
        options = ["--pool=prefork", "--concurrency=2", "--loglevel=WARNING", "--without-gossip", "--without-mingle"]
        return [
            os.path.join(sys.prefix, "bin/celery"),
            "-A",
            "celery_rival",
            "worker",
            *options,
            "-Q",
            self.QUEUE,
        ]

    def fill(self, count, **options):
        """In Celery's own protocol: its worker reads no other."""
        filler = Process(
            [
                sys.executable,
                str(HERE / self.script),
                "fill",
                str(count),
                str(self.rooms),
                str(prepared.spread(self.rooms)),
                REPLIES,
            ],
            self.environment(),
            str(self.lab.directory),
            "celery's filler",
        )
        try:
            code = filler.wait_exit(600)
            assert code == 0, filler.tail()
        finally:
            filler.kill()
