"""Section 5, OVERTIME_HTTP: health, readiness and metrics of real processes."""

import shutil
import subprocess
import time

import pytest
from conftest import ROOT, SHORT
from metrics import MOVED, Watched, free_address, table
from stores import KIND
from waiting import poll

WHOLE = {"windows": ["1h"], "extension": {"min": "1h", "max": "2h"}}
CLOCK = ROOT.parent / "shared/lab/clock_shim.c"
# Says which version runs; its value is always 1.
# Conflicts are other workers' doing.
CONSTANT = {"overtime_build_info", "overtime_store_conflicts_total"}
if KIND == "postgresql":
    # What makes a store fail here is in Tests/Faults.
    CONSTANT.add("overtime_store_failures_total")
SKIPPED = []


def skip(reason):
    SKIPPED.append(reason)
    pytest.skip(reason)


@pytest.fixture
def watched(installation, wire):
    """Starts components with an address of their own."""

    def start(component, environment=None, command=(), ready=True):
        watched = Watched(free_address())
        environment = {"OVERTIME_HTTP": watched.address} | (environment or {})
        watched.process = installation.start(component, environment=environment, command=command)
        watched.process.wait_said("serving metrics and health", 20)
        if ready:
            watched.wait_ready(30)
            watched.look()
        return watched

    return start


def test_an_ordinary_evening(watched, wire, history):
    worker, scheduler = watched("worker"), watched("scheduler")
    stamped = {"timestamp": int(time.time()) - 7}
    wire.ok("open", "r", duration="4s", policy=SHORT, properties=stamped)
    wire.ok("join", "r", "ada", properties=stamped)
    call = wire.send("leave", "r", "ada")
    history.wait_reply(call)
    history.wait_reply(wire.again(call))
    wire.refused("not_connected", "extend", "r", "bob")
    wire.refused("invalid_command", "-", "r", body=b"[", properties=stamped)
    scheduler.wait("overtime_deadlines_held", lambda value: value == 1)
    worker.wait("overtime_live_rooms", lambda value: value == 1)
    history.wait_event("r", "session.ended", 15)
    scheduler.wait("overtime_deadlines_held", lambda value: value == 0)
    worker.wait("overtime_live_rooms", lambda value: value == 0)
    seen = worker.look()
    commands = "overtime_commands_total"
    assert seen.get(commands, command="open", outcome="applied") == 1
    assert seen.get(commands, command="leave", outcome="repeated") == 1
    assert seen.get(commands, command="extend", outcome="refused") == 1
    assert seen.get(commands) == 5
    assert seen.get("overtime_command_age_seconds_count") == 2
    assert seen.get("overtime_command_age_seconds_bucket", le="5") == 0
    assert seen.get("overtime_command_age_seconds_bucket", le="10") == 2
    worker.wait("overtime_command_latency_seconds_count", lambda value: value == 5)
    assert seen.get("overtime_dead_letters_total", reason="not_json") == 1
    assert seen.get("overtime_dead_letters_total") == 1
    assert seen.get("overtime_batch_items_sum") >= 8
    assert seen.get("overtime_store_commit_seconds_count") == seen.get("overtime_batch_items_count")
    # Two windows and the end; the ordinary notice is some milliseconds late.
    assert seen.get("overtime_announcement_lateness_seconds_count") == 3
    assert seen.get("overtime_announcement_lateness_seconds_bucket", le="2.5") == 3
    assert seen.get("overtime_events_total") == len(history.rooms["r"])
    events = {"channel": "events", "outcome": "confirmed"}
    worker.wait("overtime_publications_total", lambda value: value == len(history.rooms["r"]), **events)
    fired = scheduler.look()
    assert fired.get("overtime_firing_lateness_seconds_count") == 3
    assert fired.get("overtime_fired_rooms_total") >= 3
    assert fired.get("overtime_ticks_total") >= 3
    assert fired.get("overtime_snapshots_total") >= 1


