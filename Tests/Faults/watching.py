"""What a process does while something is broken: its use of the processor, and what it says."""

import os
import time
from contextlib import contextmanager

_TICKS = os.sysconf("SC_CLK_TCK")
# One message each, not a state.
_OF_ONE = {
    "reply dropped", "dead-lettered", "event passed over: a queue bound to the events kept refusing it",
    "event passed over: the broker closes the channel over it, and nobody has it",
    "the broker closes the channel over an event: its room waits, and is tried again in 60 s"}
# What changes from try to try and is no news.
_IGNORED = {"time", "retryInMs", "ts"}


def processor_seconds(process):
    with open(f"/proc/{process.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class Shares:
    """Shares of one processor that were used while the block lasted, by the name of the process."""

    def __init__(self):
        self.used = {}
        self.seconds = 0


@contextmanager
def no_hot_loop(*processes, most=0.2):
    """A fault is no reason to run hot: less than a fifth of a processor each."""
    before = {process: processor_seconds(process) for process in processes}
    began = time.monotonic()
    shares = Shares()
    yield shares
    shares.seconds = time.monotonic() - began
    for process in processes:
        share = (processor_seconds(process) - before[process]) / max(shares.seconds, 0.001)
        shares.used[process.name] = round(share, 3)
        # A tick of the kernel's clock more or less must not decide.
        assert share < most + 0.05 / max(shares.seconds, 0.001), (
            f"{process.name} used {share:.0%}: {process.tail()}"
        )


def check_said_once(process, after=0):
    """No two lines running say the same of the same thing: one line a change of state."""
    last, repeated = {}, []
    for line in process.lines[after:]:
        if line.get("level") not in ("warning", "error"):
            # A sign of life ends the state that was complained of.
            if line.get("message") == "connected":
                last.clear()
            if line.get("message") == "the store works again":
                last.pop("the store fails: nothing is consumed until it works again", None)
            for key in ("connection", "queue", "channel"):
                last.pop(line.get(key), None)
            continue
        about = line.get("connection") or line.get("queue") or line.get("channel") or line.get("message")
        content = {key: value for key, value in line.items() if key not in _IGNORED}
        if last.get(about) == content and line.get("message") not in _OF_ONE:
            repeated.append(line)
        last[about] = content
    assert not repeated, f"{process.name} says the same again: {repeated[:3]} in {process.tail(30)}"


def check_store(installation, store=None):
    """How many events are left to publish, by the stopped worker's store; it is whole."""
    for process in reversed(installation.processes):
        if process.running:
            assert process.terminate(20)[0] == 0, process.tail()
    store = store or installation.store
    assert not store.defects()
    with store.read() as rows:
        return rows("SELECT count(*) FROM outbox")[0][0]
