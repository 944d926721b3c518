"""Section 5: the commands for people and scripts, with their exit codes."""

import json
import signal
import time
from urllib.parse import urlsplit

import pytest
from conftest import SHORT
from proxy import Proxy


def test_send(installation, worker, wire, history):
    policy = json.dumps(SHORT)
    done = installation.run(
        "send",
        "open",
        "--room",
        "r",
        "--duration",
        "5m",
        "--moderators",
        "ada,eve",
        "--policy",
        policy,
        "--json",
    )
    assert done.returncode == 0, done
    reply = json.loads(done.stdout)
    assert (reply["ok"], reply["command"], reply["room"]) == (True, "open", "r")
    opened = history.wait_event("r", "room.opened")
    assert (opened.data["duration"], opened.data["moderators"]) == (5, ["ada", "eve"])
    done = installation.run("send", "join", "--room", "r", "--user", "bob", "--role", "viewer", "--id", "k")
    assert done.returncode == 0 and "r" in done.stdout
    again = installation.run(
        "send", "join", "--room", "r", "--user", "bob", "--role", "viewer", "--id", "k", "--json"
    )
    assert json.loads(again.stdout)["sequence"] == 3
    refused = installation.run("send", "destroy", "--room", "r", "--user", "bob", "--json")
    assert refused.returncode == 1, refused
    assert json.loads(refused.stdout)["error"]["code"] == 5116
    refused = installation.run("send", "destroy", "--room", "r", "--user", "bob")
    assert refused.returncode == 1 and "moderator" in refused.stdout + refused.stderr
    done = installation.run("send", "leave", "--room", "r", "--user", "bob", "--no-wait")
    assert done.returncode == 0
    history.wait_event("r", "participant.left")
    assert installation.run("send", "status", "--room", "r").returncode == 0
    assert installation.run("send", "open", "--room", "bare", "--duration", "45").returncode == 0
    assert history.wait_event("bare", "room.opened").data["duration"] == 45


def test_send_extend(installation, worker, wire):
    policy = {"windows": ["1h"], "extension": {"min": "1h", "max": "3h"}}
    for room, options, granted in [
        ("by", ["--by", "2h"], 120),
        ("minutes", ["--minutes", "75"], 75),
        ("none", [], 60),
    ]:
        wire.ok("open", room, duration="1h", policy=policy)
        wire.ok("join", room, "ada")
        done = installation.run("send", "extend", "--room", room, "--user", "ada", "--json", *options)
        assert json.loads(done.stdout)["result"]["extendedTime"] == granted, done


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["send"], "command"),
        (["send", "open"], "--room"),
        (["send", "jion", "--room", "r"], "join"),
        (["send", "join", "--room", "r"], "user"),
        (["send", "open", "--room", "r", "--duration", "soon"], "duration"),
        (["send", "open", "--room", "r", "--policy", "{"], "policy"),
        (["send", "open", "--room", "r", "--policy", '{"minuets":1}'], "minuets"),
        (["send", "join", "--room", "r", "--user", "a", "--role", "host"], "role"),
        (["send", "join", "--room", "r", "--user", "a", "--by", "5m"], "by"),
        (["send", "extend", "--room", "r", "--user", "a", "--by", "5m", "--minutes", "5"], "by"),
        (["send", "open", "--room", "x" * 129], "room"),
        (["send", "status", "--room", "r", "--timeout", "-1"], "timeout"),
        (["send", "status", "--room", "r", "--rom", "x"], "--room"),
        (["send", "open", "--room"], "room"),
        (["watch", "--from", "yesterday"], "from"),
        (["watch", "--count", "0"], "count"),
        (["watch", "--type", "session.end"], "session.ended"),
        (["watch", "extra"], "extra"),
        (["rooms", "extra"], "extra"),
        (["check", "--nonsense"], "nonsense"),
        (["wrker"], "worker"),
        (["worker", "extra"], "extra"),
        (["scheduler", "--romo"], "romo"),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_a_wrong_command_line(installation, arguments, words):
    done = installation.run(*arguments, limit=10)
    assert done.returncode == 2, done
    assert words in done.stderr, done.stderr
    assert "help" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("command", ["worker", "scheduler", "send", "watch", "rooms", "check", "migrate-store"])
