"""A failing store: nothing not durable is acknowledged, nothing deleted or made anew, what can heal heals."""

import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time

import pytest
from history import seconds
from stores import SQLiteFile
from test_faults import WHOLE, Load, wait_copies
from waiting import poll
from watching import check_said_once, check_store, no_hot_loop

pytestmark = pytest.mark.sqlite("test_postgres_faults.py has the faults of a server")
FAILS = "the store fails: nothing is consumed until it works again"
CANNOT_OPEN = "the store cannot be opened: trying again"
WORKS = "the store works again"
LIMIT = 30


def heavy(*values):
    """A case that is left to `make faults`: another of its kind is in every run."""
    return pytest.param(*values, marks=pytest.mark.heavy_fault)


def needs_strace():
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, which can be made small and large."""
    path = tmp_path / "disk"
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", path], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")

    def resize(size):
        subprocess.run(["mount", "-o", f"remount,{size}", path], check=True, capture_output=True)

    yield path, resize
    subprocess.run(["umount", "-l", path], check=True)


def on(directory):
    return {"OVERTIME_STORE": f"sqlite:{directory}/overtime.db"}


def bulk(number):
    """Some 50 KB of moderators, all different."""
    return [f"{number}-{moderator}-".ljust(100, "x") for moderator in range(480)]


def fill(path):
    """Takes all the space that is left."""
    with open(path / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return


def test_a_file_at_the_limit_of_its_size(installation, wire, history):
    """The system would end the process by a signal; it is a disk that is full, and heals as one."""
    if shutil.which("prlimit") is None:
        pytest.skip("prlimit is not installed")
    limited = ["sh", "-c", 'ulimit -S -f 1000; exec "$0" "$@"']
    worker = installation.start("worker", command=limited)
    installation.ready(worker)
    calls = [wire.send("open", f"r{number}", moderators=bulk(number)) for number in range(40)]
    worker.wait_said(FAILS)
    assert worker.running
    subprocess.run(["prlimit", f"--pid={worker.pid}", "--fsize=unlimited:"], check=True)
    for call in calls:
        assert history.wait_reply(call, LIMIT)["ok"]
    assert worker.terminate()[0] == 0


def test_a_directory_without_rights_for_a_moment(installation, wire, history):
    """The file is where it was, so nobody has replaced it: waited for, and gone on with."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can run the worker as another user")
    with tempfile.TemporaryDirectory(prefix="overtime-rights.") as top:
        os.chmod(top, 0o755)
        binary = shutil.copy(installation.binary, f"{top}/overtime")
        directory = f"{top}/store"
        os.mkdir(directory)
        os.chown(directory, 65534, 65534)
        other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        other += ["sh", "-c", f'shift; exec {binary} "$@"']
        worker = installation.start("worker", environment=on(directory), command=[*other, "sh"])
        installation.ready(worker)
        assert wire.ok("open", "r1")
        os.chmod(directory, 0)
        call = wire.send("open", "r2")
        line = worker.wait_said(FAILS)
        assert "cannot be looked at" in line["error"] and "Permission denied" in line["error"]
        assert not call.replies
        os.chmod(directory, 0o700)
        assert history.wait_reply(call, LIMIT)["ok"]
        worker.wait_said(WORKS)
        assert worker.terminate()[0] == 0


def test_a_full_disk_that_gets_room_again(installation, wire, history, small_disk, figure):
    path, resize = small_disk
    worker = installation.worker(environment=on(path))
    installation.scheduler()
    load = Load(wire, 10, 20)
    half = len(load.messages) // 2
    wire.publish_many(load.messages[:half])
    for call in load.calls[:half]:
        history.wait_reply(call)
    # Whatever the log of the store has taken already is its own: something that needs new pages is sent.
    mark = len(worker.lines)
    fill(path)
    large = [wire.send("open", f"large-{number}", moderators=bulk(number)) for number in range(60)]
    worker.wait_said(FAILS, 20, mark)
    wire.publish_many(load.messages[half:])
    with no_hot_loop(worker):
        began = time.monotonic()
        poll(lambda: time.monotonic() > began + 5, 6, "the fault to last")
    # Everything that has no answer is in the queue still.
    waiting = sum(not call.replies for call in load.calls + large)
    assert waiting >= half
    assert worker.running
    resize("size=64m")
    freed = time.monotonic()
    worker.wait_said(WORKS, LIMIT, mark)
    # What waited was held: each time that it is given back counts towards the broker's delivery limit.
    assert not worker.said("consuming", mark)
    load.check(history, LIMIT)
    for call in large:
        assert history.wait_reply(call, LIMIT)["ok"]
    figure(
        "store: disk full",
        {
            "commands that waited": waiting,
            "seconds until all were answered": round(time.monotonic() - freed, 1),
        },
    )
    load.repeat(history)
    check_said_once(worker, mark)
    assert check_store(installation, SQLiteFile(path / "overtime.db")) == 0


