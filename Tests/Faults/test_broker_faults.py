"""30 s after the broker works again everything is consumed and told; nothing is lost or done twice."""

import threading
import time
from urllib.parse import urlsplit

import pika
import pytest
from end_to_end import SHORT
from freezing import Freezer
from history import seconds
from test_faults import WHOLE, Load, wait_copies
from waiting import poll
from watching import check_said_once, check_store, no_hot_loop

LIMIT = 30
BROKEN = 5


def heavy(value):
    """A case that is left to `make faults`: another of its kind is in every run."""
    return pytest.param(value, marks=pytest.mark.heavy_fault)


@pytest.fixture
def scene(installation, wire, worker, scheduler, broker, canary, history, figure):
    return Scene(installation, wire, worker, scheduler, broker, canary, history, figure)


class Scene:
    """A worker and a scheduler with commands on their way and a room whose time runs, and a fault."""

    def __init__(self, installation, wire, worker, scheduler, broker, canary, history, figure):
        self.installation, self.wire, self.broker, self.canary = installation, wire, broker, canary
        self.worker, self.scheduler, self.history, self.figure = worker, scheduler, history, figure
        self.processes = worker, scheduler

    def begin(self, rooms=10, users=20, duration="10s"):
        """A timed room that has windows during and after the fault, and the first half of the load."""
        self.marks = [len(process.lines) for process in self.processes]
        policy = {"windows": ["8s", "4s"], "extension": {"min": "8s", "max": "10s"}}
        self.wire.ok("open", "timed", duration=duration, policy=policy)
        self.end = seconds(self.wire.ok("join", "timed", "ada")["session"]["endsAt"])
        self.load = Load(self.wire, rooms, users)
        self.half = len(self.load.messages) // 2
        self.receipts = self.wire.publish_many(self.load.messages[: self.half])
        wait_copies(self.history, rooms * 3)

    def publish_rest(self):
        self.receipts += self.wire.publish_many(self.load.messages[self.half :])

    def publish_again(self):
        """What has no answer, with the ids it had: what the fault may have swallowed on the way."""
        calls = [call for call in self.load.calls if not call.replies]
        again = [
            message
            for message, call in zip(self.load.messages, self.load.calls, strict=True)
            if not call.replies
        ]
        self.wire.publish_many(again)
        return len(calls)

    def recovered(self, name, again=False, repeat=True, **more):
        """Called when the fault is gone; everything must be as if it had not been, in time."""
        back = time.monotonic()
        if again:
            more["commands sent again"] = self.publish_again()
        try:
            self.load.check(self.history, LIMIT)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.worker.tail(40)}") from None
        took = time.monotonic() - back
        assert took < LIMIT
        self.history.wait_event("timed", "session.ended", max(0, self.end - time.time()) + LIMIT)
        if repeat:
            self.load.repeat(self.history)
        for process, mark in zip(self.processes, self.marks, strict=True):
            assert process.running, process.tail()
            check_said_once(process, mark)
        ended = self.history.events("timed", "session.ended")[0]
        self.figure(
            f"broker: {name}",
            more
            | {
                "commands": len(self.load.calls),
                "seconds until all were answered": round(took, 1),
                "a session's end late by, s": ended.data["lateBy"],
            },
        )
        assert check_store(self.installation) == 0

    def eval(self, text, limit=90):
        return self.broker.ctl("eval", text, limit=limit)


def own_queue(scene, part):
    """A queue of the scheduler's own, by the end of its name."""
    prefix = f"{scene.installation.prefix}.own.scheduler."
    names = [row["name"] for row in scene.broker.listing("list_queues", "name")]
    found = [name for name in names if name.startswith(prefix) and name.endswith(part)]
    assert len(found) == 1, names
    return found[0]


def delete_queue(scene, name):
    """By the broker itself, which may delete another's exclusive queue too."""
    text = f'''
        {{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"{name}">>)),
        rabbit_amqqueue:delete(Q, false, false, <<"test">>), ok.'''
    scene.eval(text)


# Connections and the node.


