"""Section 2 and 3: every command with its answers, and every refusal with its code."""

import secrets
import time

import pytest
from conftest import SHORT
from history import seconds
from waiting import until

FIELDS = {"id", "command", "room", "ok", "session", "sequence", "serverTime"}
SESSION = {
    "number",
    "state",
    "startedAt",
    "endsAt",
    "timeLeft",
    "window",
    "nextWindowAt",
    "extensions",
    "connected",
}


def test_a_session_from_open_to_end(wire, worker, scheduler, history):
    reply = wire.ok("open", "demo", duration="5s", policy=SHORT, moderators=["ada"])
    assert set(reply) == FIELDS | {"result"}
    assert (reply["command"], reply["room"], reply["result"], reply["session"], reply["sequence"]) == (
        "open",
        "demo",
        {},
        None,
        1,
    )
    assert abs(seconds(reply["serverTime"]) - time.time()) < 5
    opened = history.wait_event("demo", "room.opened")
    assert opened.data == {
        "room": "demo",
        "session": None,
        "audience": "room",
        "duration": 0.0833,
        "moderators": ["ada"],
        "policy": {
            "windows": [0.0333, 0.0167],
            "extension": {"min": 0.0333, "max": 0.0667, "default": 0.0333},
            "extenders": "anyone",
            "maxExtensions": None,
            "maxTotal": None,
            "clock": "first-join",
            "reopen": "command",
        },
    }
    assert opened.json["source"] == "overtime"

    reply = wire.ok("join", "demo", "ada")
    assert reply["result"] == {"role": "moderator"}
    session = reply["session"]
    assert set(session) == SESSION
    assert (
        session["number"],
        session["state"],
        session["window"],
        session["extensions"],
        session["connected"],
    ) == (1, "running", None, 0, 1)
    ends = seconds(session["endsAt"])
    assert round(ends - seconds(session["startedAt"]), 3) == 5
    assert round(ends - seconds(session["nextWindowAt"]), 3) == 2
    assert session["timeLeft"] == 0.0833
    started = history.wait_event("demo", "session.started")
    assert {key: started.data[key] for key in ("startedAt", "endsAt", "duration")} == {
        "startedAt": session["startedAt"],
        "endsAt": session["endsAt"],
        "duration": 0.0833,
    }
    assert started.data["nextDueAt"] == session["nextWindowAt"]
    assert wire.ok("join", "demo", "bob", role="viewer")["result"] == {"role": "viewer"}
    # Who is on the list decides: bob gets at most participant.
    assert wire.ok("join", "demo", "eve", role="moderator")["result"] == {"role": "participant"}

    refusal = wire.refused("window_not_open", "extend", "demo", "bob")
    assert set(refusal) == FIELDS | {"error"}
    assert refusal["error"]["opensAt"] == session["nextWindowAt"]

    first = history.wait_event("demo", "session.window.opened")
    assert {key: first.data[key] for key in ("window", "final", "extendable", "extensions", "audience")} == {
        "window": 1,
        "final": False,
        "extendable": True,
        "extensions": 0,
        "audience": "room",
    }
    assert wire.ok("status", "demo")["session"]["window"] == 1
    reply = wire.ok("extend", "demo", "bob", by="3s")
    assert reply["result"] == {"extendedTime": 0.05, "extensions": 1, "endsAt": reply["session"]["endsAt"]}
    assert round(seconds(reply["session"]["endsAt"]) - ends, 3) == 3
    extended = history.wait_event("demo", "session.extended")
    assert {
        key: extended.data[key] for key in ("by", "extendedTime", "previousEndsAt", "endsAt", "extensions")
    } == {
        "by": "bob",
        "extendedTime": 0.05,
        "previousEndsAt": session["endsAt"],
        "endsAt": reply["result"]["endsAt"],
        "extensions": 1,
    }
    refusal = wire.refused("already_extended", "extend", "demo", "ada")
    assert refusal["error"]["extendedBy"] == "bob"
    assert refusal["error"]["opensAt"] == reply["session"]["nextWindowAt"]

    final = history.wait_event("demo", "session.window.opened", window=2)
    assert final.data["final"] and final.data["extensions"] == 1
    assert wire.ok("status", "demo")["session"]["nextWindowAt"] is None
    ended = history.wait_event("demo", "session.ended")
    assert {key: ended.data[key] for key in ("cause", "by", "extensions", "participants", "endsAt")} == {
        "cause": "elapsed",
        "by": None,
        "extensions": 1,
        "participants": 3,
        "endsAt": reply["result"]["endsAt"],
    }
    session = wire.ok("status", "demo")["session"]
    assert (session["state"], session["cause"], session["timeLeft"], session["connected"]) == (
        "ended",
        "elapsed",
        0,
        0,
    )
    assert session["endedAt"] == ended.data["endedAt"]
    assert [event.type for event in history.rooms["demo"]] == [
        "room.opened",
        "session.started",
        "participant.joined",
        "participant.joined",
        "participant.joined",
        "session.window.opened",
        "session.extended",
        "session.window.opened",
        "session.window.opened",
        "session.ended",
    ]


