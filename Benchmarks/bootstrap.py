"""What the benchmarks stand on: their Python packages, the C program, the release build. Needs nothing but Python itself."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / ".build/bench"
VENV = BUILD / "venv"
TOOL = BUILD / "bench-tool"
BINARY = Path(os.environ.get("OVERTIME_BIN") or ROOT / ".build/release/overtime")
# The tests' modules for running processes and reading metrics serve here too.
HELPERS = ROOT / "Tests/EndToEnd"


def make_venv():
    """The pinned packages in an environment of their own, made anew where the list has changed."""
    wanted = (HERE / "requirements.txt").read_text()
    stamp = VENV / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    # Debian's own interpreter, which python3-venv belongs to, before one of a version manager.
    python = next(name for name in ("/usr/bin/python3", sys.executable) if os.access(name, os.X_OK))
    subprocess.run([python, "-m", "venv", "--clear", VENV], check=True)
    pip = [VENV / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([*pip, "-r", HERE / "requirements.txt"], check=True)
    stamp.write_text(wanted)


def make_tool():
    """Compiled anew where a source is newer."""
    sources = [file for file in (HERE / "tool").iterdir() if file.is_file()]
    if not TOOL.exists() or max(file.stat().st_mtime for file in sources) > TOOL.stat().st_mtime:
        subprocess.run([HERE / "tool/build"], check=True)


def enter():
    """Goes on in the environment of its own; returns there."""
    helpers = str(HELPERS)
    if sys.prefix == str(VENV) and os.environ.get("PYTHONPATH") == helpers:
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    make_venv()
    python = str(VENV / "bin/python")
    environment = os.environ | {"PYTHONPATH": helpers, "PYTHONDONTWRITEBYTECODE": "1"}
    sys.stdout.flush()
    os.execve(python, [python, *sys.argv], environment)