@pytest.mark.heavy_fault
@pytest.mark.parametrize("how", ["kill -9", "stop_app"])
def test_the_broker_stops_again_and_again_under_load(
    installation, wire, broker, canary, history, figure, how
):
    # Without the log: RabbitMQ 3.10 may leave a young stream down after a power cut, and cannot delete it.
    worker = installation.worker(environment={"OVERTIME_AMQP_LOG": "off"})
    scheduler = installation.scheduler()
    scene = Scene(installation, wire, worker, scheduler, broker, canary, history, figure)
    # And it leaves a quorum queue without a leader for ever that was declared a moment before the cut.
    settled = time.monotonic() + 5
    poll(lambda: time.monotonic() > settled, 6, "the queues to be on disk")
    scene.begin(rooms=20, users=40, duration="60s")
    times = []
    for round_ in range(3):
        with no_hot_loop(worker, scheduler):
            if how == "kill -9":
                broker.cut_power()
                broker.start()
            else:
                broker.ctl("stop_app")
                broker.ctl("start_app")
        back = time.monotonic()
        wire.reconnect()
        scene.publish_again() if round_ < 2 else scene.publish_rest()
        try:
            wire.ok("status", scene.load.rooms[0], limit=LIMIT)
        except AssertionError as error:
            queues = broker.ctl("list_queues", "name", "leader", "state", "messages", "consumers")
            raise AssertionError(f"{error}\n{queues}\n{worker.tail(40)}") from None
        times.append(round(time.monotonic() - back, 1))
    scene.recovered(f"{how}, three times", again=True, **{"seconds until an answer": times})


@pytest.mark.heavy_fault
def test_away_while_everything_comes_due(scene):
    """Longer than the longest pause between two tries: the windows and the end of a room pass meanwhile."""
    scene.begin()
    scene.broker.ctl("stop_app")
    with no_hot_loop(*scene.processes):
        away = time.monotonic() + 75
        poll(lambda: time.monotonic() > away, 80, "a minute and a quarter to pass")
        scene.broker.ctl("start_app")
    scene.wire.reconnect()
    scene.publish_rest()
    scene.recovered("away for 75 s", again=True)
    ended = scene.history.events("timed", "session.ended")[0]
    assert ended.data["lateBy"] > 60
    assert not scene.history.events("timed", "session.window.opened", window=2), "a notice that was over"


def test_all_connections_closed(scene):
    scene.begin()
    scene.broker.ctl("close_all_connections", "test")
    scene.wire.reconnect()
    scene.publish_rest()
    scene.recovered("close_all_connections", again=True)


@pytest.mark.heavy_fault
def test_one_connection_killed_20_times_at_random_moments(scene):
    """By the broker, closed politely or with its process killed, of worker and scheduler as it comes."""
    scene.begin(rooms=20, users=40)
    text = f'''
        Mine = fun() -> [P || P <- rabbit_networking:connections(),
            catch rabbit_networking:connection_info(P, [user]) =:= [{{user, <<"{scene.canary.user}">>}}]] end,
        lists:sum([begin
            timer:sleep(100 + rand:uniform(400)),
            case Mine() of
                [] -> 0;
                Ps -> P = lists:nth(rand:uniform(length(Ps)), Ps),
                      case rand:uniform(2) of
                          1 -> catch rabbit_networking:close_connection(P, <<"test">>);
                          2 -> exit(P, kill)
                      end, 1
            end end || _ <- lists:seq(1, 20)]).'''
    rest = threading.Timer(2, scene.publish_rest)
    rest.start()
    with no_hot_loop(*scene.processes, most=0.6):
        killed = int(scene.eval(text).strip().splitlines()[-1])
    rest.join()
    assert killed >= 15
    scene.recovered("one connection killed at random", connections=killed)


def test_a_path_that_falls_silent(installation, wire, broker, canary, history, figure):
    """Half-open: noticed within two heartbeats by both, and both are back when the path is."""
    parts = urlsplit(broker.url)
    path = Freezer(parts.hostname, parts.port)
    path.open()
    environment = {"OVERTIME_AMQP_URL": canary.through(path.port), "OVERTIME_AMQP_HEARTBEAT": "2s"}
    worker = installation.worker(environment=environment)
    scheduler = installation.scheduler(environment=environment)
    scene = Scene(installation, wire, worker, scheduler, broker, canary, history, figure)
    scene.begin()
    path.freeze()
    frozen = time.monotonic()
    scene.publish_rest()
    with no_hot_loop(worker, scheduler):
        for process, mark in zip(scene.processes, scene.marks, strict=True):
            for connection in ("consumer", "publisher"):
                process.wait_said("disconnected", 15, mark, connection=connection)
        noticed = time.monotonic() - frozen
        poll(lambda: time.monotonic() > frozen + 8, 10, "some attempts at a silent port")
    assert noticed < 10
    path.thaw()
    scene.recovered("half-open connections", **{"seconds until noticed": round(noticed, 1)})
    path.cut()


