"""Reports the tasks of a Celery app: imported, it does so, and no line of the app changes.

    celery --app myapp worker --include headway.emit.celery

reports when tasks start and how they end. Who also imports it where tasks are sent from learns when each was sent, to
the millisecond: it goes with the message as a header, and as an event at once.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from celery import Celery, Task, current_app, signals
from celery.app.task import Context

from headway.emit.emitter import Emitter
from headway.local.iso_time import unix_s
from headway.local.topic_pattern import topic_matches, undelayed

HEADER = "headway_enqueued_at_s"
CONNECTION = os.environ.get("HEADWAY_CONNECTION", "celery")
"""What Headway calls the broker: the first part of a queue's name."""
KNOWN_MAX = 10_000  # tasks that a worker's main process has received; of more, the loss of the oldest is not reported

emitter = Emitter.from_environment()
_started_at_s: dict[str, float] = {}
"""Of the tasks that run in this process."""
_received: OrderedDict[str, tuple[str, int]] = OrderedDict()
"""Queue and attempt of tasks, in a worker's main process, which knows of a child that died."""


def queue_of(app: Celery, sent: Mapping[str, Any]) -> str:
    """What Headway calls the queue of a message that was ``sent`` with this ``exchange`` and ``routing_key``."""
    exchange, routing_key = sent.get("exchange"), sent.get("routing_key")
    queues = tuple(app.amqp.queues.values()) if exchange else ()
    for queue in queues:
        if queue.exchange is not None and (queue.exchange.name, queue.routing_key) == (exchange, routing_key):
            return f"{CONNECTION}/{queue.name}"
    for queue in queues if routing_key else ():  # each step takes time, and few have such routes
        if any(_leads(bound, str(exchange), str(routing_key)) for bound in (queue, *queue.bindings)):
            return f"{CONNECTION}/{queue.name}"
    key = undelayed(str(routing_key or ""))
    for queue in queues if key != (routing_key or "") else ():
        if any(_delivers(bound, key) for bound in (queue, *queue.bindings)):
            return f"{CONNECTION}/{queue.name}"
    return f"{CONNECTION}/{key or app.conf.task_default_queue}"  # RabbitMQ's nameless exchange, and Redis


def _leads(bound: Any, exchange: str, routing_key: str) -> bool:
    """Whether what is sent so goes where a queue of kombu, or one binding of it, has ``bound`` its exchange."""
    if bound.exchange is None or bound.exchange.name != exchange:
        return False
    if bound.exchange.type == "topic":
        return topic_matches((bound.routing_key or "").split("."), routing_key.split("."))
    return bool(bound.routing_key == routing_key)


def _delivers(bound: Any, key: str) -> bool:
    """Whether delayed delivery brings a message of this key here: it binds each exchange that is not direct."""
    if bound.exchange is None or bound.exchange.type == "direct":
        return False
    return topic_matches((bound.routing_key or "").split("."), key.split("."))


def _sending(headers: dict[str, Any] | None = None, **_: object) -> None:
    if headers is not None:
        headers[HEADER] = max(time.time(), unix_s(headers.get("eta")) or 0.0)


def _sent(sender: str, headers: Mapping[str, Any] | None = None, **sent: Any) -> None:
    # One for later does not wait before it is due: whoever starts it says so.
    if not headers or HEADER not in headers or unix_s(headers.get("eta")) is not None:
        return
    emitter.report(
        "enqueued",
        queue_of(current_app, sent),
        headers["id"],
        at_s=headers[HEADER],
        attempt=_attempt(headers.get("retries")),
        job_class=sender,
    )


def _taken(request: Any, **_: object) -> None:
    queue = queue_of(request.app, request.delivery_info)
    _received[request.id] = (queue, _attempt(request.request_dict.get("retries")))
    if len(_received) > KNOWN_MAX:
        _received.popitem(last=False)


def _started(task_id: str, task: Task, args: Any = (), **_: object) -> None:
    if task.request.is_eager:  # called where it is, and never in a queue
        return
    request, now_s = task.request, time.time()
    about = _about(task, task_id, args)
    # Celery keeps headers that it does not know in one place in some versions, in the request itself in others.
    enqueued_at_s = getattr(request, HEADER, None) or (request.headers or {}).get(HEADER)
    if enqueued_at_s is None or request.eta:
        # Nobody has said that it waited. Where nobody knows since when, it arrives as it starts.
        emitter.report("enqueued", at_s=enqueued_at_s or now_s, **about)
    emitter.report("started", at_s=now_s, enqueued_at_s=enqueued_at_s, **about)
    _started_at_s[task_id] = now_s


def _ended(
    task_id: str, task: Task, args: Any = (), state: str | None = None, retval: object = None, **_: object
) -> None:
    if task.request.is_eager:
        return
    started_at_s, about, now_s = _started_at_s.pop(task_id, None), _about(task, task_id, args), time.time()
    # The main process says of one that was rejected for good, and of one that is being ended, that it has failed.
    is_put_back = state == "REJECTED" and getattr(retval, "requeue", False)
    if state in {"SUCCESS", "IGNORED"}:
        emitter.report("finished", at_s=now_s, started_at_s=started_at_s, **about)
    elif state in {"FAILURE", "RETRY"} or is_put_back:
        emitter.report("failed", at_s=now_s, started_at_s=started_at_s, **about)
    # A task whose message was acknowledged as it began cannot be put back.
    if state == "RETRY" or (is_put_back and task.acks_late):
        # At the time of the failure, which is then none of the job.
        emitter.report("retried", about["queue"], task_id, at_s=now_s, job_class=task.name)


def _failed(sender: Task, task_id: str, **_: object) -> None:
    """A task failed. The process that ran it says so as it ends, unless it was killed; then this is the main one."""
    known = _received.pop(task_id, None)
    if task_id not in _started_at_s and known is not None:
        queue, attempt = known
        emitter.report("failed", queue, task_id, attempt=attempt, job_class=sender.name)


def _revoked(sender: Task, request: Any, *, terminated: bool, **_: object) -> None:
    """A task was revoked, or has expired. One that ran is ended by the main process, and has no end of its own."""
    if terminated:
        _failed(sender, request.id)
        return
    _received.pop(request.id, None)
    queue = queue_of(sender.app, request.delivery_info or {})
    emitter.report("revoked", queue, request.id, attempt=_attempt(request.retries), job_class=sender.name)


def _about(task: Task, task_id: str, args: Any) -> dict[str, Any]:
    """What each event says of a task; a batch of celery-batches has no message, and is of the queue of its first."""
    request: Context = task.request
    sent = args[0][0].delivery_info if request.id is None else request.delivery_info
    return {
        "queue": queue_of(task.app, sent or {}),
        "job_id": task_id,
        "attempt": _attempt(request.retries),
        "job_class": task.name,
    }


def _attempt(retries: int | None) -> int:
    return (retries or 0) + 1


for _signal, _act in (
    (signals.before_task_publish, _sending),
    (signals.after_task_publish, _sent),
    (signals.task_received, _taken),
    (signals.task_prerun, _started),
    (signals.task_postrun, _ended),
    (signals.task_failure, _failed),
    (signals.task_revoked, _revoked),
):
    _signal.connect(_act, weak=False)
