"""What a store holds when its worker has ended cleanly, against what the wire heard."""

import json
import shutil
import sqlite3
import tempfile
from pathlib import Path


class Dump:
    def __init__(self, store):
        """Read from a copy, so that no lock and no file of the store is ever touched."""
        with tempfile.TemporaryDirectory(prefix="overtime-dump.") as directory:
            copy = Path(directory) / "copy.db"
            for ending in ("", "-wal", "-journal"):
                if Path(store + ending).exists():
                    shutil.copyfile(store + ending, str(copy) + ending)
            connection = sqlite3.connect(copy)
            try:
                self.integrity = [row[0] for row in connection.execute("PRAGMA integrity_check")]
                self.sequences = dict(connection.execute("SELECT id, sequence FROM rooms"))
                self.outbox = connection.execute("SELECT room, sequence, type FROM outbox").fetchall()
                self.answers = {
                    (room, key): json.loads(reply)
                    for room, key, reply in connection.execute("SELECT room, id, reply FROM answers")}
                # Crashed ones stay until the start after next, which sees that no mark names them.
                self.runs = connection.execute("SELECT id FROM runs WHERE crashed_at IS NULL").fetchall()
                self.attempts = connection.execute("SELECT key, run FROM attempts").fetchall()
            finally:
                connection.close()

    def problems(self, history, calls):
        """Each committed event was heard, each answer is the stored one, and nothing waits to be told or tried."""
        found = []
        if self.integrity != ["ok"]:
            found.append(f"integrity_check: {self.integrity}")
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
        terminal = {}
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
