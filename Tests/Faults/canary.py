"""A password that every process under test uses, and that is looked for in everything they leave behind."""

import json
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit


class Canary:
    """A broker user; `restore` gives it its password and all rights."""

    def __init__(self, broker, user, password):
        self._broker = broker
        self.user = user
        self.password = password
        self.url = ",".join(self._by(url) for url in broker.url.split(","))

    def through(self, port):
        """The same user by another port: a proxy's."""
        return self._by(self._broker.url, port)

    def _by(self, url, port=None):
        parts = urlsplit(url)
        address = f"{self.user}:{self.password}@{parts.hostname}:{port or parts.port}"
        return urlunsplit((parts.scheme, address, parts.path, "", ""))

    def restore(self):
        if self.user not in self._broker.ctl("--silent", "list_users"):
            self._broker.ctl("add_user", self.user, self.password)
        self._broker.ctl("set_permissions", "-p", "/", self.user, ".*", ".*", ".*")

    def check(self, installation, history):
        """In no log line, argument, reply, event, dead letter or file of this test."""
        told = self.told(installation.processes, installation.directory, history)
        assert not told, f"the password is told in: {told}"

    def told(self, processes, directory=None, history=None):
        """The places of those in which the password stands."""
        return [place for place, text in self._places(processes, directory, history) if self.password in text]

    @staticmethod
    def _places(processes, directory, history):
        for process in processes:
            yield f"log of {process.name}", "\n".join(
                json.dumps(line, ensure_ascii=False) for line in process.lines
            )
            yield f"arguments of {process.name}", " ".join(process.popen.args)
            try:
                yield f"/proc of {process.name}", Path(f"/proc/{process.pid}/cmdline").read_bytes().decode()
            except OSError:
                pass
        if history:
            for call in history.calls.values():
                yield f"reply to {call}", "".join(f"{reply} {properties}" for reply, properties in call.replies)
            yield "stray replies", repr(history.strays)
            for room, events in history.rooms.items():
                yield f"events of {room}", "".join(f"{event.body} {event.properties}" for event in events)
            yield "dead letters", "".join(f"{body} {properties}" for body, properties in history.letters)
        for path in Path(directory).rglob("*") if directory else ():
            if path.is_file():
                yield f"file {path.name}", path.read_bytes().decode("latin-1")
