"""Overtime over HTTP: a POST is a command, a GET follows a room by server-sent events. ../README.md explains it."""

import json
import os
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pika

BROKER = pika.URLParameters(os.environ.get("OVERTIME_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/%2f"))
STATUS = {"invalid_command": 400, "invalid_policy": 400, "unauthorized": 403, "unknown_room": 404, "no_reply": 504}


class Gateway(BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            room, word = map(unquote, self.path.split("/")[2:])
            fields = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}")
            seen = [int(number) for number in self.headers.get("Last-Event-ID", "").split("/") if number]
            asks = self.command == "POST" or not seen  # who comes again need only be told what was missed
            reply = self.ask(room, "status" if self.command == "GET" else word, fields) if asks else {"ok": True}
        except (TypeError, ValueError, pika.exceptions.AMQPError) as error:
            return self.send_error(400 if isinstance(error, (TypeError, ValueError)) else 503, explain=repr(error))
        follows = self.command == "GET" and reply["ok"]
        self.send_response(200 if reply["ok"] else STATUS.get(reply["error"]["reason"], 409))
        self.send_header("Content-Type", "text/event-stream" if follows else "application/json")
        self.end_headers()
        with suppress(OSError):  # the client has gone; it may come again
            for text in self.follow(room, word.partition("?user=")[2], reply, seen) if follows else [json.dumps(reply)]:
                self.wfile.write(f"{text}\n".encode())

    do_GET = do_POST

    def ask(self, room, command, fields):
        command = fields | {"command": command, "room": room, "id": self.headers["Idempotency-Key"] or os.urandom(16).hex()}
        with pika.BlockingConnection(BROKER) as broker, broker.channel() as channel:  # for this thread alone
            replies = channel.queue_declare(f"overtime.own.gateway.{os.urandom(16).hex()}", exclusive=True).method.queue
            properties = pika.BasicProperties("application/json", delivery_mode=2, reply_to=replies)
            channel.confirm_delivery()
            channel.basic_publish("overtime.commands", room, json.dumps(command), properties, mandatory=True)
            _, _, reply = next(channel.consume(replies, auto_ack=True, inactivity_timeout=5))
        return json.loads(reply) if reply else {"ok": False, "id": command["id"], "error": {"reason": "no_reply"}}

    def follow(self, room, user, status, seen):
        last, offset = seen or (status["sequence"], "30s")
        if not seen and (session := status["session"]) and session["window"]:
            yield f"data: {json.dumps({'type': 'session.window.opened', 'subject': room, 'data': session})}\n"
        with suppress(pika.exceptions.AMQPError), pika.BlockingConnection(BROKER) as broker, broker.channel() as channel:
            channel.basic_qos(prefetch_count=1)
            for method, properties, body in channel.consume("overtime.events.log", arguments={"x-stream-offset": offset}):
                headers, audience = properties.headers, json.loads(body)["data"]["audience"]
                new = headers["room"] == room and headers["sequence"] > last and audience in ("room", f"user:{user}")
                last = headers["sequence"] if new else last
                yield f"id: {last}/{headers['x-stream-offset'] + 1}\ndata: {body.decode()}\n" if new else ":"
                channel.basic_ack(method.delivery_tag)


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 8080))), Gateway).serve_forever()