def test_help(installation, command):
    done = installation.run(command, "--help", limit=10)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"usage: overtime {command}" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 130


def test_help_and_version_of_the_program(installation):
    done = installation.run("--help", limit=10)
    assert done.returncode == 0 and all(
        command in done.stdout for command in ("worker", "scheduler", "send", "watch", "rooms", "check")
    )
    done = installation.run("--version", limit=10)
    assert done.returncode == 0 and done.stdout.startswith("overtime ")


def test_no_reply_in_time(installation, worker):
    assert worker.terminate()[0] == 0
    began = time.monotonic()
    done = installation.run("send", "status", "--room", "r", "--timeout", "1")
    assert done.returncode == 3 and 0.9 < time.monotonic() - began < 3, done
    assert len(done.stderr.strip().splitlines()) == 1
    done = installation.run("rooms", "--timeout", "1500ms")
    assert done.returncode == 3, done


def test_rooms(installation, worker, wire):
    assert installation.run("rooms").returncode == 0
    assert installation.run("rooms", "--json").stdout == ""
    for room in ("b", "a", "c" * 60):
        wire.ok("open", room, duration="1h")
        wire.ok("join", room, "ada")
    done = installation.run("rooms", "--json")
    assert [json.loads(line)["room"] for line in done.stdout.splitlines()] == ["a", "b", "c" * 60]
    done = installation.run("rooms")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 4


def test_check(installation, worker, scheduler):
    done = installation.run("check")
    assert done.returncode == 0, done
    for part in ("broker", "rights", "topology", "store", "worker", "clock"):
        assert any(line.startswith("ok") and part in line for line in done.stdout.splitlines()), done.stdout
    assert "guest:guest" not in done.stdout
    leftover = installation.run("check", environment={"OVERTIME_SHARDS": "2"})
    assert leftover.returncode == 1
    assert f"{installation.prefix}.commands" in leftover.stdout
    assert worker.terminate()[0] == 0
    done = installation.run("check", "--timeout", "2")
    assert done.returncode == 1, done
    assert any(line.startswith("FAIL") and "worker" in line for line in done.stdout.splitlines()), done.stdout


def test_check_of_several_nodes(installation, broker):
    # As in a cluster; nothing listens on the second.
    urls = f"{broker.url},amqp://guest:guest@127.0.0.1:1/%2f"
    worker = installation.worker(environment={"OVERTIME_AMQP_URL": urls, "OVERTIME_AMQP_CLUSTER": "true"})
    for connection in ("consumer", "publisher"):
        said = worker.said("connected", connection=connection)
        assert said["node"] in broker.url and "guest" not in said["node"], said
    done = installation.run("check", environment={"OVERTIME_AMQP_URL": urls, "OVERTIME_AMQP_CLUSTER": "true"})
    assert done.returncode == 1 and "guest:guest" not in done.stdout, done
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert [(mark, text.split()[0].rstrip(",:")) for mark, name, text in lines if name == "node"] == [
        ("ok", worker.said("connected")["node"]), ("FAIL", "127.0.0.1:1")]
    assert [name for mark, name, _ in lines if mark == "FAIL"] == ["node"], done.stdout
    done = installation.run("check", environment={"OVERTIME_AMQP_URL": urls})
    assert any(line.startswith("FAIL") and "amqp.cluster" in line for line in done.stdout.splitlines()), done
    # The queues are quorum queues by now, and a worker without the key is told so.
    done = installation.run("worker", environment={"OVERTIME_STORE": "sqlite:another.db"}, limit=60)
    assert done.returncode == 78 and "x-queue-type" in done.stdout + done.stderr, done


def test_check_before_anything_is_there(installation, broker):
    done = installation.run("check", "--timeout", "3")
    assert done.returncode == 1 and f"{installation.prefix}.events" in done.stdout, done
    done = installation.run(
        "check", "--timeout", "2", environment={"OVERTIME_AMQP_URL": "amqp://127.0.0.1:1/"}
    )
    assert done.returncode == 1 and any(
        line.startswith("FAIL") and "broker" in line for line in done.stdout.splitlines()
    ), done


