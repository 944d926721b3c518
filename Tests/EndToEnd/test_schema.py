"""Every event that any test saw is a CloudEvent by the specification's own schema."""

import json

import pytest
from conftest import SCHEMAS
from jsonschema import validators

pytestmark = pytest.mark.last


def test_every_event_is_a_cloudevent(sink, figure):
    path = SCHEMAS / "cloudevents-1.0.json"
    if not path.exists():
        pytest.skip(f"{path} is not there: events were not validated")
    schema = json.loads(path.read_text())
    kind = validators.validator_for(schema)
    kind.check_schema(schema)
    validator = kind(schema, format_checker=kind.FORMAT_CHECKER)
    sink.flush()
    sink.seek(0)
    count, types = 0, {}
    for line in sink:
        event = json.loads(line)
        problem = next(validator.iter_errors(event), None)
        assert problem is None, f"{line!r}: {problem}"
        count += 1
        types[event["type"]] = types.get(event["type"], 0) + 1
    figure("events valid by the CloudEvents schema", {"events": count} | types)
    assert not validator.is_valid({"specversion": "1.0", "id": "", "source": "x", "type": "y"})
