"""Whatever is sent: answered, kept among the dead letters or, if it is a valid command, applied."""

import json
import os
import secrets
import time
from collections import Counter

import pika
import pytest
from mutations import Mutator
from waiting import poll

GOOD = {"command": "open", "room": "r"}
MESSAGES = int(os.environ.get("MESSAGES", "20000"))
SEED = int(os.environ.get("SEED", "0")) or secrets.randbelow(2**32)
SHORT_STRINGS = {"absent": None, "empty": "", "255 bytes": "x" * 255, "not UTF-8": b"\xff\xfe\xc3"}


def encoded(value):
    return json.dumps(value).encode()


class Table:
    """Publishes one message a case and tells what became of it: events by room, answers, letters."""

    def __init__(self, wire, history, worker, installation):
        self.wire, self.history, self.worker, self.installation = wire, history, worker, installation
        wire.dead_letters()
        self.cases = []

    def send(self, name, body, outcome, **properties):
        """`outcome` is applied, letter, or gone (the broker refuses it before it reaches anybody)."""
        attributes = {
            "delivery_mode": 2,
            "reply_to": self.wire.reply_queue,
            "correlation_id": name,
            "headers": {"case": name},
        } | properties
        self.cases.append((name, body, outcome, attributes))
        self.wire.publish(
            "",
            f"{self.installation.prefix}.commands",
            body,
            pika.BasicProperties(**{key: value for key, value in attributes.items() if value is not None}),
        )

    def check(self):
        # Decided in order: an answer to one behind them says that all of them are done.
        self.wire.ok("open", "behind")
        for name, body, outcome, attributes in self.cases:
            room = f"room {name}"
            if outcome == "applied":
                self.history.wait_event(room, "room.opened", 10)
                letters = [p for b, p in self.history.letters if (p.headers or {}).get("case") == name]
                assert not letters, f"{name}: applied and a dead letter: {letters[0].headers}"
            else:
                letter, kept = self.history.wait_letter(
                    lambda _, p, name=name: (p.headers or {}).get("case") == name, 10, f"the letter of {name}"
                )
                assert letter == body, name
                assert kept.headers["x-overtime-reason"], name
                assert not self.history.rooms.get(room), name
                for key, value in attributes.items():
                    if key not in ("headers", "user_id", "expiration"):
                        assert getattr(kept, key) == value, (name, key, getattr(kept, key))
        assert self.worker.running
        assert self.wire.count(f"{self.installation.prefix}.commands") == 0


@pytest.fixture
def table(wire, history, worker, installation):
    return Table(wire, history, worker, installation)


def named(name, **fields):
    return encoded(GOOD | {"room": f"room {name}"} | fields)


def test_every_property_in_every_state(table, canary):
    """14 properties, absent, empty, 255 bytes long and not UTF-8 (or the numbers at their edges)."""
    refused = {
        ("content_type", "255 bytes"),
        ("content_type", "not UTF-8"),
        ("content_encoding", "255 bytes"),
        ("content_encoding", "not UTF-8"),
        ("message_id", "255 bytes"),
        ("message_id", "not UTF-8"),
    }
    for state, value in SHORT_STRINGS.items():
        for name in (
            "content_type",
            "content_encoding",
            "message_id",
            "type",
            "app_id",
            "cluster_id",
            "correlation_id",
            "reply_to",
        ):
            case = f"{name} {state}"
            table.send(
                case, named(case), "letter" if (name, state) in refused else "applied", **{name: value}
            )
    for name, values in {
        "priority": [0, 255],
        "delivery_mode": [1, 2],
        "timestamp": [0, 2**63 - 1],
        "expiration": ["60000", "4294967295"],
        "user_id": ["guest"],
    }.items():
        for value in values:
            case = f"{name} {value}"
            table.send(case, named(case), "applied", **{name: value})
    for case, headers in {
        "no headers": None,
        "empty headers": {},
        "deep headers": deep(60),
        "many headers": {f"h{n}": n for n in range(1_000)},
        "large header": {"k": "x" * 60_000},
        "bytes in headers": {"k": b"\xff\x00"},
        "headers of our own": {"x-overtime-reason": "mine", "x-overtime-detail": [1]},
    }.items():
        applied = named(case)
        table.send(case, applied, "applied", headers=headers)
        if headers:
            # And what is no command takes them along to its letter.
            table.send(f"{case}, bad", b"[]", "letter", headers=headers | {"case": f"{case}, bad"})
    table.check()


def deep(levels):
    value = {"end": 1}
    for _ in range(levels):
        value = {"k": value}
    return value


