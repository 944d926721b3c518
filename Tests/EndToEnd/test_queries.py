"""Section 3, queries: read-only, paged in byte order, answered by any worker."""

import pytest

ROOM = {"room", "session", "state", "startedAt", "endsAt", "nextDueAt", "connected", "extensions", "sequence"}


def pages(wire, key, **query):
    after, rows = None, []
    while True:
        answer = wire.query(query | {"after": after})
        assert answer["ok"], answer
        assert set(answer) == {"ok", key, "next", "serverTime"}
        rows.append(answer[key])
        if answer["next"] is None:
            return rows
        after = answer["next"]


def test_rooms(wire, worker):
    assert wire.query({"query": "rooms"})["rooms"] == []
    names = [f"r{number}" for number in range(10)] + ["ä", "a", "Z", "😀", "\uffee"]
    for name in names:
        wire.ok("open", name)
        wire.ok("join", name, "ada")
    wire.ok("open", "idle")
    wire.ok("open", "waits", policy={"clock": "first-moderator"})
    wire.ok("join", "waits", "ada")
    wire.ok("join", "a", "mod", role="moderator")
    wire.ok("destroy", "a", "mod")
    expected = sorted([name for name in names if name != "a"] + ["waits"], key=lambda name: name.encode())
    whole = wire.query({"query": "rooms"})
    assert [row["room"] for row in whole["rooms"]] == expected
    assert whole["next"] is None
    assert all(set(row) == ROOM for row in whole["rooms"])
    by_name = {row["room"]: row for row in whole["rooms"]}
    session = wire.ok("status", "Z")["session"]
    assert by_name["Z"] == {
        "room": "Z",
        "session": 1,
        "state": "running",
        "startedAt": session["startedAt"],
        "endsAt": session["endsAt"],
        "nextDueAt": session["nextWindowAt"],
        "connected": 1,
        "extensions": 0,
        "sequence": 3,
    }
    assert [by_name["waits"][key] for key in ("state", "startedAt", "endsAt", "nextDueAt")] == [
        "waiting",
        None,
        None,
        None,
    ]
    paged = pages(wire, "rooms", query="rooms", limit=4)
    assert [row["room"] for page in paged for row in page] == expected
    assert [len(page) for page in paged][:3] == [4, 4, 4]


def test_participants(wire, worker):
    wire.ok("open", "p")
    users = sorted([f"u{number}" for number in range(10)] + ["ä", "Z"], key=lambda user: user.encode())
    for user in reversed(users):
        wire.ok("join", "p", user, role="viewer")
    wire.ok("leave", "p", "u3")
    users.remove("u3")
    answer = wire.query({"query": "participants", "room": "p"})
    assert [row["user"] for row in answer["participants"]] == users
    assert all(
        set(row) == {"user", "role", "joinedAt"} and row["role"] == "viewer" for row in answer["participants"]
    )
    paged = pages(wire, "participants", query="participants", room="p", limit=5)
    assert [[row["user"] for row in page] for page in paged] == [users[:5], users[5:10], users[10:]]
    answer = wire.query({"query": "participants", "room": "nowhere"})
    assert (answer["ok"], answer["error"]["code"]) == (False, 6002)
    wire.ok("open", "empty")
    assert wire.query({"query": "participants", "room": "empty"})["participants"] == []


@pytest.mark.parametrize(
    "question",
    [
        b"",
        b"nonsense",
        b"[]",
        {},
        {"query": "room"},
        {"query": None},
        {"query": "rooms", "limit": 0},
        {"query": "rooms", "limit": 1001},
        {"query": "rooms", "limit": "5"},
        {"query": "rooms", "limit": 2.0},
        {"query": "rooms", "after": 5},
        {"query": "rooms", "room": "r"},
        {"query": "rooms", "x": 1},
        {"query": "participants"},
        {"query": "participants", "room": ""},
        {"query": "participants", "room": None},
        b'{"query":"rooms","query":"rooms"}',
        b'{"query":"rooms"}' + b" " * 70_000,
    ],
    ids=str,
)
def test_malformed(wire, worker, question):
    answer = wire.query(question)
    assert answer["ok"] is False
    assert answer["error"]["code"] == 6008
    assert wire.query({"query": "rooms", "limit": 1000, "after": None})["ok"]


def test_a_question_without_address_stops_nothing(wire, worker, installation):
    for body in (b'{"query":"rooms"}', b"nonsense"):
        wire.publish(f"{installation.prefix}.queries", "", body)
    assert wire.query({"query": "rooms"})["rooms"] == []
