"""The Swift library as somebody else's package uses it: examples/swift, built by path, as real processes."""

import http.client
import json
import socket
import subprocess
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import ROOT
from overtime import Process
from proxy import Proxy
from waiting import Signal, poll

EVENTS, CUTS, ROOMS = 10_000, 50, 20


@pytest.fixture(scope="session")
def examples():
    """The directory of the examples' programs. The package depends on this one by its path."""
    scratch = ROOT / ".build/examples"
    command = ["swift", "build", "--package-path", str(ROOT / "examples/swift"), "--scratch-path", str(scratch)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return scratch / "debug"


class Example(Process):
    """A program of the examples, on an installation's prefix."""

    def __init__(self, program, installation, *arguments, url=None):
        environment = installation.environment | {"OVERTIME_AMQP_URL": url or installation.url}
        super().__init__([str(program), *arguments], environment, installation.directory, program.name)
        installation.processes.append(self)


@pytest.mark.heavy
def test_a_subscriber_that_is_killed_and_cut_off_hears_each_event_once(
    examples, installation, wire, worker, history, figure
):
    """50 times in 10,000 events: its process killed, its connection cut, and the worker killed too, in turn."""
    address = urlsplit(installation.url)
    proxy = Proxy(address.hostname, address.port)
    proxy.open()
    url = installation.url.replace(f":{address.port}", f":{proxy.port}")
    record = Path(installation.directory) / "record.txt"
    rooms = [f"room-{number}" for number in range(ROOMS)]
    for room in rooms:
        wire.ok("open", room, duration="1h")
        wire.ok("join", room, "alice")

    def written():
        return record.read_bytes().count(b"\n") if record.exists() else 0

    def start():
        return Example(examples / "subscriber", installation, str(record), url=url)

    subscriber = start()
    sent = kills = 0
    for turn in range(CUTS):
        calls = []
        for _ in range(EVENTS // CUTS):
            # Each is another role than before, so each is an event.
            role = "moderator" if (sent // ROOMS) % 2 == 0 else "viewer"
            calls.append(wire.send("join", rooms[sent % ROOMS], "alice", role=role))
            sent += 1
        if turn % 10 == 9:
            kills += 1
            worker.kill()
            worker = installation.worker()
        if turn % 2 == 0:
            subscriber.kill()
            said = [line["text"] for line in subscriber.lines]
            assert not said, said
            subscriber = start()
        else:
            proxy.cut()
            proxy.open()
        for call in calls:
            assert history.wait_reply(call, 30)["ok"]
        # Not to its end: what is left of this turn comes during the next one.
        poll(lambda least=sent - EVENTS // CUTS: written() > least, 30, f"an event of turn {turn}")
    # Beside the changes of role: opened, started, joined.
    expected = EVENTS + 3 * ROOMS
    poll(lambda: written() >= expected, 60, lambda: f"{expected} events in the record; it has {written()}")
    assert subscriber.terminate()[0] != 0, "a program that only listens ends by its signal"
    assert not subscriber.lines, subscriber.tail()
    proxy.cut()
    heard = {}
    for line in record.read_text().splitlines():
        _, room, sequence, kind = line.split("\t")
        heard.setdefault(room, []).append((int(sequence), kind))
    assert sum(map(len, heard.values())) == expected
    history.changed.wait(
        lambda: sum(map(len, history.rooms.values())) == expected, 30, f"{expected} events in the test's own queue"
    )
    for room, events in history.rooms.items():
        assert heard[room] == [(event.sequence, event.type) for event in events], room
    figure("subscriber killed or cut off, none missed or twice", {"times": CUTS, "workerKilled": kills, "events": expected})


class Listening:
    """Server-sent events of one user."""

    def __init__(self, port, room, user, role=None):
        self.events = []
        self._changed = Signal()
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        path = f"/rooms/{room}/events?user={user}" + (f"&role={role}" if role else "")
        self._connection.request("GET", path)
        self._socket = self._connection.sock
        self.response = self._connection.getresponse()
        self.name = user
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        kind = None
        for raw in self.response:
            line = raw.decode().rstrip("\n")
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                with self._changed:
                    self.events.append((kind, json.loads(line[6:])))
                self._changed.tell()
        with self._changed:
            self.events.append(("end", None))
        self._changed.tell()

    def wait(self, kind, count=1, limit=20):
        def found():
            of_kind = [data for name, data in self.events if name == kind]
            return of_kind[count - 1 :] or None if len(of_kind) >= count else None

        return self._changed.wait(found, limit, lambda: f"{self.name} to be told {kind}; was told {self.events}")

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)


def start_gateway(examples, installation):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    Example(examples / "gateway", installation, str(port)).wait_text(f"http://127.0.0.1:{port}")
    return port


def test_the_gateway_of_the_examples(examples, installation, wire, scheduler):
    """Two users at a browser each: windows, an extension, a refusal with 5116, and the end."""
    port = start_gateway(examples, installation)
    policy = {"windows": ["2s", "1s"], "extension": {"min": "2s", "max": "4s"}}
    wire.ok("open", "demo", duration="3s", policy=policy)
    alice = Listening(port, "demo", "alice", "moderator")
    bob = Listening(port, "demo", "bob")

    def post(path):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", path)
        response = connection.getresponse()
        body = response.read().decode()
        return response.status, json.loads(body) if body.startswith("{") else body

    for user in (alice, bob):
        told = user.wait("remaining")[0]
        assert told["window"] == 1 and not told["final"] and 0 < told["minutesLeft"] <= 2 / 60 + 0.001
    carol = Listening(port, "demo", "carol")
    assert carol.wait("remaining")[0]["window"] == 1, "who comes later is told of the open window"
    status, reply = post("/rooms/demo/extend?user=bob")
    assert status == 200 and reply["result"]["extensions"] == 1, reply
    status, reply = post("/rooms/demo/extend?user=alice")
    assert (status, reply["error"]["reason"]) == (409, "already_extended") and reply["error"]["opensAt"]
    for user in (alice, bob, carol):
        # The wire has minutes with four decimals.
        assert user.wait("extended")[0] == {"extensions": 1, "minutesGranted": 0.0333}
    status, reply = post("/rooms/demo/destroy?user=bob")
    assert (status, reply["error"]["code"]) == (403, 5116)
    status, reply = post("/rooms/demo/destroy?user=alice")
    assert status == 200, reply
    assert alice.wait("destroyAcknowledged")[0] == {"by": "alice"}
    for user in (alice, bob, carol):
        assert user.wait("disconnected")[0] == {"cause": "destroyed"}
        user.wait("end")
    assert not [kind for kind, _ in bob.events + carol.events if kind == "destroyAcknowledged"]
    status, reply = post("/rooms/demo/extend?user=alice")
    assert (status, reply["error"]["reason"]) == (409, "no_session")
    assert post("/rooms/none/extend?user=alice")[1]["error"]["code"] == 6002
    assert post("/nothing")[0] == 404


def test_a_browser_that_goes_away_leaves_the_room(examples, installation, wire, worker):
    port = start_gateway(examples, installation)
    wire.ok("open", "demo", duration="5m")
    alice = Listening(port, "demo", "alice")
    alice.wait("remaining")
    assert wire.ok("status", "demo")["session"]["connected"] == 1
    alice.close()
    poll(lambda: wire.ok("status", "demo")["session"]["connected"] == 0, 40, "alice to leave the room")


def test_the_library_documents_everything_it_shows(figure):
    """Every public symbol has its sentence, and none but those of the library is public."""
    done = subprocess.run([str(ROOT / "scripts/docs")], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    graph = json.loads((ROOT / ".build/docs-symbols/OvertimeClient.symbols.json").read_text())
    names, silent = [], []
    for symbol in graph["symbols"]:
        path = symbol["pathComponents"]
        names.append(".".join(path))
        assert path[0] in ("Overtime", "OvertimeError"), path
        if "docComment" not in symbol:
            silent.append(names[-1])
    assert not silent, silent
    figure("public symbols of the library", len(names))
