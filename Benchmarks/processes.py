"""What a process uses: processor time and memory, read from /proc."""

import os
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Usage:
    """Processor seconds so far, and resident memory now and at its highest, in KiB."""

    cpu: float
    resident: int
    peak: int

    def __add__(self, other):
        return Usage(self.cpu + other.cpu, self.resident + other.resident, self.peak + other.peak)


def usage(pid):
    """Of one process, without its children."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    # The name, in parentheses, may hold anything.
    fields = stat[stat.rindex(")") + 2 :].split()
    memory = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key in ("VmRSS", "VmHWM"):
            memory[key] = int(value.split()[0])
    cpu = (int(fields[11]) + int(fields[12])) / TICKS
    return Usage(cpu, memory.get("VmRSS", 0), memory.get("VmHWM", 0))


def children(pid):
    """The living children of a process, and theirs."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat[stat.rindex(")") + 2 :].split()[1]), []).append(int(entry.name))
    found, new = [], [pid]
    while new:
        new = [child for parent in new for child in parents.get(parent, [])]
        found += new
    return found


def tree_usage(pid):
    """Of a process and all that it started and that still lives."""
    total = usage(pid)
    for child in children(pid):
        try:
            total += usage(child)
        except OSError:
            continue
    return total
