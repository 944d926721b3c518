"""What is no command: refused where somebody listens, kept intact among the dead letters, never a crash."""

import json
import secrets
import threading
import time

import pika
import pytest
from conftest import ROOT
from waiting import poll

SUITE = ROOT.parent / "shared/data/json-test-suite/test_parsing"
REASONS = {"invalid_command", "not_json", "not_an_object", "too_large"}
GOOD = {"command": "join", "room": "r", "user": "ada"}


def without(key):
    return {name: value for name, value in GOOD.items() if name != key}


def encoded(value):
    return json.dumps(value).encode()


BODIES = {
    "empty": b"",
    "not json": b"hello",
    "array": b"[]",
    "string": b'"join"',
    "null": b"null",
    "number": b"7",
    "no command": encoded(without("command")),
    "no room": encoded(without("room")),
    "no user": encoded(without("user")),
    "unknown command": encoded(GOOD | {"command": "jion"}),
    "command of another case": encoded(GOOD | {"command": "Join"}),
    "command is a number": encoded(GOOD | {"command": 1}),
    "unknown field": encoded(GOOD | {"rôle": "viewer"}),
    "field of another command": encoded(GOOD | {"by": "5m"}),
    "unknown role": encoded(GOOD | {"role": "host"}),
    "null field": encoded(GOOD | {"role": None}),
    "null id": encoded(GOOD | {"id": None}),
    "empty id": encoded(GOOD | {"id": ""}),
    "long id": encoded(GOOD | {"id": "x" * 129}),
    "nul in id": encoded(GOOD | {"id": "a\0b"}),
    "number as id": encoded(GOOD | {"id": 1}),
    "empty room": encoded(GOOD | {"room": ""}),
    "long room": encoded(GOOD | {"room": "x" * 129}),
    "long room of wide letters": encoded(GOOD | {"room": "ä" * 65}),
    "control in room": encoded(GOOD | {"room": "a\tb"}),
    "DEL in room": encoded(GOOD | {"room": "a\x7fb"}),
    "C1 control in user": encoded(GOOD | {"user": "a\u0085b"}),
    "empty user": encoded(GOOD | {"user": ""}),
    "long user": encoded(GOOD | {"user": "x" * 129}),
    "array as user": encoded(GOOD | {"user": ["ada"]}),
    "duplicate key": b'{"command":"join","room":"r","user":"a","user":"b"}',
    "duplicate key, escaped": b'{"command":"join","room":"r","user":"a","\\u0075ser":"b"}',
    "byte-order mark": b"\xef\xbb\xbf" + encoded(GOOD),
    "utf-16": encoded(GOOD).decode().encode("utf-16-le"),
    "invalid utf-8": b'{"command":"join","room":"r\xff","user":"a"}',
    "overlong utf-8": b'{"command":"join","room":"r\xc0\x80","user":"a"}',
    "lone surrogate": b'{"command":"join","room":"r\\ud800","user":"a"}',
    "escaped nul": b'{"command":"join","room":"r\\u0000","user":"a"}',
    "raw nul": b'{"command":"join","room":"r","user":"a"}\x00',
    "trailing comma": b'{"command":"join","room":"r","user":"a",}',
    "two objects": encoded(GOOD) * 2,
    "comment": encoded(GOOD) + b"//",
    "unfinished": encoded(GOOD)[:-1],
    "single quotes": b"{'command':'join','room':'r','user':'a'}",
    "deep": b'{"command":"join","room":"r","user":"a","x":' + b"[" * 17 + b"]" * 17 + b"}",
    "very deep": b"[" * 30_000,
    "very deep objects": b'{"a":' * 10_000,
}
OPENS = {
    "zero": {"duration": 0},
    "negative": {"duration": -1},
    "true": {"duration": True},
    "null": {"duration": None},
    "no unit": {"duration": "60"},
    "empty": {"duration": ""},
    "wrong order": {"duration": "1m1h"},
    "fraction": {"duration": "1.5h"},
    "unit": {"duration": "1d"},
    "space": {"duration": "1 h"},
    "sign": {"duration": "+1h"},
    "twice": {"duration": "1h1h"},
    "capital": {"duration": "1H"},
    "too small": {"duration": 0.000001},
    "nothing": {"duration": "0s"},
    "a millisecond too long": {"duration": "8784h1ms"},
    "much too long": {"duration": 1e300},
    "beyond all numbers": {"duration": "99999999999999999999h"},
    "array": {"duration": [1]},
    "moderators is text": {"moderators": "ada"},
    "moderator is a number": {"moderators": [1]},
    "moderator is empty": {"moderators": [""]},
    "moderators null": {"moderators": None},
    "policy is null": {"policy": None},
    "policy is a list": {"policy": []},
    "unknown field": {"policy": {"minuets": 1}},
    "windows is text": {"policy": {"windows": "10m"}},
    "a window of nothing": {"policy": {"windows": ["10m", 0]}},
    "unknown word": {"policy": {"extenders": "everybody"}},
    "clock": {"policy": {"clock": "join"}},
    "reopen": {"policy": {"reopen": "never"}},
    "negative count": {"policy": {"maxExtensions": -1}},
    "2.0 is no count": {"policy": {"maxExtensions": 2.0}},
    "a count of text": {"policy": {"maxExtensions": "2"}},
    "no such count": {"policy": {"maxExtensions": 2**63}},
    "null count": {"policy": {"maxExtensions": None}},
    "extension is text": {"policy": {"extension": "10m"}},
    "unknown part": {"policy": {"extension": {"mni": "10m"}}},
    "wrong type in extension": {"policy": {"extension": {"min": True}}},
    "maxTotal": {"policy": {"maxTotal": "never"}},
}
EXTENDS = {
    "both": {"by": "5m", "minutes": 5},
    "text minutes": {"minutes": "5m"},
    "zero": {"by": 0},
    "null": {"by": None},
    "boolean": {"minutes": False},
    "other": {"duration": "5m"},
}
PROPERTIES = {
    "content type": {"content_type": "text/plain"},
    "almost": {"content_type": "application/jsonl"},
    "suffix": {"content_type": "application/cloudevents+json"},
    "encoding": {"content_encoding": "gzip"},
    "encoding utf-8": {"content_encoding": "utf-8"},
    "identity": {"content_encoding": "identity"},
}


