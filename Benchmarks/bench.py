#!/usr/bin/env python3
"""Measures Overtime against the floor of its broker and against what people write instead.

    Benchmarks/bench.py [--only SCENARIO,…] [--rounds N] [--quick] [--plots] [--show]

Everything runs on a private broker. Contenders take turns within each round, and what is told are medians with the least
and the greatest, ratios first. Figures go to .build/bench/results.json (with --quick to results-quick.json), tables to
standard output, plots to docs/performance.
"""

import bootstrap

if __name__ == "__main__":
    bootstrap.enter()

import argparse
import json
import signal
import sys
import time

import drawing
import machine
from lab import Lab
from prepared import Stores
from scenarios import (
    engines,
    exact,
    growth,
    latency,
    memory,
    scale,
    size,
    soak,
    starting,
    throughput,
    top,
)

SCENARIOS = {
    "throughput": throughput,
    "growth": growth,
    "engines": engines,
    "latency": latency,
    "top": top,
    "exact": exact,
    "start": starting,
    "memory": memory,
    "size": size,
    "soak": soak,
    "scale": scale,
}
# Those that take long are run when they are named.
USUAL = [name for name in SCENARIOS if name not in ("soak", "scale")]


class Bench:
    """What scenarios are given."""

    def __init__(self, lab, options):
        self.lab = lab
        self.options = options
        self.stores = Stores(lab)
        self.quick = options.quick
        # What one scenario has found out and another may use.
        self.memory = {}
        self.rounds = options.rounds or (1 if options.quick else 7)
        self._began = time.monotonic()

    def say(self, text):
        print(f"{time.monotonic() - self._began:7.1f} s  {text}", file=sys.stderr, flush=True)

    def chosen(self, contenders):
        """Those that were asked for, by name or family, such as `overtime-100000` or `overtime`; else all."""
        wanted = self.options.contenders
        return [one for one in contenders if not wanted or {one.name, one.name.split("-")[0]} & set(wanted)]


def names(known):
    def read(text):
        found = [name for name in text.split(",") if name]
        for name in found:
            if known and name not in known:
                raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(known)}")
        return found

    return read


def read_options():
    parser = argparse.ArgumentParser(description="Measures Overtime; see the head of this file.")
    parser.add_argument("--only", type=names(SCENARIOS), default=[], metavar="SCENARIO,…", help=", ".join(SCENARIOS))
    parser.add_argument(
        "--contenders", type=names(()), default=[], metavar="NAME,…", help="only these, such as overtime,floor"
    )
    parser.add_argument("--rounds", type=int, help="how often each is measured (7; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    parser.add_argument("--commands", type=int, help="commands of the fastest contenders in a run")
    parser.add_argument(
        "--rate", type=float, help="commands a second: what counts as Overtime's most, for latency; of soak"
    )
    parser.add_argument("--seconds", type=int, help="how long soak lasts (3600)")
    parser.add_argument("--plots", action="store_true", help="draw docs/performance/*.svg")
    parser.add_argument("--show", action="store_true", help="measure nothing, show the figures of earlier runs")
    parser.add_argument("--keep", action="store_true", help="keep logs and stores of the run")
    return parser.parse_args()


class Results:
    """Figures of each scenario with what they were measured on; a run replaces those of its own scenarios only.

    Quick runs have a file of their own: their figures say nothing.
    """

    def __init__(self, quick):
        self.path = bootstrap.BUILD / ("results-quick.json" if quick else "results.json")
        self.scenarios = json.loads(self.path.read_text()) if self.path.exists() else {}

    def put(self, name, measured_on, figures):
        self.scenarios[name] = {"measuredOn": measured_on, "figures": figures}
        self.path.write_text(json.dumps(self.scenarios, indent=1) + "\n")

    def show(self, name):
        figures = self.scenarios[name]["figures"]
        print(f"\n## {SCENARIOS[name].TITLE}\n\n{SCENARIOS[name].show(figures)}\n", flush=True)

    def draw(self, names):
        figures = {name: self.scenarios[name]["figures"] for name in names if name in self.scenarios}
        print(*drawing.draw(figures), sep="\n")


def measure(options, chosen, results):
    if not bootstrap.BINARY.exists():
        sys.exit("bench: no release build; swift build -c release --product overtime, or set OVERTIME_BIN")
    bootstrap.make_tool()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    lab = Lab()
    try:
        lab.open()
        bench = Bench(lab, options)
        measured_on = machine.describe(lab.broker_version()) | {"rounds": bench.rounds, "quick": bench.quick}
        for name in chosen:
            bench.say(f"{SCENARIOS[name].TITLE} …")
            results.put(name, measured_on, SCENARIOS[name].run(bench))
            results.show(name)
    finally:
        lab.close(options.keep)


def main():
    options = read_options()
    results = Results(options.quick)
    if options.show:
        chosen = [name for name in options.only or SCENARIOS if name in results.scenarios]
        for name in chosen:
            results.show(name)
    else:
        chosen = options.only or USUAL
        measure(options, chosen, results)
    if options.plots:
        results.draw(chosen)


if __name__ == "__main__":
    main()
