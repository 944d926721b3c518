"""The dead letters beside a running worker: a letter is destroyed by `drop` only, and only the one that is named."""

import json

import pytest
from waiting import poll

LETTERS = 600


def listed(installation):
    done = installation.run("dead", "list", "--json")
    assert done.returncode == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def depth(broker, installation):
    """How many letters there are; looking at them would change what the broker tells of them."""
    channel = broker.channel()
    count = channel.queue_declare(f"{installation.prefix}.dead", passive=True).method.message_count
    channel.close()
    return count


def sent(wire, count, body):
    for number in range(count):
        wire.publish(f"{wire.prefix}.commands", "r", body(number))


@pytest.mark.parametrize("looks", [0, 1])
def test_commands_that_die_again_are_letters_again(installation, worker, wire, broker, looks):
    sent(wire, LETTERS, lambda number: json.dumps({"command": "jion", "room": "r", "id": f"k{number}"}).encode())
    poll(lambda: depth(broker, installation) == LETTERS, 20, "the letters")
    for _ in range(looks):
        assert len(listed(installation)) == LETTERS
    done = installation.run("dead", "retry", "--all", "--json", "--timeout", "25")
    assert done.returncode == 0, done
    outcomes = [json.loads(line)["outcome"] for line in done.stdout.splitlines()]
    assert outcomes == ["retried"] * LETTERS
    poll(lambda: depth(broker, installation) >= LETTERS, 10, "the letters of the commands that died again")
    letters = listed(installation)
    assert sorted(letter["key"] for letter in letters) == sorted(f"k{number}" for number in range(LETTERS))


@pytest.mark.parametrize("action, left", [("drop", 1), ("retry", 2)])
def test_one_of_two_equal_letters(installation, worker, wire, broker, action, left):
    sent(wire, 2, lambda _: b"[]")
    poll(lambda: depth(broker, installation) == 2, 10, "two letters")
    first, second = (letter["id"] for letter in listed(installation))
    assert second == f"{first}-2"
    done = installation.run("dead", action, first, "--json")
    assert done.returncode == 0, done
    # The worker makes a letter again of a command that is retried.
    poll(lambda: depth(broker, installation) >= left, 10, "what is left")
    assert [letter["id"] for letter in listed(installation)] == [first, second][:left]


@pytest.mark.parametrize(
    "arguments", [["list"], ["list", "--json"], ["drop", "--all"], ["retry", "--all"], ["show", "x"]]
)
def test_letters_that_another_reader_holds(installation, worker, wire, broker, arguments):
    """It cannot know of them, and must not say that there are none."""
    sent(wire, 5, lambda number: b"[" * (number + 1))
    poll(lambda: depth(broker, installation) == 5, 10, "five letters")
    channel = broker.channel()
    for _ in channel.consume(f"{installation.prefix}.dead", inactivity_timeout=5):
        if depth(broker, installation) == 0:
            break
    done = installation.run("dead", *arguments, "--timeout", "6")
    channel.cancel()
    channel.close()
    assert done.returncode == 3 and done.stdout == "", done
    assert "1 other reader(s) of the dead letters may hold some" in done.stderr
    poll(lambda: depth(broker, installation) == 5, 10, "the letters to be back")
    assert len(listed(installation)) == 5
