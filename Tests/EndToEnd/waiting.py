"""Waiting with a limit: every wait ends, and says what it waited for."""

import threading
import time


class TimedOut(AssertionError):
    """What was waited for did not come in time."""


class Signal:
    """A condition that is told of every change, so that waiting needs neither sleeping nor asking again."""

    def __init__(self):
        self._condition = threading.Condition()

    def __enter__(self):
        return self._condition.__enter__()

    def __exit__(self, *error):
        return self._condition.__exit__(*error)

    def tell(self):
        with self._condition:
            self._condition.notify_all()

    def wait(self, found, limit, what):
        """Returns what `found()` returns once that is true; it is asked after each change."""
        end = time.monotonic() + limit
        with self._condition:
            while True:
                result = found()
                if result:
                    return result
                left = end - time.monotonic()
                if left <= 0:
                    raise TimedOut(f"waited {limit} s for {what() if callable(what) else what}")
                self._condition.wait(left)


def poll(found, limit, what, every=0.05):
    """For what gives no signal, such as a broker's counters: asks again until the limit."""
    end = time.monotonic() + limit
    pause = threading.Event()
    while True:
        result = found()
        if result:
            return result
        if time.monotonic() >= end:
            raise TimedOut(f"waited {limit} s for {what() if callable(what) else what}")
        pause.wait(every)


def until(instant):
    """Lets the wall clock reach an instant that the test must stand after; no result is waited for."""
    pause = threading.Event()
    while (left := instant - time.time()) > 0:
        pause.wait(left)