def test_watch_live_and_from_the_log(installation, worker, wire, history):
    live = installation.start("watch", "--json", "--count", "3")
    wire.ok("open", "before")
    # Live watching begins when its queue is bound, which nothing but an event shows: open until one is seen.
    end, number = time.monotonic() + 15, 0
    while not live.lines and time.monotonic() < end:
        number += 1
        wire.ok("open", f"live-{number}")
    wire.ok("open", "last-1")
    wire.ok("open", "last-2")
    assert live.wait_exit(10) == 0
    history.wait_sequence("last-2", 1)
    ids = [event.json["id"] for events in history.rooms.values() for event in events]
    first = ids.index(live.lines[0]["id"])
    assert [line["id"] for line in live.lines] == ids[first : first + 3]

    total = sum(len(events) for events in history.rooms.values())
    bodies = [event.body.decode() for events in history.rooms.values() for event in events]
    done = installation.run("watch", "--from", "first", "--count", str(total), "--json")
    assert done.returncode == 0
    assert done.stdout.splitlines() == bodies
    done = installation.run("watch", "--from", "first", "--count", "1", "--room", "last-2")
    assert done.returncode == 0 and "room.opened" in done.stdout and "last-2" in done.stdout
    done = installation.run("watch", "--from", "-10m", "--count", "1", "--type", "room.opened", "--json")
    assert json.loads(done.stdout)["id"] == "before:1"


def test_watch_goes_from_the_log_to_live_without_a_gap(installation, worker, wire, history):
    wire.ok("open", "r", duration="1h")
    for number in range(50):
        wire.send("join", "r", f"early-{number}")
    history.wait_sequence("r", 52)
    watch = installation.start("watch", "--from", "first", "--json", "--room", "r")
    for number in range(500):
        wire.send("join", "r", f"late-{number}")
    history.wait_sequence("r", 552)
    watch._changed.wait(lambda: len(watch.lines) >= 552, 20, lambda: f"552 lines; {len(watch.lines)} came")
    assert [int(line["sequence"]) for line in watch.lines] == list(range(1, 553))
    watch.popen.send_signal(signal.SIGINT)
    assert watch.wait_exit(5) == 0


def watching(installation, wire, *options, **environment):
    """A watch that is listening: rooms are opened until one of them is seen."""
    watch = installation.start("watch", "--json", *options, environment=environment)
    end, number = time.monotonic() + 15, 0
    while not any("id" in line for line in watch.lines) and time.monotonic() < end:
        number += 1
        wire.ok("open", f"look-{number}")
    return watch


def seen(watch, room):
    return [int(line["sequence"]) for line in watch.lines if line.get("subject") == room]


def wait_seen(watch, room, sequences, limit=30):
    watch._changed.wait(
        lambda: seen(watch, room) == sequences, limit, lambda: f"{sequences} of {room}; there came {seen(watch, room)}"
    )


def test_watch_goes_on_after_a_cut_without_a_gap(installation, worker, wire):
    address = urlsplit(installation.url)
    proxy = Proxy(address.hostname, address.port)
    proxy.open()
    url = installation.url.replace(f":{address.port}", f":{proxy.port}")
    watch = watching(installation, wire, OVERTIME_AMQP_URL=url)
    wire.ok("open", "r", duration="1h")
    for turn in range(3):
        proxy.cut()
        for number in range(20):
            wire.ok("join", "r", f"u-{turn}-{number}")
        proxy.open()
        # Opened, started, and the joins.
        wait_seen(watch, "r", list(range(1, 3 + 20 * (turn + 1))))
    said = [line["text"] for line in watch.lines if "text" in line]
    assert [text for text in said if "missed" in text] == [], said
    assert sum("connected again" in text for text in said) == 3, said
    proxy.cut()