@pytest.mark.heavy_fault
def test_a_port_that_accepts_and_says_nothing(installation, wire, broker, canary, history):
    parts = urlsplit(broker.url)
    path = Freezer(parts.hostname, parts.port)
    path.freeze()
    path.open()
    environment = {"OVERTIME_AMQP_URL": canary.through(path.port)}
    worker = installation.start("worker", environment=environment)
    scheduler = installation.start("scheduler", environment=environment)
    with no_hot_loop(worker, scheduler):
        for process in (worker, scheduler):
            line = process.wait_said("disconnected", 15)
            assert "handshakeTimeout" in line["error"], line
        done = installation.run("send", "status", "--room", "r", "--timeout", "2", environment=environment)
        assert (done.returncode, canary.password in done.stdout + done.stderr) == (3, False)
        poll(lambda: processor_time_passed(worker, 12), 20, "another attempt")
    for process in (worker, scheduler):
        assert process.running
        check_said_once(process)
    path.thaw()
    installation.ready(worker, LIMIT)
    scheduler.wait_said("firing", LIMIT)
    wire.ok("open", "r", duration="3s", policy=SHORT)
    wire.ok("join", "r", "ada")
    history.wait_event("r", "session.ended", 10)
    path.cut()


def processor_time_passed(process, age):
    """Whether a process is this many seconds old."""
    with open(f"/proc/{process.pid}/stat") as file, open("/proc/uptime") as uptime:
        began = int(file.read().rsplit(")", 1)[1].split()[19]) / 100
        return float(uptime.read().split()[0]) - began > age


@pytest.mark.parametrize("alarm", ["memory", heavy("disk")])
def test_an_alarm_for_a_while_under_load(scene, alarm):
    ways = {
        "memory": (["set_vm_memory_high_watermark", "0.0000001"], ["set_vm_memory_high_watermark", "0.4"]),
        "disk": (["set_disk_free_limit", "999GB"], ["set_disk_free_limit", "50MB"]),
    }
    begin, end = ways[alarm]
    scene.begin()
    # Only who publishes is told, so there must be something to publish.
    scene.worker.pause()
    scene.publish_rest()
    assert scene.wire.settled(scene.receipts) == {"ack"}
    scene.broker.ctl(*begin)
    try:
        scene.worker.resume()
        scene.worker.wait_said("blocked by the broker: nothing is published for now", 15, scene.marks[0])
        resident = scene.worker.resident()
        with no_hot_loop(*scene.processes):
            blocked = time.monotonic()
            poll(lambda: time.monotonic() > blocked + BROKEN, BROKEN + 1, "the alarm to last")
        assert scene.worker.resident() - resident < 20_000
    finally:
        scene.broker.ctl(*end)
    scene.worker.wait_said("unblocked", LIMIT, scene.marks[0])
    scene.recovered(f"{alarm} alarm")


# Objects.


@pytest.mark.parametrize("name", ["commands", heavy("ticks"), heavy("queries"), heavy("dead")])
def test_a_queue_deleted_under_the_consumer(scene, name):
    scene.begin()
    # Stopped, so that commands either all find their queue or none does: half a room's would be another history.
    scene.worker.pause()
    scene.broker.delete([f"{scene.installation.prefix}.{name}"], [])
    scene.publish_rest()
    assert scene.wire.settled(scene.receipts, LIMIT)
    scene.worker.resume()
    if name == "dead":
        # Nobody consumes it: it is missed when a letter is to go there, or when it is looked for.
        call = scene.wire.send("bad", "r", body=b"no command", properties={"message_id": "letter"})
        assert not scene.history.wait_reply(call, LIMIT)["ok"]
        poll(lambda: has_queue(scene, name), LIMIT, "the queue of dead letters to be back")
        scene.wire.dead_letters()
        scene.history.wait_letter(lambda _, p: p.message_id == "letter", LIMIT)
    else:
        scene.worker.wait_said(
            "consuming", LIMIT, scene.marks[0], queue=f"{scene.installation.prefix}.{name}"
        )
    scene.recovered(f"queue {name} deleted", again=True)


