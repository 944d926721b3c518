"""The broker, the processes and the history of Tests/EndToEnd, and the tracer that kills at a step."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _end_to_end():
    """The conftest of Tests/EndToEnd under a name of its own, as this one is `conftest` here."""
    spec = importlib.util.spec_from_file_location("end_to_end", ROOT / "Tests/EndToEnd/conftest.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["end_to_end"] = module
    spec.loader.exec_module(module)
    return module


end_to_end = _end_to_end()
MARK, FIGURES = end_to_end.MARK, end_to_end.FIGURES
binary, broker, figure = end_to_end.binary, end_to_end.broker, end_to_end.figure
nothing_left_behind = end_to_end.nothing_left_behind
pytest_terminal_summary = end_to_end.pytest_terminal_summary


@pytest.fixture
def say(request):
    """Prints a line while the test runs, as it may take long and its seeds must be known whatever comes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(line):
        with capture.global_and_fixture_disabled():
            print(f"\n{line}", end="", flush=True)

    return say


@pytest.fixture(scope="session")
def killpoint(tmp_path_factory):
    """The tracer, built from its one source file."""
    compiler = next((found for name in ("cc", "clang", "gcc") if (found := shutil.which(name))), None)
    if compiler is None:
        pytest.skip("there is no C compiler to build the tracer with")
    target = str(tmp_path_factory.mktemp("killpoint") / "killpoint")
    source = ROOT / "Tests/Faults/killpoint.c"
    subprocess.run(
        [compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-o", target, source], check=True, timeout=60)
    return target
