"""The examples: README.md's blocks as they stand there, and whole sessions through the gateway in Python."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
import urllib.parse

import pytest
from conftest import ROOT
from metrics import free_address
from overtime import Process
from proxy import Proxy
from waiting import Signal, poll

GATEWAY = "examples/python/gateway.py"
# The windows open one and five seconds after the start.
LATER = {"duration": "9s", "policy": {"windows": ["8s", "4s"], "extension": {"min": "8s"}}}
# The first window is open from the start.
AT_ONCE = {"duration": "60s", "policy": {"windows": ["60s"], "extension": {"min": "60s"}}}


@pytest.fixture
def prefix():
    """What the examples take for granted."""
    return "overtime"


@pytest.fixture
def start(installation):
    """Starts a program as README.md does, from the project's directory; what it started ends with the test, too."""
    started = []

    def start(name, *arguments, **environment):
        environment["PATH"] = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        process = Process(["setsid", *arguments], installation.environment | environment, str(ROOT), name)
        started.append(process)
        return process

    yield start
    for process in started:
        end(process)


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.kill()


class Follower:
    """A browser's EventSource: hears events, and may come again with the id of the last."""

    def __init__(self, port, room, user):
        self.port, self.room, self.user = port, room, user
        self.messages, self.last = [], None
        self.changed = Signal()
        self.follow()

    def follow(self):
        """Returns when the gateway has answered: from then on the client is told."""
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        path = f"/rooms/{urllib.parse.quote(self.room, safe='')}/events?user={urllib.parse.quote(self.user)}"
        self.connection.request("GET", path, headers={"Last-Event-ID": self.last} if self.last else {})
        answer = self.connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.headers["Content-Type"] == "text/event-stream"
        self.ended = False
        threading.Thread(
            target=self._read, args=(answer,), name=f"events of {self.user}", daemon=True
        ).start()

    def _read(self, answer):
        fields = {}
        try:
            while line := answer.readline().decode():
                if line == "\n":
                    self.last = fields.get("id", self.last)
                    self.messages.append((fields.get("id"), json.loads(fields["data"])))
                    fields = {}
                    self.changed.tell()
                elif not line.startswith(":"):
                    name, _, value = line.rstrip("\n").partition(": ")
                    fields[name] = value
        except (OSError, http.client.HTTPException):
            pass
        self.ended = True
        self.changed.tell()

    @property
    def types(self):
        return [message["type"] for _, message in self.messages]

    @property
    def sequences(self):
        return [int(message["sequence"]) for id, message in self.messages if id]

    def wait(self, type, count=1, limit=10):
        self.changed.wait(
            lambda: self.types.count(type) >= count,
            limit,
            lambda: f"{count} {type} at {self.user}; there came {self.types}",
        )
        return [message for _, message in self.messages if message["type"] == type][count - 1]

    def wait_sequence(self, sequence, limit=10):
        self.changed.wait(
            lambda: self.sequences and self.sequences[-1] >= sequence,
            limit,
            lambda: f"event {sequence} at {self.user}; there came {self.sequences[-5:]}",
        )

    def wait_end(self, limit=10):
        self.changed.wait(lambda: self.ended, limit, f"the end of {self.user}'s stream")


class Gateway:
    """The example on a port of its own, with what its clients do."""

    def __init__(self, start, **environment):
        self._start, self._environment = start, environment
        self.port = int(free_address().split(":")[1])
        self.run()

    def run(self):
        self.process = self._start("gateway", "python3", GATEWAY, **self._environment, PORT=str(self.port))
        poll(self.listens, 15, lambda: f"the gateway to listen; it said {self.process.tail()}")

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 5).close()
            return True
        except OSError:
            return False

    def post(self, room, command, user=None, key=None, body=None, **fields):
        """The HTTP status and what was answered."""
        if user is not None:
            fields["user"] = user
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(
            "POST",
            f"/rooms/{urllib.parse.quote(room, safe='')}/{command}",
            json.dumps(fields) if body is None else body,
            {"Idempotency-Key": key} if key else {},
        )
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        is_json = answer.headers["Content-Type"] == "application/json"
        return answer.status, json.loads(text) if is_json else text.decode()

    def ok(self, room, command, user=None, **fields):
        status, reply = self.post(room, command, user, **fields)
        assert status == 200 and reply["ok"], (status, reply)
        return reply

    def follow(self, room, user):
        return Follower(self.port, room, user)


