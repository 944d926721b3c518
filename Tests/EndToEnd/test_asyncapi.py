"""docs/asyncapi.yaml and docs/schemas by themselves, and against the source, the worker and the broker."""

import copy
import json
import re

import jsonschema_rs
import pytest
from conftest import ROOT, SCHEMAS
from schemas import ASYNCAPI, BEYOND, FILES, NO_TEXT, enumeration, judged, loose, validator, words
from test_bad_input import GOOD, corpus, encoded
from test_topology import objects
from wire import CODES

MESSAGES = ASYNCAPI["components"]["messages"]
# Where publishers and the broker put what they like.
OPEN = {("properties", "command"), ("properties", "query"), ("headers", "command")}
OPEN |= {("headers", "letter"), ("headers", "brokerLetter")}
# The fields of commands and queries that may be left out, beside those of their `policy`.
OPTIONAL = {"user", "id", "duration", "moderators", "policy", "role", "by", "minutes", "after", "limit"}


def parts(value, path=()):
    """Every object in a document, with the way to it."""
    if isinstance(value, dict):
        yield path, value
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from parts(item, (*path, key))


def test_it_is_asyncapi():
    path = SCHEMAS / "asyncapi-3.0.0.json"
    if not path.exists():
        pytest.skip(f"{path} is not there: docs/asyncapi.yaml was not validated")
    kind = jsonschema_rs.validator_for(json.loads(path.read_text()))
    problem = next(kind.iter_errors(ASYNCAPI), None)
    assert problem is None, problem
    broken = copy.deepcopy(ASYNCAPI)
    broken["channels"]["commands"]["bindings"]["amqp"]["is"] = "exchange"
    assert not kind.is_valid(broken)


def test_references_lead_somewhere():
    documents = {f"schemas/{name}.json": schema for name, schema in FILES.items()} | {"asyncapi.yaml": ASYNCAPI}
    for name, document in documents.items():
        for path, part in parts(document):
            if not isinstance(part.get("$ref"), str):
                continue
            file, _, pointer = part["$ref"].partition("#")
            directory = name.rpartition("/")[0]
            target = documents[f"{directory}/{file}".lstrip("/") if file else name]
            for key in pointer.split("/")[1:]:
                target = target[key]
            if name != "asyncapi.yaml":
                # Draft 07 overlooks whatever stands beside a reference.
                assert set(part) <= {"$ref", "description"}, (name, path)


def test_every_schema_is_one():
    for name, schema in FILES.items():
        assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
        jsonschema_rs.meta.validate(schema)
        for path, part in parts(schema):
            if part.get("type") == "object" and "properties" in part and (name, *path[1:2]) not in OPEN:
                assert part["additionalProperties"] is False, f"{name} {path} is not closed"


def test_every_message_has_its_schema_and_a_valid_example():
    expected = {
        f"{file}.{word}"
        for file in ("command", "reply", "refusal", "event", "query", "answer")
        for word in words(file)
    }
    assert set(MESSAGES) == expected | {"letter.worker", "letter.broker"}
    for name, message in MESSAGES.items():
        file, _, word = name.partition(".")
        assert message["name"] == name
        if file == "letter":
            file, word = "headers", message["headers"]["$ref"].rpartition("/")[2]
            values = [example["headers"] for example in message["examples"]]
        else:
            assert message["payload"] == {"$ref": f"schemas/{file}.json#/definitions/{word}"}
            values = [example["payload"] for example in message["examples"]]
        for value in values:
            validator(file, word).validate(value)
            if file in ("reply", "refusal"):
                validator("reply").validate(value)
            elif file != "headers":
                validator(file).validate(value)
        for example in message["examples"] if file == "event" else ():
            validator("headers", "event").validate(example["headers"])


def test_examples_are_strict():
    for name, message in MESSAGES.items():
        file, _, word = name.partition(".")
        for value in [example["payload"] for example in message["examples"] if "payload" in example]:
            places = loose(validator(file, word).is_valid, value)
            if file in ("command", "query"):
                places = [place for place in places if not place.startswith(".policy.")]
                assert {place.removeprefix(".") for place in places} <= OPTIONAL, name
            else:
                assert set(places) <= {".traceparent"}, name


def test_headers_of_dead_letters_are_strict_where_they_are_ours():
    valid = validator("headers", "letter").is_valid
    headers = MESSAGES["letter.worker"]["examples"][0]["headers"]
    assert valid(headers | {"x-mine": [1]})
    for name in ("x-overtime-unknown", "CC", "BCC"):
        assert not valid(headers | {name: "x"}), name
    for name in ("x-overtime-reason", "x-overtime-detail"):
        assert not valid({key: value for key, value in headers.items() if key != name}), name


def test_operations_answer_with_what_there_is():
    """Each command is answered with its reply, or with a refusal that its schema allows."""
    for word in words("command"):
        operation = ASYNCAPI["operations"][word]
        answers = [entry["$ref"].rpartition("/")[2] for entry in operation["reply"]["messages"]]
        allowed = []
        for reason in words("refusal"):
            example = copy.deepcopy(MESSAGES[f"refusal.{reason}"]["examples"][0]["payload"])
            example["command"] = word
            if validator("refusal", reason).is_valid(example):
                allowed.append(f"refusal.{reason}")
        assert answers == [f"reply.{word}", *allowed]


