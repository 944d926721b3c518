"""The worker one writes first in Python: pika, a transaction a message, each publication confirmed before the next step."""

import json
import os
import signal

import pika
import rival_job
import rival_store

PREFETCH = 50


class Worker:
    def __init__(self, url, store):
        self._database = rival_store.connect(store)
        self._connection = pika.BlockingConnection(pika.URLParameters(url))
        self._channel = self._connection.channel()
        self._channel.basic_qos(prefetch_count=PREFETCH)
        self._publisher = self._connection.channel()
        self._publisher.confirm_delivery()

    def run(self):
        self._channel.basic_consume("overtime.commands", self._handle)
        signal.signal(signal.SIGTERM, lambda *_: self._connection.add_callback_threadsafe(self._channel.stop_consuming))
        self._channel.start_consuming()
        self._connection.close()

    def _handle(self, channel, method, properties, body):
        command = json.loads(body)
        event, reply, _ = rival_job.extend(
            self._database, properties.message_id, command["room"], command["user"], command["minutes"]
        )
        if event:
            room, sequence, text = event
            self._publish(
                rival_job.EVENTS,
                rival_job.EVENT_TYPE,
                text,
                content_type="application/cloudevents+json",
                type=rival_job.EVENT_TYPE,
                message_id=f"{room}:{sequence}",
                headers={"room": room, "sequence": sequence},
            )
        self._publish(
            "", properties.reply_to, reply, content_type="application/json", correlation_id=properties.correlation_id
        )
        channel.basic_ack(method.delivery_tag)

    def _publish(self, exchange, key, text, **properties):
        """Returns when the broker has confirmed it, and raises where it did not."""
        self._publisher.basic_publish(
            exchange, key, text.encode(), pika.BasicProperties(delivery_mode=2, app_id="rival", **properties)
        )


if __name__ == "__main__":
    Worker(os.environ["RIVAL_URL"], os.environ["RIVAL_STORE"]).run()
