"""Section 1: the objects on the broker and their arguments."""

COMMANDS = {
    "x-queue-type": "quorum",
    "x-single-active-consumer": True,
    "x-delivery-limit": 200,
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}


def arguments(table):
    """As rabbitmqctl prints them: an object, or a list of name, type, value."""
    if isinstance(table, dict):
        return table
    return {name: value for name, _, value in table}


def objects(broker, prefix):
    queues = {
        row["name"].removeprefix(prefix + "."): row
        for row in broker.listing("list_queues", "name", "type", "durable", "exclusive", "arguments")
        if row["name"].startswith(prefix + ".") and ".own." not in row["name"]
    }
    exchanges = {
        row["name"].removeprefix(prefix + "."): (row["type"], row["durable"])
        for row in broker.listing("list_exchanges", "name", "type", "durable")
        if row["name"].startswith(prefix + ".")
    }
    bindings = {
        (
            row["source_name"].removeprefix(prefix + "."),
            row["destination_name"].removeprefix(prefix + "."),
            row["routing_key"],
        )
        for row in broker.listing(
            "list_bindings", "source_name", "destination_name", "destination_kind", "routing_key"
        )
        if row["source_name"].startswith(prefix + ".")
    }
    return queues, exchanges, bindings


def test_one_shard(broker, installation, worker):
    queues, exchanges, bindings = objects(broker, installation.prefix)
    prefix = installation.prefix
    assert exchanges == {
        "commands": ("topic", True),
        "events": ("fanout", True),
        "events.topic": ("topic", True),
        "queries": ("fanout", True),
        "ticks": ("fanout", True),
        "dead": ("fanout", True),
    }
    assert {name: row["type"] for name, row in queues.items()} == {
        "commands": "quorum",
        "events.log": "stream",
        "queries": "classic",
        "ticks": "classic",
        "dead": "quorum",
    }
    assert all(row["durable"] for row in queues.values())
    # RabbitMQ 4 shows the default kind of queue as an argument.
    shown = {name: arguments(row["arguments"]) for name, row in queues.items()}
    for name in ("queries", "ticks"):
        assert shown[name].pop("x-queue-type", "classic") == "classic"
    assert shown == {
        "commands": COMMANDS | {"x-dead-letter-exchange": f"{prefix}.dead"},
        "events.log": {"x-queue-type": "stream", "x-max-age": "7D", "x-max-length-bytes": 2_000_000_000},
        "queries": {"x-message-ttl": 30_000},
        "ticks": {"x-message-ttl": 60_000, "x-max-length": 10_000},
        "dead": {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000},
    }
    assert ("commands", "commands", "#") in bindings
    for source, destination in [
        ("events", "events.topic"),
        ("events", "events.log"),
        ("queries", "queries"),
        ("ticks", "ticks"),
        ("dead", "dead"),
    ]:
        assert any(found[:2] == (source, destination) for found in bindings), (source, destination)


def test_two_shards_keep_a_room_in_its_queue(broker, installation, wire, history):
    installation.worker(shards=2, environment={"OVERTIME_AMQP_LOG": "off"})
    queues, exchanges, bindings = objects(broker, installation.prefix)
    assert exchanges["commands.shards"] == ("x-consistent-hash", True)
    assert set(queues) == {"commands.0", "commands.1", "queries", "ticks", "dead"}
    for name in ("commands.0", "commands.1"):
        assert arguments(queues[name]["arguments"]) == COMMANDS | {
            "x-dead-letter-exchange": f"{installation.prefix}.dead"
        }
    assert ("commands", "commands.shards", "#") in bindings
    rooms = [f"room-{number}" for number in range(40)]
    for room in rooms:
        wire.send("open", room, reply=False)
    calls = [wire.send("join", room, "ada") for room in rooms for _ in range(3)]
    for call in calls:
        assert history.wait_reply(call)["ok"]
    for room in rooms:
        history.wait_sequence(room, 3)
        assert [event.type for event in history.rooms[room]] == [
            "room.opened",
            "session.started",
            "participant.joined",
        ]


def test_commands_straight_to_the_queue(wire, worker, installation, history):
    message, call = wire.message("open", "straight")
    wire.publish("", f"{installation.prefix}.commands", *message[2:])
    assert history.wait_reply(call)["ok"]


def test_topic_subscribers_hear_some_types_only(wire, worker, open_room, installation, history):
    heard = []
    wire.declare(f"some.{installation.prefix}", [(f"{installation.prefix}.events.topic", "participant.*")])
    wire.consume(
        f"some.{installation.prefix}",
        lambda method, _properties, body: (heard.append((method.routing_key, body)), history.changed.tell()),
    )
    open_room("topic", "ada", duration="60m")
    wire.ok("leave", "topic", "ada")
    history.changed.wait(lambda: len(heard) == 2, 10, "two events of participants")
    history.wait_sequence("topic", 4)
    assert [key for key, _ in heard] == ["participant.joined", "participant.left"]
    assert [body for _, body in heard] == [history.rooms["topic"][index].body for index in (2, 3)]


def test_log_off_and_replies_exchange(broker, installation, connect, history):
    installation.worker(environment={"OVERTIME_AMQP_LOG": "off", "OVERTIME_AMQP_REPLIES": "exchange"})
    wire = connect()
    name = f"{installation.prefix}.replies"
    wire._on_loop(
        lambda done: wire._consumer.queue_bind(wire.reply_queue, name, wire.reply_queue, callback=done)
    )
    assert wire.ok("open", "by-exchange")["sequence"] == 1
    queues, exchanges, _ = objects(broker, installation.prefix)
    assert exchanges["replies"] == ("direct", True)
    assert "events.log" not in queues
    # A reply queue that is not bound there gets nothing, and that is no error.
    unbound = connect()
    unbound.send("status", "by-exchange")
    assert wire.ok("status", "by-exchange")["sequence"] == 1
    assert unbound.count(unbound.reply_queue) == 0
