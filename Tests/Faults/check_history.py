"""Checks the events of any run: those that `overtime watch --json` printed, and the store that the run left behind.

    overtime watch --from first --json --count N | python Tests/Faults/check_history.py [--store STORE]

The store is a SQLite file, read from a copy, or a URL of PostgreSQL. It is only whole once its workers have ended.
Exit code 1 where a guarantee was broken.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "EndToEnd"))

from dump import Dump  # noqa: E402
from history import Event, History  # noqa: E402
from stores import store_at  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="the SQLite file or the PostgreSQL URL of the workers, after their end")
    options = parser.parse_args()
    history = History()
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            history.note_event(Event(line.rstrip(b"\n"), None))
        except (ValueError, KeyError) as error:
            print(f"line {number} is no event: {error!r}")
            return 2
    problems = []
    try:
        history.check()
    except AssertionError as error:
        problems += str(error).splitlines()
    if options.store:
        problems += Dump(store_at(options.store)).rest(history)
    for problem in problems:
        print(problem)
    print(f"{history.copies} events of {len(history.rooms)} rooms: {len(problems) or 'no'} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
