"""Every message that any test saw is as docs/schemas say, and every kind of message was seen."""

import json
from collections import Counter
from pathlib import Path

import jsonschema_rs
import pytest
from conftest import SCHEMAS
from schemas import judged, loose, naming, validator, words

pytestmark = pytest.mark.last


@pytest.fixture(scope="module")
def messages(sink):
    sink.flush()
    sink.seek(0)
    return [json.loads(line) for line in sink]


@pytest.fixture
def is_whole(request):
    """Whether tests of every file were run: then nothing may have been left unseen."""
    return {item.path for item in request.session.items} >= set(Path(__file__).parent.glob("test_*.py"))


def assert_valid(file, word, value):
    problem = next(validator(file, word).iter_errors(value), None)
    assert problem is None, f"{file} {word}: {value}: {problem}"


def test_every_event_is_a_cloudevent(messages, figure):
    path = SCHEMAS / "cloudevents-1.0.json"
    if not path.exists():
        pytest.skip(f"{path} is not there: events were not validated")
    validator = jsonschema_rs.validator_for(json.loads(path.read_text()), validate_formats=True)
    types = Counter()
    for event in (message["body"] for message in messages if message["kind"] == "event"):
        problem = next(validator.iter_errors(event), None)
        assert problem is None, f"{event}: {problem}"
        types[event["type"]] += 1
    figure("events valid by the CloudEvents schema", {"events": types.total()} | types)
    assert not validator.is_valid({"specversion": "1.0", "id": "", "source": "x", "type": "y"})


def test_every_message_is_as_its_schema_says(messages, figure):
    counts = Counter()
    for message in messages:
        file, word = naming(message["kind"], message)
        counts[f"{file} {word}"] += 1
        if message["kind"] == "letter":
            assert_valid(file, word, message["headers"])
            if word == "letter":
                assert_valid("properties", "letter", message["properties"])
            continue
        assert_valid(file, word, message["body"])
        beside = "event" if message["kind"] == "event" else "reply"
        assert_valid("properties", beside, message["properties"])
        if beside == "event":
            assert_valid("headers", "event", message["headers"])
        else:
            assert message["headers"] == {}, message
    figure("messages valid by docs/schemas", {"messages": counts.total()} | dict(sorted(counts.items())))


def test_commands_and_queries_are_taken_as_the_schemas_say(messages, figure):
    """What the schemas take is never malformed to the worker, and what they refuse always is."""
    counts = Counter()
    for message in messages:
        if "asked" not in message:
            continue
        asked, kind = message["asked"], "command" if message["kind"] == "reply" else "query"
        reason = message["body"].get("error", {}).get("reason")
        judgement = judged(kind, asked["text"].encode("latin-1"), asked["properties"])
        counts[f"{kind}: {judgement}"] += 1
        # Whether values fit together is partly for the schema to say, and never makes a command malformed.
        if reason != "invalid_policy":
            assert (judgement == "valid") == (reason != "invalid_command"), f"{judgement}: {message}"
    figure("commands and queries by what docs/schemas say", dict(sorted(counts.items())))


def test_everything_was_seen(messages, is_whole):
    if not is_whole:
        pytest.skip("only a part of the tests was run: what was not seen was not missed")
    seen = {naming(message["kind"], message) for message in messages}
    expected = {(file, word) for file in ("event", "reply", "refusal", "answer") for word in words(file)}
    assert seen == expected | {("headers", "letter"), ("headers", "brokerLetter")}
    reasons = {message["headers"].get("x-overtime-reason") for message in messages if message["kind"] == "letter"}
    # The others take a crash, or a store that fails.
    assert {"too_large", "not_json", "not_an_object", "invalid_command"} <= reasons


def test_the_schemas_are_strict(messages):
    """Of each kind one message: no field can be dropped or added without being noticed, but for two that may be absent."""
    samples = {naming(message["kind"], message): message for message in messages if message["kind"] != "letter"}
    for (file, word), message in samples.items():
        assert set(loose(validator(file, word).is_valid, message["body"])) <= {".traceparent"}, message
        beside = "event" if file == "event" else "reply"
        properties = validator("properties", beside)
        assert set(loose(properties.is_valid, message["properties"])) <= {".correlation_id"}, message
        if file == "event":
            assert set(loose(validator("headers", "event").is_valid, message["headers"])) <= {".traceparent"}, message