def test_watch_without_the_log_tells_what_it_missed(installation, worker, wire):
    address = urlsplit(installation.url)
    proxy = Proxy(address.hostname, address.port)
    proxy.open()
    url = installation.url.replace(f":{address.port}", f":{proxy.port}")
    watch = watching(installation, wire, OVERTIME_AMQP_URL=url, OVERTIME_AMQP_LOG="off")
    wire.ok("open", "r", duration="1h")
    wait_seen(watch, "r", [1])
    proxy.cut()
    wire.ok("join", "r", "alice")
    proxy.open()
    watch.wait_text("events of the meantime were missed")
    wire.ok("join", "r", "bob")
    wait_seen(watch, "r", [1, 4])
    watch.wait_text("r: events between #1 and #4 were missed")
    proxy.cut()


def test_watch_goes_on_live_where_the_log_is_deleted(installation, worker, wire, broker):
    watch = watching(installation, wire)
    wire.ok("open", "r", duration="1h")
    wait_seen(watch, "r", [1])
    broker.delete([f"{installation.prefix}.events.log"], [])
    watch.wait_text("events of the meantime were missed")
    # It listens again a moment later, which nothing but an event shows.
    end, number = time.monotonic() + 30, 0
    while len(seen(watch, "r")) < 2 and time.monotonic() < end:
        number += 1
        wire.ok("join", "r", f"user-{number}")
    found = seen(watch, "r")
    assert len(found) >= 2 and found[1:] == list(range(found[1], found[1] + len(found) - 1)), found
    watch.wait_text(f"r: events between #1 and #{found[1]} were missed")


def test_watch_without_a_log(installation, worker):
    done = installation.run("watch", "--from", "first", environment={"OVERTIME_AMQP_LOG": "off"}, limit=10)
    assert done.returncode == 78 and "log" in done.stderr


def test_one_shot_commands_and_a_broker_that_refuses(installation, broker):
    for arguments in (["send", "status", "--room", "r"], ["rooms"], ["watch"]):
        done = installation.run(
            *arguments,
            environment={"OVERTIME_AMQP_URL": broker.url.replace("guest:guest", "guest:wrong")},
            limit=40,
        )
        assert done.returncode == 78, (arguments, done)
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_config_says_what_is_in_force_and_where_it_was_set(installation, tmp_path):
    secret = tmp_path / "url"
    secret.write_text("amqp://someone:hunter2@127.0.0.1:1/%2f\n")
    del installation.environment["OVERTIME_AMQP_URL"]
    found = installation.run(
        *("config", "--amqp-shards", "2"), environment={"OVERTIME_AMQP_URL_FILE": str(secret)}
    )
    assert found.returncode == 0, found.stderr
    assert "hunter2" not in found.stdout
    lines = {line.split()[0]: line.split(None, 2)[1:] for line in found.stdout.splitlines()}
    assert lines["amqp.url"][0] == "amqp://127.0.0.1:1/%2f"
    assert lines["amqp.url"][1].startswith("variable OVERTIME_AMQP_URL_FILE, file ")
    assert lines["amqp.shards"] == ["2", "flag --amqp-shards"]
    assert lines["amqp.prefix"] == [installation.prefix, "variable OVERTIME_AMQP_PREFIX"]
    assert lines["rooms.duration"] == ["1h", "default"]


def test_config_names_everything_that_is_wrong_at_once(installation):
    found = installation.run(
        "config",
        environment={
            "OVERTIME_AMQP_URL": "amqp://someone:hunter2:more@h/%2f",
            "OVERTIME_SHARDS": "none",
            "OVERTIME_AMQP_LOG": "9999d",
            "OVERTIME_SHARD": "1",
        },
    )
    assert found.returncode == 78
    assert found.stdout == "" and "hunter2" not in found.stderr
    lines = found.stderr.splitlines()[1:]
    assert len(lines) == 4, found.stderr
    for name in ("amqp.url (variable OVERTIME_AMQP_URL)", "amqp.shards", "amqp.log", "OVERTIME_SHARD "):
        assert any(line.strip().startswith(name) for line in lines), (name, found.stderr)
