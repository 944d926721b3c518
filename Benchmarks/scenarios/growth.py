"""Whether more rooms make a command dearer: changes of role, of which a room takes any number, among few rooms and many."""

from contenders import OvertimeRoles
from figures import number, ratios, spread, summary, table

from scenarios import throughput

TITLE = "Growth"
ROOMS = [1_000, 100_000, 1_000_000]


def run(bench):
    count = throughput.commands(bench)
    rooms = ROOMS[:2] if bench.quick else ROOMS
    found = [OvertimeRoles(bench.lab, bench.stores, few) for few in rooms]
    samples = {one.rooms: [] for one in found}
    for number_of_round in range(bench.rounds):
        # Another one begins each time, so that none always comes after the same.
        first = number_of_round % len(found)
        for one in found[first:] + found[:first]:
            sample = throughput.measure(bench, one, count)
            samples[one.rooms].append(sample)
            wrong = f", WRONG: {sample['wrong']}" if sample["wrong"] else ""
            bench.say(f"round {number_of_round + 1}: {one.rooms:,} rooms: {number(sample['rate'])}/s{wrong}")
    fewest = [sample["rate"] for sample in samples[ROOMS[0]]]
    return {
        f"{few}": {
            "rooms": few,
            "commands": count,
            "wrong": [sample["wrong"] for sample in mine if sample["wrong"]],
            "ofFewest": summary(ratios([sample["rate"] for sample in mine], fewest)),
            **{key: summary([sample[key] for sample in mine]) for key in ("rate", "cpuMicros", "peakKiB")},
        }
        for few, mine in samples.items()
    }


def show(figures):
    rows = [
        [
            f"{row['rooms']:,}" + (" **wrong**" if row["wrong"] else ""),
            spread(row["ofFewest"], 2),
            spread(row["rate"]),
            spread(row["cpuMicros"]),
            number(row["peakKiB"]["median"] / 1024),
            f"{row['commands']:,}",
        ]
        for row in figures.values()
    ]
    return table(["rooms", "of that with 1,000", "commands/s", "CPU µs a command", "peak MiB", "commands"], rows)