def cases(path, name):
    """The words of an enumeration of the source, by their names there."""
    found = {}
    text = (ROOT / "Sources" / path).read_text().split(f"enum {name}: String", 1)[1]
    for line in (line.strip() for line in text.splitlines()[1:]):
        if line.startswith("case "):
            for case in line.removeprefix("case ").split(","):
                key, _, word = (part.strip().strip('`"') for part in case.partition("="))
                found[key] = word or key
        elif line and not line.startswith("//"):
            return found


def test_words_are_those_of_the_source():
    for path, name, expected in [
        ("Contract/Event/EventType.swift", "EventType", words("event")),
        ("Contract/Event/EventType.swift", "EventType", enumeration("type", "event")),
        ("RoomCore/Command.swift", "CommandKind", words("command")),
        ("RoomCore/Command.swift", "CommandKind", words("reply")),
        ("RoomCore/Command.swift", "CommandKind", enumeration("command")),
        ("RoomCore/Refusal.swift", "Reason", words("refusal")),
        ("RoomCore/Refusal.swift", "Reason", words("error")),
        ("RoomCore/Room.swift", "Role", enumeration("role")),
        ("RoomCore/Room.swift", "Cause", enumeration("cause")),
        ("RoomCore/Snapshot.swift", "State", words("session")),
        ("RoomCore/Policy.swift", "Extenders", enumeration("extenders")),
        ("RoomCore/Policy.swift", "SessionClock", enumeration("clock")),
        ("RoomCore/Policy.swift", "Reopening", enumeration("reopen")),
    ]:
        assert list(cases(path, name).values()) == expected, name
    reasons = set(cases("Contract/Command/InvalidCommand.swift", "Reason").values())
    for path in (ROOT / "Sources/Worker").glob("*.swift"):
        reasons |= set(re.findall(r'deadLetter\([^)]*reason: "(\w+)"', path.read_text()))
    assert reasons == set(enumeration("reason", "headers"))


def test_codes_are_those_of_the_source():
    errors = {word: FILES["error"]["definitions"][word]["properties"] for word in words("error")}
    codes = {word: error["code"]["const"] for word, error in errors.items()}
    assert all(error["reason"]["const"] == word for word, error in errors.items())
    assert codes == CODES
    reasons = cases("RoomCore/Refusal.swift", "Reason")
    source = (ROOT / "Sources/RoomCore/Refusal.swift").read_text()
    assert codes == {reasons[name]: int(code) for name, code in re.findall(r"case \.(\w+): (\d{4})", source)}


def test_the_worker_knows_the_same_words(wire, worker):
    """A misspelt word is refused with a list of those that there are."""
    for name, expected, call in [
        ("command", words("command"), {"command": "?"}),
        ("role", enumeration("role"), {"command": "join", "user": "ada", "role": "?"}),
        ("policy.extenders", enumeration("extenders"), {"command": "open", "policy": {"extenders": "?"}}),
        ("policy.clock", enumeration("clock"), {"command": "open", "policy": {"clock": "?"}}),
        ("policy.reopen", enumeration("reopen"), {"command": "open", "policy": {"reopen": "?"}}),
    ]:
        message = wire.refused("invalid_command", room="r", **call)["error"]["message"]
        assert message.startswith(f"{name} must be one of {', '.join(expected)}, not "), message
    message = wire.query({"query": "?"})["error"]["message"]
    # The third one is internal.
    assert message.startswith(f"query must be one of {', '.join([*words('query'), 'state'])}, not "), message


def test_channels_are_those_of_the_broker(broker, installation, worker):
    queues, exchanges, _ = objects(broker, installation.prefix)
    for name, channel in ASYNCAPI["channels"].items():
        binding = channel["bindings"]["amqp"]
        if binding["is"] == "queue":
            queue = binding["queue"]
            found = queues[queue["name"].removeprefix("overtime.")]
            assert (found["durable"], bool(found["exclusive"])) == (queue["durable"], queue["exclusive"]), name
        elif binding["exchange"]["type"] != "default":
            exchange = binding["exchange"]
            found = exchanges[exchange["name"].removeprefix("overtime.")]
            assert found == (exchange["type"], exchange["durable"]), name


def test_bad_commands_are_invalid_by_schema_or_by_a_rule_beyond_it():
    judgements = {name: judged("command", body, properties) for name, body, properties in corpus()}
    assert [name for name, judgement in judgements.items() if judgement == "valid"] == []
    # Each rule is needed, and none explains what is not known to be beyond a schema.
    assert {name: judgement for name, judgement in judgements.items() if judgement in BEYOND} == {
        "body: long room of wide letters": "a name or key of more than 128 bytes",
        "open: a millisecond too long": "a duration of more than 366 days",
        "open: beyond all numbers": "a duration of more than 366 days",
        "open: 2.0 is no count": "a count with a decimal point",
    }
    assert NO_TEXT in judgements.values()


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"room": "ä" * 64},
        {"id": "a\tb"},
        {"role": "viewer"},
        {"command": "open", "user": "anybody", "duration": "00090s"},
        {"command": "open", "duration": "8784h"},
    ],
    ids=str,
)
def test_good_commands_are_valid(fields):
    assert judged("command", encoded(GOOD | fields), {}) == "valid"