@pytest.fixture
def letters(wire, worker):
    wire.dead_letters()


def corpus():
    yield from ((f"body: {name}", body, {}) for name, body in BODIES.items())
    for name, fields in OPENS.items():
        yield f"open: {name}", encoded({"command": "open", "room": "r"} | fields), {}
    for name, fields in EXTENDS.items():
        yield f"extend: {name}", encoded({"command": "extend", "room": "r", "user": "ada"} | fields), {}
    yield from ((f"properties: {name}", encoded(GOOD), properties) for name, properties in PROPERTIES.items())


def test_every_bad_command_is_answered_and_kept(wire, letters, worker, history):
    cases = []
    for name, body, properties in corpus():
        message, call = wire.message(
            "bad", "r", body=body, properties={"message_id": name, "headers": {"case": name}} | properties
        )
        call.receipt = wire.publish(*message)
        cases.append((name, body, properties, call))
    for name, body, properties, call in cases:
        reply = history.wait_reply(call)
        assert not reply["ok"], f"{name}: {reply}"
        assert (reply["error"]["reason"], reply["error"]["code"]) == ("invalid_command", 6008), (
            f"{name}: {reply}"
        )
        assert len(reply["error"]["message"]) > 10, name
        assert reply["session"] is None and reply["sequence"] is None, f"{name}: {reply}"
        letter, kept = history.wait_letter(
            lambda _, p, name=name: p.message_id == name, what=f"the letter of {name}"
        )
        assert letter == body, name
        assert kept.headers["case"] == name
        assert kept.headers["x-overtime-reason"] in REASONS, f"{name}: {kept.headers}"
        assert kept.headers["x-overtime-detail"], name
        assert (kept.reply_to, kept.correlation_id) == (wire.reply_queue, call.correlation)
        for key, value in properties.items():
            assert getattr(kept, key) == value, name
    assert len(history.letters) == len(cases)
    assert history.rooms == {}
    assert worker.running