def has_queue(scene, name):
    try:
        channel = scene.broker.channel()
        channel.queue_declare(f"{scene.installation.prefix}.{name}", passive=True)
        channel.close()
        return True
    except pika.exceptions.ChannelClosedByBroker:
        return False


def has_exchange(scene, name):
    try:
        channel = scene.broker.channel()
        channel.exchange_declare(f"{scene.installation.prefix}.{name}", passive=True)
        channel.close()
        return True
    except pika.exceptions.ChannelClosedByBroker:
        return False


@pytest.mark.parametrize(
    "name", ["events.topic", heavy("ticks"), heavy("queries"), heavy("dead"), heavy("commands")]
)
def test_an_exchange_deleted(scene, name):
    """Back with its bindings within 30 s."""
    prefix = scene.installation.prefix
    scene.begin()
    if name != "commands":
        scene.publish_rest()
    scene.broker.delete([], [f"{prefix}.{name}"])
    gone = time.monotonic()
    if name == "dead":
        scene.wire.send("bad", "r", body=b"no command", properties={"message_id": "letter"})
    poll(lambda: has_exchange(scene, name), LIMIT, f"the exchange {name} to be back", every=0.2)
    took = time.monotonic() - gone
    if name == "commands":
        scene.publish_rest()
    if name == "dead":
        scene.wire.dead_letters()
        scene.history.wait_letter(lambda _, p: p.message_id == "letter", LIMIT)
    # A room that begins now is timed like any other.
    scene.wire.ok("open", "after", duration="4s", policy=SHORT, limit=LIMIT)
    scene.wire.ok("join", "after", "ada")
    scene.history.wait_event("after", "session.ended", LIMIT)
    scene.recovered(f"exchange {name} deleted", again=True, **{"seconds until it was back": round(took, 1)})


@pytest.mark.heavy_fault
def test_the_events_exchange_deleted_and_made_again(scene):
    """By a subscriber, say: nobody is refused anything, yet log and topic exchange are no longer bound."""
    exchange = f"{scene.installation.prefix}.events"
    scene.begin()
    for call in scene.load.calls[: scene.half]:
        scene.history.wait_reply(call)
    # Stopped, so that no event falls between; a subscriber's binding goes with the exchange.
    scene.worker.pause()
    scene.broker.delete([], [exchange])
    channel = scene.broker.channel()
    channel.exchange_declare(exchange, "fanout", durable=True)
    channel.queue_bind(f"audit.{scene.installation.prefix}.{scene.wire.token}", exchange, "")
    channel.close()
    scene.worker.resume()
    scene.publish_rest()
    scene.wire.ok("open", "after", duration="4s", policy=SHORT)
    scene.wire.ok("join", "after", "ada")
    scene.history.wait_event("after", "session.ended", LIMIT + 4)

    def bound():
        rows = scene.broker.listing("list_bindings", "source_name", "destination_name")
        return any((row["source_name"], row["destination_name"]) == (exchange, f"{exchange}.topic") for row in rows)

    # Once the worker has declared the topology again, the scheduler hears of new sessions at once.
    poll(bound, 20, "the binding of the topic exchange")
    scene.wire.ok("open", "later", duration="4s", policy=SHORT)
    scene.wire.ok("join", "later", "ada")
    assert scene.history.wait_event("later", "session.ended", LIMIT).data["lateBy"] < 1
    scene.recovered("exchange events deleted and made again")


@pytest.mark.heavy_fault
def test_the_events_exchange_deleted_under_load(scene):
    """Made again by the worker, and what was not taken is told to it; subscribers have to bind again."""
    exchange = f"{scene.installation.prefix}.events"
    scene.begin()
    scene.broker.delete([], [exchange])
    scene.publish_rest()
    for call in scene.load.calls:
        scene.history.wait_reply(call, LIMIT)
    poll(lambda: has_exchange(scene, "events"), LIMIT, "the exchange to be back")
    channel = scene.broker.channel()
    channel.queue_bind(f"audit.{scene.installation.prefix}.{scene.wire.token}", exchange, "")
    channel.close()
    before = {room: scene.wire.ok("status", room)["sequence"] for room in scene.load.rooms}
    assert set(before.values()) == {scene.load.events_per_room}
    room = scene.load.rooms[0]
    assert scene.wire.ok("join", room, "late")["sequence"] == before[room] + 1
    scene.history.wait_sequence(room, before[room] + 1)
    # What was told before this subscriber was bound again is not its to have: the checker cannot judge that.
    scene.wire.cancel(f"audit.{scene.installation.prefix}.{scene.wire.token}")
    scene.history.rooms.clear()
    scene.history.problems.clear()
    scene.history.calls.clear()
    check_said_once(scene.worker, scene.marks[0])
    assert check_store(scene.installation) == 0


