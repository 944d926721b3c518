"""A client that knows nothing of Overtime but its wire contract: pika, one connection on its own thread."""

import itertools
import json
import secrets
import threading
from collections import deque
from concurrent.futures import Future

import pika
from history import Call, Event
from pika.adapters.select_connection import SelectConnection

# Confirmed, refused by the broker, returned as unroutable, or unknown because the connection went.
ACK, NACK, RETURNED, LOST = "ack", "nack", "returned", "lost"
_IN_FLIGHT = 2_000
AUTOMATIC = object()


class Receipt:
    __slots__ = ("state",)

    def __init__(self):
        self.state = None


class Wire:
    """One connection with a channel that publishes with confirms and one that consumes.

    Of several URLs, separated by commas, each connection takes the next one that answers.
    """

    # Of its durable queues.
    queue_arguments = {}
    heartbeat = 30

    def __init__(self, url, prefix, history):
        self._urls = deque(url.split(","))
        self.prefix = prefix
        self.history = history
        self.token = secrets.token_hex(4)
        # Not exclusive: it outlives a lost connection, so that no answer is missed.
        self.reply_queue = f"replies.{prefix}.{self.token}"
        self.queues = {self.reply_queue}
        self.lost = False
        self._numbers = itertools.count(1)
        self._waiting = deque()
        self._unconfirmed = {}
        self._pending = set()
        self._consumers = {}
        self._start()
        self.declare(self.reply_queue)
        self.consume(self.reply_queue, self._on_reply)

    # The connection.

    @property
    def url(self):
        """Where it is connected."""
        return self._urls[-1]

    def _start(self):
        for left in reversed(range(len(self._urls))):
            self._urls.rotate(-1)
            try:
                return self._connect(self.url)
            except (ConnectionError, TimeoutError):
                self.lost = True
                if not left:
                    raise

    def _connect(self, url):
        self._opened = Future()
        self._closing = False
        self.lost = False
        self._tag = 0
        parameters = pika.URLParameters(url)
        parameters.heartbeat = self.heartbeat
        parameters.stack_timeout = 8
        parameters.client_properties = {"connection_name": f"end-to-end test {self.prefix}"}
        self._connection = SelectConnection(
            parameters,
            on_open_callback=self._on_open,
            on_open_error_callback=self._on_open_error,
            on_close_callback=self._on_close,
        )
        self._thread = threading.Thread(
            target=self._connection.ioloop.start, name=f"wire {self.prefix}", daemon=True
        )
        self._thread.start()
        self._opened.result(30)

    def _on_open(self, connection):
        connection.channel(on_open_callback=self._on_publisher)

    def _on_open_error(self, connection, error):
        self._opened.set_exception(ConnectionError(repr(error)))
        connection.ioloop.stop()

    def _on_publisher(self, channel):
        self._publisher = channel
        channel.add_on_return_callback(self._on_return)
        channel.add_on_close_callback(self._on_channel_closed)
        channel.confirm_delivery(
            self._on_confirm, callback=lambda _: self._connection.channel(on_open_callback=self._on_consumer)
        )

    def _on_consumer(self, channel):
        self._consumer = channel
        channel.add_on_close_callback(self._on_channel_closed)
        channel.basic_qos(prefetch_count=2_000, callback=lambda _: self._opened.set_result(True))

    def _on_channel_closed(self, channel, error):
        if channel is self._publisher:
            self._lose_unconfirmed()
        for future in list(self._pending):
            if not future.done():
                future.set_exception(error)
        if not self._closing:
            self.history.problems.append(f"the test's own channel was closed: {error!r}") if isinstance(
                error, pika.exceptions.ChannelClosedByBroker
            ) else None

    def _on_close(self, connection, error):
        self._lose_unconfirmed()
        self.lost = True
        connection.ioloop.stop()
        self.history.changed.tell()

    def _lose_unconfirmed(self):
        for receipt in itertools.chain(self._unconfirmed.values(), (entry[-1] for entry in self._waiting)):
            receipt.state = LOST
        self._unconfirmed.clear()
        self._waiting.clear()
        self.history.changed.tell()

    def reconnect(self, limit=60):
        """After the broker went: the same queues, the same consumers."""
        self.history.changed.wait(lambda: self.lost, limit, "the connection to be lost")
        self._thread.join(10)
        self._start()
        for queue, (handler, arguments) in list(self._consumers.items()):
            self.consume(queue, handler, arguments)

    def close(self):
        self._closing = True
        if not self.lost:
            self._connection.ioloop.add_callback_threadsafe(self._connection.close)
        self._thread.join(10)

    def _on_loop(self, action, limit=20):
        """Runs `action(done)` on the connection's thread and waits until it calls `done`."""
        future = Future()
        self._pending.add(future)

        def run():
            try:
                action(lambda frame=None: future.done() or future.set_result(frame))
            except Exception as error:  # noqa: BLE001 - it belongs to the caller
                future.set_exception(error)

        self._connection.ioloop.add_callback_threadsafe(run)
        try:
            return future.result(limit)
        finally:
            self._pending.discard(future)

    # Queues.

    def declare(self, queue, bindings=(), **arguments):
        self.queues.add(queue)
        arguments = self.queue_arguments | arguments
        self._on_loop(
            lambda done: self._consumer.queue_declare(
                queue, durable=True, arguments=arguments or None, callback=done
            )
        )
        for exchange, key in bindings:
            self._on_loop(
                lambda done, exchange=exchange, key=key: self._consumer.queue_bind(
                    queue, exchange, key, callback=done
                )
            )

    def consume(self, queue, handler, arguments=None):
        self._consumers[queue] = handler, arguments

        def deliver(channel, method, properties, body):
            handler(method, properties, body)
            channel.basic_ack(method.delivery_tag)

        self._on_loop(
            lambda done: self._consumer.basic_consume(
                queue, deliver, arguments=arguments, consumer_tag=queue, callback=done
            )
        )

    def cancel(self, queue):
        """Stops consuming; what comes now waits in the queue."""
        del self._consumers[queue]
        self._on_loop(lambda done: self._consumer.basic_cancel(queue, callback=done))

    def count(self, queue):
        frame = self._on_loop(lambda done: self._consumer.queue_declare(queue, passive=True, callback=done))
        return frame.method.message_count

    def audit(self):
        """Hears every event from the first on: declares the exchange as the contract says, worker or not."""
        name = f"audit.{self.prefix}.{self.token}"
        self._on_loop(
            lambda done: self._consumer.exchange_declare(
                f"{self.prefix}.events", "fanout", durable=True, callback=done
            )
        )
        self.declare(name, [(f"{self.prefix}.events", "")])
        self.consume(name, self.on_event)
        return name

    def on_event(self, method, properties, body):
        event = Event(body, properties, method.routing_key, method.redelivered)
        self.history.note_event(event)

    def _on_reply(self, _method, properties, body):
        self.history.note_reply(properties.correlation_id, json.loads(body), properties)

    # Publishing.

    def _on_confirm(self, frame):
        method = frame.method
        state = ACK if isinstance(method, pika.spec.Basic.Ack) else NACK
        if method.multiple:
            tags = [tag for tag in self._unconfirmed if tag <= method.delivery_tag]
        else:
            tags = [method.delivery_tag]
        for tag in tags:
            receipt = self._unconfirmed.pop(tag)
            if receipt.state is None:
                receipt.state = state
        self._pump()
        if len(self._unconfirmed) + len(self._waiting) < 10 or not self._waiting:
            self.history.changed.tell()

    def _on_return(self, _channel, _method, properties, _body):
        # Returns come before their confirm and carry no tag; a message is known by its correlation.
        for receipt in self._unconfirmed.values():
            if getattr(receipt, "correlation", None) == properties.correlation_id:
                receipt.state = RETURNED

    def _pump(self):
        if not self._publisher.is_open:
            # The connection is about to be lost: it has been said to this channel, and not yet to the rest.
            return self._lose_unconfirmed()
        while self._waiting and len(self._unconfirmed) < _IN_FLIGHT:
            exchange, key, body, properties, mandatory, receipt = self._waiting.popleft()
            self._tag += 1
            self._unconfirmed[self._tag] = receipt
            self._publisher.basic_publish(exchange, key, body, properties, mandatory)

    def publish(self, exchange, key, body, properties=None, mandatory=False):
        """Hands a message over; the receipt is told what became of it."""
        return self.publish_many([(exchange, key, body, properties or pika.BasicProperties(), mandatory)])[0]

    def publish_many(self, messages):
        receipts = []

        def run(entries):
            if self.lost:
                for entry in entries:
                    entry[-1].state = LOST
                return
            self._waiting.extend(entries)
            self._pump()

        messages = iter(messages)
        while entries := [(*message, Receipt()) for message in itertools.islice(messages, 500)]:
            receipts += [entry[-1] for entry in entries]
            self._connection.ioloop.add_callback_threadsafe(lambda entries=entries: run(entries))
        return receipts

    def settled(self, receipts, limit=30):
        """Waits until each of these has its end, and returns the set of ends."""
        waiting = deque(receipts)

        def found():
            while waiting and waiting[0].state is not None:
                waiting.popleft()
            return not waiting

        self.history.changed.wait(found, limit, lambda: f"confirms of the broker; {len(waiting)} are missing")
        return {receipt.state for receipt in receipts}

    # Commands.

    def message(
        self, command, room, user=None, id=AUTOMATIC, body=None, properties=None, reply=True, **fields
    ):
        """A command as exchange, key, body, properties, mandatory; and the call that collects its answers."""
        number = next(self._numbers)
        if id is AUTOMATIC:
            id = f"k-{self.token}-{number}"
        value = {"command": command, "room": room, "user": user, "id": id} | fields
        value = {key: item for key, item in value.items() if item is not None or key in fields}
        call = Call(number, value, f"c-{self.token}-{number}")
        attributes = {"delivery_mode": 2, "content_type": "application/json"} | (properties or {})
        if reply:
            attributes = {"reply_to": self.reply_queue, "correlation_id": call.correlation} | attributes
            self.history.calls[call.correlation] = call
        if body is None:
            body = json.dumps(value, ensure_ascii=False).encode()
        key = room if isinstance(room, str) and 0 < len(room.encode()) <= 255 else "-"
        properties = pika.BasicProperties(**attributes)
        call.message = body, properties
        return (f"{self.prefix}.commands", key, body, properties, False), call

    def send(self, command, room, user=None, **fields):
        message, call = self.message(command, room, user, **fields)
        call.receipt = self.publish(*message)
        return call

    def ask(self, command, room, user=None, limit=10, **fields):
        """Publishes a command and returns the answer."""
        return self.history.wait_reply(self.send(command, room, user, **fields), limit)

    def ok(self, command, room, user=None, **fields):
        reply = self.ask(command, room, user, **fields)
        assert reply["ok"], reply
        return reply

    def refused(self, reason, command, room, user=None, **fields):
        reply = self.ask(command, room, user, **fields)
        assert not reply["ok"], f"{command} should have been refused as {reason}: {reply}"
        assert (reply["error"]["reason"], reply["error"]["code"]) == (reason, CODES[reason]), reply
        assert len(reply["error"]["message"]) > 10, f"a sentence should help: {reply}"
        return reply

    def again(self, call, properties=None):
        """The same command once more, with a correlation of its own."""
        message, repeat = self.message(
            None,
            call.command.get("room"),
            id=None,
            body=json.dumps(call.command).encode(),
            properties=properties,
        )
        repeat.command = call.command
        repeat.receipt = self.publish(*message)
        return repeat

    def query(self, body, limit=10):
        """Asks a question of the exchange of queries."""
        number = next(self._numbers)
        call = Call(number, body, f"q-{self.token}-{number}")
        self.history.calls[call.correlation] = call
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        properties = pika.BasicProperties(reply_to=self.reply_queue, correlation_id=call.correlation)
        call.message = raw, properties
        self.publish(f"{self.prefix}.queries", "", raw, properties)
        return self.history.wait_reply(call, limit)

    def dead_letters(self):
        """Reads the dead letters into the history, acknowledging them."""
        self.consume(
            f"{self.prefix}.dead",
            lambda _method, properties, body: self.history.note_letter(body, properties),
        )


CODES = {
    "invalid_command": 6008,
    "id_reused": 6009,
    "unknown_room": 6002,
    "invalid_policy": 6007,
    "session_over": 6010,
    "no_session": 6003,
    "not_connected": 6001,
    "unauthorized": 5116,
    "limit_reached": 6006,
    "already_extended": 6005,
    "window_not_open": 6004,
}
