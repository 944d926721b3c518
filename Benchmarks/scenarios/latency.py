"""Latency: from the instant at which a command was due to be sent until its reply is there, at fixed rates.

The rates are parts of what Overtime takes at most while commands are being published, see `_most`. Commands are sent when
due whatever became of those before (an open loop), and the time a late one waited to be sent counts, so that a pause of
the worker shows in full.
"""

from contenders import Floor, Overtime
from figures import number, spread, summary, table
from lab import REPLIES
from metrics import Watched, free_address

from scenarios import throughput

TITLE = "Latency"
PARTS = (0.1, 0.5, 0.9)
# Seconds that do not count, in which the caches fill.
WARMUP = 2
PERCENTILES = ("p50", "p90", "p99", "p999", "max")


class WatchedOvertime(Overtime):
    """Ready before the first command comes, and asked for its commits afterwards."""

    def start(self, count):
        address = free_address()
        self.worker = self.installation.worker(environment={"OVERTIME_HTTP": address})
        self._watched = Watched(address)
        self.worker.wait_said("serving metrics and health", 20)
        self._watched.wait_ready()
        self._before = self._commits()

    def commit(self, count):
        """Milliseconds that a commit took on average, and commands in one."""
        # The metrics are up to a second old.
        self._watched.wait("overtime_commands_total", lambda value: value >= count)
        commits, seconds, items = (after - before for after, before in zip(self._commits(), self._before, strict=True))
        return {"milliseconds": seconds / commits * 1000, "commands": items / commits} if commits else None

    def _commits(self):
        metrics = self._watched.look()
        return [
            metrics.get("overtime_store_commit_seconds_count"),
            metrics.get("overtime_store_commit_seconds_sum"),
            metrics.get("overtime_batch_items_sum"),
        ]


def run(bench):
    rooms = 100_000 if bench.quick else 1_000_000
    seconds = 5 if bench.quick else 20
    most = _most(bench, rooms)
    found = [Floor(bench.lab), WatchedOvertime(bench.lab, bench.stores, rooms)]
    found[0].rooms = rooms
    samples = {(contender.name, part): [] for contender in found for part in PARTS}
    for number_of_round in range(bench.rounds):
        for part in PARTS:
            order = found if number_of_round % 2 == 0 else found[::-1]
            for contender in order:
                sample = _measure(bench, contender, most * part, seconds)
                samples[contender.name, part].append(sample)
                bench.say(
                    f"round {number_of_round + 1}: {contender.title}: at {number(most * part)}/s"
                    f" {sample['p50']:.2f} ms in the middle, {sample['p99']:.2f} at the 99th"
                    + (f", WRONG: {sample['wrong']}" if sample["wrong"] else "")
                )
    return {
        "most": most,
        "rooms": rooms,
        "seconds": seconds,
        "contenders": {
            contender.name: {
                "title": contender.title,
                "parts": {str(part): _summaries(samples[contender.name, part]) for part in PARTS},
            }
            for contender in found
        },
    }


def _summaries(samples):
    return {
        **{name: summary([sample[name] for sample in samples]) for name in PERCENTILES},
        "rate": samples[0]["rate"],
        "commitMs": summary([sample["commit"] and sample["commit"]["milliseconds"] for sample in samples]),
        "commandsACommit": summary([sample["commit"] and sample["commit"]["commands"] for sample in samples]),
        "wrong": [sample["wrong"] for sample in samples if sample["wrong"]],
    }


def _most(bench, rooms):
    """What Overtime takes at most while the commands are still being published, which costs the broker its part.

    From the first that is published, as fast as the broker takes them, to the reply to the last.
    """
    if bench.options.rate:
        return bench.options.rate
    count = throughput.commands(bench)
    rates = []
    for _ in range(min(bench.rounds, 3)):
        bench.lab.purge()
        contender = WatchedOvertime(bench.lab, bench.stores, rooms)
        try:
            contender.prepare(count)
            bench.lab.settle()
            contender.start(count)
            replies = bench.lab.tool.start("replies", queue=REPLIES, count=count, timeout=throughput.MOST_SECONDS)
            filled = contender.fill(count)
            seen = replies.result(throughput.MOST_SECONDS + 30)
        finally:
            contender.stop()
        rates.append(count / (seen["lastNs"] - filled["startNs"]) * 1e9)
    most = summary(rates)["median"]
    bench.say(f"at most {number(most)} commands/s")
    return most


def _measure(bench, contender, rate, seconds):
    lab = bench.lab
    count = int(rate * (seconds + WARMUP))
    assert count <= contender.rooms, "a room can be extended once only"
    lab.purge()
    try:
        contender.prepare(count)
        lab.settle()
        contender.start(count)
        options = contender.filling(count)
        queue = options.pop("reply_to")
        options.pop("count")
        options |= {"rate": rate, "seconds": seconds, "warmup": WARMUP, "reply_queue": queue}
        seen = lab.tool.run("latency", limit=seconds + 120, **options)
        commit = contender.commit(count) if isinstance(contender, WatchedOvertime) else None
    finally:
        contender.stop()
    return {
        **{name: seen[name] for name in PERCENTILES},
        "rate": rate,
        "commit": commit,
        "wrong": {key: seen[key] for key in ("missing", "notOk", "duplicates", "foreign") if seen[key]},
    }


def show(figures):
    heads = ["", "of its most", "commands/s", *PERCENTILES, "a commit, ms", "commands in one"]
    rows = []
    for part in map(str, PARTS):
        for contender in figures["contenders"].values():
            row = contender["parts"][part]
            rows.append(
                [
                    contender["title"] + (" **wrong**" if row["wrong"] else ""),
                    f"{float(part):.0%}",
                    number(row["rate"]),
                    *(spread(row[name]) for name in PERCENTILES),
                    spread(row["commitMs"]),
                    spread(row["commandsACommit"]),
                ]
            )
    return f"Milliseconds from a command's due instant to its reply; {figures['seconds']} s at each rate.\n\n" + table(
        heads, rows
    )
