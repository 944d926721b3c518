"""One prefix, one client and the processes of one run after the other, so that runs stand side by side."""

import secrets
import shutil
import tempfile
import threading
from pathlib import Path

import pika
from conftest import MARK
from history import Event, History
from overtime import Installation
from stores import new_store
from wire import Wire

LIMIT = 20
# pika's blocking connection, with which the broker's objects are deleted, is for one thread at a time.
_deleting = threading.Lock()


class LaneWire(Wire):
    """Hears all runs of a lane and notes for each only what concerns its own rooms."""

    def __init__(self, url, prefix):
        self.strangers = []
        super().__init__(url, prefix, History())

    def on_event(self, method, properties, body):
        event = Event(body, properties, method.routing_key, method.redelivered)
        if event.room.startswith(self.tag):
            self.history.note_event(event)

    def begin(self, tag):
        """A new run: a history of its own for the rooms that begin with this tag."""
        self.tag = tag
        self.history = History()
        return self.history

    tag = "none"


class Lane:
    def __init__(self, binary, broker, canary, killpoint=None, wire=None):
        self.broker = broker
        self.canary = canary
        # Where the password was told.
        self.told = []
        self.killpoint = killpoint
        self.directory = tempfile.mkdtemp(prefix="overtime-lane.")
        self.prefix = f"k{secrets.token_hex(4)}"
        self.installation = Installation(binary, canary.url, self.prefix, self.directory, {"E2E_RUN": MARK})
        self.wire = wire(self.prefix) if wire else LaneWire(broker.url, self.prefix)
        self.history = self.wire.history
        self.store = self.installation.store
        self.wire.audit()
        self.files = Path(self.directory)
        self.runs = 0
        self.keep = []
        names = ("commands", "events.log", "queries", "ticks", "dead")
        self.queues = [f"{self.prefix}.{name}" for name in names]
        # Commands that came again although they were acknowledged.
        self.requeued = 0

    def begin(self):
        self.runs += 1
        self.tag = f"{self.runs}-"
        self.history = self.wire.begin(self.tag)
        self.files = Path(self.directory, str(self.runs))
        self.files.mkdir()
        self.store = new_store(self.files)
        return self.history

    def traced(self, component, point=None, number=0):
        """Starts a component that is killed just before its `number`th step of a kind, or only counted."""
        self.report = f"{self.directory}/report-{self.runs}"
        aim = [point, str(number)] if point else []
        return self.start(component, [self.killpoint, self.report, f"{self.files}/", *aim, "--"])

    def start(self, component, command=()):
        return self.installation.start(
            component, command=command, environment={"OVERTIME_STORE": self.store.url},
            on_end=self.history.changed.tell)

    def stopped(self, process):
        """Asks a process to stop once it is at work; false where it was killed before or meanwhile."""
        # A worker that is stopped earlier leaves the outbox to the next one.
        working = {"message": "firing"} if process.name.startswith("scheduler") else {
            "message": "consuming", "queue": f"{self.prefix}.commands"}
        process._changed.wait(
            lambda: process.said(**working) or process._ended, LIMIT,
            lambda: f"{process.name} to be at work; it said {process.tail()}")
        return process.running and process.terminate()[0] == 0

    def read_report(self):
        """Whether the aimed step was met, and how often each kind of step was done."""
        killed, counts = False, {}
        with open(self.report) as file:
            for line in file:
                words = line.rsplit(maxsplit=1)
                if words[0].startswith("killed "):
                    killed = True
                else:
                    counts[words[0]] = int(words[1])
        return killed, counts

    def clear(self):
        """Forgets the files and processes of a run, after a look for the password in them."""
        self.look(self.installation.processes)
        for process in self.installation.processes:
            if process not in self.keep:
                process.kill()
        self.installation.processes[:] = self.keep
        self.store.drop()
        shutil.rmtree(self.files, ignore_errors=True)

    def look(self, processes):
        """Notes where these and what was heard of them tell the password."""
        self.told += self.canary.told(processes, self.files, self.history)

    def log(self):
        return "\n".join(
            f"{process.name}: {process.tail(15)}" for process in self.installation.processes if process.lines)

    def close(self):
        self.installation.end()
        self.store.drop()
        self.wire.close()
        queues = self.queues
        exchanges = [
            f"{self.prefix}.{name}"
            for name in ("commands", "commands.shards", "events.topic", "events", "queries", "ticks", "dead")]
        with _deleting:
            try:
                self.broker.delete(queues + list(self.wire.queues), exchanges)
            except pika.exceptions.AMQPConnectionError:
                # The broker was gone meanwhile, and with it the connection for such things.
                self.broker.delete(queues + list(self.wire.queues), exchanges)
        shutil.rmtree(self.directory, ignore_errors=True)
