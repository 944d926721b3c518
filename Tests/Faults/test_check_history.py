"""The checker as a program: pointed at the event log of a run that it had no part in."""

import subprocess
import sys

from end_to_end import ROOT, SHORT

PROGRAM = [sys.executable, str(ROOT / "Tests/Faults/check_history.py")]


def check(lines, *options):
    found = subprocess.run(
        [*PROGRAM, *options], input=b"".join(line + b"\n" for line in lines), capture_output=True, timeout=60)
    return found.returncode, found.stdout.decode()


def test_the_log_of_a_run(installation, wire, history, worker, scheduler):
    for number in range(5):
        wire.ok("open", f"room-{number}", duration="2s", policy=SHORT)
        wire.ok("join", f"room-{number}", "ada")
    for number in range(5):
        history.wait_event(f"room-{number}", "session.ended", 15)
    worker.terminate()
    count = sum(len(events) for events in history.rooms.values())
    watched = installation.run("watch", "--from", "first", "--json", "--count", str(count))
    assert watched.returncode == 0, watched.stderr
    lines = watched.stdout.encode().splitlines()
    store = installation.store.url
    code, said = check(lines, "--store", store)
    assert (code, said) == (0, f"{count} events of 5 rooms: no problems\n")
    # One that is missing, one that was changed, one that the store does not know.
    code, said = check(lines[:7] + lines[8:], "--store", store)
    assert code == 1 and "was due" in said
    changed = next(line for line in lines if b"ada" in line).replace(b"ada", b"eve")
    code, said = check([*lines, changed])
    assert code == 1 and "differs" in said
    code, said = check([line.replace(b"room-4", b"room-9") for line in lines], "--store", store)
    assert code == 1 and "room-9, which the store does not know" in said
    code, said = check([b"no event"])
    assert code == 2 and "line 1" in said