def test_what_is_valid_by_itself_is_echoed(wire, letters):
    for fields, echo in [
        ({"command": "join", "room": "r", "user": "a", "id": "k", "x": 1}, ("k", "join", "r")),
        ({"command": "jion", "room": "r", "user": "a", "id": "k"}, ("k", None, "r")),
        ({"command": "join", "room": "", "user": "a", "id": "k"}, ("k", "join", None)),
        ({"command": "join", "room": "r", "user": "a", "id": 5}, (None, "join", "r")),
    ]:
        reply = wire.refused("invalid_command", "bad", "r", body=encoded(fields))
        assert (reply["id"], reply["command"], reply["room"]) == echo
    reply = wire.refused("invalid_command", "bad", "r", body=b"[")
    assert (reply["id"], reply["command"], reply["room"]) == (None, None, None)


def test_the_json_test_suite(wire, letters, worker, history):
    if not SUITE.is_dir():
        pytest.skip(f"{SUITE} is not there")
    calls = []
    for path in sorted(SUITE.glob("[ny]_*.json")):
        message, call = wire.message(
            "suite", "r", body=path.read_bytes(), properties={"message_id": path.name}
        )
        wire.publish(*message)
        calls.append((path.name, call))
    assert len(calls) == 188 + 95
    # None of them is a command, so all are refused; which of them parse is for the unit tests to say.
    for name, call in calls:
        assert history.wait_reply(call)["error"]["code"] == 6008, name
    history.changed.wait(lambda: len(history.letters) == len(calls), 10, "a letter of each file")
    bodies = {properties.message_id: body for body, properties in history.letters}
    for name, _ in calls:
        assert bodies[name] == (SUITE / name).read_bytes(), name
    wire.ok("open", "still-here")


def test_content_types_that_are_right(wire, worker):
    wire.ok("open", "r")
    for number, properties in enumerate(
        [
            {"content_type": "application/json; charset=utf-8"},
            {"content_type": "application/json;x=y"},
            {"content_type": None},
            {"content_encoding": ""},
            {"content_type": "Application/JSON"},
        ]
    ):
        wire.ok("join", "r", f"user-{number}", properties=properties)


def test_the_type_property_says_the_command(wire, letters):
    wire.ok("open", "r")
    body = encoded({"room": "r", "user": "ada"})
    assert wire.ok("-", "r", body=body, properties={"type": "join"})["command"] == "join"
    # The body goes first.
    assert wire.ok("leave", "r", "ada", properties={"type": "join"})["command"] == "leave"
    wire.refused("invalid_command", "-", "r", body=body, properties={"type": "jion"})
    wire.refused("invalid_command", "-", "r", body=body, properties={"type": ""})


@pytest.mark.parametrize("size", [65_535, 65_536])
def test_the_largest_body(wire, worker, size):
    body = encoded({"command": "open", "room": "r"})
    assert wire.ok("open", "r", body=body + b" " * (size - len(body)))["sequence"] == 1


@pytest.mark.parametrize("size", [65_537, 131_072, 1_000_000, 3_000_000])
def test_a_body_too_large(wire, letters, history, size):
    body = encoded({"command": "open", "room": "r"})
    body += b" " * (size - len(body))
    call = wire.send("open", "r", body=body)
    reply = history.wait_reply(call)
    assert (reply["error"]["code"], reply["room"]) == (6008, None) or reply["error"]["code"] == 6008
    letter, properties = history.wait_letter(lambda *_: True)
    assert letter == body
    assert properties.headers["x-overtime-reason"] in REASONS
    wire.refused("unknown_room", "status", "r")


