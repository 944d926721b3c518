"""`bench-tool`, the C program: fills queues, counts replies and events, and is the floor that others are compared with."""

import json
import subprocess

from bootstrap import TOOL


class ToolError(Exception):
    """The tool ended without its figures."""


class ToolRun:
    """A running subcommand."""

    def __init__(self, arguments, environment):
        self.name = arguments[1]
        self.popen = subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self.popen.pid

    def result(self, limit):
        """Its figures, after its end."""
        try:
            output, errors = self.popen.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.end()
            raise ToolError(f"bench-tool {self.name} did not end within {limit} s") from None
        # Objects before the last one say what had to be known early, such as the instant of the start.
        figures = {}
        for line in output.splitlines():
            figures |= json.loads(line)
        # With something missing it fails, and says all the same what came.
        if self.popen.returncode != 0 and figures.get("complete", True):
            raise ToolError(f"bench-tool {self.name}: {errors.strip() or output.strip()}")
        return figures

    def end(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.communicate()


class Tool:
    def __init__(self, url, environment):
        self._url = url
        self._environment = environment
        self._runs = []

    def start(self, subcommand, **options):
        """Starts a subcommand; `reply_to="q"` becomes `--reply-to q`."""
        arguments = [str(TOOL), subcommand, "--url", self._url]
        for key, value in options.items():
            if value is not None:
                arguments += [f"--{key.replace('_', '-')}", str(value)]
        run = ToolRun(arguments, self._environment)
        self._runs = [run for run in self._runs if run.popen.poll() is None] + [run]
        return run

    def run(self, subcommand, limit=120, **options):
        return self.start(subcommand, **options).result(limit)

    def end(self):
        for run in self._runs:
            run.end()
