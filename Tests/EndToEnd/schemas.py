"""The contract as data: docs/asyncapi.yaml and docs/schemas, and the little that a schema cannot say."""

import json
import re
from functools import cache

import yaml
from conftest import ROOT
from jsonschema_rs import Draft7Validator, Registry

DOCS = ROOT / "docs"
ASYNCAPI = yaml.safe_load((DOCS / "asyncapi.yaml").read_text())
FILES = {path.stem: json.loads(path.read_text()) for path in sorted((DOCS / "schemas").glob("*.json"))}
# Relative references need an address that they are relative to.
BASE = "contract:///"
REGISTRY = Registry([(f"{BASE}{name}.json", schema) for name, schema in FILES.items()])


@cache
def validator(file, word=None):
    """For all messages of a kind, or for those of one word."""
    fragment = "" if word is None else f"#/definitions/{word}"
    return Draft7Validator({"$ref": f"{BASE}{file}.json{fragment}"}, registry=REGISTRY)


def words(file):
    """The definitions that a message of this kind must satisfy one of, without those of other files."""
    references = [part["$ref"] for part in FILES[file]["oneOf"]]
    return [reference.removeprefix("#/definitions/") for reference in references if reference.startswith("#")]


def enumeration(name, file="common"):
    return FILES[file]["definitions"][name]["enum"]


def naming(kind, message):
    """The file and the word of the definition that a message must satisfy."""
    body = message["body"]
    if kind == "event":
        return "event", body["type"]
    if kind == "letter":
        return "headers", "letter" if "x-overtime-reason" in message["headers"] else "brokerLetter"
    if not body["ok"]:
        return "refusal" if kind == "reply" else "answer", body["error"]["reason"]
    if kind == "reply":
        return "reply", body["command"]
    return "answer", "rooms" if "rooms" in body else "participants"


def loose(valid, value):
    """Where an object of a valid message may lose a field or gain one and stay valid."""
    places = []

    def visit(holder, path):
        if isinstance(holder, list):
            for item in holder:
                visit(item, path)
        if not isinstance(holder, dict):
            return
        for key in list(holder):
            kept = holder.pop(key)
            if valid(value):
                places.append(f"{path}.{key}")
            holder[key] = kept
            visit(kept, f"{path}.{key}")
        holder["unknown"] = 1
        if valid(value):
            places.append(f"{path}.unknown")
        del holder["unknown"]

    assert valid(value), value
    visit(value, "")
    return places


# What a schema cannot say of a command or query (docs/contract.md): rules over its values.
_UNITS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_NAMES = ("room", "user", "id", "moderators", "after")
_DURATIONS = ("duration", "by", "maxTotal", "windows", "min", "max", "default")
_COUNTS = ("maxExtensions", "limit")


def _values(body, names):
    """The values of the fields of these names, however deep, and those of lists one by one."""
    for name, value in body.items():
        if isinstance(value, dict):
            yield from _values(value, names)
        elif name in names:
            yield from value if isinstance(value, list) else [value]


def _milliseconds(text):
    return sum(int(count) * _UNITS[unit] for count, unit in re.findall(r"([0-9]+)(ms|[hms])", text))


BEYOND = {
    "a name or key of more than 128 bytes": lambda body: any(
        len(text.encode()) > 128 for text in _values(body, _NAMES) if text is not None
    ),
    "a duration of more than 366 days": lambda body: any(
        isinstance(value, str) and _milliseconds(value) > 366 * 24 * _UNITS["h"]
        for value in _values(body, _DURATIONS)
    ),
    "a count with a decimal point": lambda body: any(
        isinstance(count, float) for count in _values(body, _COUNTS)
    ),
}
NO_TEXT = "no JSON text of at most 64 KiB, in UTF-8, with each key once"


def _parsed(text):
    """A JSON text as Overtime takes it."""

    def once(pairs):
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key stands there twice")
        return dict(pairs)

    if len(text) > 65_536:
        raise ValueError("too large")
    value = json.loads(text.decode(), object_pairs_hook=once)
    # Fails where a surrogate stands alone.
    json.dumps(value, ensure_ascii=False).encode()
    return value


def judged(kind, text, properties):
    """What the contract says of a command or query: `valid`, `invalid` by its schemas, or the rule beyond them."""
    try:
        body = _parsed(text)
    except (ValueError, RecursionError):
        return NO_TEXT
    if kind == "command" and isinstance(body, dict):
        # Where the body does not say it, these properties do; empty ones say nothing.
        for field, name in (("command", "type"), ("id", "message_id")):
            if field not in body and properties.get(name):
                body[field] = properties[name]
    if not (validator(kind).is_valid(body) and validator("properties", kind).is_valid(properties)):
        return "invalid"
    return next((rule for rule, breaks in BEYOND.items() if breaks(body)), "valid")
