"""A private broker, a directory and everything that is started in it; nothing outlives `close`."""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pika
from bootstrap import BINARY, BUILD, ROOT
from overtime import Installation
from processes import usage
from tool import Tool

BROKER = str(ROOT / "scripts/broker")
AUDIT, REPLIES = "bench.audit", "bench.replies"
COMMANDS = "overtime.commands"


class Lab:
    """The broker that all contenders share, and what is measured around them."""

    def __init__(self):
        self.mark = f"bench-{secrets.token_hex(6)}"
        BUILD.mkdir(parents=True, exist_ok=True)
        self.directory = Path(tempfile.mkdtemp(prefix="run.", dir=BUILD))
        self.broker_directory = self.directory / "broker"
        # Rivals and tool inherit what marks them as this run's.
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith("OVERTIME_") and key != "PYTHONPATH"
        } | {"BENCH_RUN": self.mark, "TZ": "UTC"}
        self._installations = []
        self._connection = None
        self._count = 0
        self.tool = None

    def open(self):
        subprocess.run([BROKER, "start", self.broker_directory], check=True, timeout=150)
        self.url = subprocess.run(
            [BROKER, "url", self.broker_directory], check=True, capture_output=True, text=True
        ).stdout.strip()
        self.tool = Tool(self.url, self.environment)
        self._declare()

    def _declare(self):
        """A worker's start and end leave the topology that every contender uses."""
        installation = self.installation()
        installation.worker().terminate()
        self.discard(installation)

    @property
    def broker_pid(self):
        return int((self.broker_directory / "node.pid").read_text())

    def broker_usage(self):
        return usage(self.broker_pid)

    def broker_version(self):
        return self.ask(lambda channel: channel.connection._impl.server_properties["version"])

    def installation(self):
        """A directory of its own for processes of Overtime, with `overtime.db` as their store."""
        self._count += 1
        directory = self.directory / f"installation-{self._count}"
        directory.mkdir()
        marks = {"BENCH_RUN": self.mark, "OVERTIME_LOG_FORMAT": "json"}
        installation = Installation(str(BINARY), self.url, "overtime", str(directory), marks)
        self._installations.append(installation)
        return installation

    def discard(self, installation):
        installation.end()
        self._installations.remove(installation)
        shutil.rmtree(installation.directory, ignore_errors=True)

    def ask(self, question):
        """What `question` returns of a channel, which is closed afterwards."""
        if self._connection is None or self._connection.is_closed:
            parameters = pika.URLParameters(self.url)
            # Nobody answers for it while a run goes on.
            parameters.heartbeat = 0
            self._connection = pika.BlockingConnection(parameters)
        channel = self._connection.channel()
        try:
            return question(channel)
        finally:
            if channel.is_open:
                channel.close()

    def purge(self):
        """Empty queues, so that each run finds the broker as the one before did."""

        def empty(channel):
            for queue in (COMMANDS, "overtime.ticks", "overtime.queries", "overtime.dead"):
                channel.queue_purge(queue)

        self.ask(empty)
        self.tool.run("topology", audit=AUDIT, replies=REPLIES)

    def settle(self, limit=10, idle=0.1):
        """Lets the broker finish what an earlier run left it: less than a tenth of a processor over half a second.

        And the kernel: a prepared store that is still being written would be in the way of the run's own syncs.
        """
        os.sync()
        pause = threading.Event()
        end = time.monotonic() + limit
        before, at = self.broker_usage().cpu, time.monotonic()
        while time.monotonic() < end:
            pause.wait(0.5)
            used, moment = self.broker_usage().cpu, time.monotonic()
            if used - before < idle * (moment - at):
                return
            before, at = used, moment

    def waiting(self, queue):
        """Messages that wait in a queue."""
        return self.ask(lambda channel: channel.queue_declare(queue, passive=True).method.message_count)

    def ctl(self, *arguments):
        command = [BROKER, "ctl", self.broker_directory, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=90)
        return done.stdout

    def close(self, keep=False):
        """Ends everything by its pid, whatever state it is in; a second signal does not stop that."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        for installation in list(self._installations):
            self.discard(installation)
        if self.tool:
            self.tool.end()
        try:
            if self._connection is not None and self._connection.is_open:
                self._connection.close()
        except pika.exceptions.AMQPError:
            pass
        subprocess.run([BROKER, "stop", self.broker_directory], check=True, timeout=90)
        if keep:
            print(f"what the run left is in {self.directory.relative_to(ROOT)}")
        else:
            shutil.rmtree(self.directory)
        left = self._left_behind()
        assert not left, f"processes were left behind: {left}"

    def _left_behind(self):
        left = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if self.mark.encode() in (entry / "environ").read_bytes():
                        left.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
                except OSError:
                    continue
        return left