def test_destroy_and_the_next_session(wire, worker, history, open_room):
    open_room("d", "ada", duration="60m")
    wire.ok("join", "d", "mod", role="moderator")
    refusal = wire.refused("unauthorized", "destroy", "d", "ada")
    assert refusal["error"]["code"] == 5116
    wire.ok("destroy", "d", "mod")
    acknowledged = history.wait_event("d", "session.destroy.acknowledged")
    assert (acknowledged.data["audience"], acknowledged.data["by"]) == ("user:mod", "mod")
    ended = history.wait_event("d", "session.ended")
    assert {key: ended.data[key] for key in ("cause", "by", "lateBy", "participants", "audience")} == {
        "cause": "destroyed",
        "by": "mod",
        "lateBy": 0,
        "participants": 2,
        "audience": "room",
    }
    assert ended.sequence == acknowledged.sequence + 1
    wire.refused("session_over", "join", "d", "ada")
    wire.refused("no_session", "extend", "d", "ada")
    wire.refused("no_session", "leave", "d", "ada")
    wire.refused("no_session", "destroy", "d", "mod")
    # The same definition again opens it again, after an end.
    wire.ok("open", "d", duration="60m", policy=SHORT)
    assert history.wait_event("d", "room.opened", count=2).data["session"] == 1
    assert wire.ok("join", "d", "ada")["session"]["number"] == 2
    assert history.wait_event("d", "participant.joined", session=2).data["connected"] == 1


def test_the_list_decides_and_joining_again(wire, worker, history):
    wire.ok("open", "roles")
    assert wire.ok("join", "roles", "ada")["result"] == {"role": "participant"}
    before = wire.ok("join", "roles", "ada")["sequence"]
    assert wire.ok("join", "roles", "ada", role="moderator")["sequence"] == before + 1
    changed = history.wait_event("roles", "participant.role.changed")
    assert (changed.data["user"], changed.data["role"], changed.data["connected"]) == ("ada", "moderator", 1)
    # Without a role, not even that changes.
    reply = wire.ok("join", "roles", "ada")
    assert (reply["result"], reply["sequence"]) == ({"role": "moderator"}, before + 1)
    wire.ok("open", "listed", moderators=["mod"])
    assert wire.ok("join", "listed", "mod", role="viewer")["result"] == {"role": "moderator"}
    assert wire.ok("join", "listed", "eve", role="viewer")["result"] == {"role": "viewer"}
    wire.ok("open", "nobody", moderators=[])
    assert wire.ok("join", "nobody", "mod", role="moderator")["result"] == {"role": "participant"}
    assert history.wait_event("nobody", "room.opened").data["moderators"] == []


def test_leave_and_an_empty_room(wire, worker, history, open_room):
    open_room("l", "ada", duration="60m")
    wire.ok("leave", "l", "ada")
    left = history.wait_event("l", "participant.left")
    assert (left.data["user"], left.data["role"], left.data["connected"]) == ("ada", "participant", 0)
    wire.refused("not_connected", "leave", "l", "ada")
    wire.refused("not_connected", "extend", "l", "ada")
    wire.refused("not_connected", "destroy", "l", "ada")
    session = wire.ok("status", "l")["session"]
    assert (session["state"], session["connected"]) == ("running", 0)
    assert wire.ok("join", "l", "ada")["session"]["number"] == 1


def test_unknown_room_and_sessionless_room(wire, worker):
    for command in ("join", "leave", "extend", "destroy"):
        reply = wire.refused("unknown_room", command, "nowhere", "ada")
        assert reply["session"] is None
    reply = wire.refused("unknown_room", "status", "nowhere")
    assert (reply["room"], reply["session"]) == ("nowhere", None)
    wire.ok("open", "idle")
    for command in ("leave", "extend", "destroy"):
        wire.refused("no_session", command, "idle", "ada")
    assert wire.ok("status", "idle")["session"] is None


