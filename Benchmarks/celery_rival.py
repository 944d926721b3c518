"""The job as a Celery task, with the settings that make Celery fast at it and keep what it must not lose.

    celery -A celery_rival worker …             takes tasks
    celery_rival.py fill COUNT ROOMS STRIDE QUEUE   enqueues that many extends, answered on QUEUE

Late acknowledgement, so that a crash loses no command; confirms for all that is published; results are not kept, since
the reply goes to the sender's queue. A window is re-armed as a task with an ETA in a queue that nobody consumes here: to
hold them as well would slow Celery down, and is not what this measures.
"""

import os
import sys
import uuid
from datetime import datetime, timezone

import prepared
import rival_job
import rival_store
from celery import Celery
from kombu import Connection, Exchange, Producer

COMMANDS, TIMERS = "bench.celery", "bench.celery.timers"

app = Celery("rival", broker=os.environ["RIVAL_URL"].replace("%2f", "/"))
app.conf.update(
    task_default_queue=COMMANDS,
    task_acks_late=True,
    task_ignore_result=True,
    task_serializer="json",
    worker_prefetch_multiplier=25,
    worker_disable_rate_limits=True,
    worker_send_task_events=False,
    broker_transport_options={"confirm_publish": True},
    broker_connection_retry_on_startup=True,
    broker_heartbeat=0,
)


class Outlet:
    """A process's own database handle and publisher, made at the first task: neither survives a fork."""

    def __init__(self):
        self._pid = None

    def get(self):
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self.database = rival_store.connect(os.environ["RIVAL_STORE"])
            connection = Connection(app.conf.broker_url, transport_options={"confirm_publish": True})
            self.producer = Producer(connection.channel(), serializer=None, auto_declare=False)
        return self


outlet = Outlet()
events = Exchange(rival_job.EVENTS, type="fanout", passive=True)


@app.task(bind=True, name="extend")
def extend(self, room, user, minutes):
    mine = outlet.get()
    event, reply, due = rival_job.extend(mine.database, self.request.id, room, user, minutes)
    if event:
        room, sequence, text = event
        mine.producer.publish(
            text.encode(),
            exchange=events,
            routing_key=rival_job.EVENT_TYPE,
            declare=[],
            delivery_mode=2,
            content_type="application/cloudevents+json",
            content_encoding="utf-8",
            type=rival_job.EVENT_TYPE,
            message_id=f"{room}:{sequence}",
            headers={"room": room, "sequence": sequence},
        )
        announce.apply_async((room, sequence), eta=datetime.fromtimestamp(due / 1000, timezone.utc), queue=TIMERS)
    mine.producer.publish(
        reply.encode(),
        exchange="",
        routing_key=self.request.reply_to,
        delivery_mode=2,
        content_type="application/json",
        content_encoding="utf-8",
        correlation_id=self.request.correlation_id,
    )


@app.task(name="announce")
def announce(room, sequence):
    """What would open the window; see above."""


def fill(count, rooms, stride, queue):
    with app.connection_for_write() as connection, app.amqp.Producer(connection) as producer:
        for index in prepared.touched(count, rooms, stride=stride):
            extend.apply_async(
                (prepared.name(index), prepared.USER, 10),
                task_id=str(uuid.uuid4()),
                reply_to=queue,
                producer=producer,
            )


if __name__ == "__main__":
    _, _, COUNT, ROOMS, STRIDE, QUEUE = sys.argv
    fill(int(COUNT), int(ROOMS), int(STRIDE), QUEUE)