@pytest.mark.parametrize(
    "call, error",
    [
        ("fdatasync,fsync", "EIO"),
        heavy("fdatasync,fsync", "ENOSPC"),
        heavy("pwrite64,write", "EIO"),
        heavy("pwrite64,write", "ENOSPC"),
    ],
)
def test_errors_of_the_disk(installation, wire, worker, history, figure, call, error):
    """The nth sync or write of the database fails, and the one after it; under commands."""
    needs_strace()
    wire.ok("open", "r", duration="8h", policy=WHOLE)
    assert worker.terminate()[0] == 0
    sent, failures = [], 0
    points = [2, 5, 9]
    for point in points:
        # Only descriptors of the database: the log of the program is written by the same call.
        process = installation.start(
            "worker",
            command=[
                "strace",
                "-D",
                "-f",
                "-qq",
                "-o",
                "/dev/null",
                "-P",
                f"{installation.directory}/overtime.db",
                "-P",
                f"{installation.directory}/overtime.db-wal",
                "-e",
                f"trace={call}",
                "-e",
                f"inject={call}:error={error}:when={point}..{point + 1}",
            ],
        )
        process.wait_said("starting", 20)
        for number in range(10):
            for command in ("join", "leave"):
                # One after the other, so that each is a commit, with its syncs, of its own.
                sent.append(wire.send(command, "r", f"user-{point}-{number % 10}"))
                history.wait_reply(sent[-1], LIMIT)
        assert process.running
        failures += sum(line.get("message") in (FAILS, CANNOT_OPEN) for line in process.lines)
        check_said_once(process)
        assert process.terminate()[0] == 0, process.tail()
    installation.worker()
    reply = wire.ok("status", "r")
    assert reply["session"]["connected"] == 0
    history.wait_sequence("r", reply["sequence"])
    assert failures == len(points), "the disk was to fail once in each round"
    # Each pair had its effect once.
    assert len(history.events("r", "participant.left")) == len(sent) // 2
    figure(f"store: {error} on {call}", {"points": points, "times the store was given up": failures})
    assert check_store(installation) == 0


def test_the_file_cannot_be_locked_by_another(installation, wire, worker, history):
    """Exclusive mode: another program gets nowhere, and does not disturb."""
    wire.ok("open", "r")
    other = sqlite3.connect(f"{installation.directory}/overtime.db", timeout=0.2)
    for statement in ("BEGIN EXCLUSIVE", "SELECT count(*) FROM rooms", "PRAGMA wal_checkpoint"):
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute(statement)
    other.close()
    wire.ok("join", "r", "ada")
    worker.kill()
    installation.worker()
    assert wire.ok("status", "r")["sequence"] == 3