def test_definitions(wire, worker, history):
    wire.ok("open", "w", duration="20m")
    assert history.wait_event("w", "room.opened").data["duration"] == 20
    # An equal one changes and sends nothing.
    assert wire.ok("open", "w", duration=20)["sequence"] == 1
    assert wire.ok("open", "w")["sequence"] == 2
    opened = history.wait_event("w", "room.opened", count=2)
    assert opened.data["duration"] == 60
    assert opened.data["moderators"] is None
    assert opened.data["policy"]["windows"] == [10, 5]
    assert opened.data["policy"]["extension"] == {"min": 10, "max": 30, "default": 10}
    # During a session it sets only the next one's.
    ends = wire.ok("join", "w", "ada")["session"]["endsAt"]
    wire.ok("open", "w", duration="90m", moderators=["bob"])
    session = wire.ok("join", "w", "mod", role="moderator")["session"]
    assert session["endsAt"] == ends
    wire.ok("destroy", "w", "mod")
    wire.refused("session_over", "join", "w", "ada")
    wire.ok("open", "w", duration="90m", moderators=["bob"])
    session = wire.ok("join", "w", "mod", role="moderator")["session"]
    assert round(seconds(session["endsAt"]) - seconds(session["startedAt"])) == 5400
    wire.refused("unauthorized", "destroy", "w", "mod")


@pytest.mark.parametrize(
    "value, minutes",
    [
        (60, 60),
        (0.5, 0.5),
        ("90s", 1.5),
        ("1h30m", 90),
        ("250ms", 0.0042),
        ("1h1m1s1ms", 61.0167),
        ("8784h", 527040),
        (527040, 527040),
        (0.00001, 0.0),
        (0.0000083334, 0.0),
    ],
)
def test_durations(wire, worker, history, value, minutes):
    wire.ok(
        "open", "r", duration=value, policy={"windows": ["1ms"], "extension": {"min": "1ms", "max": "1ms"}}
    )
    assert history.wait_event("r", "room.opened").data["duration"] == minutes


def test_invalid_policies(wire, worker):
    ten = "10m"
    for number, policy in enumerate(
        [
            {"windows": []},
            {"windows": [f"{n}m" for n in range(9, 0, -1)]},
            {"windows": ["5m", ten]},
            {"windows": ["5m", "5m"]},
            {"extension": {"min": "9m"}},
            {"extension": {"min": "20m", "max": "15m"}},
            {"extension": {"min": ten, "max": "20m", "default": "21m"}},
            {"extension": {"min": ten, "max": "20m", "default": "9m"}},
            {"maxTotal": "59m"},
            {"windows": ["31m"], "extension": {"max": "30m"}},
        ]
    ):
        wire.refused("invalid_policy", "open", f"bad-{number}", policy=policy)
        wire.refused("unknown_room", "status", f"bad-{number}")
    for number, policy in enumerate(
        [
            {},
            {"windows": ["8m", "7m", "6m", "5m", "4m", "3m", "2m", "1m"]},
            {"windows": ["1m"]},
            {"maxTotal": "60m"},
            {"maxExtensions": 0},
            {"windows": ["40m"]},
            {"extension": {"min": ten, "max": ten, "default": ten}},
        ]
    ):
        wire.ok("open", f"good-{number}", policy=policy)


def test_limits(wire, worker, open_room, history):
    whole = {"windows": ["1h"], "extension": {"min": "1h", "max": "2h"}}
    open_room("none", "ada", duration="1h", policy=whole | {"maxExtensions": 0})
    assert history.wait_event("none", "session.window.opened").data["extendable"] is False
    wire.refused("limit_reached", "extend", "none", "ada")
    open_room("total", "ada", duration="1h", policy=whole | {"maxTotal": "150m"})
    # Two hours do not fit, an hour and a half does, and is still at least the minimum.
    assert wire.ok("extend", "total", "ada", by="2h")["result"]["extendedTime"] == 90
    wire.refused("limit_reached", "extend", "total", "ada")
    open_room("tight", "ada", duration="1h", policy=whole | {"maxTotal": "119m"})
    wire.refused("limit_reached", "extend", "tight", "ada")
    open_room("once", "ada", duration="1h", policy=whole | {"maxExtensions": 1})
    assert wire.ok("extend", "once", "ada")["result"]["extendedTime"] == 60
    wire.refused("limit_reached", "extend", "once", "ada")


def test_grants_are_clamped(wire, worker, open_room):
    policy = {"windows": ["1h"], "extension": {"min": "1h", "max": "2h", "default": "90m"}}
    for number, (fields, granted) in enumerate(
        [({}, 90), ({"by": "1m"}, 60), ({"by": "9h"}, 120), ({"minutes": 75}, 75), ({"by": 61.5}, 61.5)]
    ):
        open_room(f"g{number}", "ada", duration="1h", policy=policy)
        assert wire.ok("extend", f"g{number}", "ada", **fields)["result"]["extendedTime"] == granted


def test_only_moderators_extend_where_the_policy_says_so(wire, worker, open_room):
    policy = {"windows": ["1h"], "extension": {"min": "1h", "max": "2h"}, "extenders": "moderators"}
    open_room("m", "ada", duration="1h", policy=policy)
    wire.ok("join", "m", "mod", role="moderator")
    wire.refused("unauthorized", "extend", "m", "ada")
    wire.refused("unauthorized", "extend", "m")
    wire.refused("unauthorized", "destroy", "m")
    wire.ok("extend", "m", "mod")


