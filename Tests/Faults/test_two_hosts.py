"""Two hosts whose clocks are a minute and a half apart, on one database: no notice is early, none comes twice."""

import json
import time
from urllib.parse import urlsplit, urlunsplit

import pytest
from history import seconds
from hosts import Host, can_be_made
from stores import private_server
from test_clocks import Clock, library  # noqa: F401 (a fixture)

SHARDS = 4
ROOMS = 24
# Two windows of four seconds each; an extension makes both come anew.
POLICY = {"windows": ["8s", "4s"], "extension": {"min": "8s", "max": "16s"}}
SESSION = 14


def seen_from(host, url):
    """A URL of a server on this machine, as the host reaches it."""
    parts = urlsplit(url)
    login = f"{parts.username}:{parts.password}@" if parts.username else ""
    return urlunsplit(parts._replace(netloc=login + host.reach(parts.port)))


def notices(history, room):
    return [
        (event.data["extensions"], event.data["window"])
        for event in history.events(room, "session.window.opened")
    ]


@pytest.mark.skipif(not can_be_made(), reason="only root makes network namespaces")
@pytest.mark.parametrize("skew", [90, pytest.param(-90, marks=pytest.mark.heavy_fault)])
def test_clocks_apart(installation, wire, history, library, tmp_path, figure, skew):  # noqa: F811
    with private_server() as postgres, Host("right", 0) as right, Host("wrong", 1) as wrong:
        database = postgres.database()
        clock = Clock(library, tmp_path / "wrong.offset", skew)

        def environment(host):
            own = clock.environment if host is wrong else {}
            return own | {
                "OVERTIME_AMQP_URL": seen_from(host, installation.url),
                "OVERTIME_STORE": seen_from(host, database.url), "OVERTIME_SHARDS": str(SHARDS)}

        places = {host: environment(host) for host in (right, wrong)}

        def start(component, host):
            process = installation.start(component, environment=places[host], command=host.command)
            process.wait_said("serving" if component == "worker" else "firing", 20)
            return process

        running = {(component, host): start(component, host) for component in ("worker", "scheduler")
                   for host in (right, wrong)}
        for number in range(ROOMS):
            wire.ok("open", f"room-{number}", duration=f"{SESSION}s", policy=POLICY)
            wire.ok("join", f"room-{number}", "ada")
        # The first half is extended in its first window; then the right host is gone, and the wrong one goes on alone.
        for number in range(ROOMS // 2):
            history.wait_event(f"room-{number}", "session.window.opened", SESSION + 10)
            wire.ok("extend", f"room-{number}", "ada")
        for component in ("scheduler", "worker"):
            running[component, right].kill()

        late = []
        for number in range(ROOMS):
            room = f"room-{number}"
            history.wait_event(room, "session.ended", 2 * SESSION + 30)
            told = notices(history, room)
            assert len(told) == len(set(told)), f"{room} was told twice: {told}"
            expected = [(0, 1), (1, 1), (1, 2)] if number < ROOMS // 2 else [(0, 1), (0, 2)]
            assert told == expected, room
            for event in history.rooms[room]:
                if "dueAt" in event.data:
                    # By the clock of the database, which is this machine's.
                    assert event.at >= seconds(event.data["dueAt"]), f"{event!r} came early"
                if "lateBy" in event.data:
                    late.append(event.data["lateBy"])
        figure(f"two hosts, clocks {skew:+d} s apart: late by at most, s", max(late))
        # The one whose host was killed is missed after six seconds, and its shards are taken over.
        assert max(late) < 15

        again = start("worker", right)
        check_names_the_skew(installation, places, right, wrong, skew)
        again.kill()


def check_names_the_skew(installation, places, right, wrong, skew):
    """From either host: which clock is off, and by how much."""
    for host in (right, wrong):
        deadline = time.monotonic() + 20
        while True:
            checked = installation.run("check", environment=places[host] | {"OVERTIME_LOG_FORMAT": "json"},
                                       command=host.command)
            named = [line for line in checked.stdout.splitlines()
                     if "clock" in line and any(f"{abs(skew) + error}" in line for error in (-1, 0, 1))]
            if named or time.monotonic() > deadline:
                break
        assert named, f"overtime check says nothing of the {skew} s: {checked.stdout}{checked.stderr}"
        assert any("wrong" in line for line in named), json.dumps(named)
