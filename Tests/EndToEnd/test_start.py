"""Section 5, start: what is wrong for good is named and ends with 78; what may come is waited for."""

import os
import secrets
import socket
import time
from urllib.parse import urlsplit, urlunsplit

import pytest
from conftest import SHORT
from proxy import Proxy
from stores import KIND


def changed(url, user=None, password=None, host=None, port=None, vhost=None):
    parts = urlsplit(url)
    netloc = (
        f"{user or parts.username}:{password or parts.password}@{host or parts.hostname}:{port or parts.port}"
    )
    return urlunsplit((parts.scheme, netloc, parts.path if vhost is None else vhost, "", ""))


@pytest.fixture
def powerless(broker):
    name = f"e2e-powerless-{secrets.token_hex(3)}"
    broker.ctl("add_user", name, "secret")
    broker.ctl("set_permissions", "-p", "/", name, "^nothing$", "^nothing$", "^nothing$")
    yield name
    broker.ctl("delete_user", name)


def errors(process):
    """The lines that say what is wrong: errors of the log, or plain text before the log begins."""
    return [
        line.get("text") or f"{line['message']} {line.get('error', '')}"
        for line in process.lines
        if "text" in line or line["level"] == "error"
    ]


def test_what_is_wrong_for_good(installation, wire, worker, broker, powerless, figure):
    prefix = installation.prefix
    channel = broker.channel()
    channel.queue_declare(f"{prefix}a.commands", durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_declare(f"{prefix}b.ticks", durable=True, arguments={"x-message-ttl": 1})
    channel.exchange_declare(f"{prefix}c.events", "topic", durable=True)
    channel.queue_declare(f"{prefix}d.events.log", durable=True)

    def start(name, component="worker", words=(), url=broker.url, **environment):
        process = installation.start(
            component,
            environment=installation.another_store(name) | {"OVERTIME_AMQP_URL": url} | environment,
        )
        return process, words, time.monotonic()

    started = {
        "password": start("password", words=["refused"], url=changed(broker.url, password="wrong")),
        "scheduler's password": start(
            "s", "scheduler", words=["refused"], url=changed(broker.url, password="wrong")
        ),
        "vhost": start("vhost", words=["nosuch"], url=changed(broker.url, vhost="/nosuch")),
        "rights": start("rights", words=[prefix], url=changed(broker.url, user=powerless, password="secret")),
        "queue's arguments": start(
            "arguments", words=[f"{prefix}a.commands"], OVERTIME_AMQP_PREFIX=f"{prefix}a"
        ),
        "ticks' arguments": start(
            "ticks", words=[f"{prefix}b.ticks", "60000", "1"], OVERTIME_AMQP_PREFIX=f"{prefix}b"
        ),
        "scheduler's ticks": start(
            "st", "scheduler", words=[f"{prefix}b.ticks", "60000", "1"], OVERTIME_AMQP_PREFIX=f"{prefix}b"
        ),
        "exchange's type": start(
            "exchange", words=[f"{prefix}c.events", "fanout", "topic"], OVERTIME_AMQP_PREFIX=f"{prefix}c"
        ),
        "nothing declared": start(
            "passive", words=[prefix], OVERTIME_AMQP_PREFIX=f"{prefix}e", OVERTIME_AMQP_DECLARE="false"
        ),
    }
    if KIND == "sqlite":
        started["a second worker on the same file"] = (
            installation.start("worker"),
            [f"pid {worker.pid}", socket.gethostname(), "overtime.db"],
            time.monotonic(),
        )
    problems, times = [], {}
    for name, (process, words, began) in started.items():
        code = process.wait_exit(max(1, 36 - (time.monotonic() - began)), f"its end ({name})")
        times[name] = round(time.monotonic() - began, 1)
        if code != 78:
            problems.append(f"{name}: exit code {code}: {process.tail()}")
        last = errors(process)[-1:] or [""]
        if not all(word.lower() in last[0].lower() for word in words):
            problems.append(f"{name}: the last line does not name {words}: {last[0]}")
        if sum("giving up" in error for error in errors(process)) != 1:
            problems.append(f"{name}: not exactly one last word: {errors(process)}")
        for line in process.lines:
            if "wrong" in str(line.get("error", "")) and "guest:wrong" in str(line):
                problems.append(f"{name}: tells the password")
    figure("seconds until exit 78", times)
    # The first worker was not disturbed, and once it has gone its place is free.
    wire.ok("open", "r")
    assert worker.terminate()[0] == 0
    installation.worker()
    assert wire.ok("status", "r")["sequence"] == 1
    broker.delete(
        [
            f"{prefix}{letter}.{queue}"
            for letter in "abcde"
            for queue in ("commands", "events.log", "queries", "ticks", "dead")
        ],
        [
            f"{prefix}{letter}.{exchange}"
            for letter in "abcde"
            for exchange in ("commands", "events.topic", "events", "queries", "ticks", "dead")
        ],
    )
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    "variable, value, words",
    [
        ("OVERTIME_AMQP_URL", "http://localhost", ["amqp"]),
        ("OVERTIME_AMQP_URL", "amqp://h:99999/", ["port"]),
        ("OVERTIME_AMQP_URL", "nonsense", ["amqp"]),
        ("OVERTIME_SHARDS", "0", ["shards"]),
        ("OVERTIME_SHARDS", "many", ["shards"]),
        ("OVERTIME_ROOMS_DURATION", "1 hour", ["duration"]),
        ("OVERTIME_STORE", "mysql:x", ["store"]),
        ("OVERTIME_LOG_LEVEL", "loud", ["level"]),
        ("OVERTIME_ROOMS_ADHOC", "perhaps", ["adhoc"]),
        ("OVERTIME_NONSENSE", "1", ["OVERTIME_NONSENSE"]),
    ],
)
def test_a_wrong_configuration(installation, variable, value, words):
    done = installation.run("worker", environment={variable: value}, limit=10)
    assert done.returncode == 78, done
    assert all(word.lower() in done.stderr.lower() for word in words), done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2, done.stderr