def test_the_type_that_is_needed(table):
    """`type` in each state, where the body does not say the command."""
    for state, value in SHORT_STRINGS.items():
        case = f"type needed {state}"
        table.send(case, encoded({"room": f"room {case}"}), "letter", type=value)
    table.send("type needed open", encoded({"room": "room type needed open"}), "applied", type="open")
    table.check()


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 131_071, 131_072, 1_000_000, 20_000_000])
def test_bodies_of_all_sizes(wire, worker, history, installation, size):
    wire.dead_letters()
    body = named("sized")[:size]
    body += b" " * (size - len(body))
    call = wire.send("open", "sized", body=body, properties={"headers": {"case": "sized"}})
    reply = history.wait_reply(call, 20)
    if len(named("sized")) <= size <= 65_536:
        assert reply["ok"]
        return
    assert reply["error"]["code"] == 6008
    letter, properties = history.wait_letter(lambda *_: True, 20)
    assert letter == body
    # The largest are moved by the broker itself.
    assert (
        "x-overtime-reason" in properties.headers or properties.headers["x-death"][0]["reason"] == "rejected"
    )
    wire.ok("open", "other")


def test_reply_addresses_of_all_kinds(table, wire, history, installation, scheduler, broker):
    """A missing queue, oddities, another component's own queue: done or refused, and nobody is harmed."""
    prefix = installation.prefix
    names = [row["name"] for row in broker.listing("list_queues", "name")]
    another = next(name for name in names if name.startswith(f"{prefix}.own.scheduler."))
    for number, (address, outcome) in enumerate(
        [
            ("missing", "applied"),
            ("", "applied"),
            ("x" * 255, "applied"),
            (b"\xff\xfe", "applied"),
            (b"a\x00b", "applied"),
            ("amq.rabbitmq.reply-to.x", "applied"),
            ("amq.rabbitmq.reply-to.g2dkAA5yYWJiaXRAbG9jYWxob3N0", "applied"),
            (another, "applied"),
            (f"{prefix}.commands", "letter"),
            (f"{prefix}.ticks", "letter"),
            (f"{prefix}.events.log", "letter"),
            (f"{prefix}.", "letter"),
            (f"{prefix}.own", "letter"),
            (prefix, "applied"),
        ]
    ):
        case = f"address {number}"
        table.send(case, named(case), outcome, reply_to=address)
    table.check()
    # The scheduler took an answer that was none for what it was, and fires as ever.
    wire.ok(
        "open", "timed", duration="3s", policy={"windows": ["2s"], "extension": {"min": "2s", "max": "4s"}}
    )
    wire.ok("join", "timed", "ada")
    ended = history.wait_event("timed", "session.ended")
    assert ended.data["lateBy"] < 1
    assert scheduler.running


def test_hostile_ticks_and_queries(wire, worker, scheduler, history, installation):
    """The internal queues are as open as the others: nothing sent there ends a process or stays."""
    prefix = installation.prefix
    bodies = [
        b"",
        b"x",
        b"[]",
        b"{}",
        b"null",
        b"\xff" * 100,
        b"[" * 100_000,
        encoded({"rooms": []}),
        encoded({"rooms": [None]}),
        encoded({"scheduler": "", "rooms": ["r"]}),
        encoded({"scheduler": "x" * 300, "rooms": ["r"] * 10_000}),
        encoded({"scheduler": "a", "rooms": ["r\u0000"]}),
        encoded({"query": "rooms", "after": 5}),
        encoded({"query": "rooms", "limit": 10**30}),
        encoded({"query": "participants", "room": "x" * 300}),
        encoded({"query": "state", "x": 1}),
        b" " * 200_000,
        b" " * 20_000_000,
    ]
    wire.ok("open", "r")
    for body in bodies:
        for exchange in (f"{prefix}.ticks", f"{prefix}.queries"):
            for reply_to in (wire.reply_queue, "missing", b"\xff"):
                wire.publish(
                    exchange, "", body, pika.BasicProperties(reply_to=reply_to, correlation_id="hostile")
                )
        # Events that no worker sent, as a scheduler hears them.
        wire.publish(
            f"{prefix}.events.topic",
            "session.started",
            body,
            pika.BasicProperties(type="session.started", headers={"room": 5, "sequence": "x"}),
        )
    poll(
        lambda: wire.count(f"{prefix}.ticks") + wire.count(f"{prefix}.queries") == 0,
        20,
        "all of it to be taken",
    )
    wire.ok(
        "open", "timed", duration="3s", policy={"windows": ["2s"], "extension": {"min": "2s", "max": "4s"}}
    )
    wire.ok("join", "timed", "ada")
    assert history.wait_event("timed", "session.ended").data["lateBy"] < 1
    assert wire.query({"query": "rooms"})["ok"]
    assert worker.running and scheduler.running


