"""What a store holds when its workers have ended cleanly, against what the wire heard."""

import json


class Dump:
    def __init__(self, store):
        self.defects = store.defects()
        name, room, reply = (store.text(column) for column in ("id", "room", "reply"))
        with store.read() as rows:
            self.sequences = dict(rows(f"SELECT {name}, sequence FROM rooms"))
            self.outbox = rows(f"SELECT {room}, sequence, type FROM outbox")
            self.answers = {
                (room, key): json.loads(reply)
                for room, key, reply in rows(f"SELECT {room}, {name}, {reply} FROM answers")}
            # Crashed ones stay until the start after next, which sees that no mark names them.
            self.runs = rows("SELECT id FROM runs WHERE crashed_at IS NULL")
            self.attempts = rows("SELECT key, run FROM attempts")

    def problems(self, history, calls):
        """Each committed event was heard, each answer is the stored one, and nothing waits any more."""
        return self.rest(history) + self.answered(calls)

    def rest(self, history):
        """The store is sound, each committed event was heard, and nothing waits any more."""
        found = []
        if self.defects:
            found.append(f"the store is damaged: {self.defects}")
        if self.outbox:
            found.append(f"the outbox still holds {self.outbox[:5]}")
        if self.attempts:
            found.append(f"marks of attempts are left: {self.attempts[:5]}")
        if self.runs:
            found.append(f"runs that have ended are not signed off: {self.runs}")
        for room, sequence in self.sequences.items():
            heard = [event.sequence for event in history.rooms.get(room, ())]
            if heard != list(range(1, sequence + 1)):
                found.append(f"{room} stands at {sequence}, and heard were {heard[:3]} … {heard[-3:]}")
        for room in history.rooms:
            if room not in self.sequences:
                found.append(f"events of {room}, which the store does not know")
        return found

    def answered(self, calls):
        """Each answer is the stored one, and each stored one was given."""
        found, terminal = [], {}
        for call in calls:
            key = call.command.get("room"), call.command.get("id")
            for reply, _ in call.replies:
                reason = (reply.get("error") or {}).get("reason")
                if reason in ("invalid_command", "id_reused") or call.command["command"] == "status":
                    continue
                terminal[key] = reply
                if self.answers.get(key) != reply:
                    found.append(f"{call} was answered {reply}, and stored is {self.answers.get(key)}")
        for key in self.answers:
            if key not in terminal:
                found.append(f"an answer to {key} is stored that nobody was given")
        return found


def effects(history, calls):
    """Each applied join, leave and extension made its one event, and each such event has its one command."""
    found, caused = [], {}
    kinds = {"join": "participant.joined", "leave": "participant.left", "extend": "session.extended"}
    for call in calls:
        kind = kinds.get(call.command["command"])
        if kind is None or not call.replies or not call.replies[0][0]["ok"]:
            continue
        room, user, sequence = call.command["room"], call.command["user"], call.replies[0][0]["sequence"]
        # Behind a first join its session's window may open in the same moment.
        events = history.rooms.get(room, ())[max(0, sequence - 2):sequence]
        event = next((event for event in reversed(events) if event.type == kind and (
            event.data.get("by") if kind == "session.extended" else event.data["user"]) == user), None)
        if event is None:
            if kind != "participant.joined" or not _connected(history.rooms.get(room, ()), sequence, user):
                found.append(f"{call} was applied as {sequence} and nothing shows it: {events}")
        elif caused.setdefault((room, event.sequence), call.command["id"]) != call.command["id"]:
            # Joining again while connected has no event; the one found is another's.
            if kind != "participant.joined":
                found.append(f"{event!r} is the effect of two commands: {call}")
    for room, events in history.rooms.items():
        for event in events:
            if event.type in kinds.values() and (room, event.sequence) not in caused:
                found.append(f"{event!r} is the effect of no command that was answered")
    return found


def _connected(events, sequence, user):
    """Whether a user is in the room after this event."""
    inside = False
    for event in events[:sequence]:
        if event.type in ("session.ended", "session.started"):
            inside = False
        elif event.type.startswith("participant.") and event.data["user"] == user:
            inside = event.type != "participant.left"
    return inside
