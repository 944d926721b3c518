"""What each user of config/definitions.json may do, and that everything else is refused."""

import contextlib
import itertools
import json
import subprocess

import pika
import pytest
from conftest import ROOT

EXCHANGES = ["commands", "dead", "events", "events.topic", "queries", "replies", "ticks"]
QUEUES = ["commands", "dead", "events.log", "queries", "ticks"]
# Objects without their prefix. Some rights serve only to look whether an object is there, which in RabbitMQ 4.3 needs any
# right on it: so the worker may read the log, the scheduler hear all events, the operator publish ticks.
# Who may read a queue may purge it as well: RabbitMQ knows no difference.
RIGHTS = {
    "worker": {"publish": ["dead", "events", "replies"], "read": ["commands", "events.log", "queries", "ticks"], "own": []},
    "scheduler": {"publish": ["queries", "ticks"], "read": ["ticks"], "own": ["scheduler"]},
    "gateway": {"publish": ["commands", "queries"], "read": [], "own": ["gateway"]},
    "subscriber": {"publish": [], "read": ["events.log"], "own": ["subscriber"]},
    "operator": {
        "publish": ["commands", "queries", "ticks"],
        "read": ["dead", "events.log"],
        "own": ["send", "watch", "rooms", "check"],
    },
}
OWN = ["scheduler", "gateway", "subscriber", "send", "watch", "rooms", "check", "worker", "topology"]
# The exchanges that a user may bind a queue of its own to.
HEARS = {
    "worker": ["events.topic"],
    "scheduler": ["events", "events.topic", "replies", "ticks"],
    "gateway": ["replies"],
    "subscriber": ["events", "events.topic"],
    "operator": ["dead", "events", "events.topic", "replies"],
}


class Visitor:
    """A user that tries things, each on a channel of its own as a refusal closes it."""

    def __init__(self, connection):
        self._connection = connection

    def code(self, action):
        """200, or the code with which the broker refused."""
        channel = self._connection.channel()
        try:
            action(channel)
            return 200
        except pika.exceptions.ChannelClosedByBroker as refusal:
            return refusal.reply_code
        finally:
            with contextlib.suppress(pika.exceptions.ChannelWrongStateError):
                channel.close()

    def publish(self, exchange, key="room", **properties):
        def action(channel):
            channel.confirm_delivery()
            with contextlib.suppress(pika.exceptions.UnroutableError):
                channel.basic_publish(exchange, key, b"-", pika.BasicProperties(**properties))

        return self.code(action)


@pytest.fixture
def visitor(broker):
    connections = []

    def visitor(user):
        connections.append(broker.connect(user))
        return Visitor(connections[-1])

    yield visitor
    for connection in connections:
        connection.close()
    with contextlib.closing(broker.connect("topology")) as connection:
        channel = connection.channel()
        for queue in QUEUES:
            if queue != "events.log":
                channel.queue_purge(f"overtime.{queue}")


def test_guest_is_gone(broker):
    users = json.loads(broker.ctl("list_users", "--formatter", "json"))
    assert {row["user"] for row in users} == set(RIGHTS) | {"topology"}
    assert not any(row["tags"] for row in users), "no user needs the management interface"
    with pytest.raises((pika.exceptions.ProbableAuthenticationError, pika.exceptions.AMQPConnectionError)):
        pika.BlockingConnection(pika.URLParameters(broker.plain_url))


def test_a_password_of_another_user_is_refused(broker):
    url = broker.url("worker").replace(broker.password("worker"), broker.password("gateway"))
    assert url != broker.url("worker")
    parameters = pika.URLParameters(broker.plain_url)
    parameters.credentials = pika.PlainCredentials("worker", broker.password("gateway"))
    with pytest.raises((pika.exceptions.ProbableAuthenticationError, pika.exceptions.AMQPConnectionError)):
        pika.BlockingConnection(parameters)


@pytest.mark.parametrize("user", RIGHTS)
def test_publishing(visitor, user):
    seen = visitor(user)
    found = {name: seen.publish(f"overtime.{name}") for name in EXCHANGES}
    assert found == {name: 200 if name in RIGHTS[user]["publish"] else 403 for name in EXCHANGES}
    # The default exchange leads into every queue, and so into everybody's.
    for queue in [*QUEUES, *(f"own.{component}.1" for component in OWN)]:
        assert seen.publish("", f"overtime.{queue}") == 403, queue
    for exchange in ("amq.topic", "amq.direct", "amq.fanout"):
        assert seen.publish(exchange) == 403, exchange