class Flood:
    """Answers, letters and events of very many messages, in a few bytes each."""

    NONE, DONE, REFUSED, INVALID = range(4)

    def __init__(self, count):
        self.answers = bytearray(count)
        self.letters = bytearray(count)
        self.reasons = Counter()
        self.letter_reasons = Counter()
        self.problems = []
        self.answered = self.lettered = self.events = 0
        self.sequences = {}
        self.changed = None

    def on_reply(self, _method, properties, body):
        number = int(properties.correlation_id)
        reply = json.loads(body)
        reason = None if reply["ok"] else reply["error"]["reason"]
        kind = self.DONE if reply["ok"] else self.INVALID if reason == "invalid_command" else self.REFUSED
        if self.answers[number] and self.answers[number] != kind:
            self.problems.append(f"{number} has two answers: {reply}")
        self.answered += not self.answers[number]
        self.answers[number] = kind
        self.reasons[reason or "ok"] += 1
        if self.answered % 500 == 0:
            self.changed.tell()

    def on_letter(self, _method, properties, body):
        number = properties.headers["n"]
        if self.letters[number]:
            self.problems.append(f"{number} is a dead letter twice")
        self.lettered += 1
        self.letters[number] = 1
        self.letter_reasons[properties.headers.get("x-overtime-reason", "of the broker")] += 1

    def on_event(self, _method, properties, body):
        headers = properties.headers
        room, sequence = headers["room"], headers["sequence"]
        last = self.sequences.get(room, 0)
        if sequence > last + 1:
            self.problems.append(f"{room}: event {sequence} where {last + 1} was due")
        self.sequences[room] = max(last, sequence)
        self.events += 1


def test_mutated_messages(installation, connect, history, broker, figure):
    """`make hostile MESSAGES=1000000` sends a million; the seed is printed and draws the same again."""
    print(f"SEED={SEED}")
    wire = connect()
    worker = installation.worker()
    installation.scheduler()
    flood = Flood(MESSAGES)
    flood.changed = history.changed
    prefix = installation.prefix
    for name, bindings, handler in [
        ("answers", [], flood.on_reply),
        ("told", [(f"{prefix}.events", "")], flood.on_event),
    ]:
        wire.declare(f"{name}.{prefix}", bindings)
        wire.consume(f"{name}.{prefix}", handler)
    wire.consume(f"{prefix}.dead", flood.on_letter)
    mutator = Mutator(SEED, prefix, f"answers.{prefix}", wire.token)
    began, sent, resident = time.monotonic(), 0, {}
    step = max(1_000, MESSAGES // 100)
    while sent < MESSAGES:
        count = min(2_000, MESSAGES - sent)
        receipts = wire.publish_many([mutator.message(number) for number in range(sent, sent + count)])
        assert wire.settled(receipts, 120) == {"ack"}
        sent += count
        history.changed.wait(
            lambda sent=sent: flood.answered >= sent - 4_000 or flood.problems,
            60,
            lambda sent=sent: f"answers to {sent} messages; {flood.answered} came; {worker.tail()}",
        )
        assert not flood.problems, f"SEED={SEED}: {flood.problems[:5]}"
        assert worker.running, (
            f"SEED={SEED}: the worker ended with {worker.popen.returncode}: {worker.tail()}"
        )
        if sent % step < 2_000:
            resident[sent] = worker.resident()
    poll(lambda: flood.answered == MESSAGES, 60, lambda: f"SEED={SEED}: the answers to {missing(flood)}")
    invalid = sum(kind == Flood.INVALID for kind in flood.answers)
    poll(lambda: flood.lettered >= invalid, 30, "the letters")
    took = time.monotonic() - began
    wrong = [
        number
        for number in range(MESSAGES)
        if bool(flood.letters[number]) != (flood.answers[number] == Flood.INVALID)
    ]
    assert not wrong, f"SEED={SEED}: a letter without an answer or the other way round: {wrong[:5]}"
    for room in list(flood.sequences)[:200]:
        poll(
            lambda room=room: flood.sequences[room] == wire.ok("status", room)["sequence"],
            10,
            f"the last event of {room}",
        )
    assert not flood.problems, f"SEED={SEED}: {flood.problems[:5]}"
    assert wire.count(f"{prefix}.commands") == 0
    assert worker.running
    kept = sorted(resident)
    warm = resident[kept[len(kept) // 5]]
    growth = resident[kept[-1]] - warm
    figure(
        f"{MESSAGES} mutated messages",
        {
            "seed": SEED,
            "seconds": round(took),
            "a second": round(MESSAGES / took),
            "answers": dict(flood.reasons.most_common()),
            "letters": dict(flood.letter_reasons),
            "events": flood.events,
            "rooms": len(flood.sequences),
            "resident KiB": {number: resident[number] for number in kept[:: max(1, len(kept) // 10)]},
            "growth after warm-up, KiB": growth,
        },
    )
    if MESSAGES >= 100_000:
        assert growth < 10_000, resident


def missing(flood):
    return [number for number, kind in enumerate(flood.answers) if not kind][:5]
