"""What was sent and what came back, and the guarantees that must hold over all of it."""

import calendar
import json
import time
from collections import defaultdict
from datetime import UTC, datetime

from waiting import Signal

# Policies and times reach the wire rounded: minutes to four decimals (3 ms), instants to the millisecond.
ROUNDING = 0.004


def seconds(text):
    """An instant of the wire as Unix seconds."""
    assert text.endswith("Z") and len(text) == 24, f"not UTC with milliseconds: {text}"
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC).timestamp()


def _plain(value):
    """What AMQP has and JSON has not: timestamps as seconds since 1970, bytes as text of one letter each."""
    if isinstance(value, datetime):
        return calendar.timegm(value.timetuple())
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _beside(properties):
    """What stands beside a body: the properties that there are, by their names in AMQP, and the headers."""
    named = {name: value for name, value in vars(properties).items() if value is not None}
    return {"headers": named.pop("headers", {}), "properties": named}


class Event:
    """One copy of an event as a queue delivered it."""

    __slots__ = ("body", "json", "type", "room", "sequence", "at", "properties", "routing_key", "redelivered")

    def __init__(self, body, properties, routing_key="", redelivered=False):
        self.at = time.time()
        self.body = body
        self.json = json.loads(body)
        self.type = self.json["type"]
        self.room = self.json["subject"]
        self.sequence = int(self.json["sequence"])
        self.properties = properties
        self.routing_key = routing_key
        self.redelivered = redelivered

    @property
    def data(self):
        return self.json["data"]

    @property
    def time(self):
        return seconds(self.json["time"])

    def __repr__(self):
        return f"<{self.room}:{self.sequence} {self.type}>"


class Call:
    """A published command (or query) and the answers to it."""

    def __init__(self, number, command, correlation):
        self.number = number
        self.command = command
        self.correlation = correlation
        # The body and the properties as they were sent.
        self.message = None
        self.receipt = None
        self.replies = []

    def __repr__(self):
        return f"<{self.command}>"


