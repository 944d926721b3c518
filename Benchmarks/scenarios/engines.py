"""SQLite against PostgreSQL: one worker, the same commands from a queue that was filled before, in turns."""

from contenders import Overtime
from figures import number, ratios, spread, summary, table
from on_postgres import OnPostgres
from postgres import Postgres

from scenarios import throughput

TITLE = "Engines"


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