@pytest.mark.parametrize("part", [".events", heavy(".ticks"), heavy(".answers")])
def test_a_queue_of_the_schedulers_own_deleted(scene, part):
    scene.begin()
    delete_queue(scene, own_queue(scene, part))
    scene.publish_rest()
    scene.scheduler.wait_said("listening ended", LIMIT, scene.marks[1])
    poll(lambda: own_queue(scene, part), LIMIT, "the queue to be back")
    scene.wire.ok("open", "after", duration="4s", policy=SHORT)
    scene.wire.ok("join", "after", "ada")
    ended = scene.history.wait_event("after", "session.ended", LIMIT)
    assert ended.data["lateBy"] < 5
    scene.recovered(f"the scheduler's queue {part} deleted")


@pytest.mark.heavy_fault
def test_the_log_goes_down(scene):
    """Nothing waits for it, and it is back when it can be."""
    scene.begin()
    name = f"{scene.installation.prefix}.events.log"
    scene.broker.delete([name], [])
    scene.publish_rest()
    poll(lambda: has_queue(scene, "events.log"), LIMIT, "the log to be made again")
    scene.recovered("the log's stream deleted")


# Users.


@pytest.mark.parametrize("what", ["rights", heavy("password"), heavy("user")])
def test_what_was_given_is_taken_away_for_a_while(scene, what):
    """A connection that is open keeps its user: it is cut as well, as an administrator would."""
    canary, broker = scene.canary, scene.broker
    scene.begin()
    try:
        if what == "rights":
            broker.ctl("set_permissions", "-p", "/", canary.user, "^$", "^$", "^$")
        elif what == "password":
            broker.ctl("change_password", canary.user, "something-else")
        else:
            broker.ctl("delete_user", canary.user)
        close_connections(scene)
        scene.publish_rest()
        scene.worker.wait_said("disconnected", 15, scene.marks[0])
        with no_hot_loop(*scene.processes):
            broken = time.monotonic()
            poll(lambda: time.monotonic() > broken + BROKEN, BROKEN + 1, "the fault to last")
        for process in scene.processes:
            assert process.running, process.tail()
    finally:
        if what == "password":
            broker.ctl("change_password", canary.user, canary.password)
        canary.restore()
    scene.recovered(f"{what} taken away")


def close_connections(scene):
    """Those of the canary, not the test's own."""
    scene.eval(f'''
        IsMine = fun(P) ->
            catch rabbit_networking:connection_info(P, [user]) =:= [{{user, <<"{scene.canary.user}">>}}] end,
        [catch rabbit_networking:close_connection(P, <<"test">>) ||
            P <- rabbit_networking:connections(), IsMine(P)], ok.''')


@pytest.mark.heavy_fault
def test_rights_taken_away_under_open_connections(scene):
    """The broker refuses single operations then, and closes channels for it."""
    canary, broker = scene.canary, scene.broker
    scene.begin()
    try:
        broker.ctl("set_permissions", "-p", "/", canary.user, "^$", "^$", "^$")
        scene.publish_rest()
        with no_hot_loop(*scene.processes):
            broken = time.monotonic()
            poll(lambda: time.monotonic() > broken + BROKEN, BROKEN + 1, "the fault to last")
    finally:
        canary.restore()
    scene.recovered("rights taken away under open connections")


# Limits of the broker.