def test_the_table_is_what_is_emitted(watched, broker):
    rows = table()
    for component in ("worker", "scheduler"):
        process = watched(component)
        seen = process.look()
        documented = {name: row["type"] for name, row in rows.items() if component in row["from"]}
        assert seen.types == documented
        labels = {}
        for sample, pairs in seen.values:
            labels.setdefault(seen.metric(sample), set()).update(key for key, _ in pairs if key != "le")
        # Every one has a value, with the documented labels.
        assert labels == {name: rows[name]["labels"] for name in documented}
        assert seen.get("overtime_build_info", component=component) == 1
        assert 0 <= time.time() - seen.get("process_start_time_seconds") < 60
        resident = seen.get("process_resident_memory_bytes") / 1024
        assert abs(resident - process.process.resident()) < 8_192
        MOVED.add("process_start_time_seconds")


def test_promtool_finds_nothing(watched):
    if shutil.which("promtool") is None:
        skip("promtool (Debian package prometheus) is not installed")
    for component in ("worker", "scheduler"):
        text = watched(component).look().text
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=30, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_paths_methods_and_secrets(watched, broker):
    worker = watched("worker")
    assert worker.get("/healthz") == (200, "healthy\n")
    assert worker.get("/readyz") == (200, "ready\n")
    assert worker.get("/readyz", "HEAD") == (200, "")
    assert worker.get("/")[0] == 404
    assert worker.get("/metrics/")[0] == 404
    for method in ("POST", "PUT", "DELETE"):
        assert worker.get("/metrics", method)[0] == 405
    for path in ("/healthz", "/readyz", "/metrics"):
        assert "guest" not in worker.get(path)[1]
    assert worker.process.terminate()[0] == 0