def test_all_problems_of_a_configuration_at_once(installation):
    path = f"{installation.directory}/wrong.json5"
    with open(path, "w") as file:
        file.write("{ amqp: { shards: 0, prefx: 'x' }, rooms: { duration: 'soon' } }")
    done = installation.run("worker", "--config", path, limit=10)
    assert done.returncode == 78
    assert all(word in done.stderr for word in ("shards", "prefx", "duration")), done.stderr
    missing = installation.run("worker", "--config", f"{path}.missing", limit=10)
    assert (missing.returncode, "wrong.json5.missing" in missing.stderr) == (78, True), missing


def test_layers_of_configuration(installation, wire, history):
    path = f"{installation.directory}/overtime.json5"
    with open(path, "w") as file:
        file.write("{ rooms: { duration: '30m' }, events: { source: 'file' }, amqp: { prefix: 'nowhere' } }")
    process = installation.start(
        "worker",
        "--events-source",
        "flag",
        environment={"OVERTIME_CONFIG": path, "OVERTIME_EVENTS_SOURCE": "env"},
    )
    installation.ready(process)
    wire.ok("open", "r")
    event = history.wait_event("r", "room.opened")
    assert (event.json["source"], event.data["duration"]) == ("flag", 30)


@pytest.mark.sqlite("nobody owns a database there")
def test_the_file_of_a_killed_worker_is_free(installation, wire, worker):
    wire.ok("open", "r")
    worker.kill()
    assert os.path.exists(f"{installation.directory}/overtime.db")
    installation.worker()
    assert wire.ok("status", "r")["sequence"] == 1


def test_a_broker_that_is_not_there_is_waited_for(installation, wire, broker, history):
    parts = urlsplit(broker.url)
    proxy = Proxy(parts.hostname, parts.port)
    environment = {"OVERTIME_AMQP_URL": changed(broker.url, port=proxy.port)}
    worker = installation.start("worker", environment=environment)
    scheduler = installation.start("scheduler", environment=environment)
    began = time.monotonic()
    done = installation.run("send", "open", "--room", "r", "--timeout", "2", environment=environment)
    assert done.returncode == 3, done
    assert 1.5 < time.monotonic() - began < 4
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert worker.running and scheduler.running
    for process in (worker, scheduler):
        said = [line for line in process.lines if "error" in line]
        # Said once for each of its two connections.
        assert 1 <= len(said) <= 2, process.tail()
    proxy.open()
    installation.ready(worker)
    scheduler.wait_said("firing", 20)
    wire.ok("open", "r")
    # Once connected, every change is said once, and it comes back by itself.
    mark = len(worker.lines), len(scheduler.lines)
    proxy.cut()
    worker.wait_said("disconnected", after=mark[0])
    scheduler.wait_said("disconnected", after=mark[1])
    proxy.open()
    installation.ready(worker, after=mark[0])
    assert wire.ok("status", "r")["sequence"] == 1
    wire.ok("open", "r", duration="3s", policy=SHORT)
    wire.ok("join", "r", "ada")
    history.wait_event("r", "session.ended", 20)
    proxy.cut()


def test_names_of_hosts_that_do_not_resolve_are_waited_for(installation, broker):
    worker = installation.start(
        "worker", environment={"OVERTIME_AMQP_URL": changed(broker.url, host="nowhere.invalid")}
    )
    worker.wait_said("starting")
    worker._changed.wait(
        lambda: any("nowhere.invalid" in str(line.get("error", "")) for line in worker.lines),
        15,
        lambda: f"the host to be named; it said {worker.tail()}",
    )
    assert worker.running
    code, _ = worker.terminate()
    assert code == 0


def test_sigterm_while_nothing_is_connected(installation, broker):
    parts = urlsplit(broker.url)
    url = changed(broker.url, port=Proxy(parts.hostname, parts.port).port)
    for component in ("worker", "scheduler"):
        process = installation.start(component, environment={"OVERTIME_AMQP_URL": url})
        process.wait_said("starting")
        code, seconds = process.terminate()
        assert (code, seconds < 5) == (0, True), (component, code, seconds)