def test_a_file_that_is_locked_at_the_start_is_waited_for(installation, wire, worker):
    wire.ok("open", "r")
    assert worker.terminate()[0] == 0
    other = sqlite3.connect(f"{installation.directory}/overtime.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    process = installation.start("worker")
    line = process.wait_said("the store cannot be opened: trying again", 15)
    assert "locked by another program" in line["error"]
    call = wire.send("join", "r", "ada")
    other.execute("ROLLBACK")
    other.close()
    installation.ready(process, LIMIT)
    assert wire.history.wait_reply(call)["sequence"] == 3
    assert check_store(installation) == 0


@pytest.mark.heavy_fault
def test_a_read_only_file_system_at_the_start(installation, wire, worker, small_disk):
    """Said by name, 78; and the file is as it was."""
    path, resize = small_disk
    wire.ok("open", "r")
    assert worker.terminate()[0] == 0
    shutil.copy(f"{installation.directory}/overtime.db", path / "overtime.db")
    resize("ro")
    before = (path / "overtime.db").read_bytes()
    process = installation.start("worker", environment=on(path))
    assert process.wait_exit(40) == 78
    assert "overtime.db" in str(process.lines[-1].get("error")), process.tail()
    assert (path / "overtime.db").read_bytes() == before
    resize("rw")


def damage(path, how):
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        if how == "a page":
            for page in range(1, min(size // 4096, 12)):
                file.seek(page * 4096)
                file.write(b"\xa5" * 4096)
        elif how == "the header":
            file.write(b"not a database at all" * 10)
        elif how == "cut short":
            file.truncate(size // 2 + 100)
        else:
            file.truncate(0)
            file.write(b"text " * 100)


@pytest.mark.parametrize("how", ["a page", heavy("the header"), heavy("cut short"), heavy("another file")])
def test_a_damaged_file_at_the_start(installation, wire, worker, how):
    """Exit 78 with a line that names it; kept as it is, down to the byte."""
    for number in range(200):
        wire.send("open", f"room-{number}", moderators=["ada" * 30])
    wire.ok("open", "r")
    assert worker.terminate()[0] == 0
    path = f"{installation.directory}/overtime.db"
    damage(path, how)
    with open(path, "rb") as file:
        before = file.read()
    process = installation.start("worker")
    assert process.wait_exit(40) == 78, process.tail()
    last = process.lines[-1]
    assert last["level"] == "error" and re.search("damaged|not a database|malformed", last["error"]), last
    with open(path, "rb") as file:
        assert file.read() == before
    check_said_once(process)


@pytest.mark.heavy_fault
def test_a_file_damaged_while_it_is_used(installation, wire, worker, history):
    """Found when the pages are read again, at the latest at the next start; never repaired by deleting."""
    for number in range(300):
        wire.send("open", f"room-{number}", moderators=["ada" * 30])
    wire.ok("open", "r")
    assert worker.terminate()[0] == 0
    worker = installation.worker()
    path = f"{installation.directory}/overtime.db"
    damage(path, "a page")
    inode = os.stat(path).st_ino
    calls = [wire.send("join", f"room-{number}", "ada") for number in range(300)]
    for call in calls:
        history.changed.wait(lambda call=call: call.replies or not worker.running, LIMIT, "answers or an end")
    if worker.running:
        # It has all of it in memory.
        worker.terminate()
    else:
        assert worker.popen.returncode == 78, worker.tail()
    again = installation.start("worker")
    assert again.wait_exit(40) == 78, again.tail()
    assert "damaged" in again.lines[-1]["error"], again.tail()
    assert os.stat(path).st_ino == inode
    call = wire.send("status", "r")
    # What comes now waits for the one who comes after the repair.
    assert wire.settled([call.receipt]) == {"ack"}
    assert wire.count(f"{installation.prefix}.commands") > 0


@pytest.mark.parametrize("how", ["replaced", heavy("removed"), heavy("log removed")])
def test_a_file_taken_away_while_it_is_used(installation, wire, worker, history, how):
    path = f"{installation.directory}/overtime.db"
    wire.ok("open", "r")
    if how == "log removed":
        # The content is still in the open file: it is saved into the database, and nothing is lost.
        os.remove(path + "-wal")
        wire.ok("join", "r", "ada")
        worker.kill()
        installation.worker()
        assert wire.ok("status", "r")["sequence"] == 3
        return
    os.rename(path, path + ".kept")
    if how == "replaced":
        with open(path, "wb"):
            pass
    call = wire.send("join", "r", "ada")
    code = worker.wait_exit(LIMIT, "its end without its file")
    assert code == 78
    assert "removed or replaced" in worker.lines[-1]["error"], worker.tail()
    assert not call.replies
    # No new database was made in its place.
    assert os.path.exists(path) == (how == "replaced")
    if how == "replaced":
        assert os.path.getsize(path) == 0
    for suffix in ("", "-wal"):
        if os.path.exists(f"{path}{suffix}") and suffix:
            os.rename(f"{path}{suffix}", f"{path}.kept{suffix}")
    os.replace(path + ".kept", path)
    if os.path.exists(path + ".kept-wal"):
        os.rename(path + ".kept-wal", path + "-wal")
    installation.worker()
    assert history.wait_reply(call, LIMIT)["ok"]
    assert wire.ok("status", "r")["sequence"] == 3
    assert check_store(installation) == 0


@pytest.mark.heavy_fault
def test_a_disk_that_is_slow(installation, wire, worker, scheduler, history, figure):
    """300 ms a sync: throughput falls, heartbeats are kept, no connection is lost and windows are told."""
    needs_strace()
    assert worker.terminate()[0] == 0
    slow = installation.start(
        "worker",
        environment={"OVERTIME_AMQP_HEARTBEAT": "2s"},
        command=[
            "strace",
            "-D",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=fdatasync,fsync",
            "-e",
            "inject=fdatasync,fsync:delay_exit=300000",
        ],
    )
    installation.ready(slow, LIMIT)
    wire.ok(
        "open",
        "timed",
        duration="6s",
        policy={"windows": ["4s", "2s"], "extension": {"min": "4s", "max": "8s"}},
    )
    end = seconds(wire.ok("join", "timed", "ada")["session"]["endsAt"])
    load = Load(wire, 10, 20)
    began = time.monotonic()
    load.publish()
    wait_copies(history, 20)
    load.check(history, 60)
    took = time.monotonic() - began
    history.wait_event("timed", "session.ended", max(0, end - time.time()) + 10)
    late = [event.data["lateBy"] for event in history.rooms["timed"] if "lateBy" in event.data]
    assert len(history.events("timed", "session.window.opened")) == 2
    assert max(late) < 3
    assert not slow.said("disconnected"), slow.tail()
    figure(
        "store: 300 ms a sync",
        {"commands/s": round(len(load.calls) / took), "windows and end late by, s": late},
    )
    assert check_store(installation) == 0