def test_check_health(installation, watched):
    worker = watched("worker")
    environment = {"OVERTIME_HTTP": worker.address}
    done = installation.run("check", "--health", environment=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ready\n", "")
    worker.process.pause()
    done = installation.run("check", "--health", "--timeout", "1", environment=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert worker.address in done.stderr and "in time" in done.stderr
    worker.process.resume()
    worker.process.terminate()
    done = installation.run("check", "--health", environment=environment)
    assert done.returncode == 1 and worker.address in done.stderr
    done = installation.run("check", "--health")
    assert done.returncode == 1 and "OVERTIME_HTTP" in done.stderr


def test_before_the_broker_is_there(installation, watched):
    worker = watched("worker", {"OVERTIME_AMQP_URL": f"amqp://guest:guest@{free_address()}/"}, ready=False)
    worker.wait_not_ready("broker: the consuming connection is not open")
    assert worker.get("/healthz")[0] == 200
    assert worker.look().get("overtime_connected") == 0
    done = installation.run("check", "--health", environment={"OVERTIME_HTTP": worker.address})
    assert done.returncode == 1 and "consuming connection" in done.stdout
    scheduler = watched("scheduler", ready=False)
    # No worker consumes anything: nobody answers the snapshot.
    answer = 503, "snapshot: the live rooms are not all known yet\n"
    poll(lambda: scheduler.get("/readyz") == answer, 20, lambda: f"{answer}, not {scheduler.get('/readyz')}")


@pytest.mark.parametrize("component", ["worker", "scheduler"])
def test_an_address_that_is_taken(installation, watched, component):
    worker = watched("worker")
    done = installation.run(
        component,
        environment={
            "OVERTIME_HTTP": worker.address,
        }
        | installation.another_store("other"),
        limit=20,
    )
    assert done.returncode == 78
    last = done.stderr.strip().splitlines()[-1]
    assert "giving up" in last and worker.address in last and "another process listens there" in last


def test_lost_connections_are_counted(watched, broker):
    worker, scheduler = watched("worker"), watched("scheduler")
    table = broker.ctl("--silent", "list_connections", "pid", "client_properties").splitlines()
    pids = [f"pid {process.process.pid}" for process in (worker, scheduler)]
    mine = [line.split()[0] for line in table if any(pid in line for pid in pids)]
    assert len(mine) == 4, table
    for pid in mine:
        broker.ctl("close_connection", pid, "test")
    for process in (worker, scheduler):
        for connection in ("consumer", "publisher"):
            process.wait("overtime_reconnects_total", lambda value: value >= 1, 30, connection=connection)
        process.wait_ready(30)
        seen = process.look()
        assert seen.get("overtime_connected") == 2
        for connection in ("consumer", "publisher"):
            assert seen.get("overtime_reconnects_total", connection=connection) == 1, process.process.tail(40)


def test_a_queue_of_another_kind_is_not_consumed(watched, installation, broker):
    worker = watched("worker")
    queue = f"{installation.prefix}.commands"
    worker.process.pause()
    broker.delete([queue], [])
    channel = broker.channel()
    channel.queue_declare(queue, durable=True)
    channel.close()
    worker.process.resume()
    worker.wait("overtime_consuming", lambda value: value == 0, 20, queue="commands")
    assert worker.get("/readyz")[0] == 503
    broker.delete([queue], [])
    worker.wait_ready(30)
    assert worker.look().get("overtime_consuming", queue="commands") == 1


def test_replies_that_nobody_takes(watched, wire):
    worker = watched("worker")
    full = f"replies.{wire.prefix}.full"
    wire.declare(full, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    for _ in range(3):
        wire.send("status", "r", properties={"reply_to": full})
    # Tried again for 20 s: the queue might have been without a leader.
    worker.wait("overtime_dropped_replies_total", lambda value: value == 2, 40)
    refused = {"channel": "replies", "outcome": "refused"}
    assert worker.look().get("overtime_publications_total", **refused) > 2


def test_a_worker_that_stands_still_leaves_rooms_overdue(watched, wire, history):
    worker, scheduler = watched("worker"), watched("scheduler")
    wire.ok("open", "r", duration="3s", policy=SHORT)
    wire.ok("join", "r", "ada")
    scheduler.wait("overtime_deadlines_held", lambda value: value == 1)
    worker.process.pause()
    scheduler.wait("overtime_overdue_rooms", lambda value: value == 1)
    worker.process.resume()
    history.wait_event("r", "session.ended", 15)
    scheduler.wait("overtime_overdue_rooms", lambda value: value == 0)


@pytest.mark.slow
def test_while_the_broker_takes_nothing(watched, wire, broker, history):
    worker, scheduler = watched("worker"), watched("scheduler")
    wire.ok("open", "r", duration="1h", policy=WHOLE)
    worker.process.pause()
    calls = [wire.message("join", "r", f"user-{number}") for number in range(50)]
    assert wire.settled(wire.publish_many([message for message, _ in calls])) == {"ack"}
    broker.ctl("set_vm_memory_high_watermark", "0.0000001")
    try:
        worker.process.resume()
        worker.wait("overtime_blocked", lambda value: value == 1, 30)
        worker.wait_not_ready("broker: it takes no publications for now")
        scheduler.wait("overtime_blocked", lambda value: value == 1, 60)
        worker.wait("overtime_outbox_depth", lambda value: value >= 50)
        worker.wait("overtime_deliveries_in_hand", lambda value: value >= 50)
        worker.wait("overtime_outbox_oldest_age_seconds", lambda value: value >= 2)
        lines = broker.ctl("--silent", "list_connections", "pid", "client_properties").splitlines()
        me = f"publisher) pid {worker.process.pid}"
        for pid in [line.split()[0] for line in lines if me in line]:
            broker.ctl("close_connection", pid, "test")
        events = {"channel": "events", "outcome": "unknown"}
        worker.wait("overtime_publications_total", lambda value: value >= 1, 30, **events)
    finally:
        broker.ctl("set_vm_memory_high_watermark", "0.4")
    for _, call in calls:
        history.wait_reply(call, 30)
    worker.wait("overtime_outbox_depth", lambda value: value == 0)
    worker.wait("overtime_deliveries_in_hand", lambda value: value == 0)
    worker.wait_ready(30)


@pytest.mark.slow
def test_events_that_a_queue_keeps_refusing(watched, wire, broker, history):
    worker = watched("worker")
    full = f"full.{wire.prefix}"
    wire.declare(full, [(f"{wire.prefix}.events", "")], **{"x-max-length": 1, "x-overflow": "reject-publish"})
    wire.ok("open", "a")
    wire.ok("open", "b")
    refused = {"channel": "events", "outcome": "refused"}
    worker.wait("overtime_publications_total", lambda value: value >= 1, **refused)
    worker.wait("overtime_events_passed_over_total", lambda value: value == 1, 90)
    broker.delete([full], [])
    wire.ok("join", "b", "ada")
    history.wait_sequence("b", 2)


def traced(call, what):
    """A tracer that does something to a call on the files of the database."""
    if shutil.which("strace") is None:
        skip("strace is not installed")
    return ["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:{what}"]


def commit_until(wire, reached):
    """One command after the other, so that each has a commit of its own, until something is the case."""
    calls = []
    for number in range(60):
        calls.append(wire.send("open", f"r-{number}"))
        poll(lambda: calls[-1].replies or reached(), 20, "an answer or what was to come")
        if reached():
            return calls
    raise AssertionError("60 commits did not bring it about")


@pytest.mark.sqlite("the calls that fail are those on its file")
def test_a_disk_that_fails(watched, wire, history):
    worker = watched("worker", command=traced("fdatasync,fsync", "error=EIO:when=25..27"), ready=False)
    worker.wait_ready(30)
    worker.look()
    calls = commit_until(wire, lambda: worker.look().get("overtime_store_failures_total") >= 1)
    worker.wait_not_ready("store: it fails, see the log")
    for call in calls:
        history.wait_reply(call, 30)
    worker.wait_ready(30)
    assert worker.look().get("overtime_consuming", queue="commands") == 1


@pytest.mark.slow
@pytest.mark.sqlite("the call that hangs is one on its file")
def test_a_disk_that_hangs_makes_the_process_unhealthy(watched, wire, history):
    worker = watched("worker", command=traced("fdatasync", "delay_enter=36000000:when=25"), ready=False)
    worker.wait_ready(30)
    calls = commit_until(wire, lambda: worker.look().get("overtime_work_loop_age_seconds") > 3)
    assert worker.get("/healthz")[0] == 200
    worker.wait("overtime_work_loop_age_seconds", lambda value: value >= 30, 40)
    status, body = worker.get("/healthz")
    assert (status, body.startswith("work loop: has not turned for 3")) == (503, True)
    assert worker.get("/readyz")[0] == 503
    for call in calls:
        history.wait_reply(call, 30)
    worker.wait_ready()
    assert worker.get("/healthz")[0] == 200


def test_clocks_that_are_stepped(watched, tmp_path):
    if not CLOCK.exists() or shutil.which("cc") is None:
        skip(f"{CLOCK} or a C compiler is not there")
    library = tmp_path / "clock.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, CLOCK], check=True, timeout=60)

    def step(component, offset):
        # Written beside and moved over it, so that no call finds it half written.
        beside = tmp_path / "offset.new"
        beside.write_text(f"{offset}\n")
        beside.replace(tmp_path / f"{component}.offset")

    def start(component):
        step(component, 0)
        path = str(tmp_path / f"{component}.offset")
        return watched(component, {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": path})

    worker, scheduler = start("worker"), start("scheduler")
    assert scheduler.look().get("overtime_clock_offset_seconds") == 0
    step("scheduler", -5)
    scheduler.wait("overtime_clock_steps_total", lambda value: value == 1)
    # It learns from the worker's answers how far it is off.
    scheduler.wait("overtime_clock_offset_seconds", lambda value: 4 < value <= 5.1)
    step("worker", -5)
    worker.wait("overtime_clock_steps_total", lambda value: value == 1)


@pytest.mark.last
def test_every_metric_was_seen_to_move(request):
    here = {item.originalname for item in request.session.items if item.module is request.module}
    left_out = {name for name in vars(request.module) if name.startswith("test_")} - here
    if left_out:
        pytest.skip(f"not all tests of this file run: {sorted(left_out)} are left out")
    missing = set(table()) - MOVED - CONSTANT
    if missing and SKIPPED:
        pytest.skip(f"{sorted(missing)} did not move, and this was skipped: {SKIPPED}")
    assert not missing
