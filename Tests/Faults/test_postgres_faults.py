"""A failing PostgreSQL server: nothing not durable is acknowledged, what can heal heals, what cannot is named."""

import os
import subprocess
import threading
import time
from urllib.parse import urlsplit, urlunsplit

import pytest
from freezing import Freezer
from proxy import Proxy
from stores import KIND
from test_faults import WHOLE, Load, wait_copies
from waiting import poll
from watching import check_said_once, check_store, no_hot_loop

pytestmark = pytest.mark.skipif(KIND != "postgresql", reason="OVERTIME_TEST_STORE=postgresql runs it")
FAILS = "the store fails: nothing is consumed until it works again"
CANNOT_OPEN = "the store cannot be opened: trying again"
WORKS = "the store works again"
LIMIT = 30
# What may lie between a server that is back and the first try of a worker that waits for it.
LONGEST_TRY = 10


def changed(url, **parts):
    """A URL with another user, password, port or database."""
    old = urlsplit(url)
    new = {"user": old.username, "password": old.password, "port": old.port, "name": old.path[1:]} | parts
    netloc = f"{new['user']}:{new['password']}@{old.hostname}:{new['port']}"
    return urlunsplit((old.scheme, netloc, f"/{new['name']}", "", ""))


def at(url):
    return {"OVERTIME_STORE": url}


def finish(installation, load, history, limit=LIMIT):
    """Everything is answered and told, once; and again, without an effect; and nothing is left."""
    load.check(history, limit)
    load.repeat(history)
    for process in installation.processes:
        check_said_once(process)
    assert check_store(installation) == 0


@pytest.mark.parametrize("how", ["killed", "immediate", pytest.param("fast", marks=pytest.mark.heavy_fault)])
def test_a_server_that_goes_and_comes_back(installation, wire, worker, scheduler, postgres, history, figure, how):
    load = Load(wire, 10, 40)
    half = len(load.messages) // 2
    wire.publish_many(load.messages[:half])
    wait_copies(history, 100)
    began = time.monotonic()
    if how == "killed":
        postgres.cut_power()
        wire.publish_many(load.messages[half:])
        worker.wait_said(FAILS, LIMIT)
        with no_hot_loop(worker, scheduler):
            poll(lambda: time.monotonic() > began + 5, 6, "the fault to last")
        assert not all(call.replies for call in load.calls)
        postgres.start()
        # What waited was held: each time that it is given back counts towards the broker's delivery limit.
        worker.wait_said(WORKS, LONGEST_TRY + 5)
    else:
        postgres.restart(how)
        wire.publish_many(load.messages[half:])
    back = time.monotonic()
    finish(installation, load, history)
    figure(f"PostgreSQL {how}: seconds until all was answered and repeated", round(time.monotonic() - back, 1))


