"""Metrics and health as a monitoring system sees them: over HTTP, by the text format, against docs/metrics.md."""

import re
import socket
import urllib.error
import urllib.request
from pathlib import Path

from waiting import poll

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/metrics.md"
# Metrics of which a value was seen to change, in any test of this run.
MOVED = set()
SUFFIXES = ("_bucket", "_sum", "_count")


def table():
    """The documented metrics: name to type, labels and where it comes from."""
    rows = {}
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and re.fullmatch(r"`(overtime|process)_\w+`", cells[0]):
            rows[cells[0].strip("`")] = {
                "type": cells[1],
                "labels": set(re.findall(r"`(\w+)`", cells[3])),
                "from": {"worker", "scheduler"} if cells[4] == "both" else {cells[4]},
            }
    assert rows, f"{DOCUMENT} has no table"
    return rows


def free_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


class Exposition:
    """One answer of /metrics, taken apart."""

    def __init__(self, text):
        self.text = text
        self.types = {}
        self.values = {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ")
                self.types[name] = kind
            elif not line.startswith("#"):
                name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
                pairs = frozenset(re.findall(r'(\w+)="([^"]*)"', labels or ""))
                self.values[name, pairs] = float(value)

    def metric(self, sample):
        """The metric that a sample belongs to."""
        for suffix in SUFFIXES:
            if sample.endswith(suffix) and self.types.get(sample.removesuffix(suffix)) == "histogram":
                return sample.removesuffix(suffix)
        return sample

    def get(self, name, **labels):
        """The sum of the samples with this name and these labels; None where there is none."""
        wanted = set(labels.items())
        found = [value for (key, pairs), value in self.values.items() if key == name and wanted <= pairs]
        return sum(found) if found else None


class Watched:
    """A process with its HTTP address; what changes between two looks is noted in MOVED."""

    def __init__(self, address):
        self.address = address
        self._last = {}

    def get(self, path, method="GET", limit=10):
        """Status and body."""
        request = urllib.request.Request(f"http://{self.address}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=limit) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def look(self):
        status, text = self.get("/metrics")
        assert status == 200, text
        seen = Exposition(text)
        for key, value in seen.values.items():
            if self._last.setdefault(key, value) != value:
                MOVED.add(seen.metric(key[0]))
        self._last |= seen.values
        return seen

    def wait(self, name, reached, limit=15, **labels):
        """Looks until a value is as it should be."""

        def found():
            value = self.look().get(name, **labels)
            return value is not None and reached(value)

        poll(found, limit, lambda: f"{name} {labels}; it is {self.look().get(name, **labels)}")

    def wait_ready(self, limit=20):
        poll(
            lambda: self.get("/readyz")[0] == 200,
            limit,
            lambda: f"{self.address} to be ready; it says {self.get('/readyz')}",
        )

    def wait_not_ready(self, words, limit=20):
        def found():
            status, body = self.get("/readyz")
            return status == 503 and words in body

        poll(found, limit, lambda: f"/readyz to say {words!r}; it says {self.get('/readyz')}")