class History:
    """Everything that a test sees; the sink gets each message as a line."""

    def __init__(self, sink=None):
        self.changed = Signal()
        self.sink = sink
        self.rooms = defaultdict(list)
        self.copies = 0
        self.calls = {}
        self.letters = []
        self.strays = []
        self.problems = []
        self._bodies = {}
        self._jumps = {}

    # Recording; on the thread of the connection.

    def note_event(self, event):
        known = self.rooms[event.room]
        self.copies += 1
        first = event.sequence not in {e.sequence for e in known[-1:]} and (
            not known or event.sequence > known[-1].sequence
        )
        if first:
            expected = known[-1].sequence + 1 + self._jumps.pop(event.room, 0) if known else 1
            if event.sequence != expected:
                self.problems.append(f"{event!r} came where {expected} was due")
            known.append(event)
            self._bodies[event.room, event.sequence] = event.body
            self._keep("event", event.properties, event.json)
        elif self._bodies.get((event.room, event.sequence)) != event.body:
            self.problems.append(f"a copy of {event!r} differs: {event.body!r}")
        self.changed.tell()

    def note_reply(self, correlation, reply, properties):
        call = self.calls.get(correlation)
        if call is None:
            self.strays.append((correlation, reply))
        else:
            call.replies.append((reply, properties))
        # A question that was sent astray is answered by what it reached.
        self._keep("reply" if "command" in reply else "answer", properties, reply, call)
        self.changed.tell()

    def note_letter(self, body, properties):
        self.letters.append((body, properties))
        self._keep("letter", properties)
        self.changed.tell()

    def _keep(self, kind, properties, body=None, call=None):
        """Keeps a message, and what it answers, for the schemas to judge at the end."""
        if self.sink is None:
            return
        line = {"kind": kind, "body": body} | _beside(properties)
        if call:
            text, asked = call.message
            # One byte more than may be tells as much as all of them.
            line["asked"] = {"text": text[:65_537].decode("latin-1")} | _beside(asked)
        self.sink.write(json.dumps(line, default=_plain).encode() + b"\n")

    def restored(self, sequences, instant, jump=1_000_000):
        """A backup was restored: what was told and answered after it is forgotten, and each room's numbers jump."""
        for room, known in self.rooms.items():
            known[:] = [event for event in known if event.sequence <= sequences.get(room, 0)]
            if known:
                self._jumps[room] = jump
        for call in self.calls.values():
            # The instant's own millisecond may hold both: then the number tells.
            call.replies = [
                (reply, p)
                for reply, p in call.replies
                if seconds(reply["serverTime"]) <= instant
                and (reply.get("sequence") or 0) <= sequences.get(reply.get("room"), 0)
            ]

    # Waiting.

    def events(self, room, type=None, **data):
        return [
            event
            for event in self.rooms.get(room, ())
            if type in (None, event.type) and all(event.data.get(key) == value for key, value in data.items())
        ]

    def wait_event(self, room, type, limit=10, count=1, **data):
        found = self.changed.wait(
            lambda: len(got := self.events(room, type, **data)) >= count and got,
            limit,
            lambda: f"{count} {type} {data} of {room}; there came {self.rooms.get(room)}",
        )
        return found[count - 1]

    def wait_sequence(self, room, sequence, limit=10):
        self.changed.wait(
            lambda: self.rooms.get(room) and self.rooms[room][-1].sequence >= sequence,
            limit,
            lambda: f"event {sequence} of {room}; there came {self.rooms.get(room)}",
        )

    def wait_reply(self, call, limit=10, count=1):
        self.changed.wait(
            lambda: len(call.replies) >= count,
            limit,
            lambda: f"{count} replies to {call}; there came {len(call.replies)}",
        )
        return call.replies[count - 1][0]

    def wait_letter(self, matches, limit=10, what="a dead letter"):
        return self.changed.wait(
            lambda: next((letter for letter in self.letters if matches(*letter)), None),
            limit,
            lambda: f"{what}; there came {[body[:80] for body, _ in self.letters]}",
        )

    # The guarantees.

    def check(self):
        """Everything that the contract promises of events and replies, whatever the test did."""
        problems = list(self.problems)
        # Events may still come while a failed test is looked through.
        for room, events in list(self.rooms.items()):
            problems += _check_envelopes(room, events)
            problems += _check_sessions(room, events)
        problems += self._check_replies()
        assert not problems, "\n".join(problems[:20])

    def _check_replies(self):
        """Equal commands have equal answers, and each answered change is the event of the answer's number."""
        problems = []
        by_key = defaultdict(list)
        for call in self.calls.values():
            for reply, _ in call.replies:
                if reply.get("id") is not None and reply.get("command") not in (None, "status"):
                    reason = (reply.get("error") or {}).get("reason")
                    if reason not in ("invalid_command", "id_reused"):
                        by_key[reply["room"], reply["id"]].append(reply)
        effects = defaultdict(set)
        numbered = {}
        for (room, key), replies in by_key.items():
            if any(reply != replies[0] for reply in replies):
                problems.append(f"{room} {key}: answers differ: {replies}")
            reply = replies[0]
            events = self.rooms.get(room)
            if not events or not reply["ok"] or events[-1].sequence < reply["sequence"]:
                continue
            if room not in numbered:
                numbered[room] = {event.sequence: event for event in events}
            event = numbered[room].get(reply["sequence"])
            if event is None:
                problems.append(f"{room} {key}: {reply} names an event that was not heard")
                continue
            wanted = {
                "extend": {"session.extended"},
                "leave": {"participant.left"},
                "destroy": {"session.ended"},
            }.get(reply["command"])
            if wanted:
                if event.type not in wanted:
                    problems.append(f"{room} {key}: {reply} should have ended with {wanted}, not {event!r}")
                if key in effects[room, event.sequence]:
                    continue
                if effects[room, event.sequence]:
                    problems.append(
                        f"{event!r} is the effect of {key} and of {effects[room, event.sequence]}"
                    )
                effects[room, event.sequence].add(key)
            if reply["command"] == "extend" and event.data.get("endsAt") != reply["result"]["endsAt"]:
                problems.append(f"{room} {key}: {reply['result']} against {event.data}")
        return problems


def _check_envelopes(room, events):
    problems = []
    for event in events:
        properties, envelope = event.properties, event.json
        expected = {
            "specversion": "1.0",
            "id": f"{room}:{event.sequence}",
            "subject": room,
            "datacontenttype": "application/json",
            "sequence": str(event.sequence),
        }
        for key, value in expected.items():
            if envelope.get(key) != value:
                problems.append(f"{event!r}: {key} is {envelope.get(key)!r}, not {value!r}")
        if event.data["room"] != room:
            problems.append(f"{event!r}: data.room is {event.data['room']}")
        if properties is None:
            continue
        headers = properties.headers or {}
        facts = [
            (properties.message_id, envelope["id"]),
            (properties.type, event.type),
            (properties.content_type, "application/cloudevents+json"),
            (properties.delivery_mode, 2),
            (headers.get("room"), room),
            (headers.get("sequence"), event.sequence),
            (properties.timestamp is not None and abs(properties.timestamp - event.time) <= 1, True),
            (bool(properties.app_id), True),
            (event.routing_key, event.type),
        ]
        for found, wanted in facts:
            if found != wanted:
                problems.append(f"{event!r}: property {found!r} is not {wanted!r}")
    times = [event.time for event in events]
    if any(later < earlier for earlier, later in zip(times, times[1:], strict=False)):
        problems.append(f"{room}: time runs back in {times}")
    return problems


