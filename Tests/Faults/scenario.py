"""Some 45 commands in waves, whose every answer and event is known, whatever is killed meanwhile."""

from wire import CODES

HOUR = {"windows": ["1h"], "extension": {"min": "1h", "max": "2h"}}
BRIEF = {"windows": ["500ms", "250ms"], "extension": {"min": "500ms", "max": "800ms"}}
# An answer that depends on the moment at which it was given.
TIMED = object()


class Scenario:
    """The commands of one run. `whole` and `board` are known exactly, `brief` and `quick` go by time."""

    def __init__(self, wire, tag):
        self.wire = wire
        self.tag = tag
        self.expected = {}
        self.waves = [self._build(wave) for wave in (self._first, self._second, self._third, self._last)]
        self.calls = [call for wave in self.waves for _, call in wave]
        self.sent = 0
        self.invalid = [call for call in self.calls if self.expected[call.correlation] == "invalid_command"]

    def room(self, name):
        return f"{self.tag}{name}"

    def _build(self, wave):
        self._known = getattr(self, "_known", {})
        built = []
        for outcome, command, room, user, *rest in wave():
            fields = dict(rest[0]) if rest else {}
            key = fields.pop("id", None)
            body = fields.pop("body", None)
            arguments = {"id": key} if key else {}
            message, call = self.wire.message(
                command, self.room(room), user, body=body, **arguments, **fields)
            self.expected[call.correlation] = outcome
            built.append((message, call))
        return built

    def _first(self):
        yield "ok", "open", "whole", None, {"duration": "1h", "policy": HOUR}
        yield "ok", "open", "brief", None, {"duration": "700ms", "policy": BRIEF}
        yield "ok", "open", "quick", None, {"duration": "400ms", "policy": BRIEF}
        yield "ok", "open", "board", None, {
            "duration": "1h", "policy": HOUR | {"extenders": "moderators"}, "moderators": ["mia"]}
        yield "ok", "join", "whole", "ada", {"role": "moderator", "id": "ada-joins"}
        yield "ok", "join", "brief", "ada"
        yield "ok", "join", "whole", "bob"
        yield "ok", "join", "quick", "eve"
        yield "ok", "join", "board", "mia"
        yield "invalid_command", "join", "board", "tim", {"rôle": "viewer"}
        yield "unknown_room", "join", "nowhere", "ada", {"id": "lost"}
        yield "ok", "join", "whole", "eve"
        yield "ok", "join", "board", "tim"

    def _second(self):
        yield "ok", "extend", "whole", "ada", {"by": "1h", "id": "ada-extends"}
        yield "already_extended", "extend", "whole", "bob", {"id": "bob-extends"}
        yield "ok", "extend", "whole", "ada", {"minutes": 60, "id": "ada-extends"}
        yield TIMED, "extend", "brief", "ada", {"id": "brief-extends"}
        yield "ok", "leave", "whole", "eve"
        yield "not_connected", "leave", "whole", "eve"
        yield "id_reused", "leave", "whole", "ada", {"id": "ada-joins"}
        yield "ok", "status", "whole", None
        yield "unauthorized", "extend", "board", "tim"
        yield "ok", "extend", "board", "mia"
        yield "invalid_command", None, "board", None, {"body": b'{"command":"open",'}
        yield "unknown_room", "join", "nowhere", "ada", {"id": "lost"}
        yield TIMED, "extend", "brief", "ada", {"id": "brief-extends"}

    def _third(self):
        yield "already_extended", "extend", "whole", "bob", {"id": "bob-extends"}
        yield "unauthorized", "destroy", "whole", "bob"
        yield "unauthorized", "destroy", "whole", None
        yield "ok", "destroy", "board", "mia", {"id": "end"}
        yield "no_session", "destroy", "board", "mia"
        yield "session_over", "join", "board", "tim"
        yield TIMED, "extend", "brief", "ada"
        yield TIMED, "join", "brief", "bob"
        yield "ok", "open", "board", None, {"duration": "2h", "policy": HOUR, "id": "reopen"}
        yield "ok", "join", "board", "tim", {"role": "moderator"}
        yield "ok", "join", "whole", "ada", {"role": "moderator", "id": "ada-joins"}

    def _last(self):
        yield "ok", "destroy", "board", "mia", {"id": "end"}
        yield "ok", "destroy", "board", "tim"
        yield "ok", "leave", "whole", "bob"
        yield "ok", "destroy", "whole", "ada"
        yield "no_session", "extend", "whole", "ada"
        yield "ok", "open", "board", None, {"duration": "2h", "policy": HOUR, "id": "reopen"}

    @property
    def timed_rooms(self):
        return [self.room("brief"), self.room("quick")]

    def advance(self):
        """Sends the next wave once the one before has an answer; true when nothing more is to come."""
        history = self.wire.history
        while self.sent < len(self.waves) and (
                self.sent == 0 or any(call.replies for _, call in self.waves[self.sent - 1])):
            receipts = self.wire.publish_many(message for message, _ in self.waves[self.sent])
            for (_, call), receipt in zip(self.waves[self.sent], receipts, strict=True):
                call.receipt = receipt
            self.sent += 1
        return self.sent == len(self.waves) and all(call.replies for call in self.calls) and all(
            history.events(room, "session.ended") for room in self.timed_rooms)

    def missing(self):
        history = self.wire.history
        unanswered = [call for call in self.calls if call.receipt and not call.replies]
        running = [room for room in self.timed_rooms if not history.events(room, "session.ended")]
        return (
            f"{len(unanswered)} answers ({unanswered[:2]}) and the ends of {running}; "
            f"{self.sent} waves were sent")

    def problems(self):
        """What differs from what must have come."""
        found = []
        for call in self.calls:
            expected = self.expected[call.correlation]
            if call.receipt.state != "ack":
                found.append(f"{call} was not confirmed: {call.receipt.state}")
            for reply, _ in call.replies:
                outcome = "ok" if reply["ok"] else reply["error"]["reason"]
                if expected is not TIMED and outcome != expected:
                    found.append(f"{call} should have become {expected}: {reply}")
                if not reply["ok"] and reply["error"]["code"] != CODES[outcome]:
                    found.append(f"{call} has another code: {reply}")
        joined, left = "participant.joined", "participant.left"
        started, window, extended = "session.started", "session.window.opened", "session.extended"
        destroyed, ended = "session.destroy.acknowledged", "session.ended"
        exact = {
            "whole": [
                "room.opened", started, joined, window, joined, joined, extended, left, left, destroyed,
                ended],
            # Two hours with a window of one: no window is open when the second session starts.
            "board": [
                "room.opened", started, joined, window, joined, extended, destroyed, ended,
                "room.opened", started, joined, destroyed, ended]}
        for name, types in exact.items():
            came = [event.type for event in self.wire.history.rooms[self.room(name)]]
            if came != types:
                found.append(f"the events of {name} are {came}, not {types}")
        for room in self.timed_rooms:
            ends = self.wire.history.events(room, "session.ended")
            if len(ends) != 1 or ends[0].data["cause"] != "elapsed":
                found.append(f"{room} ended otherwise: {ends}")
        return found
