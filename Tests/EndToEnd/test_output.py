"""Where the command line prints, and what others may have published into the events."""

import json
import subprocess

import pytest


def test_an_output_that_takes_nothing_is_no_success(installation, worker):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [installation.binary, "send", "open", "--room", "r"],
            env=installation.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
            check=False,
        )
    assert done.returncode == 74
    assert done.stderr == "overtime: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("minutes", ["1e300", "-1e300", "9223372036854775807", "-9223372036854775808", "0.1e-300"])
def test_numbers_of_strangers_do_not_end_watch(installation, broker, minutes):
    installation.worker()
    assert installation.run("send", "open", "--room", "r").returncode == 0
    event = json.dumps({"timeLeft": 0, "window": 1, "final": True, "extendable": True, "room": "r"})
    body = (
        '{"specversion":"1.0","id":"r:2","source":"x","type":"session.window.opened","subject":"r",'
        '"time":"2026-11-29T12:21:48.000Z","datacontenttype":"application/json","sequence":"2","data":'
        + event.replace('"timeLeft": 0', f'"timeLeft": {minutes}')
        + "}"
    )
    channel = broker.channel()
    channel.basic_publish(f"{installation.prefix}.events", "session.window.opened", body.encode())
    channel.close()
    done = installation.run("watch", "--from", "first", "--count", "2")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2, done.stdout + done.stderr


@pytest.mark.parametrize("timeout", ["9223372036854775807ms", "367d", "0", "-1", "1e3"])
def test_timeouts_have_a_limit(installation, timeout):
    done = installation.run("send", "status", "--room", "r", f"--timeout={timeout}")
    assert done.returncode == 2 and "--timeout" in done.stderr


def test_an_unknown_option_is_named_without_its_value(installation):
    done = installation.run("send", "status", "--room", "r", "--amqp-ulr=amqp://u:hunter2@h")
    assert done.returncode == 2 and "--amqp-ulr" in done.stderr and "hunter2" not in done.stderr
