"""SQLite against PostgreSQL: one worker, the same commands from a queue that was filled before, in turns."""

from contenders import Overtime
from figures import number, ratios, spread, summary, table
from postgres import Postgres

from scenarios import throughput

TITLE = "Engines"


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


def run(bench):
    count = throughput.commands(bench)
    rooms = 10_000 if bench.quick else 100_000
    server = Postgres(bench.lab)
    try:
        file = Overtime(bench.lab, bench.stores, rooms)
        file.title = f"SQLite, {rooms:,} rooms"
        found = bench.chosen([file, OnPostgres(bench.lab, bench.stores, server, rooms)])
        samples = {one.name: [] for one in found}
        for number_of_round in range(bench.rounds):
            # Another one begins each time, so that none always comes after the same.
            first = number_of_round % len(found)
            for one in found[first:] + found[:first]:
                sample = throughput.measure(bench, one, count)
                sample["serverCpuMicros"] = getattr(one, "server_cpu", 0) / count * 1e6
                samples[one.name].append(sample)
                wrong = f", WRONG: {sample['wrong']}" if sample["wrong"] else ""
                bench.say(f"round {number_of_round + 1}: {one.title}: {number(sample['rate'])}/s{wrong}")
    finally:
        server.close()
    base = [sample["rate"] for sample in samples.get(file.name, [])]
    figures = {}
    for one in found:
        mine = samples[one.name]
        figures[one.name] = {
            "title": one.title,
            "commands": count,
            "wrong": [sample["wrong"] for sample in mine if sample["wrong"]],
            "ofSQLite": summary(ratios([sample["rate"] for sample in mine], base)) if base else None,
            **{
                key: summary([sample[key] for sample in mine])
                for key in ("rate", "cpuMicros", "serverCpuMicros", "brokerCpuMicros", "peakKiB")
            },
        }
    return figures


def show(figures):
    heads = ["one worker", "of SQLite", "commands/s", "worker's CPU µs", "database's", "broker's", "peak MiB", "commands"]
    rows = [
        [
            row["title"] + (" **wrong**" if row["wrong"] else ""),
            spread(row["ofSQLite"], 2),
            spread(row["rate"]),
            spread(row["cpuMicros"]),
            spread(row["serverCpuMicros"]),
            spread(row["brokerCpuMicros"]),
            number(row["peakKiB"]["median"] / 1024),
            f"{row['commands']:,}",
        ]
        for row in figures.values()
    ]
    return table(heads, rows)
