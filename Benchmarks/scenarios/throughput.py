"""How many commands a second, from a queue that was filled before: all contenders one after the other, round after round."""

from contenders import Celery, Floor, Overtime, Pika, Plain
from figures import number, ratios, spread, summary, table
from lab import AUDIT, REPLIES

TITLE = "Throughput"
MOST_SECONDS = 600


def contenders(bench):
    lab = bench.lab
    count = commands(bench)
    few = 10_000 if bench.quick else count
    many = [100_000] if bench.quick else [100_000, 1_000_000]
    overtime = [Overtime(lab, bench.stores, rooms) for rooms in [few, *many]]
    found = [Floor(lab), *overtime, Plain(lab), Pika(lab), Celery(lab)]
    for rival in found:
        # Each room can be extended once while its window is open.
        rival.rooms = rival.rooms if rival in overtime else max(100_000, count)
    return bench.chosen(found)


def commands(bench):
    return bench.options.commands or (5_000 if bench.quick else 50_000)


def run(bench):
    found = contenders(bench)
    samples = {contender.name: [] for contender in found}
    for number_of_round in range(bench.rounds):
        # Another one begins each time, so that none always comes after the same.
        first = number_of_round % len(found)
        for contender in found[first:] + found[:first]:
            count = max(200, round(commands(bench) * contender.share))
            sample = measure(bench, contender, count)
            samples[contender.name].append(sample)
            bench.say(
                f"round {number_of_round + 1}: {contender.title}: {number(sample['rate'])}/s"
                + (f", WRONG: {sample['wrong']}" if sample["wrong"] else "")
            )
    figures = {}
    for contender in found:
        mine = samples[contender.name]
        figures[contender.name] = {
            "title": contender.title,
            "commands": mine[0]["count"],
            "wrong": [sample["wrong"] for sample in mine if sample["wrong"]],
            **{
                key: summary([sample[key] for sample in mine])
                for key in ("rate", "cpuMicros", "brokerCpuMicros", "peakKiB")
            },
        }
        if "floor" in samples:
            rates = [[sample["rate"] for sample in row] for row in (mine, samples["floor"])]
            figures[contender.name]["ofFloor"] = summary(ratios(*rates))
    return figures


def measure(bench, contender, count):
    """One run of one contender, and whether nothing was missing or doubled."""
    lab = bench.lab
    lab.purge()
    try:
        contender.prepare(count)
        contender.fill(count)
        lab.settle()
        broker = lab.broker_usage()
        replies = lab.tool.start("replies", queue=REPLIES, count=count, timeout=MOST_SECONDS)
        contender.start(count)
        seen = replies.result(MOST_SECONDS + 30)
        broker_cpu = lab.broker_usage().cpu - broker.cpu
        used = contender.usage()
    finally:
        contender.stop()
    events = lab.tool.run("audit", queue=AUDIT, count=count, timeout=10, type=contender.event)
    return {
        "count": count,
        "rate": seen["rate"],
        "cpuMicros": used.cpu / count * 1e6,
        "brokerCpuMicros": broker_cpu / count * 1e6,
        "peakKiB": used.peak,
        "wrong": wrong(seen, events, count),
        "progress": seen.get("marksNs"),
    }


def wrong(seen, events, count):
    """What was missing, doubled or refused; empty where all is well."""
    found = {
        "replies": seen["count"] - count,
        "doubled replies": seen["duplicates"],
        "refusals": seen["notOk"],
        "events": events["distinct"] - count,
        "doubled events": events["duplicates"],
        "events out of order": events["orderViolations"],
    }
    return {key: value for key, value in found.items() if value}


def show(figures):
    heads = ["", "of the floor", "commands/s", "CPU µs a command", "broker's CPU µs", "peak MiB", "commands"]
    rows = []
    for row in figures.values():
        peak = row["peakKiB"]
        rows.append(
            [
                row["title"] + (" **wrong**" if row["wrong"] else ""),
                spread(row.get("ofFloor"), 2),
                spread(row["rate"]),
                spread(row["cpuMicros"]),
                spread(row["brokerCpuMicros"]),
                number(peak["median"] / 1024) if peak and peak["median"] else "–",
                f"{row['commands']:,}",
            ]
        )
    return table(heads, rows)