@pytest.mark.heavy_fault
def test_deliveries_held_beyond_the_consumer_timeout(scene):
    """Blocked for longer than the broker lets a delivery wait: the channel is closed, not the rest."""
    scene.eval("application:set_env(rabbit, consumer_timeout, 3000).")
    scene.eval("application:set_env(rabbit, channel_tick_interval, 1000).")
    close_connections(scene)
    mark = len(scene.worker.lines)
    scene.installation.ready(scene.worker, LIMIT)
    try:
        scene.begin()
        scene.worker.pause()
        scene.publish_rest()
        assert scene.wire.settled(scene.receipts) == {"ack"}
        scene.broker.ctl("set_vm_memory_high_watermark", "0.0000001")
        scene.worker.resume()
        scene.worker.wait_said("blocked by the broker: nothing is published for now", 15, mark)
        blocked = time.monotonic()
        poll(lambda: time.monotonic() > blocked + 12, 15, "deliveries to be held too long")
    finally:
        scene.broker.ctl("set_vm_memory_high_watermark", "0.4")
        scene.eval("application:set_env(rabbit, consumer_timeout, 1800000).")
        scene.eval("application:set_env(rabbit, channel_tick_interval, 60000).")
    scene.recovered(
        "consumer_timeout",
        **{
            "channels closed": sum(
                line.get("message") == "consumer closed" for line in scene.worker.lines[mark:]
            )
        },
    )


@pytest.mark.heavy_fault
def test_an_argument_changed_behind_a_running_worker(scene):
    """A queue is made anew with another argument: said by name, all else goes on, mended it is used."""
    name = f"{scene.installation.prefix}.ticks"
    scene.begin()
    scene.broker.delete([name], [])
    channel = scene.broker.channel()
    try:
        channel.queue_declare(name, durable=True, arguments={"x-message-ttl": 1})
        channel.close()
    except pika.exceptions.ChannelClosedByBroker:
        pytest.skip("the worker was faster")
    scene.publish_rest()
    line = scene.worker.wait_said("consumer closed", LIMIT, scene.marks[0], queue=name)
    scene.worker._changed.wait(
        lambda: any(
            "x-message-ttl" in str(line.get("error")) for line in scene.worker.lines[scene.marks[0] :]
        ),
        LIMIT,
        lambda: f"the argument to be named; first {line}, then {scene.worker.tail()}",
    )
    scene.broker.delete([name], [])
    scene.worker.wait_said("consuming", LIMIT, scene.marks[0], queue=name)
    scene.recovered("argument changed while running")


