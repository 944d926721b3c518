"""The trace of a command goes on in its events, and both can be found in the log."""

import pytest
from conftest import SHORT

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


def test_a_trace_goes_on_in_events_and_log(wire, worker, history):
    wire.ok("open", "r", duration="60s", policy=SHORT)
    wire.ok("join", "r", "ada", id="c-1", properties={"headers": {"traceparent": PARENT}})
    wire.ok("leave", "r", "ada", id="c-2")
    history.wait_sequence("r", 4)
    opened, started, joined, left = history.rooms["r"]
    for event in (started, joined):
        assert event.json["traceparent"] == PARENT
        assert event.properties.headers["traceparent"] == PARENT
    for event in (opened, left):
        assert "traceparent" not in event.json
        assert "traceparent" not in event.properties.headers
    line = worker.wait_said("event", type="session.started", room="r", session=1, sequence=2, id="c-1")
    assert line["trace"] == TRACE and line["level"] == "info"


def test_a_trace_outlives_the_worker(installation, wire, worker, history):
    """What is published by the next worker, from the outbox, is the same to the byte and the header."""
    wire.ok("open", "r", duration="60s", policy=SHORT)
    for number in range(300):
        wire.send("join", "r", f"user-{number}", properties={"headers": {"traceparent": PARENT}})
    history.wait_sequence("r", 20)
    worker.kill()
    installation.worker()
    history.wait_sequence("r", 302)
    for event in history.rooms["r"][1:]:
        assert event.properties.headers["traceparent"] == event.json["traceparent"] == PARENT


@pytest.mark.parametrize("value", ["", "00-0-0-00", PARENT.upper(), 17, {"a": [1]}, "x" * 10_000])
def test_what_is_no_trace_is_none(wire, worker, history, value):
    wire.ok("open", "r", properties={"headers": {"traceparent": value}})
    history.wait_sequence("r", 1)
    event = history.rooms["r"][0]
    assert "traceparent" not in event.json and "traceparent" not in event.properties.headers