@pytest.fixture
def gateway(start, worker, scheduler):
    return Gateway(start)


def need(program, package):
    if shutil.which(program) is None:
        pytest.skip(f"{program} (Debian package {package}) is not installed")


def blocks(heading):
    """What stands between fences under a heading of README.md."""
    section = re.search(rf"^### {heading}\n(.*?)^##", (ROOT / "README.md").read_text(), re.M | re.S)
    return re.findall(r"^```\n(.*?)^```$", section[1], re.M | re.S)


def texts(process):
    """What a block printed; a line may be JSON or a field of a server-sent event."""
    found = []
    for line in list(process.lines):
        text = line.get("text")
        if text is None:
            found.append(line)
        elif text.startswith("data: "):
            found.append(json.loads(text[6:]))
    return found


def wait_text(process, matches, what, limit=20):
    process._changed.wait(
        lambda: any(matches(text) for text in texts(process)),
        limit,
        lambda: f"{what}; there came {process.tail(40)}",
    )


def is_event(type):
    return lambda text: text.get("type") == type


def outcomes(process):
    """Command and error code of each reply that a block printed."""
    return [
        (text["command"], (text.get("error") or {}).get("code")) for text in texts(process) if "ok" in text
    ]


def test_the_gateway_has_fewer_than_60_lines():
    assert len((ROOT / GATEWAY).read_text().splitlines()) < 60


def test_python_as_readme_shows(start, worker, scheduler):
    need("curl", "curl")
    [block] = blocks("Python")
    shell = start("README.md, Python", "bash", "-euc", block, PORT=free_address().split(":")[1])
    wait_text(shell, is_event("session.ended"), "the session's end")
    wait_text(shell, lambda text: text.get("command") == "destroy" and text["ok"], "the last reply")
    assert outcomes(shell) == [
        ("open", None),
        ("join", None),
        ("join", None),
        ("extend", None),
        ("extend", 6005),
        ("destroy", 5116),
        ("destroy", None),
    ]
    assert [text["type"] for text in texts(shell) if "specversion" in text] == [
        "room.opened",
        "session.started",
        "participant.joined",
        "session.window.opened",
        "participant.joined",
        "session.extended",
        "session.ended",
    ]


def test_shell_as_readme_shows(start, broker, worker, scheduler):
    need("amqp-publish", "amqp-tools")
    follow, command = blocks("Shell")

    def queues():
        return {queue["name"] for queue in broker.listing("list_queues", "name")}

    before = queues()
    follower = start("README.md, Shell, first", "bash", "-euc", follow)
    poll(
        lambda: any(
            binding["source_name"] == "overtime.events.topic"
            for binding in broker.listing("list_bindings", "source_name")
        ),
        20,
        lambda: f"the queue of events; there came {follower.tail()}",
    )
    shell = start("README.md, Shell, second", "bash", "-euc", command)
    assert shell.wait_exit(30) == 0, shell.tail(40)
    assert outcomes(shell) == [("open", None), ("join", None), ("extend", None), ("destroy", None)]
    wait_text(follower, is_event("session.ended"), "the session's end")
    assert [text["type"] for text in texts(follower)] == [
        "session.started",
        "session.window.opened",
        "session.extended",
        "session.destroy.acknowledged",
        "session.ended",
    ]
    end(follower)
    poll(lambda: queues() == before, 10, lambda: f"no queue to be left behind, as {queues() - before}")