def test_connections_that_the_server_ends(installation, wire, worker, postgres, history, figure):
    load = Load(wire, 20, 40)
    load.publish()
    ended = 0
    for share in range(100, 1_000, 100):
        wait_copies(history, share)
        ended += len(postgres.psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{installation.store.name}' AND application_name LIKE 'overtime%'").split())
    finish(installation, load, history, 60)
    figure("connections that the server ended under load", ended)
    assert ended


@pytest.mark.parametrize("what", [pytest.param("a table", marks=pytest.mark.heavy_fault), "a room"])
def test_a_lock_that_somebody_holds(installation, wire, worker, history, what):
    """Longer than the worker waits for one. The commands wait, and nothing is lost."""
    wire.ok("open", "r", duration="1h", policy=WHOLE)
    statement = "LOCK TABLE rooms" if what == "a table" else "SELECT 1 FROM rooms FOR UPDATE"
    holder = installation.store.psql("-c", f"BEGIN; {statement}; SELECT 'held'", "-f", "-", stdin=subprocess.PIPE)
    try:
        assert poll(lambda: "held" in holder.stdout.readline(), 10, "the lock")
        call = wire.send("join", "r", "ada")
        line = worker.wait_said(FAILS, 20)
        assert "locked" in line["error"], line
        assert not call.replies
        with no_hot_loop(worker):
            began = time.monotonic()
            poll(lambda: time.monotonic() > began + 3, 5, "more tries")
    finally:
        holder.communicate("ROLLBACK;\n", timeout=10)
    assert history.wait_reply(call, LIMIT)["sequence"] == 4
    assert check_store(installation) == 0


def through(proxy, installation):
    return at(changed(installation.store.url, port=proxy.port))


@pytest.mark.heavy_fault
def test_a_path_that_falls_silent(installation, wire, history, figure):
    """A half-open connection: given up by the worker itself, whatever the path still acknowledges."""
    parts = urlsplit(installation.store.url)
    path = Freezer(parts.hostname, parts.port)
    path.open()
    worker = installation.start("worker", environment=through(path, installation))
    installation.ready(worker)
    load = Load(wire, 10, 40)
    half = len(load.messages) // 2
    wire.publish_many(load.messages[:half])
    wait_copies(history, 100)
    path.freeze()
    wire.publish_many(load.messages[half:])
    began = time.monotonic()
    worker.wait_said(FAILS, 60)
    noticed = time.monotonic() - began
    path.thaw()
    worker.wait_said(WORKS, 60)
    finish(installation, load, history)
    figure("a silent path to PostgreSQL: seconds until it was noticed", round(noticed, 1))
    path.cut()


def test_a_path_that_is_cut(installation, wire, history):
    parts = urlsplit(installation.store.url)
    path = Proxy(parts.hostname, parts.port)
    path.open()
    worker = installation.start("worker", environment=through(path, installation))
    installation.ready(worker)
    load = Load(wire, 10, 40)
    load.publish()
    for share in (100, 300):
        wait_copies(history, share)
        path.cut()
        path.open()
    finish(installation, load, history)
    path.cut()


@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.heavy_fault)])
def test_a_server_that_stands_still(installation, wire, worker, postgres, history, seconds):
    load = Load(wire, 10, 40)
    half = len(load.messages) // 2
    wire.publish_many(load.messages[:half])
    wait_copies(history, 100)
    postgres.freeze()
    try:
        wire.publish_many(load.messages[half:])
        began = time.monotonic()
        with no_hot_loop(worker):
            poll(lambda: time.monotonic() > began + seconds, seconds + 5, "the standstill to last")
    finally:
        postgres.thaw()
    assert bool(worker.said(FAILS)) == (seconds > 40), worker.tail()
    finish(installation, load, history, 60)


@pytest.fixture
def small_disk(postgres, installation):
    """A file system of its own for the database, which can be made small and large."""
    path = os.path.join(postgres.directory, "small")
    os.mkdir(path)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m,mode=0777", "tmpfs", path], capture_output=True, text=True, check=False)
    if mounted.returncode:
        os.rmdir(path)
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")

    def resize(size):
        subprocess.run(["mount", "-o", f"remount,size={size}", path], check=True, capture_output=True)

    place = f"{path}/space"
    os.mkdir(place, 0o700)
    # The server's own user, who owns its data too.
    os.chown(place, os.stat(f"{postgres.directory}/data").st_uid, -1)
    postgres.psql(f"CREATE TABLESPACE small LOCATION '{place}'")
    postgres.psql(f'ALTER DATABASE "{installation.store.name}" SET TABLESPACE small')
    yield path, resize
    resize("64m")
    installation.end()
    postgres.psql("DROP TABLESPACE small")
    subprocess.run(["umount", "-l", path], check=True)
    os.rmdir(path)


def test_a_full_disk_that_gets_room_again(small_disk, installation, wire, history, figure):
    path, resize = small_disk
    worker = installation.worker()
    load = Load(wire, 10, 20)
    half = len(load.messages) // 2
    wire.publish_many(load.messages[:half])
    for call in load.calls[:half]:
        history.wait_reply(call)
    used = os.statvfs(path)
    resize((used.f_blocks - used.f_bfree) * used.f_frsize)
    large = [
        wire.send("open", f"large-{number}", moderators=[f"{number}-{one}-".ljust(100, "x") for one in range(480)])
        for number in range(60)]
    line = worker.wait_said(FAILS, 20)
    assert "no space left" in line["error"], line
    wire.publish_many(load.messages[half:])
    with no_hot_loop(worker):
        began = time.monotonic()
        poll(lambda: time.monotonic() > began + 5, 6, "the fault to last")
    assert worker.running and not all(call.replies for call in large)
    resize("64m")
    freed = time.monotonic()
    for call in large:
        assert history.wait_reply(call, LIMIT)["ok"]
    load.check(history)
    figure("PostgreSQL's disk full: seconds until all were answered", round(time.monotonic() - freed, 1))
    finish(installation, load, history)