@pytest.mark.heavy_fault
def test_a_queue_that_refuses_events_for_good(scene):
    """Other rooms go on; after 60 s the refused events are passed over, logged and counted."""
    full = f"full.{scene.installation.prefix}"
    prefix = scene.installation.prefix
    scene.begin(duration="120s")
    scene.publish_rest()
    scene.load.check(scene.history, LIMIT)
    scene.wire.ok("open", "refused", duration="1h", policy=WHOLE)
    scene.wire.ok("join", "refused", "ada")
    scene.history.wait_sequence("refused", 4)
    scene.wire.declare(full, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    scene.wire.publish("", full, b"the one that it takes")
    scene.wire._on_loop(
        lambda done: scene.wire._consumer.queue_bind(
            full, f"{prefix}.events.topic", "participant.joined", callback=done
        )
    )
    mark = len(scene.worker.lines)
    began = time.monotonic()
    scene.wire.ok("join", "refused", "bob")
    answers = []
    with no_hot_loop(*scene.processes):
        while time.monotonic() < began + 55:
            asked = time.monotonic()
            # An open of a room of its own sends no event that this queue would refuse.
            scene.wire.ok("open", f"other-{len(answers)}")
            scene.history.wait_event(f"other-{len(answers)}", "room.opened", 5)
            answers.append(time.monotonic() - asked)
            poll(lambda asked=asked: time.monotonic() > asked + 1, 2, "the next second")
    line = scene.worker.wait_said(
        "event passed over: a queue bound to the events kept refusing it", 30, mark, room="refused"
    )
    took = time.monotonic() - began
    assert line["type"] == "participant.joined"
    assert 55 < took < 75
    assert scene.worker.said("a queue bound to the events refuses events: tried again for 60 s", mark)
    # All the others had it, and go on.
    assert scene.wire.ok("extend", "refused", "ada")["sequence"] == 6
    scene.history.wait_sequence("refused", 6)
    scene.broker.delete([full], [])
    scene.figure(
        "broker: a queue that refuses",
        {
            "seconds until passed over": round(took, 1),
            "slowest answer and event of another room, s": round(max(answers), 2),
        },
    )
    scene.recovered("a queue that refuses for good")


@pytest.fixture
def largest_message(broker, wire):
    """Sets the broker's limit for channels that are opened from then on, at first 4,000 bytes; the client's are open."""

    def largest_message(count):
        broker.ctl("eval", f"application:set_env(rabbit, max_message_size, {count}).")

    largest_message(4_000)
    yield largest_message
    largest_message(134_217_728)


def open_too_large(wire, history, worker):
    """A room whose next definition makes an event that the broker closes the channel over; its number is 5."""
    wire.ok("open", "large", duration="1h", policy=WHOLE)
    wire.ok("join", "large", "ada")
    history.wait_sequence("large", 4)
    mark = len(worker.lines)
    began = time.monotonic()
    # Without an id, as its answer names an event that may never come.
    names = [f"{number:0100}" for number in range(40)]
    wire.ok("open", "large", id=None, duration="1h", policy=WHOLE, moderators=names)
    wire.ok("join", "large", "bob")
    for number in range(20):
        wire.ok("open", f"beside {number}")
    line = worker.wait_said(
        "the broker closes the channel over an event: its room waits, and is tried again in 60 s",
        LIMIT, mark, room="large", sequence=5)
    assert line["type"] == "room.opened" and line["bytes"] > 4_000
    for number in range(20):
        history.wait_event(f"beside {number}", "room.opened", 5)
    return mark, began


def test_an_event_too_large_for_the_broker_until_the_limit_is_raised(
    largest_message, installation, wire, worker, broker, history
):
    """Its room waits, no other; on a new connection it is tried again, and nothing is missing."""
    mark, began = open_too_large(wire, history, worker)
    assert time.monotonic() - began < 10
    with no_hot_loop(worker):
        for number in range(5):
            asked = time.monotonic()
            wire.ok("open", f"later {number}")
            history.wait_event(f"later {number}", "room.opened", 2)
            poll(lambda asked=asked: time.monotonic() > asked + 1, 2, "the next second")
    assert len(history.rooms["large"]) == 4
    assert len([line for line in worker.lines[mark:] if "publishing channel closed" in str(line)]) == 2
    largest_message(134_217_728)
    broker.ctl("close_all_connections", "the limit was raised")
    wire.reconnect()
    history.wait_sequence("large", 6, LIMIT)
    assert not worker.said("event passed over: the broker closes the channel over it, and nobody has it", mark)
    check_said_once(worker, mark)


@pytest.mark.heavy_fault
def test_an_event_too_large_for_the_broker_for_good(
    largest_message, installation, wire, worker, history, figure
):
    """After 60 s it is tried once more, alone, and passed over: nobody has it, everybody has what follows."""
    mark, began = open_too_large(wire, history, worker)
    history._jumps["large"] = 1
    answers = []
    with no_hot_loop(worker):
        while time.monotonic() < began + 55:
            asked = time.monotonic()
            wire.ok("open", f"later {len(answers)}")
            history.wait_event(f"later {len(answers)}", "room.opened", 5)
            answers.append(time.monotonic() - asked)
            poll(lambda asked=asked: time.monotonic() > asked + 1, 2, "the next second")
    line = worker.wait_said(
        "event passed over: the broker closes the channel over it, and nobody has it", 30, mark, room="large")
    took = time.monotonic() - began
    assert line["sequence"] == 5 and 55 < took < 75
    history.wait_sequence("large", 6)
    figure(
        "broker: an event that is too large",
        {
            "seconds until passed over": round(took, 1),
            "slowest answer and event of another room, s": round(max(answers), 2),
        },
    )
    check_said_once(worker, mark)


def test_a_reply_queue_that_refuses(scene):
    """The reply is dropped, said and counted; the command is done, and nobody else waits."""
    full = f"full.{scene.installation.prefix}"
    scene.wire.declare(full, **{"x-max-length": 1, "x-overflow": "reject-publish"})
    scene.wire.publish("", full, b"the one that it takes")
    scene.begin()
    for number in range(50):
        scene.wire.send("open", f"dropped-{number}", properties={"reply_to": full})
    scene.publish_rest()
    for number in range(50):
        scene.history.wait_event(f"dropped-{number}", "room.opened")
    scene.worker.wait_said("reply dropped", LIMIT, scene.marks[0])
    assert scene.wire.count(full) == 1
    poll(
        lambda: scene.wire.count(f"{scene.installation.prefix}.commands") == 0, 10, "all commands to be taken"
    )
    scene.recovered("a reply queue that refuses")
