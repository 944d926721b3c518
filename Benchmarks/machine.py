"""On what was measured: enough to judge the figures by, and nothing that names the machine."""

import os
import platform
import sqlite3
import subprocess
from importlib import metadata
from pathlib import Path

from bootstrap import BINARY, BUILD, ROOT


def describe(broker_version):
    return {
        "cores": os.cpu_count(),
        "processor": _first("/proc/cpuinfo", "model name"),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "system": _first("/etc/os-release", "PRETTY_NAME", "=").strip('"'),
        "filesystem": _filesystem(),
        "overtime": _run([BINARY, "--version"]),
        "commit": _run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude", "*"]),
        "rabbitmq": broker_version,
        "erlang": _run(["erl", "-noshell", "-eval", "io:put_chars(erlang:system_info(otp_release)), halt()."]),
        "librabbitmq": _run(["pkg-config", "--modversion", "librabbitmq"]),
        "sqlite": _run(["pkg-config", "--modversion", "sqlite3"]),
        "python": platform.python_version(),
        "sqliteOfPython": sqlite3.sqlite_version,
        "pika": metadata.version("pika"),
        "celery": metadata.version("celery"),
    }


def _first(path, key, separator=":"):
    for line in Path(path).read_text().splitlines():
        name, _, value = line.partition(separator)
        if name.strip() == key:
            return value.strip()
    return "unknown"


def _run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()


def _filesystem():
    """Of where stores and broker lie: how long a sync takes depends on it."""
    return _run(["stat", "--file-system", "--format=%T", BUILD])