def test_a_server_that_takes_no_writes_for_a_while(installation, wire, worker, postgres, history):
    """As after a failover to a standby that nobody has promoted yet."""
    name = installation.store.name
    wire.ok("open", "r")
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    postgres.psql(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on; {end}')
    try:
        call = wire.send("join", "r", "ada")
        worker.wait_said(FAILS, LIMIT)
        late = installation.start("worker")
        late.wait_said(CANNOT_OPEN, LIMIT)
        assert not call.replies
    finally:
        postgres.psql(f'ALTER DATABASE "{name}" RESET default_transaction_read_only; {end}')
    assert history.wait_reply(call, LIMIT)["sequence"] == 3
    assert worker.running and late.running


def test_a_server_that_is_not_there_is_waited_for(installation, wire):
    parts = urlsplit(installation.store.url)
    path = Proxy(parts.hostname, parts.port)
    worker = installation.start("worker", environment=through(path, installation))
    line = worker.wait_said(CANNOT_OPEN, 15)
    assert parts.password not in str(line) and f":{path.port}/" in line["error"], line
    idle = installation.start("worker", environment=through(path, installation))
    idle.wait_said(CANNOT_OPEN, 15)
    code, took = idle.terminate()
    assert (code, took < 5) == (0, True), (code, took)
    path.open()
    installation.ready(worker, LIMIT)
    assert wire.ok("open", "r")
    path.cut()


def test_what_is_wrong_for_good(installation, postgres, figure):
    """Named, with exit code 78, within half a minute; and no password is told, wrong or right."""
    url = installation.store.url
    other = postgres.database()
    foreign = postgres.database()
    newer = postgres.database()
    postgres.psql(f'DROP DATABASE "{other.name}"')
    postgres.psql(f"CREATE DATABASE \"{other.name}\" TEMPLATE template0 ENCODING LATIN1 LOCALE 'C' LOCALE_PROVIDER libc")
    for database, table in ((foreign, "rooms AS SELECT 1 AS id"), (newer, "schema_version AS SELECT 999 AS version")):
        with database.psql("-c", f"CREATE SCHEMA overtime; CREATE TABLE {table}") as made:
            assert made.wait(20) == 0
    wrong = {
        "password": (changed(url, password="Wrong-password"), ["authentication failed"]),
        "user": (changed(url, user="nobody"), ["authentication failed"]),
        "database": (changed(url, name="nowhere"), ["nowhere", "does not exist"]),
        "encoding": (changed(other.url, name=other.name), ["LATIN1", "UTF8"]),
        "other tables": (foreign.url, ["other tables"]),
        "newer schema": (newer.url, ["999"]),
    }
    began = time.monotonic()
    processes = {name: installation.start("worker", environment=at(address)) for name, (address, _) in wrong.items()}
    problems, times = [], {}
    for name, process in processes.items():
        code = process.wait_exit(max(1, LIMIT + 5 - (time.monotonic() - began)), f"its end ({name})")
        times[name] = round(time.monotonic() - began, 1)
        said = process.tail()
        last = str(process.lines[-1].get("error"))
        if code != 78 or not all(word in last for word in wrong[name][1]):
            problems.append(f"{name}: exit code {code}, and the last line does not name {wrong[name][1]}: {said}")
        if "Wrong-password" in said:
            problems.append(f"{name}: tells the password")
    for database in (other, foreign, newer):
        database.drop()
    figure("PostgreSQL: seconds until exit 78", times)
    assert not problems, "\n".join(problems)
    assert max(times.values()) < LIMIT


# Ends whoever waits for its commit to be on disk, and gives it time for a next one. A statement of the server's own, since
# nobody else would be quick enough.
END_COMMITS = """
DO $$ DECLARE ended integer := 0; BEGIN
    FOR turn IN 1..4000 LOOP
        PERFORM pg_stat_clear_snapshot();
        PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = '{name}' AND wait_event IN ('WALSync', 'WALWrite');
        IF FOUND THEN
            ended := ended + 1;
            PERFORM pg_sleep(0.3);
        END IF;
        PERFORM pg_sleep(0.001);
    END LOOP;
    RAISE NOTICE 'ended %', ended;
END $$
"""


def test_connections_that_go_in_the_midst_of_a_commit(installation, wire, worker, postgres, history, figure):
    """Whether it took place is unknown then: it is found out, and nothing is done twice."""
    load = Load(wire, 10, 40)
    killer = threading.Thread(target=lambda: postgres.psql(END_COMMITS.format(name=installation.store.name)))
    killer.start()
    # One after the other, so that each is a commit of its own.
    for message, call in zip(load.messages, load.calls, strict=True):
        wire.publish_many([message])
        history.wait_reply(call, LIMIT)
        if not killer.is_alive():
            break
    killer.join(60)
    wire.publish_many(load.messages)
    finish(installation, load, history, 60)
    figure("times that the store failed in the midst of a commit", sum(
        line.get("message") == FAILS for line in worker.lines))
    assert worker.said(FAILS)