def test_a_session_of_two(gateway):
    gateway.ok("demo", "open", **LATER)
    alice, bob = (gateway.follow("demo", user) for user in ("alice", "bob"))
    gateway.ok("another", "open")
    gateway.ok("another", "join", "carol")
    gateway.ok("demo", "join", "alice", role="moderator")
    gateway.ok("demo", "join", "bob")
    for follower in (alice, bob):
        notice = follower.wait("session.window.opened")
        assert (notice["data"]["window"], notice["data"]["extendable"]) == (1, True)
    reply = gateway.ok("demo", "extend", "bob")
    status, refused = gateway.post("demo", "extend", "alice")
    assert (status, refused["error"]["code"], refused["error"]["extendedBy"]) == (409, 6005, "bob")
    assert refused["error"]["opensAt"] == reply["session"]["nextWindowAt"]
    status, refused = gateway.post("demo", "destroy", "bob")
    assert (status, refused["error"]["code"]) == (403, 5116)
    gateway.ok("demo", "destroy", "alice")
    for follower in (alice, bob):
        follower.wait("session.ended")
    everybody = [
        "session.started",
        "participant.joined",
        "participant.joined",
        "session.window.opened",
        "session.extended",
        "session.ended",
    ]
    assert bob.types == everybody
    assert alice.types == everybody[:-1] + ["session.destroy.acknowledged", "session.ended"]
    assert {message["subject"] for _, message in alice.messages + bob.messages} == {"demo"}
    assert (bob.sequences, alice.sequences) == ([2, 3, 4, 5, 6, 8], [2, 3, 4, 5, 6, 7, 8])


def test_who_comes_late_is_told_of_the_open_window(gateway):
    gateway.ok("demo", "open", **AT_ONCE)
    gateway.ok("demo", "join", "alice")
    late = gateway.follow("demo", "bob")
    notice = late.wait("session.window.opened")
    [(id, _)] = late.messages
    assert id is None and "id" not in notice, "it is told apart from the event by having no id"
    assert (notice["subject"], notice["data"]["window"]) == ("demo", 1)
    assert 0.9 < notice["data"]["timeLeft"] <= 1
    gateway.ok("demo", "extend", "alice")
    late.wait("session.extended")
    assert late.sequences == [5], "what was before is not told again"
    assert gateway.follow("demo", "carol").messages == []


@pytest.mark.parametrize("room", ["demo", "a/b ?#%&ü"])
def test_a_copy_is_told_once(gateway, wire, history, room):
    gateway.ok(room, "open", **AT_ONCE)
    early = gateway.follow(room, "bob")
    gateway.ok(room, "join", "alice")
    history.wait_sequence(room, 4)
    late = gateway.follow(room, "carol")
    copies = history.copies
    for event in history.rooms[room] * 2:
        wire.publish("overtime.events", event.routing_key, event.body, event.properties)
    history.changed.wait(lambda: history.copies == copies + 8, 10, "eight copies")
    gateway.ok(room, "extend", "alice")
    for follower, sequences in ((early, [2, 3, 4, 5]), (late, [5])):
        follower.wait_sequence(5)
        assert follower.sequences == sequences


def test_statuses(gateway, worker):
    assert gateway.post("demo", "join", "alice")[0] == 404
    gateway.ok("demo", "open", duration="1h")
    for status, command, fields in [
        (200, "status", {}),
        (409, "extend", {"user": "alice"}),
        (400, "open", {"policy": {"windows": ["9m"], "extension": {"min": "1m"}}}),
        (400, "join", {"usr": "alice"}),
        (400, "jion", {"user": "alice"}),
        (400, "join", {"body": "{"}),
        (400, "join", {"body": "[]"}),
    ]:
        assert gateway.post("demo", command, **fields)[0] == status, (command, fields)
    assert worker.terminate()[0] == 0
    status, reply = gateway.post("demo", "status", key="k")
    assert (status, reply["id"], reply["error"]["reason"]) == (504, "k", "no_reply")


