"""What a rival does for one `extend`: one transaction, then the bodies of the event and of the reply, like the product's."""

import json
from datetime import datetime, timezone

from prepared import MINUTE, USUAL
from rival_store import now

EVENT_TYPE = "session.extended"
EVENTS = "overtime.events"


def instant(milliseconds):
    moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def extend(database, command_id, room, user, minutes):
    """Durable when it returns. The event is None where there is none: a repeat, or no open window."""
    at = now()
    granted = max(minutes * MINUTE, USUAL.extension)
    database.execute("BEGIN IMMEDIATE")
    try:
        row = database.execute("SELECT started_at, ends_at, extensions, sequence FROM rooms WHERE id = ?", (room,))
        started, ends, extensions, sequence = row.fetchone()
        known = database.execute("SELECT 1 FROM commands WHERE id = ?", (command_id,)).fetchone()
        if known or not ends - USUAL.first <= at < ends:
            database.execute("ROLLBACK")
            return None, json.dumps({"id": command_id, "command": "extend", "room": room, "ok": bool(known)}), None
        new_end = ends + granted
        database.execute(
            "UPDATE rooms SET ends_at = ?, extensions = ?, sequence = ? WHERE id = ?",
            (new_end, extensions + 1, sequence + 1, room),
        )
        database.execute("INSERT INTO commands VALUES (?, ?, ?)", (command_id, room, at))
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise
    return (
        _event(room, user, at, granted, ends, new_end, extensions + 1, sequence + 1),
        _reply(command_id, room, at, granted, started, new_end, extensions + 1, sequence + 1),
        new_end - USUAL.first,
    )


def _event(room, user, at, granted, ends, new_end, extensions, sequence):
    return (
        room,
        sequence,
        json.dumps(
            {
                "specversion": "1.0",
                "id": f"{room}:{sequence}",
                "source": "overtime",
                "type": EVENT_TYPE,
                "subject": room,
                "time": instant(at),
                "datacontenttype": "application/json",
                "sequence": str(sequence),
                "data": {
                    "room": room,
                    "session": 1,
                    "audience": "room",
                    "extendedTime": granted // MINUTE,
                    "by": user,
                    "previousEndsAt": instant(ends),
                    "endsAt": instant(new_end),
                    "nextDueAt": instant(new_end - USUAL.first),
                    "extensions": extensions,
                },
            },
            separators=(",", ":"),
        ),
    )


def _reply(command_id, room, at, granted, started, new_end, extensions, sequence):
    return json.dumps(
        {
            "id": command_id,
            "command": "extend",
            "room": room,
            "ok": True,
            "result": {"extendedTime": granted // MINUTE, "endsAt": instant(new_end), "extensions": extensions},
            "session": {
                "number": 1,
                "state": "running",
                "startedAt": instant(started),
                "endsAt": instant(new_end),
                "timeLeft": round((new_end - at) / MINUTE, 4),
                "window": None,
                "nextWindowAt": instant(new_end - USUAL.first),
                "extensions": extensions,
                "connected": 1,
            },
            "sequence": sequence,
            "serverTime": instant(at),
        },
        separators=(",", ":"),
    )
