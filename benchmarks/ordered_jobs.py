"""The jobs of ``queue_order.py``, for the workers of each library: a job writes how long it waited, and takes its time.

The environment says which library and broker it is, where to write, and in what order Celery takes from its queues.
"""

import os
import time
from pathlib import Path
from typing import Any

URGENT, BULK = "urgent", "bulk"
QUORUM = "quorum"  # a type of RabbitMQ's queues, in the place of a strategy
LIBRARY, WAITS, BROKER, STRATEGY = (f"ORDERED_JOBS_{name}" for name in ("LIBRARY", "WAITS", "BROKER", "STRATEGY"))


def run(queue: str, takes_s: float, entered_at_s: float) -> None:
    """One job of ``queue``."""
    line = f"{queue} {time.time() - entered_at_s:.6f}\n"
    with Path(os.environ[WAITS]).open("a") as file:  # a short line is written in one piece
        file.write(line)
    time.sleep(takes_s)


def _celery_app() -> Any:
    from celery import Celery

    app = Celery("ordered", broker=os.environ[BROKER])
    app.conf.broker_connection_retry_on_startup = True
    strategy = os.environ.get(STRATEGY)
    if strategy == QUORUM:
        app.conf.task_default_queue_type = app.conf.task_create_missing_queue_type = QUORUM
    elif strategy:
        app.conf.broker_transport_options = {"queue_order_strategy": strategy}
    return app


def _dramatiq_actors() -> dict[str, Any]:
    import dramatiq
    from dramatiq.brokers.redis import RedisBroker

    dramatiq.set_broker(RedisBroker(url=os.environ[BROKER], middleware=[]))
    return {each: dramatiq.actor(run, actor_name=f"run_{each}", queue_name=each) for each in (BULK, URGENT)}


if os.environ.get(LIBRARY) == "celery":
    app = _celery_app()
    task = app.task(name="run")(run)
elif os.environ.get(LIBRARY) == "dramatiq":
    actors = _dramatiq_actors()