@pytest.mark.parametrize("user", RIGHTS)
def test_reading_and_purging(visitor, user):
    seen = visitor(user)
    for queue in QUEUES:
        name = f"overtime.{queue}"

        def consume(channel, name=name):
            channel.basic_qos(prefetch_count=1)
            channel.basic_consume(name, lambda *_: None)

        code = 200 if queue in RIGHTS[user]["read"] else 403
        assert seen.code(consume) == code, queue
        # A stream cannot be purged by anybody, and asking for it where one might closes the whole connection.
        if queue != "events.log" or code == 403:
            assert seen.code(lambda channel, name=name: channel.queue_purge(name)) == code, queue


@pytest.mark.parametrize("user", RIGHTS)
def test_own_queues(visitor, user):
    seen = visitor(user)
    for component in OWN:
        name = f"overtime.own.{component}.test"
        expected = 200 if component in RIGHTS[user]["own"] else 403
        assert seen.code(lambda channel, name=name: channel.queue_declare(name, exclusive=True)) == expected, name
        if expected == 403:
            # Also where it exists: what another process hears is not to be read.
            assert seen.code(lambda channel, name=name: channel.basic_get(name)) == 403, name
            continue
        for exchange in EXCHANGES:
            code = seen.code(
                lambda channel, name=name, exchange=exchange: channel.queue_bind(
                    name, f"overtime.{exchange}", "key"
                )
            )
            assert code == (200 if exchange in HEARS[user] else 403), (name, exchange)
        assert seen.code(lambda channel, name=name: channel.queue_delete(name)) == 200


@pytest.mark.parametrize("user", RIGHTS)
def test_shared_objects_cannot_be_changed(visitor, user):
    seen = visitor(user)
    for name in ("overtime.commands", "overtime.new", "stranger", "amq.gen-x"):
        assert seen.code(lambda channel, name=name: channel.queue_declare(name, durable=True)) == 403, name
        assert seen.code(lambda channel, name=name: channel.exchange_declare(name, "fanout")) == 403, name
    for queue in QUEUES:
        name = f"overtime.{queue}"
        assert seen.code(lambda channel, name=name: channel.queue_delete(name)) == 403, name
    for exchange in EXCHANGES:
        name = f"overtime.{exchange}"
        assert seen.code(lambda channel, name=name: channel.exchange_delete(name)) == 403, name
    # Whoever could bind the queue of the commands to the exchange of the events would feed the worker with its own words.
    # The operator could: it may write commands and hear events, and is trusted.
    for source, target in itertools.product(EXCHANGES, EXCHANGES):
        code = seen.code(
            lambda channel, source=source, target=target: channel.exchange_bind(
                f"overtime.{target}", f"overtime.{source}"
            )
        )
        may = target in RIGHTS[user]["publish"] and source in HEARS[user] + readable_exchanges(user)
        assert (code != 403) == may, (source, target, code)
        if code == 200:
            seen.code(
                lambda channel, source=source, target=target: channel.exchange_unbind(
                    f"overtime.{target}", f"overtime.{source}"
                )
            )


def readable_exchanges(user):
    """Exchanges with the name of a queue that the user reads: one right covers both."""
    return [name for name in RIGHTS[user]["read"] if name in EXCHANGES]


def test_nobody_speaks_for_another(visitor):
    assert visitor("gateway").publish("overtime.commands", user_id="operator") == 406
    assert visitor("gateway").publish("overtime.commands", user_id="gateway") == 200


def test_credentials_are_fresh_and_closed(broker):
    script = broker.credentials.parent / "again"
    command = [str(ROOT / "scripts/credentials"), str(script)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    passwords = [
        path.read_text() for top in (broker.credentials, script) for path in top.glob("secrets/*-password")
    ]
    assert len(set(passwords)) == len(passwords) == 14
    for top in (broker.credentials, script):
        assert top.stat().st_mode & 0o777 == 0o700
        assert all(path.stat().st_mode & 0o777 == 0o400 for path in top.glob("secrets/*"))
        text = (top / "broker/definitions.json").read_text()
        assert not any(password in text for password in passwords)
    assert subprocess.run(command, check=False, capture_output=True, timeout=120).returncode == 1
