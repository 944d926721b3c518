"""The program under test as real processes, each ended by its own pid."""

import json
import os
import signal
import subprocess
import threading
import time

from stores import new_store
from waiting import Signal, poll


class Process:
    """A running `overtime` with its log read line by line."""

    def __init__(self, arguments, environment, directory, name, on_end=None):
        self.name = name
        self.lines = []
        self._changed = Signal()
        self._ended = False
        self._on_end = on_end
        self.popen = subprocess.Popen(
            arguments,
            env=environment,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.pid = self.popen.pid
        self._reader = threading.Thread(target=self._read, name=f"log of {name}", daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.popen.stdout:
            try:
                entry = json.loads(line)
            except ValueError:
                entry = {"text": line.rstrip("\n")}
            with self._changed:
                self.lines.append(entry)
            self._changed.tell()
        self._ended = True
        self._changed.tell()
        if self._on_end:
            # Nothing holds its output any more, so its end is only a moment away.
            self.popen.wait()
            self._on_end()

    def said(self, message, after=0, **fields):
        """The first log line with this message and these fields, or None."""
        for line in self.lines[after:]:
            if line.get("message") == message and all(
                line.get(key) == value for key, value in fields.items()
            ):
                return line
        return None

    def wait_said(self, message, limit=15, after=0, **fields):
        def found():
            line = self.said(message, after, **fields)
            if line is None and self._ended:
                raise AssertionError(f"{self.name} ended without saying {message!r}: {self.tail()}")
            return line

        return self._changed.wait(
            found, limit, lambda: f"{self.name} to say {message!r} {fields}; it said {self.tail()}"
        )

    def wait_text(self, part, limit=20):
        """Waits for a line that is no log line and contains this."""
        return self._changed.wait(
            lambda: next((line for line in self.lines if part in line.get("text", "")), None),
            limit,
            lambda: f"{self.name} to say {part!r}; it said {self.tail()}",
        )

    def tail(self, count=12):
        return "\n".join(json.dumps(line) for line in self.lines[-count:])

    @property
    def running(self):
        return self.popen.poll() is None

    def wait_exit(self, limit, what="its end"):
        try:
            code = self.popen.wait(limit)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"waited {limit} s for {self.name}: {what}; it said {self.tail()}") from None
        self._reader.join(5)
        return code

    def terminate(self, limit=10):
        """SIGTERM; returns the exit code and the seconds it took."""
        began = time.monotonic()
        self.popen.send_signal(signal.SIGTERM)
        code = self.wait_exit(limit, f"its end within {limit} s after SIGTERM")
        return code, time.monotonic() - began

    def kill(self):
        if self.running:
            self.popen.kill()
        self.popen.wait(10)
        self._reader.join(5)

    def pause(self):
        self.popen.send_signal(signal.SIGSTOP)
        poll(lambda: self.status("State").startswith("T"), 5, f"{self.name} to stand still", every=0.001)

    def resume(self):
        self.popen.send_signal(signal.SIGCONT)

    def status(self, key):
        with open(f"/proc/{self.pid}/status") as file:
            for line in file:
                if line.startswith(key + ":"):
                    return line.split(":", 1)[1].strip()
        return ""

    def resident(self):
        """Resident memory in KiB."""
        return int(self.status("VmRSS").split()[0])


class Installation:
    """Everything of one test: a prefix, a directory, a store, and the processes that were started."""

    def __init__(self, binary, url, prefix, directory, marks):
        self.store = new_store(directory)
        self._stores = [self.store]
        self.binary = binary
        self.url = url
        self.prefix = prefix
        self.directory = directory
        self.processes = []
        # Of the caller's settings only the mark by which scripts/test finds what was left behind.
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("OVERTIME_") or key == "OVERTIME_TEST_RUN"
        }
        self.environment |= marks | {
            "OVERTIME_AMQP_URL": url,
            "OVERTIME_AMQP_PREFIX": prefix,
            "OVERTIME_STORE": self.store.url,
            "OVERTIME_AMQP_HEARTBEAT": "10s",
            "TZ": "UTC",
        }

    def another_store(self, name):
        """A second one, for a worker that is to have nothing in common with the first."""
        self._stores.append(new_store(self.directory, name))
        return {"OVERTIME_STORE": self._stores[-1].url}

    def start(self, component, *options, environment=None, command=(), on_end=None):
        """Starts a component, with `command` in front of it (a tracer), and does not wait."""
        count = sum(process.name.startswith(component) for process in self.processes)
        process = Process(
            [*command, self.binary, component, *options],
            self.environment | (environment or {}),
            self.directory,
            f"{component} {count + 1}",
            on_end,
        )
        self.processes.append(process)
        return process

    def worker(self, *options, shards=1, environment=None):
        """Started, and consuming and publishing on every channel."""
        environment = dict(environment or {})
        if shards > 1:
            environment["OVERTIME_SHARDS"] = str(shards)
        process = self.start("worker", *options, environment=environment)
        self.ready(process, shards=shards)
        return process

    def ready(self, process, limit=20, after=0, shards=1):
        queues = ["commands"] if shards == 1 else [f"commands.{shard}" for shard in range(shards)]
        for queue in [*queues, "ticks", "queries"]:
            process.wait_said("consuming", limit, after, queue=f"{self.prefix}.{queue}")
        for channel in ("replies", "events", "dead letters"):
            process.wait_said("publishing", limit, after, channel=channel)

    def scheduler(self, *options, environment=None, ready="firing"):
        process = self.start("scheduler", *options, environment=environment)
        if ready:
            process.wait_said(ready)
        return process

    def run(self, *arguments, environment=None, limit=30, text=None, command=()):
        """Runs a one-shot command to its end, with `command` in front of it."""
        return subprocess.run(
            [*command, self.binary, *arguments],
            env=self.environment | (environment or {}),
            cwd=self.directory,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )

    def end(self):
        for process in self.processes:
            if process.running:
                process.resume()
            process.kill()
        for store in self._stores:
            store.drop()
