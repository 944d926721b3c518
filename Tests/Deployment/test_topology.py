"""config/definitions.json is what the program itself declares, and the program runs with its users."""

import contextlib
import json
import queue
import subprocess
import threading

import pika
import pytest
from conftest import ROOT
from waiting import TimedOut, poll


def objects(definitions, vhost):
    """Exchanges, queues and bindings of a virtual host, in an order that does not matter."""
    # An export tells a queue's type twice: by itself and, where it is not the default, among the arguments; whether an
    # exchange is internal is told by some versions only.
    left_out = {"exchanges": {"vhost", "internal"}, "queues": {"vhost", "type"}, "bindings": {"vhost"}}
    return {
        kind: sorted(
            json.dumps({key: value for key, value in item.items() if key not in names}, sort_keys=True)
            for item in definitions[kind]
            if item["vhost"] == vhost
        )
        for kind, names in left_out.items()
    }


@pytest.mark.parametrize("shards", [1, 3])
def test_the_definitions_are_what_a_worker_declares(broker, installation, tmp_path, shards):
    """A worker that may declare everything, in a virtual host where nothing is: run once by the user `topology`."""
    committed = json.loads((ROOT / "config/definitions.json").read_text())
    made = tmp_path / "credentials"
    subprocess.run(
        [str(ROOT / "scripts/credentials"), str(made), "--shards", str(shards)],
        check=True, timeout=60, capture_output=True,
    )  # fmt: skip
    wanted = objects(json.loads((made / "broker/definitions.json").read_text()), "/")
    bare = f"bare{shards}"
    rights = next(item for item in committed["permissions"] if item["user"] == "topology")
    broker.ctl("add_vhost", bare)
    broker.ctl(
        *("set_permissions", "-p", bare, "topology"), rights["configure"], rights["write"], rights["read"]
    )
    url = broker.url("topology").removesuffix("%2F") + bare
    settings = {"OVERTIME_AMQP_URL": url, "OVERTIME_AMQP_DECLARE": "true", "OVERTIME_SHARDS": str(shards)}
    process = installation.start("worker", environment=settings)

    def exported():
        file = tmp_path / "exported.json"
        broker.ctl("export_definitions", str(file))
        return json.loads(file.read_text())

    with contextlib.suppress(TimedOut):
        poll(lambda: objects(exported(), bare) == wanted, 30, "the whole topology", every=1)
    found = exported()
    assert process.terminate()[0] == 0
    assert objects(found, bare) == wanted
    # And the broker has made of the file what the file says.
    assert objects(found, "/") == objects(committed, "/")
    if shards == 1:
        assert wanted == objects(committed, "/")


class Listener:
    """A subscriber and a gateway that know nothing but the contract."""

    def __init__(self, broker, user, binding):
        self.arrived = queue.Queue()
        self.connection = broker.connect(user)
        self.channel = self.connection.channel()
        self.name = f"overtime.own.{user}.test"
        self.channel.queue_declare(self.name, exclusive=True)
        self.channel.queue_bind(self.name, *binding(self.name))
        self.channel.basic_consume(self.name, self._take, auto_ack=True)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while not self._stopped.is_set():
            self.connection.process_data_events(0.1)

    def _take(self, _channel, _method, properties, body):
        self.arrived.put((properties, json.loads(body)))

    def publish(self, exchange, key, body, properties):
        self.connection.add_callback_threadsafe(
            lambda: self.channel.basic_publish(exchange, key, json.dumps(body).encode(), properties)
        )

    def next(self, limit=30):
        return self.arrived.get(timeout=limit)

    def close(self):
        self._stopped.set()
        self._thread.join(10)
        self.connection.close()


def test_a_room_with_the_least_rights(broker, installation, as_user):
    worker = installation.start("worker", environment=as_user("worker"))
    installation.ready(worker)
    scheduler = installation.start("scheduler", environment=as_user("scheduler"))
    scheduler.wait_said("firing")
    operator = as_user("operator")
    with contextlib.ExitStack() as stack:
        subscriber = stack.enter_context(
            contextlib.closing(Listener(broker, "subscriber", lambda _: ("overtime.events", "")))
        )
        gateway = stack.enter_context(
            contextlib.closing(Listener(broker, "gateway", lambda name: ("overtime.replies", name)))
        )

        def ask(command, **fields):
            body = {"command": command, "room": "least", "id": f"{command}-1"} | fields
            properties = pika.BasicProperties(
                reply_to=gateway.name, correlation_id=command, user_id="gateway", delivery_mode=2
            )
            gateway.publish("overtime.commands", "least", body, properties)
            found, reply = gateway.next()
            assert found.correlation_id == command
            return reply

        policy = {"windows": ["3s", "1s"], "extension": {"min": "3s", "max": "3s"}}
        assert ask("open", duration="4s", policy=policy)["ok"]
        assert ask("join", user="ada", role="moderator")["ok"]
        # A gateway is no operator; the CLI's user is.
        assert ask("destroy")["error"]["reason"] == "unauthorized"
        seen = [subscriber.next()[1] for _ in range(4)]
        assert [event["type"] for event in seen] == [
            "room.opened",
            "session.started",
            "participant.joined",
            "session.window.opened",
        ]
        extended = installation.run("send", "extend", "--room", "least", "--json", environment=operator)
        assert extended.returncode == 0, extended.stderr + extended.stdout
        rooms = installation.run("rooms", environment=operator)
        assert rooms.returncode == 0 and "least" in rooms.stdout, rooms.stderr + rooms.stdout
        check = installation.run("check", environment=operator)
        assert check.returncode == 0, check.stderr + check.stdout
        types = []
        while not types or types[-1] != "session.ended":
            types.append(subscriber.next()[1]["type"])
        assert types == [
            "session.extended",
            "session.window.opened",
            "session.window.opened",
            "session.ended",
        ]
        assert ask("unheard")["error"]["reason"] == "invalid_command"

    for words in (("list",), ("drop", "--all"), ("list",)):
        dead = installation.run("dead", *words, environment=operator)
        assert dead.returncode == 0, dead.stderr + dead.stdout
    # Reading the log takes the right to read it, and no other.
    for user in (operator, as_user("subscriber")):
        log = installation.run("watch", "--from", "first", "--count", "8", "--json", environment=user)
        assert log.returncode == 0 and log.stdout.count("\n") == 8, log.stderr + log.stdout
    assert worker.terminate()[0] == 0
    assert scheduler.terminate()[0] == 0
    for process in (worker, scheduler):
        assert not [line for line in process.lines if "refused" in json.dumps(line).lower()], process.tail(50)


def test_a_worker_without_its_rights_says_so(installation, as_user):
    """The gateway's password in the worker's place: wrong for good, so it ends and names the queue."""
    process = installation.start("worker", environment=as_user("gateway"))
    assert process.wait_exit(60, "its end over a missing right") == 78
    assert "overtime." in process.tail(1) and "403" in process.tail(3), process.tail()
