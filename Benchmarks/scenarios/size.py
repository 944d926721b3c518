"""How large the store is: a live room with one participant, and what each command adds, its answer being remembered."""

import os
import sqlite3
from contextlib import closing

import contenders
from figures import number, table

from scenarios import throughput

TITLE = "Size of the store"


class Measured(contenders.Overtime):
    """Looks at its store before it is gone."""

    def stop(self):
        if self.worker is not None:
            self.worker.terminate(30)
            self.after = _bytes(self.store)
        super().stop()


def run(bench):
    rooms = [10_000, 100_000] if bench.quick else [10_000, 100_000, 1_000_000]
    count = 10_000
    figures = {"rooms": {}, "commands": count}
    for many in rooms:
        installation = bench.lab.installation()
        try:
            path = bench.stores.copy(many, installation)
            figures["rooms"][str(many)] = {"bytes": _bytes(path), "aRoom": _bytes(path) / many}
        finally:
            bench.lab.discard(installation)
    contender = Measured(bench.lab, bench.stores, count)
    sample = throughput.measure(bench, contender, count)
    figures["aCommand"] = (contender.after - figures["rooms"][str(count)]["bytes"]) / count
    figures["wrong"] = sample["wrong"]
    return figures


def _bytes(path):
    """With what its log still holds moved into the database."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return os.path.getsize(path)


def show(figures):
    rows = [
        [f"{int(many):,} rooms", number(row["bytes"] / 1e6) + " MB", number(row["aRoom"])]
        for many, row in figures["rooms"].items()
    ]
    rows.append([f"each of {figures['commands']:,} commands adds", "–", number(figures["aCommand"])])
    return table(["", "database", "bytes each"], rows)