def _check_sessions(room, events):
    """Plays a room's events against what they say of themselves."""
    problems = []
    definition = policy = None
    number = 0
    state, ends, extensions, people, notices = "none", None, 0, {}, set()

    def wrong(event, text):
        problems.append(f"{event!r}: {text}: {event.json}")

    for event in events:
        data, kind = event.data, event.type
        if kind == "room.opened":
            definition = data
            if data["session"] != (number or None):
                wrong(event, f"session is not {number or None}")
            continue
        if kind == "session.started" or (kind == "participant.joined" and state in ("none", "ended")):
            if state == "running":
                wrong(event, "a session was running")
            if state != "waiting":
                number += 1
                people = {}
                policy = definition["policy"] if definition else None
            state = "running" if kind == "session.started" else "waiting"
            extensions, notices = 0, set()
        if data["session"] != number:
            wrong(event, f"session is not {number}")
        if kind == "session.started":
            ends, started = seconds(data["endsAt"]), seconds(data["startedAt"])
            if definition and abs(ends - started - data["duration"] * 60) > ROUNDING:
                wrong(event, "duration does not fit the times")
        elif kind.startswith("participant."):
            if kind == "participant.joined":
                if data["user"] in people:
                    wrong(event, "was connected")
                people[data["user"]] = data["role"]
            elif data["user"] not in people:
                wrong(event, "was not connected")
            elif kind == "participant.left":
                del people[data["user"]]
            else:
                if people[data["user"]] == data["role"]:
                    wrong(event, "had that role")
                people[data["user"]] = data["role"]
            if data["connected"] != len(people):
                wrong(event, f"connected is not {len(people)}")
        elif kind == "session.window.opened":
            key = data["extensions"], data["window"]
            if key in notices:
                wrong(event, "a second notice")
            if any(window > data["window"] for count, window in notices if count == data["extensions"]):
                wrong(event, "a window after a later one")
            notices.add(key)
            windows = [length * 60 for length in policy["windows"]] + [0]
            opens = ends - windows[data["window"] - 1]
            closes = ends - windows[data["window"]]
            if seconds(data["endsAt"]) != ends or data["extensions"] != extensions:
                wrong(event, "of another end")
            if not opens - ROUNDING <= event.time < closes + ROUNDING:
                wrong(event, "the window is not open")
            due = max(opens, started)
            if abs(seconds(data["dueAt"]) - due) > ROUNDING:
                wrong(event, f"dueAt is not {due}")
            if abs(data["lateBy"] - (event.time - seconds(data["dueAt"]))) > 0.0011:
                wrong(event, "lateBy does not fit")
            if abs(data["timeLeft"] * 60 - (ends - event.time)) > ROUNDING:
                wrong(event, "timeLeft is not true")
            if data["final"] != (data["window"] == len(policy["windows"])):
                wrong(event, "final is wrong")
            if abs(seconds(data["nextDueAt"]) - closes) > ROUNDING:
                wrong(event, "nextDueAt is wrong")
        elif kind == "session.extended":
            extensions += 1
            if data["extensions"] != extensions or seconds(data["previousEndsAt"]) != ends:
                wrong(event, "does not follow the session before")
            if event.time < ends - policy["windows"][0] * 60 - ROUNDING or event.time >= ends:
                wrong(event, "no window was open")
            ends = seconds(data["endsAt"])
            if abs(ends - seconds(data["previousEndsAt"]) - data["extendedTime"] * 60) > ROUNDING:
                wrong(event, "the grant does not fit the ends")
        elif kind == "session.ended":
            if state not in ("running", "waiting"):
                wrong(event, "nothing was running")
            if data["participants"] != len(people) or data["extensions"] != extensions:
                wrong(event, f"{len(people)} were connected, {extensions} extensions")
            if state == "running" and seconds(data["endsAt"]) != ends:
                wrong(event, "another end was planned")
            if data["cause"] == "elapsed":
                if event.time < ends or abs(data["lateBy"] - (seconds(data["endedAt"]) - ends)) > 0.0011:
                    wrong(event, "ended early, or lateBy does not fit")
            elif data["lateBy"] != 0:
                wrong(event, "a destroyed session is never late")
            state = "ended"
    return problems