def test_clock_first_moderator(wire, worker, history):
    wire.ok(
        "open",
        "c",
        duration="60m",
        policy={"clock": "first-moderator", "windows": ["60m"], "extension": {"min": "60m", "max": "60m"}},
    )
    session = wire.ok("join", "c", "ada")["session"]
    assert (session["state"], session["number"], session["connected"]) == ("waiting", 1, 1)
    assert [session[key] for key in ("startedAt", "endsAt", "timeLeft", "window", "nextWindowAt")] == [
        None
    ] * 5
    assert wire.refused("window_not_open", "extend", "c", "ada")["error"]["opensAt"] is None
    assert wire.ok("join", "c", "ada", role="moderator")["session"]["state"] == "running"
    history.wait_event("c", "session.window.opened")
    assert [event.type for event in history.rooms["c"]] == [
        "room.opened",
        "participant.joined",
        "session.started",
        "participant.role.changed",
        "session.window.opened",
    ]


def test_clock_open_and_reopen_by_join(wire, worker, history):
    policy = SHORT | {"clock": "open", "reopen": "join"}
    reply = wire.ok("open", "o", duration="1500ms", policy=policy)
    assert (reply["session"]["state"], reply["session"]["connected"]) == ("running", 0)
    history.wait_event("o", "session.window.opened")
    assert [event.type for event in history.rooms["o"]] == [
        "room.opened",
        "session.started",
        "session.window.opened",
    ]
    until(seconds(reply["session"]["endsAt"]) + 0.01)
    # The command itself ends the overdue session, and starts the next one.
    assert wire.ok("join", "o", "ada")["session"]["number"] == 2
    history.wait_event("o", "participant.joined")
    assert [event.type for event in history.rooms["o"]][3:6] == [
        "session.ended",
        "session.started",
        "participant.joined",
    ]


def test_adhoc_rooms(installation, wire, history):
    installation.worker(environment={"OVERTIME_ROOMS_ADHOC": "true", "OVERTIME_ROOMS_DURATION": "45m"})
    assert wire.ok("join", "a", "ada")["session"]["number"] == 1
    assert history.wait_event("a", "room.opened").data["duration"] == 45
    history.wait_sequence("a", 3)
    assert [event.type for event in history.rooms["a"]] == [
        "room.opened",
        "session.started",
        "participant.joined",
    ]
    for command in ("leave", "extend", "destroy"):
        wire.refused("unknown_room", command, "b", "ada")


@pytest.fixture(scope="session")
def operator(broker):
    name, password = f"e2e-operator-{secrets.token_hex(3)}", "secret"
    broker.ctl("add_user", name, password)
    broker.ctl("set_permissions", "-p", "/", name, ".*", ".*", ".*")
    yield name, broker.url.replace("guest:guest", f"{name}:{password}")
    broker.ctl("delete_user", name)


def test_operators(installation, wire, connect, history, operator):
    name, url = operator
    installation.worker(environment={"OVERTIME_AMQP_OPERATORS": f"somebody,{name}"})
    policy = {"windows": ["1h"], "extension": {"min": "1h", "max": "2h"}, "extenders": "moderators"}
    wire.ok("open", "op", duration="1h", policy=policy)
    wire.ok("join", "op", "ada")
    backend = connect(url)
    signed = {"user_id": name}
    wire.refused("unauthorized", "extend", "op", properties={"user_id": "guest"})
    backend.refused("unauthorized", "extend", "op")
    backend.ok("extend", "op", properties=signed)
    extended = history.wait_event("op", "session.extended")
    assert (extended.data["by"], extended.data["operator"]) == (None, name)
    assert (
        backend.refused("already_extended", "extend", "op", properties=signed)["error"]["extendedBy"] is None
    )
    # With a user it is that user's, whoever publishes it.
    backend.refused("not_connected", "destroy", "op", "eve", properties=signed)
    backend.ok("destroy", "op", properties=signed)
    assert history.wait_event("op", "session.ended").data["by"] is None
    assert history.events("op", "session.destroy.acknowledged") == []


def test_names(wire, worker):
    for room in ("a", "ä" * 64, "x" * 128, "a b/c:d#*", "😀" * 32, "../..", "%", "a\u00a0b"):
        wire.ok("open", room)
        wire.ok("join", room, "ü" * 64)
        assert wire.ok("status", room)["session"]["connected"] == 1


def test_source_of_events(installation, wire, history):
    installation.worker("--events-source", "https://rooms.example/clock")
    wire.ok("open", "s")
    assert history.wait_event("s", "room.opened").json["source"] == "https://rooms.example/clock"
