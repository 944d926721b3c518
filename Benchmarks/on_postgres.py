"""The worker on PostgreSQL, as one of those that are measured."""

from contenders import Overtime


class OnPostgres(Overtime):
    """The worker on a database with so many rooms."""

    def __init__(self, lab, all_stores, server, rooms):
        super().__init__(lab, all_stores, rooms)
        self.name, self.title = f"postgresql-{rooms}", f"PostgreSQL, {rooms:,} rooms"
        self._server = server
        self._database = None

    def prepare(self, count):
        self.installation = self.lab.installation()
        self._database, self._url = self._server.copy(self.rooms)
        self._server.open_windows(self._database, count, self.rooms)
        self._before = self._server.usage().cpu

    def start(self, count):
        self.worker = self.installation.start("worker", environment={"OVERTIME_STORE": self._url})

    def usage(self):
        """The worker's; what the server took is told apart."""
        self.server_cpu = self._server.usage().cpu - self._before
        return super().usage()

    def stop(self):
        super().stop()
        if self._database is not None:
            self._server.drop(self._database)
            self._database = None
