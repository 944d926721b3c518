"""What a command costs the worker, in instructions: the same on a busy machine as on an idle one."""

import re
import shutil
from pathlib import Path

import pytest

FEW, MANY = 200, 1_000
# Decoding, deciding, a durable commit, an event, a reply, the acknowledgement, and a line of the log. 15 % above what was
# measured; more is a change for the worse that somebody should know of.
MOST = 230_000


@pytest.mark.heavy
def test_an_extension_takes_no_more_instructions_than_it_did(installation, wire, figure):
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("valgrind is not installed: scripts/install-deps does it")
    worker = installation.worker()
    rooms = [f"room-{number}" for number in range(FEW + MANY)]
    for room in rooms:
        # Eight minutes lie within the first window.
        wire.send("open", room, duration="8m", reply=False)
    for call in [wire.send("join", room, "ada") for room in rooms]:
        wire.history.wait_reply(call, 60)
    assert worker.terminate()[0] == 0

    def instructions(rooms):
        """Of a worker that finds these extensions waiting, from its start to its end."""
        calls = [wire.send("extend", room, "ada", minutes=10) for room in rooms]
        assert wire.settled([call.receipt for call in calls]) == {"ack"}
        counts = Path(installation.directory, f"callgrind.{len(rooms)}")
        tool = [valgrind, "--tool=callgrind", f"--callgrind-out-file={counts}"]
        worker = installation.start("worker", command=tool)
        for call in calls:
            assert wire.history.wait_reply(call, 120)["ok"]
        assert worker.terminate(60)[0] == 0
        return int(re.search(r"^(?:summary|totals): (\d+)", counts.read_text(), re.MULTILINE).group(1))

    each = (instructions(rooms[FEW:]) - instructions(rooms[:FEW])) / (MANY - FEW)
    figure("instructions of the worker for an extension, thousands", round(each / 1000))
    assert each < MOST, f"an extension takes {each:.0f} instructions"
