"""Section 2: a command's id makes it happen once, and gives everybody the stored answer."""

from conftest import SHORT

WHOLE = {"windows": ["1h"], "extension": {"min": "1h", "max": "2h"}}


def test_five_times_the_same_command(wire, worker, open_room, history, figure):
    open_room("five", "ada", duration="1h", policy=WHOLE)
    first = wire.send("extend", "five", "ada", by="1h")
    calls = [first] + [wire.again(first) for _ in range(4)]
    replies = [history.wait_reply(call) for call in calls]
    assert all(reply == replies[0] and reply["ok"] for reply in replies)
    assert wire.ok("status", "five")["session"]["extensions"] == 1
    history.wait_sequence("five", replies[0]["sequence"])
    assert len(history.events("five", "session.extended")) == 1
    figure("same command five times", {"effects": 1, "equal replies": len(replies)})


def test_a_refusal_is_stored_too(wire, worker, history):
    call = wire.send("join", "later", "ada")
    refusal = history.wait_reply(call)
    assert refusal["error"]["reason"] == "unknown_room"
    wire.ok("open", "later")
    assert history.wait_reply(wire.again(call)) == refusal
    wire.ok("join", "later", "ada")


def test_another_command_with_the_same_key(wire, worker, open_room):
    open_room("reused", duration="1h", policy=WHOLE)
    wire.ok("join", "reused", "ada", id="k")
    for command, user, fields in [
        ("leave", "ada", {}),
        ("join", "bob", {}),
        ("join", "ada", {"role": "participant"}),
        ("open", None, {}),
    ]:
        reply = wire.refused("id_reused", command, "reused", user, id="k", **fields)
        assert reply["id"] == "k"
    # Not stored: the first command's answer is still there, and elsewhere the key is free.
    assert wire.ok("join", "reused", "ada", id="k")["sequence"] == 4
    open_room("other")
    wire.ok("join", "other", "ada", id="k")


def test_arguments_are_compared_as_decoded(wire, worker, open_room, history):
    open_room("same", "ada", duration="1h", policy=WHOLE)
    first = wire.ok("extend", "same", "ada", id="e", by="90m")
    assert wire.ok("extend", "same", "ada", id="e", minutes=90) == first
    assert wire.ok("extend", "same", "ada", id="e", by="1h30m") == first
    assert wire.ok("extend", "same", "ada", id="e", by=90.0) == first
    wire.refused("id_reused", "extend", "same", "ada", id="e")
    wire.refused("id_reused", "extend", "same", "ada", id="e", by="91m")
    wire.ok("open", "same", id="o", moderators=["a", "b"], duration="1h")
    wire.ok("open", "same", "anybody", id="o", moderators=["a", "b"], duration=60)
    wire.refused("id_reused", "open", "same", id="o", moderators=["b", "a"], duration=60)
    wire.refused("id_reused", "open", "same", id="o", moderators=["a", "b"])


def test_message_id_is_the_key_where_the_body_has_none(wire, worker, open_room, history):
    open_room("mid")
    first = wire.ok("join", "mid", "ada", id=None, properties={"message_id": "m-1"})
    assert first["id"] == "m-1"
    assert wire.ok("join", "mid", "ada", id="m-1") == first
    wire.refused("id_reused", "leave", "mid", "ada", id=None, properties={"message_id": "m-1"})
    # The body's goes first.
    assert wire.ok("leave", "mid", "ada", id="b-1", properties={"message_id": "m-1"})["id"] == "b-1"
    # An empty one counts as absent, one over 128 bytes makes the command invalid.
    assert wire.ok("join", "mid", "ada", id=None, properties={"message_id": ""})["id"] is None
    assert wire.ok("join", "mid", "bob", id=None, properties={"message_id": "x" * 128})["id"] == "x" * 128
    wire.refused("invalid_command", "join", "mid", "eve", id=None, properties={"message_id": "x" * 129})
    wire.ok("join", "mid", "eve", id="short", properties={"message_id": "x" * 129})


def test_status_is_not_stored(wire, worker, open_room):
    open_room("st")
    assert wire.ok("status", "st", id="s")["session"] is None
    wire.ok("join", "st", "ada")
    assert wire.ok("status", "st", id="s")["session"]["connected"] == 1
    wire.ok("leave", "st", "ada", id="s")


def test_an_invalid_command_does_not_use_up_its_id(wire, worker, open_room):
    open_room("inv")
    wire.refused("invalid_command", "join", "inv", "ada", id="i", rôle="x")
    wire.ok("join", "inv", "ada", id="i")


def test_without_an_id_each_delivery_counts(wire, worker, history):
    wire.ok("open", "noid", id=None, duration="1h", policy=SHORT)
    assert wire.ok("open", "noid", id=None, duration="1h", policy=SHORT)["sequence"] == 1
    wire.ok("join", "noid", "ada", id=None)
    assert wire.ok("join", "noid", "ada", id=None)["id"] is None
    wire.ok("leave", "noid", "ada", id=None)
    wire.refused("not_connected", "leave", "noid", "ada", id=None)
    history.wait_sequence("noid", 4)


def test_ids_outlive_a_restart(installation, wire, worker, open_room, history):
    open_room("again", duration="1h", policy=WHOLE)
    call = wire.send("join", "again", "ada")
    reply = history.wait_reply(call)
    code, _ = worker.terminate()
    assert code == 0
    repeat = wire.again(call)
    installation.worker()
    assert history.wait_reply(repeat) == reply
    wire.refused("id_reused", "leave", "again", "ada", id=call.command["id"])
