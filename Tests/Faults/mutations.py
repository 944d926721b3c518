"""Mutations of valid commands, all drawn from one seed: bytes, JSON structure, properties and headers."""

import json
import random

import pika

ROOMS = 40
_ODD = [
    None,
    True,
    False,
    0,
    -1,
    1,
    0.5,
    1e308,
    2**63,
    -(2**63),
    10**30,
    "",
    " ",
    "0",
    "1h",
    "1h1h",
    "90s",
    "🎥",
    "é",
    "e\u0301",
    "\u0000",
    "a\u0000b",
    "\ud800",
    "\u202e",
    "x" * 128,
    "x" * 129,
    "ä" * 64,
    "x" * 5_000,
    [],
    [[]],
    ["ada"],
    [None],
    {},
    {"a": 1},
    {"windows": ["10m", "5m"]},
    "../../etc/passwd",
    "'; DROP TABLE rooms; --",
    "%s%n",
    "{{7*7}}",
    "\r\nlevel=error",
    "\x1b[2J",
]
_FIELDS = [
    "command",
    "room",
    "user",
    "id",
    "duration",
    "policy",
    "moderators",
    "role",
    "by",
    "minutes",
    "query",
    "Command",
    "ROOM",
    "",
]
_POLICY = ["windows", "extension", "extenders", "maxExtensions", "maxTotal", "clock", "reopen", "minuets"]