@pytest.mark.heavy
def test_many_large_bodies_beside_commands(installation, wire, worker, connect, history, broker, figure):
    """More than a prefetch may hold: all become dead letters, whole, and commands beside them are answered."""
    count, size, other = 150, 8 << 20, connect()
    body = b"x" * size
    wire.ok("open", "r")
    assert worker.terminate()[0] == 0
    calls, joins = [], []
    for number in range(count):
        call = wire.send("open", "r", body=body, properties={"message_id": f"large-{number}"})
        calls.append(call)
        if number % 10 == 9:
            assert wire.settled([call.receipt for call in calls[-10:]], 60) == {"ack"}
            joins.append(other.send("join", "r", f"user-{number}"))
    # All wait for it at once.
    worker = installation.worker()
    peak, ended = [0], threading.Event()

    def watch():
        while worker.running and not ended.wait(0.02):
            peak[0] = max(peak[0], worker.resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for call in joins:
            assert history.wait_reply(call, 60)["ok"]
        assert other.ok("join", "r", "ada")["ok"]
        for call in calls:
            assert history.wait_reply(call, 60)["error"]["code"] == 6008
        poll(lambda: wire.count(f"{installation.prefix}.commands") == 0, 60, "the queue to be empty")
    finally:
        ended.set()
        watcher.join()
    assert worker.running
    figure("worker's resident memory, MiB, beside 150 bodies of 8 MiB", peak[0] >> 10)
    assert peak[0] < 200 << 10
    channel, kept, by_broker = broker.channel(), set(), 0
    end = time.monotonic() + 60
    while len(kept) < count and time.monotonic() < end:
        method, properties, letter = channel.basic_get(f"{installation.prefix}.dead")
        if method is None:
            time.sleep(0.1)
            continue
        assert letter == body
        by_broker += "x-death" in properties.headers
        assert "x-death" in properties.headers or properties.headers["x-overtime-reason"] == "too_large"
        kept.add(properties.message_id)
        channel.basic_ack(method.delivery_tag)
    channel.close()
    assert len(kept) == count
    figure("of these moved by the broker", by_broker)


@pytest.mark.parametrize("size", [65_537, 3_000_000])
def test_a_query_too_large(wire, worker, history, installation, size):
    body = b'{"query":"rooms"}'
    message, call = wire.message("rooms", "r", body=body + b" " * (size - len(body)))
    wire.publish(f"{installation.prefix}.queries", "", *message[2:])
    reply = history.wait_reply(call)
    assert (reply["ok"], reply["error"]["code"]) == (False, 6008)


def test_properties_that_would_harm_the_letter_move(wire, letters, history, installation):
    copies = f"copies.{installation.prefix}"
    wire.declare(copies)
    headers = {
        "CC": [copies],
        "x-mine": "kept",
        "nested": {"list": [1, "two", None, True], "n": -5},
        "x-death": "mine",
    }
    # Straight to the queue: only the default exchange takes a queue's name as a carbon copy's address.
    wire.publish(
        "",
        f"{installation.prefix}.commands",
        b"bad",
        pika.BasicProperties(
            user_id="guest",
            expiration="60000",
            message_id="m",
            timestamp=1_700_000_000,
            type="t",
            app_id="app",
            priority=3,
            content_type="application/json",
            delivery_mode=2,
            cluster_id="c",
            correlation_id="x",
            headers=headers,
        ),
    )
    letter, properties = history.wait_letter(lambda *_: True)
    assert letter == b"bad"
    kept = properties.headers
    assert (properties.user_id, properties.expiration) == (None, None)
    assert (kept["x-overtime-original-user-id"], kept["x-overtime-original-expiration"]) == ("guest", "60000")
    assert kept["x-overtime-original-cc"] == [copies]
    assert "CC" not in kept and "BCC" not in kept
    assert kept["x-mine"] == "kept" and kept["nested"] == headers["nested"]
    for name, value in [
        ("message_id", "m"),
        ("timestamp", 1_700_000_000),
        ("type", "t"),
        ("app_id", "app"),
        ("priority", 3),
        ("content_type", "application/json"),
        ("delivery_mode", 2),
        ("cluster_id", "c"),
        ("correlation_id", "x"),
    ]:
        assert getattr(properties, name) == value, name
    # The one copy is the publisher's own.
    assert wire.count(copies) == 1


def test_an_expired_command_is_the_brokers_letter(installation, wire, worker, history):
    assert worker.terminate()[0] == 0
    call = wire.send("open", "late", properties={"expiration": "1", "message_id": "expired"})
    wire.dead_letters()
    _, properties = history.wait_letter(lambda _, p: p.message_id == "expired", 20)
    assert properties.headers["x-death"][0]["reason"] == "expired"
    assert "x-overtime-reason" not in properties.headers
    installation.worker()
    wire.refused("unknown_room", "status", "late")
    assert call.replies == []


def test_replies_into_our_own_queues_are_not_sent(wire, letters, history, installation):
    prefix = installation.prefix
    for number, address in enumerate(
        [f"{prefix}.commands", f"{prefix}.events", f"{prefix}.dead", f"{prefix}.anything", f"{prefix}.own"]
    ):
        wire.send("open", "r", properties={"reply_to": address, "message_id": f"n{number}"})
        _, properties = history.wait_letter(lambda _, p, n=number: p.message_id == f"n{n}")
        assert properties.headers["x-overtime-reason"] in REASONS
    wire.refused("unknown_room", "status", "r")
    assert len(history.letters) == 5
    own = f"{prefix}.own.test.{secrets.token_hex(4)}"
    wire.declare(own)
    wire.send("open", "r", properties={"reply_to": own})
    history.wait_event("r", "room.opened")
    wire.ok("status", "r")
    assert wire.count(own) == 1


def test_reply_addresses_that_lead_nowhere_stop_nothing(wire, worker, history):
    for number, address in enumerate(["gone", "", "x" * 255, "amq.rabbitmq.reply-to.nonsense", "ä", "a.b#*"]):
        wire.send("open", f"r{number}", properties={"reply_to": address})
        history.wait_event(f"r{number}", "room.opened")
    assert wire.ok("status", "r0")["sequence"] == 1


def test_direct_reply_to(wire, worker, broker, installation):
    channel = broker.channel()
    got = []
    channel.basic_consume("amq.rabbitmq.reply-to", lambda *reply: got.append(reply), auto_ack=True)
    channel.basic_publish(
        f"{installation.prefix}.commands",
        "r",
        encoded({"command": "open", "room": "r"}),
        pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id="direct"),
    )
    end = time.monotonic() + 10
    while not got and time.monotonic() < end:
        channel.connection.process_data_events(max(0, end - time.monotonic()))
    channel.close()
    _, _, properties, body = got[0]
    assert (properties.correlation_id, json.loads(body)["ok"]) == ("direct", True)


def test_a_reply_without_correlation_and_no_reply_without_address(wire, worker, history):
    message, _ = wire.message("open", "r", properties={"correlation_id": None})
    wire.publish(*message)
    history.changed.wait(lambda: history.strays, 10, "a reply without correlation")
    assert history.strays[0][0] is None
    wire.send("join", "r", "ada", reply=False)
    history.wait_event("r", "participant.joined")
    wire.ok("status", "r")
    assert len(history.strays) == 1


def test_odd_headers_do_not_matter(wire, worker):
    for number, headers in enumerate(
        [{"x": "y" * 50_000}, {f"h{n}": n for n in range(500)}, {"deep": {"a": {"b": {"c": [[[[1]]]]}}}}, {}]
    ):
        wire.ok("open", f"r{number}", properties={"headers": headers})
