"""The brokers of a run, and how an application sends its jobs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import amqp
import dramatiq
import redis
import rq
from celery import Celery
from kombu import pools

from field.cases import Broker, Case
from field.worker_files import Place
from support.rabbitmq import RabbitServer
from support.valkeys import Valkey

DATABASES = 64
JOB_TIMEOUT_S = 3_600
RABBITMQ = "rabbit"
DRAMATIQ = "dramatiq"

Send = Callable[[str, float, str], None]
"""Sends the job of this id, which takes so many seconds, to a queue."""


@contextmanager
def places_of(cases: Sequence[Case], folder: Path) -> Iterator[list[Place]]:
    """A place per case: a database of its own in a Redis, or queues of its own in a RabbitMQ."""
    pools.reset()  # they remember which queues an earlier broker had
    with ExitStack() as stack:
        valkey = Valkey(folder, f"databases {DATABASES}")
        stack.callback(valkey.close)
        rabbit = None
        if any(case.broker is Broker.RABBITMQ for case in cases):
            (folder / "rabbit").mkdir()
            rabbit = RabbitServer(folder / "rabbit")
            stack.callback(rabbit.close)
            rabbit.start()
        places = [_place(case, number, folder, valkey, rabbit) for number, case in enumerate(cases)]
        for place in places:
            place.folder.mkdir()
            place.log.touch()
        yield places


def _place(case: Case, number: int, folder: Path, valkey: Valkey, rabbit: RabbitServer | None) -> Place:
    if case.broker is Broker.REDIS:
        url, connection = f"redis://127.0.0.1:{valkey.port}/{number}", f"redis-{number}"
        table = {"url": url, "library": case.library}
    else:
        assert rabbit is not None
        is_celery = case.library == "celery"
        if not is_celery:
            rabbit.make_vhost(DRAMATIQ)
        url, connection = (rabbit.url, RABBITMQ) if is_celery else (rabbit.make_url(DRAMATIQ), DRAMATIQ)
        library = "celery" if is_celery else "rabbitmq"
        table = {"url": url, "library": library, "management_url": rabbit.management_url}
    return Place(
        case=case,
        connection=connection,
        connection_table=table,
        url=url,
        folder=folder / case.name,
    )


@contextmanager
def sender(place: Place) -> Iterator[Send]:
    """How the application of a place sends its jobs. Its second queue is there from now on."""
    with {"celery": _celery, "rq": _rq, "dramatiq": _dramatiq}[place.case.library](place) as send:
        yield send


@contextmanager
def _celery(place: Place) -> Iterator[Send]:
    with Celery("shop", broker=place.url) as app:
        for queue in (place.queue, place.second_queue):
            if queue is not None:
                with app.connection_for_write() as connection:
                    app.amqp.queues[queue].bind(connection.default_channel).declare()
        yield lambda job_id, seconds, queue: app.send_task("work", (job_id, seconds), queue=queue)


@contextmanager
def _rq(place: Place) -> Iterator[Send]:
    with redis.Redis.from_url(place.url) as client:

        def send(job_id: str, seconds: float, queue: str) -> None:
            rq.Queue(queue, connection=client).enqueue("rq_app.work", job_id, seconds, job_timeout=JOB_TIMEOUT_S)

        if place.second_queue is not None:
            client.sadd(rq.Queue.redis_queues_keys, f"{rq.Queue.redis_queue_namespace_prefix}{place.second_queue}")
        yield send


@contextmanager
def _dramatiq(place: Place) -> Iterator[Send]:
    """Its messages as they are in the broker: Dramatiq's own sender needs a client that is not installed here."""
    address, _, vhost = place.url.removeprefix("amqp://guest:guest@").partition("/")
    with amqp.Connection(address, "guest", "guest", virtual_host=vhost) as connection:
        channel = connection.channel()

        def send(job_id: str, seconds: float, queue: str) -> None:
            message = dramatiq.Message(
                queue_name=queue, actor_name=f"work-{queue}", args=(job_id, seconds), kwargs={}, options={}
            )
            channel.basic_publish(amqp.Message(message.encode(), delivery_mode=2), routing_key=queue)

        if place.second_queue not in (None, *place.served):
            channel.queue_declare(place.second_queue, durable=True, auto_delete=False)
        yield send