def test_a_repeat_with_the_same_key(gateway):
    gateway.ok("demo", "open", **AT_ONCE)
    gateway.ok("demo", "join", "alice")
    follower = gateway.follow("demo", "alice")
    first = gateway.ok("demo", "extend", "alice", key="once")
    assert gateway.ok("demo", "extend", "alice", key="once") == first
    gateway.ok("demo", "leave", "alice")
    follower.wait("participant.left")
    assert follower.types == ["session.window.opened", "session.extended", "participant.left"]


@pytest.mark.parametrize("goes", ["gateway", "connection"])
def test_who_comes_again_is_told_what_was_missed(start, broker, wire, history, worker, scheduler, goes):
    address = urllib.parse.urlsplit(broker.url)
    proxy = Proxy(address.hostname, address.port)
    proxy.open()
    gateway = Gateway(start, OVERTIME_AMQP_URL=broker.url.replace(f":{address.port}/", f":{proxy.port}/"))
    wire.ok("open", "demo", duration="1h")
    follower = gateway.follow("demo", "bob")
    wire.ok("join", "demo", "alice")
    follower.wait("participant.joined")
    if goes == "gateway":
        end(gateway.process)
    else:
        proxy.cut()
    follower.wait_end()
    wire.ok("join", "demo", "carol")
    wire.ok("leave", "demo", "carol")
    if goes == "gateway":
        gateway.run()
    else:
        assert gateway.post("demo", "status")[0] == 503
        follower.follow()
        follower.wait_end()
        proxy.open()
    follower.follow()
    wire.ok("join", "demo", "dave")
    follower.wait_sequence(6)
    assert follower.sequences == [2, 3, 4, 5, 6]
    proxy.cut()


def connect(gateway, room, user, receive=65_536):
    """A client that follows and reads by hand; returns its socket once the gateway has answered."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    client.settimeout(20)
    client.connect(("127.0.0.1", gateway.port))
    client.sendall(f"GET /rooms/{room}/events?user={user} HTTP/1.0\r\n\r\n".encode())
    assert client.recv(1) == b"H"
    return client


def test_a_slow_reader_holds_up_nobody_and_misses_nothing(gateway, wire, figure):
    count = 3_000
    wire.ok("open", "demo", duration="1h")
    quick = gateway.follow("demo", "bob")
    before = gateway.process.resident()
    with connect(gateway, "demo", "carol", receive=4_096) as slow:
        for number in range(count):
            wire.send("join", "demo", f"user-{number}")
        quick.wait_sequence(count + 2, 60)
        grown = gateway.process.resident() - before
        stream, found = slow.makefile("rb"), []
        while not found or found[-1] < count + 2:
            line = stream.readline()
            assert line, f"the stream ended after {found[-3:]}"
            if line.startswith(b"id: "):
                found.append(int(line[4:].split(b"/")[0]))
    assert found == quick.sequences == list(range(2, count + 3))
    figure("memory of the gateway for 3,000 events not read, MiB", round(grown / 1024, 1))
    assert grown < 8 * 1024, f"{grown} KiB"


def test_who_left_is_let_go_at_the_next_event(gateway, broker):
    gateway.ok("demo", "open", duration="1h")

    def connections():
        return len(broker.listing("list_connections", "pid"))

    before = connections()
    with connect(gateway, "demo", "bob") as client:
        poll(lambda: connections() == before + 1, 10, "the connection of a client")
        client.shutdown(socket.SHUT_RDWR)
    users = (f"user-{number}" for number in range(1_000))

    def is_let_go():
        gateway.ok("demo", "join", next(users))
        return connections() == before

    poll(is_let_go, 20, "the connection to be gone")
    assert "Traceback" not in gateway.process.tail(1_000), gateway.process.tail(1_000)