class Mutator:
    """Draws messages; the nth of a seed is always the same."""

    def __init__(self, seed, prefix, reply_to, token):
        self.random = random.Random(seed)
        self.prefix = prefix
        self.reply_to = reply_to
        self.token = token
        self.ids = []

    def valid(self, number):
        draw = self.random
        word = draw.choice(["open", "join", "join", "leave", "extend", "destroy", "status"])
        command = {"command": word, "room": f"room-{draw.randrange(ROOMS)}"}
        if word != "status" or draw.random() < 0.2:
            command["user"] = f"user-{draw.randrange(8)}"
        if draw.random() < 0.8:
            command["id"] = (
                draw.choice(self.ids) if self.ids and draw.random() < 0.1 else f"{self.token}-{number}"
            )
            self.ids = [*self.ids[-50:], command["id"]]
        if word == "open":
            command["duration"] = draw.choice(["1h", 60, "2s", "90m", 0.05])
            if draw.random() < 0.5:
                command["policy"] = {"windows": draw.choice([["10m", "5m"], ["1h"], ["1s", "500ms"]])}
                if draw.random() < 0.5:
                    command["policy"]["clock"] = draw.choice(["first-join", "first-moderator", "open"])
                if draw.random() < 0.5:
                    command["policy"]["reopen"] = draw.choice(["command", "join"])
            if draw.random() < 0.3:
                command["moderators"] = ["user-0", "user-1"]
        elif word == "join":
            command["role"] = draw.choice(["moderator", "participant", "viewer"])
        elif word == "extend" and draw.random() < 0.5:
            command["by"] = draw.choice(["10m", "1h", 5])
        return command

    # Each takes what it mutates and gives back the mutated.

    def structure(self, command):
        draw = self.random
        for _ in range(draw.randint(1, 3)):
            turn = draw.randrange(6)
            key = draw.choice(list(command) or ["room"])
            if turn == 0:
                command.pop(key, None)
            elif turn == 1:
                command[draw.choice(_FIELDS)] = draw.choice(_ODD)
            elif turn == 2:
                command[key] = draw.choice(_ODD)
            elif turn == 3:
                policy = command.get("policy")
                policy = dict(policy) if isinstance(policy, dict) else {}
                policy[draw.choice(_POLICY)] = draw.choice(
                    [*_ODD, {"min": "1h"}, ["5m", "10m"], "anyone", "moderators"]
                )
                command["policy"] = policy
            elif turn == 4:
                value = draw.choice(_ODD)
                for _ in range(draw.choice([1, 5, 14, 15, 16, 17, 40])):
                    value = [value] if draw.random() < 0.5 else {"k": value}
                command[draw.choice(_FIELDS)] = value
            else:
                command["command"] = draw.choice(
                    ["open", "join", "leave", "extend", "destroy", "status", "OPEN", "opne"]
                )
        return command

    def text(self, command):
        """As JSON, now and then in a way that means the same, or repeats a key."""
        draw = self.random
        body = json.dumps(
            command, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, None, None, 1])
        )
        body = body.encode("utf-8", "surrogatepass")
        if draw.random() < 0.05 and body.startswith(b"{") and len(command) > 0:
            key = draw.choice(list(command))
            body = (
                b"{"
                + json.dumps(key).encode()
                + b":"
                + json.dumps(draw.choice(["a", 1, None])).encode()
                + b","
                + body[1:]
            )
        return body

    def damaged(self, body):
        draw = self.random
        data = bytearray(body)
        for _ in range(draw.choice([1, 1, 1, 2, 5, 30])):
            if not data:
                break
            at = draw.randrange(len(data))
            turn = draw.randrange(7)
            if turn == 0:
                data[at] ^= 1 << draw.randrange(8)
            elif turn == 1:
                data[at] = draw.randrange(256)
            elif turn == 2:
                del data[at : at + draw.choice([1, 2, 10])]
            elif turn == 3:
                data[at:at] = bytes(draw.randrange(256) for _ in range(draw.choice([1, 2, 10])))
            elif turn == 4:
                del data[at:]
            elif turn == 5:
                data[at:at] = data[max(0, at - 20) : at]
            else:
                data[at:at] = draw.choice(
                    [
                        b"\xef\xbb\xbf",
                        b"\x00",
                        b"\\u0000",
                        b"\\ud800",
                        b"[" * 40,
                        b"1e999",
                        b"//",
                        b"NaN",
                        b'"',
                    ]
                )
        return bytes(data)

    def short(self):
        draw = self.random
        return draw.choice(
            [
                "",
                "x",
                "x" * 255,
                b"\xff\xfe",
                b"\x00",
                "json",
                "application/json",
                "application/JSON; a=b",
                "gzip",
                "ä" * 127,
                "join",
                "open",
                b"\xc3",
                "\r\n",
                "%00",
            ]
        )

    def properties(self, number):
        """The properties that keep an answer possible; the others in one message of fifty."""
        draw = self.random
        found = {}
        for name in draw.sample(
            ["content_type", "content_encoding", "type", "message_id", "app_id", "cluster_id"],
            draw.randint(1, 3),
        ):
            found[name] = self.short()
        if draw.random() < 0.5:
            found["priority"] = draw.randrange(256)
        if draw.random() < 0.5:
            found["delivery_mode"] = draw.choice([1, 2])
        if draw.random() < 0.5:
            found["timestamp"] = draw.choice([0, 1, 2**31, 2**63 - 1])
        if draw.random() < 0.1:
            found["expiration"] = draw.choice(["3600000", "4294967295"])
        if draw.random() < 0.5:
            found["headers"] = self.table(3)
        return found

    def table(self, depth):
        draw = self.random
        keys = [
            "k",
            "x-death",
            "x-overtime-reason",
            "x-delivery-count",
            "x-match",
            "",
            "room",
            "sequence",
            "ä",
            "x" * 127,
        ]
        return {draw.choice(keys): self.value(depth) for _ in range(draw.randint(0, 4))}

    def value(self, depth):
        draw = self.random
        if depth and draw.random() < 0.4:
            return (
                self.table(depth - 1)
                if draw.random() < 0.5
                else [self.value(depth - 1) for _ in range(draw.randint(0, 3))]
            )
        return draw.choice([None, True, 0, -1, 2**31, 2**62, "", "text", "\u0000", b"\xff\x00", "x" * 300])

    def message(self, number):
        """Exchange, key, body, properties; every answer and letter tells the number."""
        draw = self.random
        command = self.valid(number)
        turn = draw.random()
        attributes = {}
        if turn < 0.25:
            body = self.text(command)
        elif turn < 0.55:
            body = self.text(self.structure(command))
        elif turn < 0.80:
            body = self.damaged(self.text(command))
        else:
            body = self.text(command if draw.random() < 0.7 else self.structure(command))
            attributes = self.properties(number)
        headers = dict(attributes.pop("headers", None) or {}) | {"n": number}
        properties = pika.BasicProperties(
            **({"delivery_mode": 2, "reply_to": self.reply_to, "correlation_id": str(number)} | attributes),
            headers=headers,
        )
        return f"{self.prefix}.commands", "k", body, properties, False
